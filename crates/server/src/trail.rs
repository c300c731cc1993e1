//! Entries of the audit trail about what is neither a job nor a run.

use everbell::RunId;
use everbell_core::store::AuditEntry;
use jiff::Timestamp;

/// What somebody does now.
pub(crate) fn entry(actor: &str, action: &str, object: String, now: Timestamp) -> AuditEntry {
    let mut random = [0; 10];
    random.copy_from_slice(&uuid::Uuid::new_v4().as_bytes()[..10]);
    AuditEntry {
        id: RunId::by_hand(now, random).as_uuid(),
        at: now,
        actor: actor.to_owned(),
        action: action.to_owned(),
        object,
        reason: None,
        before: None,
        after: None,
        request: None,
    }
}
