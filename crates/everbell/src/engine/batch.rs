//! [`BatchSize`]: how much goes into one transaction. What did not finish in time is tried again with less.

use everbell_core::store::StoreResult;

/// A batch is never made smaller than this.
const MIN_BATCH: u32 = 5;

/// The size of the next batch: halved after each timeout, and a quarter larger after each success, up to a maximum.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchSize {
    max: u32,
    current: u32,
}

impl BatchSize {
    pub(super) fn new(max: u32) -> BatchSize {
        BatchSize { max, current: max }
    }

    pub(super) fn get(self) -> u32 {
        self.current
    }

    /// Learns from the answer to a batch. Other failures than a timeout say nothing about its size.
    pub(super) fn learn<T>(&mut self, answer: &StoreResult<T>) {
        match answer {
            Ok(_) => self.current = self.current.saturating_add((self.current / 4).max(1)).min(self.max),
            Err(error) if error.is_timeout() => self.current = (self.current / 2).max(MIN_BATCH).min(self.max),
            Err(_) => {}
        }
    }
}

/// The size of the next of several batches in a row: the first is small, so that what comes first starts at once, and each
/// is four times as large as the one before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ramp(u32);

impl Ramp {
    /// As many runs as start within a few milliseconds.
    const FIRST: u32 = 50;

    pub(super) fn new() -> Ramp {
        Ramp(Ramp::FIRST)
    }

    pub(super) fn get(self) -> u32 {
        self.0
    }

    /// A batch was full, so another follows, or was not.
    pub(super) fn looked(&mut self, full: bool) {
        self.0 = if full { self.0.saturating_mul(4) } else { Ramp::FIRST };
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use everbell_core::store::{StoreError, UnavailableReason};

    use super::*;

    fn failed(reason: UnavailableReason) -> StoreResult<()> {
        Err(StoreError::Unavailable { what: "planning".to_owned(), reason, maybe_done: false, source: None })
    }

    fn late() -> StoreResult<()> {
        failed(UnavailableReason::TimedOut(Duration::from_secs(5)))
    }

    #[test]
    fn a_batch_shrinks_after_timeouts_and_grows_back() {
        let mut batch = BatchSize::new(500);
        batch.learn(&late());
        assert_eq!(batch.get(), 250);
        batch.learn(&failed(UnavailableReason::Unreachable));
        batch.learn(&failed(UnavailableReason::Locked));
        assert_eq!(batch.get(), 250, "its size was not the reason");
        for _ in 0..20 {
            batch.learn(&late());
        }
        assert_eq!(batch.get(), MIN_BATCH);
        let mut rounds = 0;
        while batch.get() < 500 {
            let before = batch.get();
            batch.learn(&Ok(()));
            assert!(batch.get() > before);
            rounds += 1;
        }
        assert!(rounds < 40, "{rounds}");
        batch.learn(&Ok(()));
        assert_eq!(batch.get(), 500);
    }

    #[test]
    fn batches_in_a_row_grow_from_a_small_one() {
        let mut ramp = Ramp::new();
        let sizes = [true, true, false, true].map(|full| {
            let size = ramp.get();
            ramp.looked(full);
            size
        });
        assert_eq!(sizes, [50, 200, 800, 50]);
    }

    #[test]
    fn a_batch_stays_within_what_was_asked_for() {
        let mut batch = BatchSize::new(2);
        batch.learn(&late());
        assert_eq!(batch.get(), 2);
    }
}
