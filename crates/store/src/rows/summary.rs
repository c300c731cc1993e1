//! Rows of runs in small and in numbers.

use std::cmp::Reverse;
use std::time::Duration;

use everbell_core::store::{Bucket, RunHistogram, RunSummary, StoreResult};
use everbell_core::{FailureCode, Invalid, JobId, JobKey, RunId, RunStatus};
use jiff::Timestamp;
use uuid::Uuid;

use super::from_row::{by_name, by_position};
use super::run::{skip, trigger};
use super::{corrupt, count, readable, word};
use crate::micros::Micros;

/// A run as a list of recent runs shows it.
#[derive(Clone, Debug)]
pub(crate) struct RunSummaryColumns {
    pub(crate) id: Uuid,
    pub(crate) job_id: Uuid,
    pub(crate) job_key: String,
    pub(crate) job_version: i32,
    pub(crate) trigger: String,
    pub(crate) scheduled_at: Micros,
    pub(crate) created_at: Micros,
    pub(crate) skip_reason: Option<String>,
    pub(crate) skip_detail: Option<String>,
    pub(crate) status: Option<String>,
    pub(crate) attempt: i32,
    pub(crate) started_at: Option<Micros>,
    pub(crate) finished_at: Option<Micros>,
    pub(crate) failure_code: Option<String>,
}

// There may be many thousands of them.
by_position!(RunSummaryColumns {
    id,
    job_id,
    job_key,
    job_version,
    trigger,
    scheduled_at,
    created_at,
    skip_reason,
    skip_detail,
    status,
    attempt,
    started_at,
    finished_at,
    failure_code,
});

impl RunSummaryColumns {
    fn read(self) -> StoreResult<RunSummary> {
        let id = self.id;
        self.try_read().map_err(|why| corrupt("runs", id, why))
    }

    fn try_read(self) -> Result<RunSummary, Invalid> {
        let skip = skip(self.skip_reason.as_deref(), self.skip_detail.as_deref())?;
        let status = match &skip {
            Some(_) => RunStatus::Skipped,
            None => word(RunStatus::ALL, RunStatus::as_str, self.status.as_deref().unwrap_or_default())?,
        };
        let version = u32::try_from(self.job_version).unwrap_or(0);
        let job = (JobId::from_uuid(self.job_id), JobKey::new(&self.job_key)?, version);
        let times = (self.scheduled_at.into(), self.created_at.into());
        let mut run = RunSummary::new(RunId::from_uuid(self.id), job, status, trigger(&self.trigger)?.kind(), times);
        run.started_at = self.started_at.map(Into::into);
        run.finished_at = self.finished_at.map(Into::into);
        run.failure_code = self.failure_code.as_deref().map(FailureCode::new).transpose()?;
        run.skip = skip;
        run.attempt = u32::try_from(self.attempt).unwrap_or(0);
        Ok(run)
    }
}

/// Returns the readable summaries in order, the newest `each` of each key.
pub(crate) fn summaries(rows: Vec<RunSummaryColumns>, each: u32) -> Vec<RunSummary> {
    let (mut runs, _) = readable(rows, |row| row.id, RunSummaryColumns::read);
    runs.sort_by(|a, b| (&a.job_key, Reverse(a.id)).cmp(&(&b.job_key, Reverse(b.id))));
    let (mut key, mut place) = (None, 0);
    runs.retain(|run| {
        if key.as_ref() != Some(&run.job_key) {
            (key, place) = (Some(run.job_key.clone()), 0);
        }
        place += 1;
        place <= each
    });
    runs
}

/// Runs of a bucket that are alike. Times in microseconds.
#[derive(Clone, Debug)]
pub(crate) struct HistogramColumns {
    pub(crate) bucket: i32,
    pub(crate) status: Option<String>,
    pub(crate) runs: i64,
    /// Between which edges their lag is.
    pub(crate) place: Option<i32>,
    pub(crate) longest_lag: Option<i64>,
    /// How many took how long.
    pub(crate) timed: i64,
    pub(crate) took: Option<i64>,
    pub(crate) longest: Option<i64>,
}

by_name!(HistogramColumns { bucket, status, runs } default { place, longest_lag, timed, took, longest });

/// The buckets. Runs without a status, which cannot be read, are left out.
pub(crate) fn buckets(histogram: &RunHistogram, rows: &[HistogramColumns]) -> Vec<Bucket> {
    let micros = |micros: Option<i64>| Duration::from_micros(count(micros.unwrap_or(0)));
    let mut buckets = histogram.buckets();
    for row in rows {
        let status = row.status.as_deref().and_then(RunStatus::from_word);
        let bucket = usize::try_from(row.bucket).ok().and_then(|place| buckets.get_mut(place));
        let (Some(bucket), Some(status)) = (bucket, status) else { continue };
        bucket.add(status, count(row.runs));
        if let Some(place) = row.place.and_then(|place| usize::try_from(place).ok()) {
            bucket.lags.add_counted(place, count(row.runs), micros(row.longest_lag));
        }
        bucket.durations.add(count(row.timed), micros(row.took), micros(row.longest));
    }
    buckets
}

/// Converts a bound of a range of runs to `at`, which has whole milliseconds, like ids.
pub(crate) fn at_bound(bound: Timestamp) -> Micros {
    RunId::first_from(bound).time().into()
}

/// Like [`at_bound`], for a range that may be open: `[from, to)`.
pub(crate) fn at_range((from, to): (Option<Timestamp>, Option<Timestamp>)) -> (Micros, Micros) {
    let open = (Micros::from(everbell_core::EARLIEST), Micros::from(Timestamp::MAX));
    (from.map_or(open.0, at_bound), to.map_or(open.1, at_bound))
}
