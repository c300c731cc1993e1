//! Requests behind audit entries, and what they did.

use everbell_core::store::{AuditEntry, Deed, REQUEST_RETENTION, RequestKey, StoreError, StoreResult};
use jiff::Timestamp;

use super::state::{State, StoredRequest, micros};

impl State {
    /// Refuses a deed that was done already.
    pub(super) fn expect_new_request(&self, audit: &AuditEntry) -> StoreResult<()> {
        let Some(request) = &audit.request else { return Ok(()) };
        match self.known_request(request, audit.at) {
            Some(_) => Err(StoreError::Conflict { what: "this request was already carried out".to_owned() }),
            None => Ok(()),
        }
    }

    pub(super) fn known_request(&self, request: &RequestKey, now: Timestamp) -> Option<&StoredRequest> {
        self.requests.get(&request.key).filter(|known| !known.is_forgotten(micros(now)))
    }

    /// Writes down what a request did, in the place of one that is forgotten.
    pub(super) fn write_deed(&mut self, audit: &AuditEntry, deed: Deed) {
        let Some(RequestKey { key, fingerprint }) = &audit.request else { return };
        let deed = Some(Deed { entry: audit.id, ..deed });
        let done = StoredRequest { fingerprint: *fingerprint, at: micros(audit.at), deed, answer: None };
        self.requests.insert(key.clone(), done);
    }
}

impl StoredRequest {
    pub(super) fn is_forgotten(&self, now: Timestamp) -> bool {
        self.at.checked_add(REQUEST_RETENTION).is_ok_and(|end| end < now)
    }
}
