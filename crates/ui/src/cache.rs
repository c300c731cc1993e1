//! [`UiCache`]: what pages reuse across requests.

use std::sync::{Mutex, MutexGuard, PoisonError};

use everbell_core::store::Counts;
use jiff::{SignedDuration, Timestamp};

use super::hours::Hours;

/// How old the numbers of the navigation may be.
const COUNTS_TTL: SignedDuration = SignedDuration::from_secs(2);

/// Data that pages reuse across requests.
#[derive(Debug, Default)]
pub(crate) struct UiCache {
    pub(super) hours: Hours,
    counts: Mutex<Option<(Timestamp, Counts)>>,
}

impl UiCache {
    fn cached(&self) -> MutexGuard<'_, Option<(Timestamp, Counts)>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the numbers of the navigation, unless they are too old.
    pub(super) fn counts(&self, now: Timestamp) -> Option<Counts> {
        self.cached().clone().filter(|(at, _)| now.duration_since(*at) < COUNTS_TTL).map(|(_, counts)| counts)
    }

    /// Keeps the numbers of the navigation for the next pages.
    pub(super) fn keep_counts(&self, now: Timestamp, counts: &Counts) {
        *self.cached() = Some((now, counts.clone()));
    }

    /// Drops the cached counts after a change.
    pub(super) fn invalidate_counts(&self) {
        *self.cached() = None;
    }
}
