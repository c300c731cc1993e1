//! Answers to requests of the inbox, and the requests that were refused.

use everbell_core::JobStatus;
use everbell_core::change::NewJob;
use everbell_core::enqueue::{self, Decision, IfUnfinished};
use everbell_core::store::{AuditEntry, InboxAnswer, JobRef, StoreError, StoreResult};

use super::Context;
use super::enqueue::{Enqueue, settings};
use super::in_transaction::Reader;
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
                Err(StoreError::Conflict { what: format!("job `{}` already exists", schedule.key()) })
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
        self.clone().because(reason).context.inbox_entry("inbox.refuse", request)
    }
}

impl Enqueue {
    /// Makes this choice about an unfinished job of the key.
    pub(crate) fn if_unfinished(mut self, choice: IfUnfinished) -> Enqueue {
        self.if_unfinished = choice;
        self
    }

    /// Reads the job of the key, decides, and returns the answer to a request of the inbox.
    pub(crate) async fn answer(&self, request: i64) -> StoreResult<(InboxAnswer, AuditEntry)> {
        let store = &self.context.parts.store;
        let (now, key) = (self.context.now(), self.job_key()?);
        let known = match store.get_job(&JobRef::Key(key.clone())).await {
            Ok(row) => Some(row),
            Err(StoreError::NotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        let reader = &mut Reader::Store(&**store);
        match (enqueue::decide(known.as_ref().map(|row| &row.job), self.if_unfinished)?, &known) {
            (Decision::Keep, Some(_)) => Ok((InboxAnswer::Keep(key), self.context.inbox_entry("inbox.keep", request))),
            (Decision::Replace, Some(row)) => {
                let (replacement, audit) = self.replacement(row, &key, now, reader).await?;
                Ok((InboxAnswer::Replace(Box::new(replacement)), audit))
            }
            (_, known) => {
                let (new, audit) = self.new_job(known.as_ref(), &key, now, reader).await?;
                Ok((InboxAnswer::Create(Box::new(new)), audit))
            }
        }
    }
}

impl Context {
    fn inbox_entry(&self, action: &str, request: i64) -> AuditEntry {
        self.entry(action, format!("inbox:{request}"), self.now(), None, None)
    }
}
