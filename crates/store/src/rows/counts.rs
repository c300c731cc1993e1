//! Groups of rows, and how many rows are in each.

use everbell_core::store::{ActiveCount, Counts, JobCount, StoreResult, TargetCount};
use everbell_core::{JobStatus, RunStatus, Target};

use super::from_row::by_name;
use super::{corrupt, count, word};
use crate::micros::Micros;

/// A group of `jobs`.
#[derive(Clone, Debug)]
pub(crate) struct JobCountColumns {
    pub(crate) status: String,
    pub(crate) schedule_type: String,
    pub(crate) jobs: i64,
    pub(crate) errored: i64,
}

by_name!(JobCountColumns { status, schedule_type, jobs, errored });

/// Living jobs of a target.
#[derive(Clone, Debug)]
pub(crate) struct TargetCountColumns {
    pub(crate) target: String,
    pub(crate) status: String,
    pub(crate) jobs: i64,
}

by_name!(TargetCountColumns { target, status, jobs });

/// A group of `active_runs`.
#[derive(Clone, Debug)]
pub(crate) struct ActiveCountColumns {
    pub(crate) target: String,
    pub(crate) status: String,
    pub(crate) runs: i64,
}

by_name!(ActiveCountColumns { target, status, runs });

/// The timers that are due.
#[derive(Clone, Debug)]
pub(crate) struct DueColumns {
    pub(crate) due_timers: i64,
    pub(crate) oldest_due_at: Option<Micros>,
}

by_name!(DueColumns { due_timers, oldest_due_at });

/// Returns the jobs in the order of the words, whatever collation the database has.
pub(crate) fn job_counts(mut jobs: Vec<JobCountColumns>) -> StoreResult<Vec<JobCount>> {
    jobs.sort_by(|a, b| (&a.status, a.is_one_time()).cmp(&(&b.status, b.is_one_time())));
    jobs.iter().map(JobCountColumns::read).collect()
}

/// Those that can be read, in the same order.
pub(crate) fn target_counts(mut rows: Vec<TargetCountColumns>) -> Vec<TargetCount> {
    rows.sort_by(|a, b| (&a.target, &a.status).cmp(&(&b.target, &b.status)));
    let read = |row: &TargetCountColumns| {
        let (target, status) = (Target::new(&row.target).ok()?, JobStatus::from_word(&row.status)?);
        Some(TargetCount { target, status, jobs: count(row.jobs) })
    };
    rows.iter().filter_map(read).collect()
}

/// All of it, in the same order.
pub(crate) fn counts(
    jobs: Vec<JobCountColumns>,
    mut active: Vec<ActiveCountColumns>,
    due: &DueColumns,
) -> StoreResult<Counts> {
    active.sort_by(|a, b| (&a.target, &a.status).cmp(&(&b.target, &b.status)));
    let living = |job: &&JobCountColumns| job.status != JobStatus::Retired.as_str();
    Ok(Counts {
        errored_jobs: jobs.iter().filter(living).map(|job| count(job.errored)).sum(),
        jobs: job_counts(jobs)?,
        active_runs: active.iter().map(ActiveCountColumns::read).collect::<StoreResult<_>>()?,
        due_timers: count(due.due_timers),
        oldest_due_at: due.oldest_due_at.map(Into::into),
    })
}

impl JobCountColumns {
    fn is_one_time(&self) -> bool {
        self.schedule_type == "one_time"
    }

    fn read(&self) -> StoreResult<JobCount> {
        let status = word(JobStatus::ALL, JobStatus::as_str, &self.status);
        Ok(JobCount {
            status: status.map_err(|why| corrupt("jobs", &self.status, why))?,
            one_time: self.is_one_time(),
            jobs: count(self.jobs),
        })
    }
}

impl ActiveCountColumns {
    fn read(&self) -> StoreResult<ActiveCount> {
        let status = word(RunStatus::ALL, RunStatus::as_str, &self.status);
        Ok(ActiveCount {
            target: Target::new(&self.target).map_err(|why| corrupt("active_runs", &self.target, why))?,
            status: status.map_err(|why| corrupt("active_runs", &self.status, why))?,
            runs: count(self.runs),
        })
    }
}
