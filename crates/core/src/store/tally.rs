//! Runs counted by time: how many of each status, how late they began, how long they took.

use std::time::Duration;

use jiff::Timestamp;

use crate::ids::{Invalid, JobKey, RunId, Target};
use crate::run::{Run, RunStatus};

/// What to count, and in which spans of time.
///
/// The spans are given by their bounds, so a day is what the caller says, wherever it has 23 or 24.5 hours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    bounds: Vec<Timestamp>,
    job_key: Option<JobKey>,
    target: Option<Target>,
    times: bool,
}

impl Tally {
    /// The most bounds: one more than spans.
    pub const MOST_BOUNDS: usize = 400;

    /// All runs between these bounds, which must increase. Bucket `i` has the runs whose time ([`RunId::time`]) lies in
    /// `[bounds[i], bounds[i + 1])`.
    pub fn new(bounds: Vec<Timestamp>) -> Result<Tally, Invalid> {
        if !(2..=Tally::MOST_BOUNDS).contains(&bounds.len()) {
            let reason = format!("must be from 2 to {}, not {}", Tally::MOST_BOUNDS, bounds.len());
            return Err(Invalid::new("bounds", reason));
        }
        if !bounds.is_sorted_by(|a, b| a < b) {
            return Err(Invalid::new("bounds", "must increase"));
        }
        Ok(Tally { bounds, job_key: None, target: None, times: false })
    }

    /// Only runs of any version of this job.
    #[must_use]
    pub fn of_job(self, key: JobKey) -> Tally {
        Tally { job_key: Some(key), ..self }
    }

    /// Only runs with this target.
    #[must_use]
    pub fn of_target(self, target: Target) -> Tally {
        Tally { target: Some(target), ..self }
    }

    /// Also how late runs began and how long they took. Of all jobs that costs several times as much, because each run
    /// has to be read; without, indexes tell.
    #[must_use]
    pub fn with_times(self) -> Tally {
        Tally { times: true, ..self }
    }

    /// The bounds: at least two.
    pub fn bounds(&self) -> &[Timestamp] {
        &self.bounds
    }

    /// From when until when in all.
    pub fn window(&self) -> (Timestamp, Timestamp) {
        (self.bounds[0], self.bounds[self.bounds.len() - 1])
    }

    /// Whose runs, unless all.
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

    /// So many more of a status.
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

/// How late runs began: how many between two edges, and the longest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lags {
    counts: [u64; Lags::EDGES.len() + 1],
    longest: Duration,
}

impl Lags {
    /// Where one count ends and the next begins: place `i` counts lags in `[EDGES[i - 1], EDGES[i])`.
    pub const EDGES: [Duration; 12] = [
        Duration::from_millis(1),
        Duration::from_millis(5),
        Duration::from_millis(10),
        Duration::from_millis(25),
        Duration::from_millis(50),
        Duration::from_millis(100),
        Duration::from_millis(250),
        Duration::from_millis(500),
        Duration::from_secs(1),
        Duration::from_secs(5),
        Duration::from_mins(1),
        Duration::from_hours(1),
    ];

    /// One more.
    pub fn add(&mut self, lag: Duration) {
        self.add_counted(Lags::EDGES.partition_point(|edge| *edge <= lag), 1, lag);
    }

    /// So many more at a place, the longest of them so long. Places beyond the last count there.
    pub fn add_counted(&mut self, place: usize, runs: u64, longest: Duration) {
        self.counts[place.min(Lags::EDGES.len())] += runs;
        self.longest = self.longest.max(longest);
    }

    fn merge(&mut self, other: &Lags) {
        for (place, runs) in other.counts.iter().enumerate() {
            self.add_counted(place, *runs, other.longest);
        }
    }

    /// How many at each place, one more than there are edges.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// How many runs it is about.
    pub fn runs(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The longest of all; `None` if there are none.
    pub fn longest(&self) -> Option<Duration> {
        (self.runs() > 0).then_some(self.longest)
    }

    /// No more than this is the lag of so large a share of the runs, such as 0.95: an edge, or the longest if that is
    /// less. `None` if there are none.
    #[expect(clippy::cast_precision_loss, reason = "counts of runs are far below 2^52")]
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let wanted = share.clamp(0.0, 1.0) * self.runs() as f64;
        let mut seen = 0;
        let place = self.counts.iter().position(|runs| {
            seen += runs;
            seen > 0 && seen as f64 >= wanted
        })?;
        Some(Lags::EDGES.get(place).map_or(self.longest, |edge| self.longest.min(*edge)))
    }
}

/// How long runs took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    /// How many runs it is about.
    pub runs: u64,
    /// All of them together.
    pub total: Duration,
    /// The longest.
    pub longest: Duration,
}

impl Durations {
    /// So many more, together and the longest.
    pub fn add(&mut self, runs: u64, total: Duration, longest: Duration) {
        self.runs += runs;
        self.total += total;
        self.longest = self.longest.max(longest);
    }

    /// How long one took on average; `None` if there are none.
    pub fn mean(&self) -> Option<Duration> {
        let nanos = self.total.as_nanos().checked_div(u128::from(self.runs))?;
        Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        format!("2026-11-15T{text}Z").parse().unwrap()
    }

    fn tally(bounds: &[&str]) -> Tally {
        Tally::new(bounds.iter().map(|text| at(text)).collect()).unwrap()
    }

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn bounds_are_few_and_increase() {
        let hours = |count: i64| -> Vec<Timestamp> {
            (0..count).map(|hour| Timestamp::from_second(hour * 3_600).unwrap()).collect()
        };
        assert!(Tally::new(hours(2)).is_ok() && Tally::new(hours(400)).is_ok());
        for (bounds, reason) in [
            (hours(0), "from 2 to 400"),
            (hours(1), "from 2 to 400"),
            (hours(401), "from 2 to 400"),
            ([hours(2), hours(2)].concat(), "increase"),
            (vec![at("01:00:00"), at("01:00:00")], "increase"),
        ] {
            assert!(Tally::new(bounds).unwrap_err().reason.contains(reason), "{reason}");
        }
    }

    #[test]
    fn a_run_is_in_the_bucket_that_begins_at_or_before_it() {
        let tally = tally(&["01:00:00", "01:00:00.0005", "02:00:00", "02:30:00"]);
        let place = |text| tally.place(RunId::by_hand(at(text), [0; 10]));
        assert_eq!(place("00:59:59.999"), None);
        assert_eq!(place("01:00:00"), Some(0));
        assert_eq!(place("01:00:00.0007"), Some(0), "the id has whole milliseconds");
        assert_eq!(place("01:00:00.001"), Some(1));
        assert_eq!(place("02:00:00"), Some(2));
        assert_eq!(place("02:30:00"), None);
        for (place, bucket) in tally.buckets().iter().enumerate() {
            let first = RunId::first_from(bucket.from);
            let inside = first < RunId::first_from(bucket.to);
            assert_eq!(tally.place(first) == Some(place), inside, "{bucket:?}");
        }
    }

    #[test]
    fn quantiles_of_lags_are_told_by_their_edge() {
        let mut lags = Lags::default();
        assert_eq!((lags.quantile(0.5), lags.longest(), lags.runs()), (None, None, 0));
        for _ in 0..90 {
            lags.add(millis(3));
        }
        for _ in 0..9 {
            lags.add(millis(300));
        }
        lags.add(millis(700));
        assert_eq!(lags.quantile(0.0), Some(millis(5)));
        assert_eq!(lags.quantile(0.5), Some(millis(5)));
        assert_eq!(lags.quantile(0.9), Some(millis(5)));
        assert_eq!(lags.quantile(0.95), Some(millis(500)));
        assert_eq!(lags.quantile(0.99), Some(millis(500)));
        assert_eq!(lags.quantile(1.0), Some(millis(700)), "never more than the longest");
        assert_eq!((lags.longest(), lags.runs()), (Some(millis(700)), 100));
    }

    #[test]
    fn a_lag_on_an_edge_belongs_to_the_place_behind_it() {
        let mut lags = Lags::default();
        lags.add(Duration::ZERO);
        for edge in Lags::EDGES {
            lags.add(edge);
        }
        assert_eq!(lags.counts(), [1; 13]);
        lags.add(Duration::from_hours(30));
        assert_eq!(lags.counts().last(), Some(&2));
        assert_eq!(lags.quantile(1.0), Some(Duration::from_hours(30)));
        assert!(Lags::EDGES.is_sorted());
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
        let mut buckets = tally(&["01:00:00", "02:00:00", "03:00:00"]).buckets();
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
