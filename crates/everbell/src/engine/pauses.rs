//! The pause that too many failures in a row bring.

use everbell_core::change::{self, JobChange, JobView};
use everbell_core::store::{JobRef, StoreError};
use everbell_core::{Invalid, JobId, JobKey, JobStatus, Pause};
use jiff::Timestamp;
use tracing::error;

use super::{EVERBELL, Shared, audit};
use crate::events::Event;

/// Pauses a job that failed too often in a row. Whether it did is asked again under the lock of its row: another
/// instance may have recorded a success since.
pub(super) async fn pause_failing(shared: &Shared, job: JobId, key: &JobKey) {
    let now = shared.now();
    let decide = |view: &JobView| failing(view, now);
    let entry = audit("job.pause", format!("job:{key}"), Some("too many failures in a row".to_owned()), now);
    match shared.store.change_job(&JobRef::Id(job), None, &decide, &entry).await {
        Ok(changed) => {
            shared.events.tell_change(&changed);
            let reason = changed.job.job.state.pause.map_or_else(String::new, |pause| pause.reason);
            shared.events.tell(Event::Paused { job, reason });
        }
        // It succeeded since, or somebody was faster.
        Err(StoreError::Invalid(_) | StoreError::Conflict { .. }) => {}
        Err(error) => error!(job_id = %job, %error, "could not pause a job that fails; the next failure tries again"),
    }
}

fn failing(view: &JobView, now: Timestamp) -> Result<JobChange, Invalid> {
    let state = &view.job.state;
    let wanted = view.job.definition.policies.pause_reason(state.consecutive_failures);
    let reason = wanted
        .filter(|_| state.status == JobStatus::Active)
        .ok_or_else(|| Invalid::new("status", "the job does not fail often enough to be paused"))?;
    change::pause(view, Pause { reason, by: EVERBELL.to_owned(), at: now, until: None })
}
