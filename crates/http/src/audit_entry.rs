//! Audit entries about objects other than jobs and runs.

use everbell::RunId;
use everbell_core::store::AuditEntry;
use jiff::Timestamp;
use uuid::Uuid;

/// A new id that begins with the time.
pub fn new_id(now: Timestamp) -> Uuid {
    let mut random = [0; 10];
    random.copy_from_slice(&Uuid::new_v4().as_bytes()[..10]);
    RunId::by_hand(now, random).as_uuid()
}

/// Returns an audit entry for an action at this time.
pub fn new_entry(actor: &str, action: &str, object: String, now: Timestamp) -> AuditEntry {
    AuditEntry {
        id: new_id(now),
        at: now,
        actor: actor.to_owned(),
        action: action.to_owned(),
        object,
        reason: None,
        before: None,
        after: None,
        request: None,
        origin: everbell_core::store::Origin::default(),
    }
}
