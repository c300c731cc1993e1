//! The inbox: requests that others would write with plain SQL.

use std::collections::BTreeSet;

use everbell_core::change::JobView;
use everbell_core::enqueue::replace;
use everbell_core::purge::REMOVED_REASON;
use everbell_core::store::{
    AuditEntry, Deed, InboxAnswer, InboxRequest, JobRef, RefusedRequest, Replacement, StoreResult,
};
use jiff::Timestamp;

use super::state::{State, micros};

#[derive(Clone, Debug)]
pub(super) struct StoredRequest {
    request: InboxRequest,
    answered_at: Option<Timestamp>,
    /// The job that was created or kept for it.
    job_key: Option<String>,
    refusal: Option<String>,
}

impl State {
    pub(super) fn write_inbox(&mut self, request: &InboxRequest) -> i64 {
        self.last_request += 1;
        let request = InboxRequest { id: self.last_request, ..request.clone() };
        self.inbox.insert(request.id, StoredRequest { request, answered_at: None, job_key: None, refusal: None });
        self.last_request
    }

    pub(super) fn open_inbox(&self, limit: u32, without: &[i64]) -> Vec<InboxRequest> {
        let open = self.inbox.values().filter(|stored| stored.answered_at.is_none());
        let open = open.filter(|stored| !without.contains(&stored.request.id));
        open.take(limit as usize).map(|stored| stored.request.clone()).collect()
    }

    pub(super) fn refused_inbox(&self, limit: u32) -> Vec<RefusedRequest> {
        let refused = self.inbox.values().filter_map(|stored| {
            let (reason, at) = (stored.refusal.clone()?, stored.answered_at?);
            Some(RefusedRequest { request: stored.request.clone(), reason, at })
        });
        let mut refused: Vec<RefusedRequest> = refused.collect();
        refused.sort_by_key(|refused| std::cmp::Reverse((refused.at, refused.request.id)));
        refused.truncate(limit as usize);
        refused
    }

    pub(super) fn answer_inbox(&mut self, id: i64, answer: &InboxAnswer, audit: &AuditEntry) -> StoreResult<bool> {
        if self.inbox.get(&id).is_none_or(|stored| stored.answered_at.is_some()) {
            return Ok(false);
        }
        let (job_key, refusal, deed) = match answer {
            InboxAnswer::Create(job) => {
                self.check_new(job, None)?;
                self.insert_job(job, audit);
                let deed = Deed { job: Some(job.definition.id), ..Deed::default() };
                (Some(job.definition.key.to_string()), None, deed)
            }
            InboxAnswer::Replace(replacement) => {
                let Replacement { job, revision, definition } = &**replacement;
                let decide = |view: &JobView| replace(view, definition.clone(), &audit.actor, audit.at);
                self.change_job(&JobRef::Id(*job), None, Some(*revision), &decide, audit)?;
                self.mark_answered(id, audit.at, Some(definition.key.to_string()), None);
                return Ok(true);
            }
            InboxAnswer::Keep(key) => (Some(key.to_string()), None, Deed::default()),
            InboxAnswer::Refuse(reason) => (None, Some(reason.clone()), Deed::default()),
        };
        self.mark_answered(id, audit.at, job_key, refusal);
        self.write_audit(audit);
        self.write_deed(audit, deed);
        Ok(true)
    }

    fn mark_answered(&mut self, id: i64, at: Timestamp, job_key: Option<String>, refusal: Option<String>) {
        if let Some(stored) = self.inbox.get_mut(&id) {
            (stored.answered_at, stored.job_key, stored.refusal) = (Some(micros(at)), job_key, refusal);
        }
    }

    /// Removes the payloads of the answered requests for the job of this key, and why they were refused.
    pub(super) fn purge_inbox(&mut self, key: &str) {
        let mut refused = BTreeSet::new();
        for stored in self.inbox.values_mut().filter(|stored| stored.answered_at.is_some()) {
            if stored.job_key.as_deref() == Some(key) || stored.request.key.as_deref() == Some(key) {
                stored.request.payload = None;
                if let Some(reason) = &mut stored.refusal {
                    REMOVED_REASON.clone_into(reason);
                    refused.insert(format!("inbox:{}", stored.request.id));
                }
            }
        }
        for entry in self.audit.values_mut().filter(|entry| refused.contains(&entry.object)) {
            entry.reason = Some(REMOVED_REASON.to_owned());
        }
    }

    pub(super) fn prune_inbox(&mut self, before: Timestamp, limit: usize) -> u64 {
        let answered = self.inbox.values().filter_map(|stored| Some((stored.answered_at?, stored.request.id)));
        let mut old: Vec<(Timestamp, i64)> = answered.filter(|(at, _)| *at < before).collect();
        old.sort_unstable();
        old.truncate(limit);
        for (_, id) in &old {
            self.inbox.remove(id);
        }
        old.len() as u64
    }
}
