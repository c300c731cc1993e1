//! Requests that may be sent again: what they did, and how they were answered.

use everbell_core::store::{AuditEntry, Deed, REQUEST_KEPT, Remembered, RequestKey, StoreError, StoreResult};
use jiff::Timestamp;

use super::state::{State, StoredRequest, micros};

impl State {
    /// Refuses a deed that was done already.
    pub(super) fn expect_new_request(&self, audit: &AuditEntry) -> StoreResult<()> {
        let Some(request) = &audit.request else { return Ok(()) };
        match self.known_request(request, audit.at) {
            Some(_) => Err(StoreError::Conflict { what: "this request was carried out already".to_owned() }),
            None => Ok(()),
        }
    }

    fn known_request(&self, request: &RequestKey, now: Timestamp) -> Option<&StoredRequest> {
        self.requests.get(&request.key).filter(|known| !known.is_forgotten(micros(now)))
    }

    pub(super) fn find_request(&self, request: &RequestKey, now: Timestamp) -> Remembered {
        match self.known_request(request, now) {
            None => Remembered::New,
            Some(known) if known.fingerprint != request.fingerprint => Remembered::Different,
            Some(StoredRequest { answer: Some((status, body)), .. }) => Remembered::Answered(*status, body.clone()),
            Some(StoredRequest { deed: Some(deed), .. }) => Remembered::Done(deed.clone()),
            Some(_) => Remembered::InDoubt,
        }
    }

    /// Writes down what a request did, in the place of one that is forgotten.
    pub(super) fn write_deed(&mut self, audit: &AuditEntry, deed: Deed) {
        let Some(RequestKey { key, fingerprint }) = &audit.request else { return };
        let deed = Some(Deed { entry: audit.id, ..deed });
        let done = StoredRequest { fingerprint: *fingerprint, at: micros(audit.at), deed, answer: None };
        self.requests.insert(key.clone(), done);
    }

    pub(super) fn remember_answer(&mut self, request: &RequestKey, (status, body): (u16, &str), now: Timestamp) {
        let answer = Some((status, body.to_owned()));
        let now = micros(now);
        match self.requests.get_mut(&request.key).filter(|known| !known.is_forgotten(now)) {
            Some(known) if known.fingerprint == request.fingerprint && known.answer.is_none() => known.answer = answer,
            Some(_) => {}
            None => {
                let new = StoredRequest { fingerprint: request.fingerprint, at: now, deed: None, answer };
                self.requests.insert(request.key.clone(), new);
            }
        }
    }
}

impl StoredRequest {
    fn is_forgotten(&self, now: Timestamp) -> bool {
        self.at.checked_add(REQUEST_KEPT).is_ok_and(|end| end < now)
    }
}
