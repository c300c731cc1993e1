//! Faults on demand: the n-th call to the database fails. Only there when the conformance suite is; see `fault_injection_off.rs`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use everbell_core::store::{StoreError, StoreResult, UnavailableReason};

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is refused before it does anything.
    Refused,
    /// The connection is gone. The caller cannot know whether a commit happened; it did not.
    Cut,
    /// It is done, but the answer is lost.
    Unheard,
}

/// The call that fails, if any. Calls are the begin, each statement and the commit of a transaction.
#[derive(Debug, Default)]
pub(super) struct Faults(Mutex<Option<(u32, Fault)>>);

/// The kind of a call: only the effect of a commit can be in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Statement,
    Commit,
}

/// The error that the caller gets when the call is done, if the answer shall be lost.
#[must_use]
pub(super) struct Later(Option<StoreError>);

impl Later {
    pub(super) fn heard(self) -> StoreResult<()> {
        self.0.map_or(Ok(()), Err)
    }
}

impl Faults {
    /// Makes the call after `calls` others fail, once.
    pub(super) fn set(&self, calls: u32, fault: Fault) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((calls, fault));
    }

    pub(super) fn is_pending(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Fails now, or returns what will fail when the call is done.
    pub(super) fn before(&self, what: &str, call: Call, broken: &AtomicBool) -> StoreResult<Later> {
        let error = |said: &str, maybe_done| {
            let what = format!("{what}: {said}");
            StoreError::Unavailable { what, reason: UnavailableReason::Unreachable, maybe_done, source: None }
        };
        match self.take() {
            None => Ok(Later(None)),
            Some(Fault::Refused) => Err(error("a fault that a test asked for", false)),
            Some(Fault::Cut) => {
                broken.store(true, Ordering::Relaxed);
                Err(error("a connection that a test cut", call == Call::Commit))
            }
            Some(Fault::Unheard) => Ok(Later(Some(error("an answer that a test wanted lost", call == Call::Commit)))),
        }
    }

    fn take(&self) -> Option<Fault> {
        let mut next = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (calls, fault) = (*next)?;
        *next = calls.checked_sub(1).map(|calls| (calls, fault));
        next.is_none().then_some(fault)
    }
}
