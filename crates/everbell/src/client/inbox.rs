//! Rows for answers to requests of the inbox, and the requests that were refused.

use everbell_core::JobStatus;
use everbell_core::change::NewJob;
use everbell_core::store::{AuditEntry, StoreError, StoreResult};

use super::enqueue::{Enqueue, settings};
use super::jobs::Jobs;
use crate::schedule::Schedule;

impl Jobs {
    /// Like [`Jobs::enqueue`], for the text of a JSON payload.
    pub(crate) fn enqueue_text(&self, target: &str, payload: String) -> Enqueue {
        Enqueue::new(&self.context, settings(target.to_owned()).with_payload_text(Ok(payload)))
    }

    /// Returns the rows that create a job, unless its key has a current one.
    pub(crate) async fn prepare_new(&self, schedule: &Schedule) -> StoreResult<(NewJob, AuditEntry)> {
        match self.get(schedule.key()).await {
            Ok(row) if row.job.state.status != JobStatus::Retired => {
                Err(StoreError::Conflict { what: format!("job `{}` exists already", schedule.key()) })
            }
            Ok(_) | Err(StoreError::NotFound { .. }) => self.prepare(schedule).await,
            Err(error) => Err(error),
        }
    }

    /// Lists the requests of the inbox that were refused, latest first, at most `limit`: see the guide
    /// [`queue`](crate::guides::queue).
    pub async fn refused_requests(&self, limit: u32) -> StoreResult<Vec<everbell_core::store::RefusedRequest>> {
        self.context.parts.store.refused_inbox(limit).await
    }

    /// Returns the audit entry about a request of the inbox that is refused.
    pub(crate) fn entry_of_refusal(&self, request: i64, reason: &str) -> AuditEntry {
        let jobs = self.clone().because(reason);
        jobs.context.entry("inbox.refuse", format!("inbox:{request}"), jobs.context.now(), None, None)
    }
}
