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

/// The job, org and target of a row of counters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CounterGroup {
    /// The owner of the runs.
    pub key: CounterKey,
    /// The target of the runs. `None` in hours that were counted by a release that did not keep it.
    pub target: Option<Target>,
}

/// Adds up counters by their owner, whatever the targets.
pub fn counters_by_owner(
    groups: impl IntoIterator<Item = (CounterGroup, RunCounters)>,
) -> BTreeMap<CounterKey, RunCounters> {
    merged(groups.into_iter().map(|(group, counters)| (group.key, counters)))
}

/// Adds up counters by target, whatever the owners of the runs. Runs without a known target are left out.
pub fn counters_by_target<'a>(
    groups: impl IntoIterator<Item = (&'a CounterGroup, &'a RunCounters)>,
) -> BTreeMap<Target, RunCounters> {
    let known = groups.into_iter().filter_map(|(group, counters)| Some((group.target.clone()?, counters.clone())));
    merged(known)
}

fn merged<K: Ord>(counters: impl Iterator<Item = (K, RunCounters)>) -> BTreeMap<K, RunCounters> {
    let mut sums: BTreeMap<K, RunCounters> = BTreeMap::new();
    for (key, counters) in counters {
        sums.entry(key).or_default().merge(&counters);
    }
    sums
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

/// How the failure rate of a period compares with that of the time before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureTrend {
    /// More runs failed than chance explains.
    Higher,
    /// As before.
    Usual,
    /// Fewer runs failed than chance explains.
    Lower,
}

/// The least runs of a period, and of the time before it, that are compared.
const MIN_COMPARED_RUNS: u64 = 5;
const MIN_EARLIER_RUNS: u64 = 20;
/// The least failures that are unusual.
const MIN_UNUSUAL_FAILURES: u64 = 3;
/// How many standard deviations chance explains.
const CHANCE: f64 = 3.0;

impl RunCounters {
    /// How many there are.
    pub fn runs(&self) -> u64 {
        self.succeeded + self.failed + self.canceled + self.skipped
    }

    /// How many there are of a status; none of those that have not ended.
    pub fn count(&self, status: RunStatus) -> u64 {
        match status {
            RunStatus::Pending | RunStatus::Running => 0,
            RunStatus::Succeeded => self.succeeded,
            RunStatus::Failed => self.failed,
            RunStatus::Canceled => self.canceled,
            RunStatus::Skipped => self.skipped,
        }
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

    /// The share of runs that succeeded among those that succeeded or failed, from 0 to 1; `None` if there are none.
    pub fn success_rate(&self) -> Option<f64> {
        self.failure_rate().map(|rate| 1.0 - rate)
    }

    /// Compares the failure rate with that of earlier runs. `None` if there are too few of either.
    #[expect(clippy::cast_precision_loss, reason = "a share of runs, for people")]
    pub fn failure_trend(&self, earlier: &RunCounters) -> Option<FailureTrend> {
        let (judged, judged_earlier) = (self.succeeded + self.failed, earlier.succeeded + earlier.failed);
        if judged < MIN_COMPARED_RUNS || judged_earlier < MIN_EARLIER_RUNS {
            return None;
        }
        // One failure and one success more: no rate is certain.
        let rate = (earlier.failed + 1) as f64 / (judged_earlier + 2) as f64;
        let (expected, failed) = (rate * judged as f64, self.failed as f64);
        let chance = CHANCE * (expected * (1.0 - rate)).sqrt();
        Some(if self.failed >= MIN_UNUSUAL_FAILURES && failed > expected + chance {
            FailureTrend::Higher
        } else if failed < expected - chance {
            FailureTrend::Lower
        } else {
            FailureTrend::Usual
        })
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
    fn a_failure_rate_is_unusual_if_chance_does_not_explain_it() {
        use FailureTrend::{Higher, Lower, Usual};
        let runs = |failed, succeeded| RunCounters { succeeded, failed, ..RunCounters::default() };
        for (now, earlier, trend) in [
            ((0, 4), (0, 1_000), None),
            ((4, 1), (0, 19), None),
            ((0, 100), (0, 1_000), Some(Usual)),
            ((2, 98), (0, 1_000), Some(Usual)),
            ((3, 97), (0, 1_000), Some(Higher)),
            ((3, 2), (0, 20), Some(Higher)),
            ((12, 88), (100, 900), Some(Usual)),
            ((30, 70), (100, 900), Some(Higher)),
            ((50, 50), (500, 500), Some(Usual)),
            ((0, 100), (500, 500), Some(Lower)),
            ((100, 0), (1_000, 0), Some(Usual)),
        ] {
            assert_eq!(runs(now.0, now.1).failure_trend(&runs(earlier.0, earlier.1)), trend, "{now:?} {earlier:?}");
        }
        assert_eq!((runs(1, 3).success_rate(), runs(0, 0).success_rate()), (Some(0.75), None));
    }

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
