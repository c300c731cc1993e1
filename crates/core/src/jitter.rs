//! Deterministic jitter: every instance computes the same delay for the same slot.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::ids::{JobId, OrgId, slot_hash};
use crate::spec::Spec;

/// Returns when the slot fires: at the slot, plus a share of `most` chosen by a hash of job, org and slot.
///
/// The delay stays shorter than the wait for the next slot, so slots keep their order.
pub fn fire_at(spec: &Spec, job: JobId, org: Option<&OrgId>, slot: Timestamp, most: Duration) -> Timestamp {
    let most = i128::try_from(most.as_millis()).unwrap_or(i128::MAX);
    if most == 0 {
        return slot;
    }
    let room = spec.next_after(slot).map_or(most, |next| next.duration_since(slot).as_millis());
    let bound = most.min(room).max(1) as u64;
    let hash = slot_hash(b"jitter", job, org, slot);
    let chosen = u64::from_be_bytes([hash[0], hash[1], hash[2], hash[3], hash[4], hash[5], hash[6], hash[7]]) % bound;
    slot.checked_add(SignedDuration::from_millis(chosen as i64)).unwrap_or(slot)
}
