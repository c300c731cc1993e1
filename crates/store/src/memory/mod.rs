//! [`MemoryStore`]: the contract in its simplest form, and the model that the databases are compared with.
//!
//! One mutex guards plain maps, so every verb is one transaction by itself. A verb checks everything before it writes
//! anything: nothing after the first write can fail. What a decision returns is written down in `state`; each family of
//! verbs has its file.
//!
//! It reads no clock: [`MemoryStore::set_now`] says what [`ClusterStore::now`](everbell_core::store::ClusterStore::now) answers.

mod access;
mod alerts;
mod audit;
mod backfills;
mod calendars;
mod chains;
mod cluster;
mod counters;
mod inbox;
mod job_changes;
mod jobs;
mod leases;
mod org_timers;
mod orgs;
mod outcomes;
mod pages;
mod purge;
mod rearm;
mod remote;
mod reports;
mod runs;
mod state;
mod targets;
mod timers;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use everbell_core::store::{AuditEntry, StoreError, StoreResult, UnavailableReason};
use jiff::Timestamp;
use tokio::sync::Notify;

use state::State;

/// A store that lives as long as its process: for tests, and as the reference for the databases.
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: Mutex<State>,
    clock: Mutex<Timestamp>,
    fault: Mutex<Option<FaultPoint>>,
    notify: Notify,
    can_partition: AtomicBool,
}

/// The point at which a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultPoint {
    /// Nothing has happened.
    Before,
    /// It takes effect, but the answer is lost.
    After,
    /// Nothing has happened, and asking again is of no use.
    Refused,
}

impl FaultPoint {
    /// The error that the caller sees.
    pub fn error(self) -> StoreError {
        let (what, maybe_done) = match self {
            FaultPoint::Before => ("a fault that a test asked for", false),
            FaultPoint::After => ("an answer that a test wanted lost", true),
            FaultPoint::Refused => return StoreError::Corrupt { what: "a refusal that a test asked for".to_owned() },
        };
        let reason = UnavailableReason::Unreachable;
        StoreError::Unavailable { what: what.to_owned(), reason, maybe_done, source: None }
    }

    /// The error of a call that does nothing.
    pub(crate) fn at_once(self) -> Option<StoreError> {
        (self != FaultPoint::After).then(|| self.error())
    }
}

impl MemoryStore {
    /// An empty store, whose clock stands at the Unix epoch.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    /// Sets the clock that [`ClusterStore::now`](everbell_core::store::ClusterStore::now) reads.
    pub fn set_now(&self, now: Timestamp) {
        *guard(&self.clock) = state::micros(now);
    }

    /// Makes instances stop their handlers before their leases end, as on a database that is reached over a network.
    pub fn set_can_partition(&self, can: bool) {
        self.can_partition.store(can, Ordering::Relaxed);
    }

    /// Makes the next call of any verb fail, once.
    pub fn fail_next(&self, point: FaultPoint) {
        *guard(&self.fault) = Some(point);
    }

    fn clock(&self) -> Timestamp {
        *guard(&self.clock)
    }

    /// One verb: one transaction, and the fault that a test asked for.
    fn with<T>(&self, verb: impl FnOnce(&mut State) -> StoreResult<T>) -> StoreResult<T> {
        let fault = guard(&self.fault).take();
        if let Some(error) = fault.and_then(FaultPoint::at_once) {
            return Err(error);
        }
        let answer = verb(&mut guard(&self.state));
        if fault == Some(FaultPoint::After) {
            return Err(FaultPoint::After.error());
        }
        answer
    }

    /// Runs a verb that may carry out a request, once, and that may wake loops.
    fn once<T>(&self, audit: &AuditEntry, verb: impl FnOnce(&mut State) -> StoreResult<T>) -> StoreResult<T> {
        let answer = self.once_quietly(audit, verb);
        self.notify.notify_waiters();
        answer
    }

    /// Like `once`, for a verb that wakes no loop.
    fn once_quietly<T>(&self, audit: &AuditEntry, verb: impl FnOnce(&mut State) -> StoreResult<T>) -> StoreResult<T> {
        self.with(|state| {
            state.expect_new_request(audit)?;
            verb(state)
        })
    }
}

/// A decision that panics does so before anything is written, so what the mutex holds is still whole.
fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
