//! Runs by the hour, with what earlier visits have read.
//!
//! How many runs an hour has, and how they ended, is asked each time: indexes tell, so it costs little. How late they began
//! and how long they took needs every run, so it is read once for an hour whose runs have all ended. As long as their
//! numbers are the same they are the same runs: what has ended never changes.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use everbell::Runs;
use everbell_core::RunStatus;
use everbell_core::store::{Bucket, RunHistogram, StoreResult};
use jiff::Timestamp;

/// A cache of hours whose runs have all ended.
#[derive(Debug, Default)]
pub(crate) struct Hours(Mutex<Vec<Bucket>>);

impl Hours {
    /// All runs between these bounds, with times.
    pub(crate) async fn read(&self, runs: &Runs, bounds: &[Timestamp]) -> StoreResult<Vec<Bucket>> {
        let mut buckets = runs.count_runs_by_time(&RunHistogram::new(bounds.to_vec())?).await?;
        let missing = fill_known(&mut buckets, &self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for part in missing {
            let histogram = RunHistogram::new(bounds[part.start..=part.end].to_vec())?.with_times();
            for (index, bucket) in part.zip(runs.count_runs_by_time(&histogram).await?) {
                buckets[index] = bucket;
            }
        }
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            buckets.iter().filter(|bucket| is_over(bucket)).cloned().collect();
        Ok(buckets)
    }
}

/// Fills in cached hours and returns the missing ones.
fn fill_known(buckets: &mut [Bucket], known: &[Bucket]) -> Vec<Range<usize>> {
    let mut missing: Vec<Range<usize>> = Vec::new();
    for (index, bucket) in buckets.iter_mut().enumerate() {
        match known.iter().find(|known| is_over(bucket) && is_same(bucket, known)) {
            Some(known) => bucket.clone_from(known),
            None => match missing.last_mut().filter(|last| last.end == index) {
                Some(last) => last.end += 1,
                None => missing.push(index..index + 1),
            },
        }
    }
    missing
}

/// Whether every run has ended.
fn is_over(bucket: &Bucket) -> bool {
    bucket.pending + bucket.running == 0
}

fn is_same(one: &Bucket, other: &Bucket) -> bool {
    let counts = |bucket: &Bucket| RunStatus::ALL.iter().map(|status| bucket.count(*status)).collect::<Vec<_>>();
    (one.from, one.to) == (other.from, other.to) && counts(one) == counts(other)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// An hour with this many succeeded and running runs.
    fn hour(hour: i64, succeeded: u64, running: u64) -> Bucket {
        let at = |hour: i64| Timestamp::from_second(hour * 3_600).unwrap();
        let mut bucket = Bucket::new(at(hour), at(hour + 1));
        (bucket.succeeded, bucket.running) = (succeeded, running);
        bucket
    }

    /// Adds times to a bucket.
    fn timed(bucket: Bucket) -> Bucket {
        let mut bucket = bucket;
        bucket.durations.add(bucket.succeeded, Duration::from_secs(9), Duration::from_secs(3));
        bucket
    }

    #[test]
    fn an_hour_is_known_while_its_runs_are_the_same() {
        let known = [timed(hour(1, 5, 0)), timed(hour(2, 7, 0)), timed(hour(3, 8, 0)), timed(hour(4, 1, 0))];
        let mut buckets = [hour(1, 5, 0), hour(2, 8, 0), hour(3, 8, 1), hour(4, 1, 0), hour(5, 0, 0)];
        assert_eq!(fill_known(&mut buckets, &known), [1..3, 4..5]);
        assert_eq!([&buckets[0], &buckets[3]], [&known[0], &known[3]]);
        assert_eq!(buckets[1], hour(2, 8, 0));
    }

    #[test]
    fn what_still_runs_is_read_each_time() {
        let known = [timed(hour(1, 5, 1)), timed(hour(3, 5, 1))];
        let missing = fill_known(&mut [hour(1, 5, 1), hour(3, 5, 1)], &known);
        assert_eq!(missing.into_iter().map(|part| part.len()).sum::<usize>(), 2);
    }
}
