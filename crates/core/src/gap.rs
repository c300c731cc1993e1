//! [`Gap`]: slots that got no run.

use jiff::Timestamp;
use uuid::Uuid;

use crate::ids::{JobId, OrgId, gap_id};
use crate::policy::words;

/// Slots that got no run, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gap {
    /// The first of them.
    pub first_slot_at: Timestamp,
    /// The last of them.
    pub last_slot_at: Timestamp,
    /// How many slots of the schedule lie in this range and have no other outcome.
    pub slots: u64,
    /// The reason.
    pub reason: GapReason,
    /// The actor, if a person caused it.
    pub actor: Option<String>,
}

impl Gap {
    /// A gap that no person caused.
    pub fn new(first_slot_at: Timestamp, last_slot_at: Timestamp, slots: u64, reason: GapReason) -> Gap {
        Gap { first_slot_at, last_slot_at, slots, reason, actor: None }
    }

    /// An id that is the same wherever it is computed, ordered by the first slot.
    pub fn id(&self, job: JobId, org: Option<&OrgId>) -> Uuid {
        gap_id(self.reason.as_str(), job, org, self.first_slot_at)
    }
}

/// A gap of the same freeze that was written before, if the timer has been armed since the freeze began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlierGap {
    /// The first of its slots.
    pub first_slot_at: Timestamp,
    /// The last of its slots.
    pub last_slot_at: Timestamp,
}

impl EarlierGap {
    /// Its id, see [`Gap::id`].
    pub fn id(&self, job: JobId, org: Option<&OrgId>) -> Uuid {
        gap_id(GapReason::Frozen.as_str(), job, org, self.first_slot_at)
    }
}

/// Why slots got no run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GapReason {
    /// Nothing was running, and the job does not catch up (so far back).
    Missed,
    /// Folded into the run of a later slot.
    Coalesced,
    /// The job was paused.
    Paused,
    /// The local time did not exist.
    DstGap,
    /// Older than the catch-up window.
    Expired,
    /// The schedule could not be read.
    Errored,
    /// A calendar of the job excludes the day.
    Excluded,
    /// A freeze was in force.
    Frozen,
    /// The job starts after several others, and not all of them ended as required.
    Incomplete,
}
words!(GapReason {
    Missed = "missed",
    Coalesced = "coalesced",
    Paused = "paused",
    DstGap = "dst_gap",
    Expired = "expired",
    Errored = "errored",
    Excluded = "excluded",
    Frozen = "frozen",
    Incomplete = "incomplete",
});
