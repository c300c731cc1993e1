//! Gauges of single jobs, on request: one series for each job, so there is a bound.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use everbell::{JobFilter, JobKey, JobRow, JobStatus, PageRequest, RunStatus, Timestamp};
use everbell_core::store::{Store, StoreResult};

use super::text::Text;
use super::{catalog as c, seconds};

/// The first of them by key.
const MAX_JOBS: usize = 1_000;
const PAGE_JOBS: u32 = 250;

/// When jobs last succeeded, as far as it was seen: by their last run, unless another one has started since.
#[derive(Debug, Default)]
pub(super) struct Successes(Mutex<BTreeMap<JobKey, Timestamp>>);

/// The gauges of a job.
#[derive(Debug)]
pub(super) struct JobGauges {
    key: JobKey,
    last_success_at: Option<Timestamp>,
    consecutive_failures: u32,
    next_run_at: Option<Timestamp>,
}

impl Successes {
    /// Living jobs, a bounded number of them.
    pub(super) async fn read(&self, store: &dyn Store) -> StoreResult<Vec<JobGauges>> {
        let filter = JobFilter { status: vec![JobStatus::Active, JobStatus::Paused], ..JobFilter::default() };
        let mut page = PageRequest { limit: PAGE_JOBS, after: None };
        let mut jobs = Vec::new();
        while jobs.len() < MAX_JOBS {
            let found = store.list_jobs(&filter, &page).await?;
            jobs.extend(found.items);
            page.after = found.next;
            if page.after.is_none() {
                break;
            }
        }
        jobs.truncate(MAX_JOBS);
        Ok(self.learn(&jobs))
    }

    /// Remembers the successes that these jobs show, and forgets those of all others.
    fn learn(&self, jobs: &[JobRow]) -> Vec<JobGauges> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::take(&mut *known);
        let gauges = jobs.iter().map(|row| {
            let key = &row.job.definition.key;
            let shown = row.last_run.as_ref().filter(|run| run.status == RunStatus::Succeeded);
            let last_success_at = before.get(key).copied().max(shown.and_then(|run| run.finished_at));
            known.extend(last_success_at.map(|at| (key.clone(), at)));
            JobGauges {
                key: key.clone(),
                last_success_at,
                consecutive_failures: row.job.state.consecutive_failures,
                next_run_at: row.timer.as_ref().and_then(|timer| timer.next_run_at),
            }
        });
        gauges.collect()
    }
}

pub(super) fn render(jobs: &[JobGauges], text: &mut Text) {
    let of = |job: &JobGauges, value: f64| ([job.key.to_string()], value);
    let at = |job: &JobGauges, at: Option<Timestamp>| at.map(|at| of(job, seconds(at)));
    text.gauges(&c::JOB_LAST_SUCCESS, jobs.iter().filter_map(|job| at(job, job.last_success_at)));
    text.gauges(&c::JOB_FAILURES, jobs.iter().map(|job| of(job, f64::from(job.consecutive_failures))));
    text.gauges(&c::JOB_NEXT_RUN, jobs.iter().filter_map(|job| at(job, job.next_run_at)));
}
