//! Counters of runs by job: how many ended in which way, how long they took, how late they started.

use std::collections::BTreeMap;
use std::time::Duration;

use super::lags::Durations;
use crate::failure::FailureCode;
use crate::ids::{JobKey, Target};
use crate::run::{Run, RunStatus};

/// The owner of counters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CounterKey {
    /// A recurring job: all versions and all orgs.
    Job(JobKey),
    /// All one-time jobs with this target. Each has a key of its own, so counting them by key would keep as many rows as
    /// there were jobs.
    OneTime(Target),
}

/// Runs that ended in some hours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunCounters {
    /// How many succeeded.
    pub succeeded: u64,
    /// How many failed.
    pub failed: u64,
    /// How many were canceled.
    pub canceled: u64,
    /// How many were skipped.
    pub skipped: u64,
    /// How many ended with each failure code.
    pub failures: BTreeMap<String, u64>,
    /// How long the last attempts took; see [`Run::duration`].
    pub took: TimeCounts,
    /// How late scheduled runs started; see [`Run::fire_lag`].
    pub delays: TimeCounts,
}

impl RunCounters {
    /// How many there are.
    pub fn runs(&self) -> u64 {
        self.succeeded + self.failed + self.canceled + self.skipped
    }

    /// Adds this many runs of a status. Runs that have not ended are not counted.
    pub fn add(&mut self, status: RunStatus, runs: u64) {
        *match status {
            RunStatus::Pending | RunStatus::Running => return,
            RunStatus::Succeeded => &mut self.succeeded,
            RunStatus::Failed => &mut self.failed,
            RunStatus::Canceled => &mut self.canceled,
            RunStatus::Skipped => &mut self.skipped,
        } += runs;
    }

    /// Adds this many runs with a failure code.
    pub fn add_failures(&mut self, code: &str, runs: u64) {
        *self.failures.entry(code.to_owned()).or_default() += runs;
    }

    /// Adds one run, if it has ended.
    pub fn add_run(&mut self, run: &Run) {
        if !run.status.is_terminal() {
            return;
        }
        self.add(run.status, 1);
        if let Some(failure) = &run.failure {
            self.add_failures(FailureCode::as_str(&failure.code), 1);
        }
        run.duration().into_iter().for_each(|took| self.took.add(took));
        run.fire_lag().into_iter().for_each(|delay| self.delays.add(delay));
    }

    /// Adds the runs of other hours.
    pub fn merge(&mut self, other: &RunCounters) {
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        self.canceled += other.canceled;
        self.skipped += other.skipped;
        for (code, runs) in &other.failures {
            self.add_failures(code, *runs);
        }
        self.took.merge(&other.took);
        self.delays.merge(&other.delays);
    }

    /// The share of failed runs among those that succeeded or failed, from 0 to 1; `None` if there are none.
    #[expect(clippy::cast_precision_loss, reason = "a share of runs, for people")]
    pub fn failure_rate(&self) -> Option<f64> {
        let judged = self.succeeded + self.failed;
        (judged > 0).then(|| self.failed as f64 / judged as f64)
    }
}

/// Durations of runs: their sum, the longest, and a histogram with ten buckets for each power of ten.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeCounts {
    /// How many runs, all of them together, and the longest.
    pub totals: Durations,
    /// How many runs in each bucket that is not empty.
    places: BTreeMap<u8, u64>,
}

/// The first edges of each power of ten, in percent of it.
const STEPS: [u64; 10] = [100, 125, 160, 200, 250, 320, 400, 500, 630, 800];

impl TimeCounts {
    /// The edges of the buckets in microseconds, from 1 millisecond to 11 days. Bucket `i` counts durations in
    /// `[EDGES[i - 1], EDGES[i])`.
    pub const EDGES: [u64; 91] = {
        let mut edges = [0; 91];
        let (mut place, mut unit) = (0, 10);
        while place < 91 {
            edges[place] = unit * STEPS[place % 10];
            place += 1;
            if place.is_multiple_of(10) {
                unit *= 10;
            }
        }
        edges
    };

    /// Adds the duration of one run.
    pub fn add(&mut self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let time = Duration::from_micros(micros);
        self.totals.add(1, time, time);
        self.add_place(TimeCounts::EDGES.partition_point(|edge| *edge <= micros) as u8, 1);
    }

    /// Adds runs to a bucket, and not to the totals. Indexes beyond the last bucket count there.
    pub fn add_place(&mut self, place: u8, runs: u64) {
        if runs > 0 {
            *self.places.entry(place.min(TimeCounts::EDGES.len() as u8)).or_default() += runs;
        }
    }

    /// The buckets that are not empty, in order.
    pub fn places(&self) -> impl Iterator<Item = (u8, u64)> + '_ {
        self.places.iter().map(|(place, runs)| (*place, *runs))
    }

    /// Adds the runs of other hours.
    pub fn merge(&mut self, other: &TimeCounts) {
        self.totals.add(other.totals.runs, other.totals.total, other.totals.longest);
        for (place, runs) in other.places() {
            self.add_place(place, runs);
        }
    }

    /// The longest; `None` if there are no runs.
    pub fn longest(&self) -> Option<Duration> {
        (self.totals.runs > 0).then_some(self.totals.longest)
    }

    /// About how long this share of the runs took at most, such as 0.95: between the edges of a bucket, in proportion.
    /// Never off by more than the width of the bucket, a quarter of the value. `None` if there are no runs.
    #[expect(clippy::cast_precision_loss, reason = "counts of runs are far below 2^52")]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two edges")]
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let all: u64 = self.places.values().sum();
        let wanted = (share.clamp(0.0, 1.0) * all as f64).max(1.0);
        let mut before = 0;
        for (place, runs) in self.places() {
            if (before + runs) as f64 >= wanted {
                let lower = usize::from(place).checked_sub(1).map_or(0, |edge| TimeCounts::EDGES[edge]);
                let longest = u64::try_from(self.totals.longest.as_micros()).unwrap_or(u64::MAX);
                let upper = TimeCounts::EDGES.get(usize::from(place)).map_or(longest, |edge| longest.min(*edge));
                let part = (wanted - before as f64) / runs as f64;
                let inside = upper.saturating_sub(lower) as f64 * part;
                return Some(Duration::from_micros((lower + inside as u64).min(longest)));
            }
            before += runs;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_increase_by_a_quarter_from_a_millisecond_to_eleven_days() {
        let edges = TimeCounts::EDGES;
        assert_eq!((edges[0], edges[1], edges[10], edges[90]), (1_000, 1_250, 10_000, 1_000_000_000_000));
        assert!(edges.windows(2).all(|pair| pair[0] < pair[1] && pair[1] * 10 <= pair[0] * 13), "{edges:?}");
    }

    #[test]
    fn quantiles_are_close_and_never_beyond_the_longest() {
        let mut times = TimeCounts::default();
        assert_eq!((times.quantile(0.5), times.longest()), (None, None));
        times.add(Duration::from_millis(2_900));
        assert_eq!(times.quantile(0.95), Some(Duration::from_millis(2_900)), "the only one");
        let mut times = TimeCounts::default();
        (1..=1_000).for_each(|millis| times.add(Duration::from_millis(millis)));
        for (share, exact) in [(0.05, 50.0), (0.5, 500.0), (0.95, 950.0), (1.0, 1_000.0)] {
            let found = times.quantile(share).unwrap().as_secs_f64() * 1_000.0;
            assert!((found - exact).abs() <= exact * 0.26, "{share}: {found} instead of {exact}");
        }
        assert_eq!(times.totals.total, Duration::from_millis(500_500));
    }

    #[test]
    fn very_long_times_have_a_bucket() {
        let mut times = TimeCounts::default();
        times.add(Duration::from_hours(24 * 365));
        assert_eq!(times.places().collect::<Vec<_>>(), [(91, 1)]);
        assert_eq!(times.quantile(0.5), Some(Duration::from_hours(24 * 365)));
    }
}
