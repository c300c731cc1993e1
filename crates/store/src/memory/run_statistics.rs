//! Runs in small and in numbers.

use everbell_core::Run;
use everbell_core::store::RunSummary;

/// A run of a job, in small.
pub(super) fn glimpse(run: &Run) -> Option<RunSummary> {
    Some(RunSummary {
        id: run.id,
        job_id: run.job_id?,
        job_key: run.job_key.clone()?,
        job_version: run.job_version?,
        status: run.status,
        trigger: run.trigger.kind(),
        scheduled_at: run.scheduled_at,
        created_at: run.created_at,
        started_at: run.started_at,
        finished_at: run.finished_at,
        failure_code: run.failure.as_ref().map(|failure| failure.code.clone()),
        skip: run.skip.clone(),
        attempt: run.attempt,
    })
}
