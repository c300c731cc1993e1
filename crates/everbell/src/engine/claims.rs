//! [`Claims`]: whether a claim is under way whose answer may still start runs.
//!
//! A run that is leased to this instance and unknown here is either on its way, in the answer to a claim, or orphaned: the
//! answer was lost or came too late. Only an orphan may be given back, else its handler starts twice. The claimer makes one
//! claim after the other and numbers them; a claim has ended when its runs are known here, or never will be. So a run that
//! is unknown after every claim has ended that began before it was reported is an orphan.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[derive(Debug, Default)]
pub(crate) struct Claims {
    begun: AtomicU64,
    ended: AtomicU64,
    dropped: AtomicBool,
}

impl Claims {
    /// A claim begins. It ends when the answer is dropped.
    pub(super) fn begin(&self) -> UnderWay<'_> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        UnderWay(self)
    }

    /// The number of the claim that began last.
    pub(super) fn latest(&self) -> u64 {
        self.begun.load(Ordering::SeqCst)
    }

    /// Whether this claim and all before it have ended.
    pub(super) fn have_ended(&self, number: u64) -> bool {
        self.ended.load(Ordering::SeqCst) >= number
    }

    /// Runs may be leased to this instance that will never start here.
    pub(super) fn note_dropped(&self) {
        self.dropped.store(true, Ordering::SeqCst);
    }

    /// Whether runs may have to be given back.
    pub(super) fn were_dropped(&self) -> bool {
        self.dropped.load(Ordering::SeqCst)
    }

    /// Like `were_dropped`, and forgets it.
    pub(super) fn take_dropped(&self) -> bool {
        self.dropped.swap(false, Ordering::SeqCst)
    }
}

/// A claim whose answer may still start runs.
#[derive(Debug)]
pub(super) struct UnderWay<'a>(&'a Claims);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}
