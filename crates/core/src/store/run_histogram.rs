//! Runs counted by time: how many of each status, how late they began, how long they took.

use std::time::Duration;

use jiff::Timestamp;

use super::lags::{Durations, Lags};
use crate::ids::{Invalid, JobKey, RunId, Target};
use crate::run::{Run, RunStatus};

/// The runs to count, and the spans of time to count them in.
///
/// The caller gives the bounds of the spans, so a day may have 23 or 24.5 hours.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunHistogram {
    bounds: Vec<Timestamp>,
    job_key: Option<JobKey>,
    target: Option<Target>,
    times: bool,
}

impl RunHistogram {
    /// The most bounds: one more than spans.
    pub const MAX_BOUNDS: usize = 400;

    /// All runs between these bounds, which must increase. Bucket `i` has the runs whose time ([`RunId::time`]) lies in
    /// `[bounds[i], bounds[i + 1])`.
    pub fn new(bounds: Vec<Timestamp>) -> Result<RunHistogram, Invalid> {
        if !(2..=RunHistogram::MAX_BOUNDS).contains(&bounds.len()) {
            let reason = format!("must be from 2 to {}, not {}", RunHistogram::MAX_BOUNDS, bounds.len());
            return Err(Invalid::new("bounds", reason));
        }
        if !bounds.is_sorted_by(|a, b| a < b) {
            return Err(Invalid::new("bounds", "must increase"));
        }
        Ok(RunHistogram { bounds, job_key: None, target: None, times: false })
    }

    /// Only runs of any version of this job.
    #[must_use]
    pub fn of_job(self, key: JobKey) -> RunHistogram {
        RunHistogram { job_key: Some(key), ..self }
    }

    /// Only runs with this target.
    #[must_use]
    pub fn of_target(self, target: Target) -> RunHistogram {
        RunHistogram { target: Some(target), ..self }
    }

    /// Also asks for lags and durations. For all jobs that costs several times as much, because each run has to be
    /// read; without, indexes suffice.
    #[must_use]
    pub fn with_times(self) -> RunHistogram {
        RunHistogram { times: true, ..self }
    }

    /// The bounds: at least two.
    pub fn bounds(&self) -> &[Timestamp] {
        &self.bounds
    }

    /// From when until when in all.
    pub fn window(&self) -> (Timestamp, Timestamp) {
        (self.bounds[0], self.bounds[self.bounds.len() - 1])
    }

    /// The job whose runs are counted; `None` for all.
    pub fn job_key(&self) -> Option<&JobKey> {
        self.job_key.as_ref()
    }

    /// With which target, unless any.
    pub fn target(&self) -> Option<&Target> {
        self.target.as_ref()
    }

    /// Whether lags and durations are asked for.
    pub fn has_times(&self) -> bool {
        self.times
    }

    /// Whether only final statuses are asked for, of any target: indexes suffice then.
    pub fn is_plain(&self) -> bool {
        self.target.is_none() && !self.times
    }

    /// The buckets in order, empty.
    pub fn buckets(&self) -> Vec<Bucket> {
        self.bounds.windows(2).map(|pair| Bucket::new(pair[0], pair[1])).collect()
    }

    /// In which bucket a run belongs, if in any.
    pub fn place(&self, run: RunId) -> Option<usize> {
        let behind = self.bounds.partition_point(|bound| *bound <= run.time());
        behind.checked_sub(1).filter(|place| place + 1 < self.bounds.len())
    }
}

/// The runs of a span of time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bucket {
    /// The span begins with this.
    pub from: Timestamp,
    /// It ends before this.
    pub to: Timestamp,
    /// How many wait.
    pub pending: u64,
    /// How many are at work.
    pub running: u64,
    /// How many succeeded.
    pub succeeded: u64,
    /// How many failed.
    pub failed: u64,
    /// How many were canceled.
    pub canceled: u64,
    /// How many were skipped.
    pub skipped: u64,
    /// How late scheduled runs began; see [`Run::fire_lag`].
    pub lags: Lags,
    /// How long those that ended took; see [`Run::duration`].
    pub durations: Durations,
}

impl Bucket {
    /// An empty one.
    pub fn new(from: Timestamp, to: Timestamp) -> Bucket {
        Bucket {
            from,
            to,
            pending: 0,
            running: 0,
            succeeded: 0,
            failed: 0,
            canceled: 0,
            skipped: 0,
            lags: Lags::default(),
            durations: Durations::default(),
        }
    }

    /// An empty one that begins then and lasts for an hour.
    pub fn of_hour(start: Timestamp) -> Bucket {
        Bucket::new(start, start.checked_add(Duration::from_hours(1)).unwrap_or(Timestamp::MAX))
    }

    /// How many there are of a status.
    pub fn count(&self, status: RunStatus) -> u64 {
        match status {
            RunStatus::Pending => self.pending,
            RunStatus::Running => self.running,
            RunStatus::Succeeded => self.succeeded,
            RunStatus::Failed => self.failed,
            RunStatus::Canceled => self.canceled,
            RunStatus::Skipped => self.skipped,
        }
    }

    /// Adds this many runs of a status.
    pub fn add(&mut self, status: RunStatus, runs: u64) {
        *match status {
            RunStatus::Pending => &mut self.pending,
            RunStatus::Running => &mut self.running,
            RunStatus::Succeeded => &mut self.succeeded,
            RunStatus::Failed => &mut self.failed,
            RunStatus::Canceled => &mut self.canceled,
            RunStatus::Skipped => &mut self.skipped,
        } += runs;
    }

    /// One more run, with its times if they are asked for.
    pub fn add_run(&mut self, run: &Run, times: bool) {
        self.add(run.status, 1);
        if times {
            run.fire_lag().into_iter().for_each(|lag| self.lags.add(lag));
            run.duration().into_iter().for_each(|duration| self.durations.add(1, duration, duration));
        }
    }

    /// How many there are.
    pub fn total(&self) -> u64 {
        RunStatus::ALL.iter().map(|status| self.count(*status)).sum()
    }

    /// The share of those that succeeded, from 0 to 1, among those that succeeded or failed; `None` if there are none.
    #[expect(clippy::cast_precision_loss, reason = "a share of runs, for people")]
    pub fn success_rate(&self) -> Option<f64> {
        let judged = self.succeeded + self.failed;
        (judged > 0).then(|| self.succeeded as f64 / judged as f64)
    }

    /// See [`Lags::quantile`].
    pub fn lag_quantile(&self, share: f64) -> Option<Duration> {
        self.lags.quantile(share)
    }

    /// The buckets as one, from the first to the last; `None` if there are none.
    pub fn sum(buckets: &[Bucket]) -> Option<Bucket> {
        let (first, last) = (buckets.first()?, buckets.last()?);
        let mut sum = Bucket::new(first.from, last.to);
        for bucket in buckets {
            for status in RunStatus::ALL {
                sum.add(*status, bucket.count(*status));
            }
            sum.lags.merge(&bucket.lags);
            sum.durations.add(bucket.durations.runs, bucket.durations.total, bucket.durations.longest);
        }
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        format!("2026-11-15T{text}Z").parse().unwrap()
    }

    fn count_runs_by_time(bounds: &[&str]) -> RunHistogram {
        RunHistogram::new(bounds.iter().map(|text| at(text)).collect()).unwrap()
    }

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn bounds_are_few_and_increase() {
        let hours = |count: i64| -> Vec<Timestamp> {
            (0..count).map(|hour| Timestamp::from_second(hour * 3_600).unwrap()).collect()
        };
        assert!(RunHistogram::new(hours(2)).is_ok() && RunHistogram::new(hours(400)).is_ok());
        for (bounds, reason) in [
            (hours(0), "from 2 to 400"),
            (hours(1), "from 2 to 400"),
            (hours(401), "from 2 to 400"),
            ([hours(2), hours(2)].concat(), "increase"),
            (vec![at("01:00:00"), at("01:00:00")], "increase"),
        ] {
            assert!(RunHistogram::new(bounds).unwrap_err().reason.contains(reason), "{reason}");
        }
    }

    #[test]
    fn a_run_is_in_the_bucket_that_begins_at_or_before_it() {
        let histogram = count_runs_by_time(&["01:00:00", "01:00:00.0005", "02:00:00", "02:30:00"]);
        let place = |text| histogram.place(RunId::by_hand(at(text), [0; 10]));
        assert_eq!(place("00:59:59.999"), None);
        assert_eq!(place("01:00:00"), Some(0));
        assert_eq!(place("01:00:00.0007"), Some(0), "the id has whole milliseconds");
        assert_eq!(place("01:00:00.001"), Some(1));
        assert_eq!(place("02:00:00"), Some(2));
        assert_eq!(place("02:30:00"), None);
        for (place, bucket) in histogram.buckets().iter().enumerate() {
            let first = RunId::first_from(bucket.from);
            let inside = first < RunId::first_from(bucket.to);
            assert_eq!(histogram.place(first) == Some(place), inside, "{bucket:?}");
        }
    }

    #[test]
    fn a_success_rate_is_of_what_succeeded_or_failed() {
        let mut bucket = Bucket::new(at("01:00:00"), at("02:00:00"));
        assert_eq!((bucket.success_rate(), bucket.total()), (None, 0));
        for (status, runs) in [
            (RunStatus::Pending, 1),
            (RunStatus::Running, 2),
            (RunStatus::Succeeded, 3),
            (RunStatus::Failed, 1),
            (RunStatus::Canceled, 5),
            (RunStatus::Skipped, 6),
        ] {
            bucket.add(status, runs);
            assert_eq!(bucket.count(status), runs);
        }
        assert_eq!((bucket.success_rate(), bucket.total()), (Some(0.75), 18));
    }

    #[test]
    fn buckets_add_up() {
        let mut buckets = count_runs_by_time(&["01:00:00", "02:00:00", "03:00:00"]).buckets();
        for (bucket, lag) in buckets.iter_mut().zip([2, 2_000]) {
            bucket.add(RunStatus::Succeeded, 2);
            bucket.lags.add(millis(lag));
            bucket.durations.add(2, millis(3 * lag), millis(2 * lag));
        }
        let sum = Bucket::sum(&buckets).unwrap();
        assert_eq!((sum.from, sum.to, sum.succeeded), (at("01:00:00"), at("03:00:00"), 4));
        assert_eq!((sum.lag_quantile(0.5), sum.lag_quantile(1.0)), (Some(millis(5)), Some(millis(2_000))));
        assert_eq!((sum.durations.runs, sum.durations.longest), (4, millis(4_000)));
        assert_eq!(sum.durations.mean(), Some(Duration::from_micros(1_501_500)));
        assert_eq!((Durations::default().mean(), Bucket::sum(&[])), (None, None));
    }
}
