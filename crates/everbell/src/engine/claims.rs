//! [`Claims`]: which claims are under way whose answers may still start runs, and whether pending runs wait for one.
//!
//! A run that is leased to this instance and unknown here is either on its way, in the answer to a claim, or orphaned: the
//! answer was lost or came too late. Only an orphan may be given back, else its handler starts twice. Claims are numbered as
//! they begin; a claim has ended when its runs are known here, or never will be. So a run that is unknown after every claim
//! has ended that began before it was reported is an orphan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use everbell_core::Target;
use tracing::warn;

use super::Shared;

#[derive(Debug)]
pub(crate) struct Claims {
    under_way: Mutex<Numbers>,
    dropped: AtomicBool,
    /// How often pending runs were noted that wait for a claim.
    noted: AtomicU64,
    /// For each target, that number at the begin of the last look that found no more of its runs than it took.
    seen: Mutex<BTreeMap<Target, u64>>,
}

#[derive(Debug, Default)]
struct Numbers {
    begun: u64,
    under_way: BTreeSet<u64>,
}

impl Default for Claims {
    /// Until the first look, pending runs may wait.
    fn default() -> Claims {
        let (dropped, noted) = (AtomicBool::new(false), AtomicU64::new(1));
        Claims { under_way: Mutex::default(), dropped, noted, seen: Mutex::default() }
    }
}

impl Claims {
    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A claim begins. It ends when the answer is dropped.
    pub(super) fn begin(&self) -> UnderWay<'_> {
        let mut numbers = self.numbers();
        numbers.begun += 1;
        let number = numbers.begun;
        numbers.under_way.insert(number);
        UnderWay { claims: self, number }
    }

    /// The number of the claim that began last.
    pub(super) fn latest(&self) -> u64 {
        self.numbers().begun
    }

    /// Whether this claim and all before it have ended.
    pub(super) fn have_ended(&self, number: u64) -> bool {
        self.numbers().under_way.first().is_none_or(|oldest| *oldest > number)
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

    /// Pending runs may wait that the claimer has not seen.
    pub(super) fn note_pending(&self) {
        self.noted.fetch_add(1, Ordering::SeqCst);
    }

    /// The claimer begins to look for pending runs.
    pub(super) fn look(&self) -> u64 {
        self.noted.load(Ordering::SeqCst)
    }

    /// The look that began with this number found no more runs of these targets than it took.
    pub(super) fn saw_all<'a>(&self, look: u64, targets: impl Iterator<Item = &'a Target>) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for target in targets {
            match seen.get_mut(target) {
                Some(seen) => *seen = look,
                None => drop(seen.insert(target.clone(), look)),
            }
        }
    }

    /// A look had no room for these targets, or filled it.
    pub(super) fn saw_not_all<'a>(&self, targets: impl Iterator<Item = &'a Target>) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for target in targets {
            seen.remove(target);
        }
    }

    /// Whether pending runs of a target may wait, so that the next free place is theirs.
    pub(super) fn may_wait(&self, target: &Target) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(target) != Some(&self.noted.load(Ordering::SeqCst))
    }
}

/// A claim whose answer may still start runs.
#[derive(Debug)]
pub(super) struct UnderWay<'a> {
    claims: &'a Claims,
    number: u64,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.claims.numbers().under_way.remove(&self.number);
    }
}

impl Shared {
    /// Whether the answer to a claim that was sent at `sent` comes too late: its leases may have been taken from this
    /// instance by now.
    pub(super) fn is_late(&self, sent: Duration) -> bool {
        self.clock.monotonic().saturating_sub(sent) > self.options.lease.claim_within()
    }

    /// Gives runs back that this answer to a claim, which was lost or came too late, has leased or may have leased to this
    /// instance. The heartbeat does that.
    pub(super) fn drop_claims(&self, runs: Option<usize>) {
        if let Some(runs) = runs {
            warn!(runs, "dropped a claim whose answer came too late; its runs are released");
        }
        self.claims.note_dropped();
        self.signals.beat.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_end_in_any_order() {
        let claims = Claims::default();
        let first = claims.begin();
        let second = claims.begin();
        assert_eq!(claims.latest(), 2);
        drop(second);
        assert!(!claims.have_ended(1) && !claims.have_ended(2), "the first is still under way");
        let third = claims.begin();
        drop(first);
        assert!(claims.have_ended(2) && !claims.have_ended(3));
        drop(third);
        assert!(claims.have_ended(3));
    }

    #[test]
    fn what_comes_during_a_look_still_waits() {
        let (claims, mail, log) = (Claims::default(), Target::new("mail").unwrap(), Target::new("log").unwrap());
        assert!(claims.may_wait(&mail), "nobody has looked");
        let look = claims.look();
        claims.note_pending();
        claims.saw_all(look, [&mail, &log].into_iter());
        assert!(claims.may_wait(&mail) && claims.may_wait(&log));
        claims.saw_all(claims.look(), [&mail].into_iter());
        assert!(!claims.may_wait(&mail) && claims.may_wait(&log), "one had no room");
        claims.saw_not_all([&mail].into_iter());
        assert!(claims.may_wait(&mail));
    }
}
