//! Answers about all jobs together.

use jiff::Timestamp;

use crate::gap::GapReason;
use crate::ids::{JobId, OrgId};

/// How many gaps there are for a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GapCount {
    /// The reason.
    pub reason: GapReason,
    /// How many gaps.
    pub gaps: u64,
    /// How many slots they have together.
    pub slots: u64,
}

/// Timers of orgs that fire at the same time for the same job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrgFires {
    /// The version.
    pub job: JobId,
    /// When they fire.
    pub at: Timestamp,
    /// The first of the orgs, by id.
    pub first_org: OrgId,
    /// How many orgs.
    pub orgs: u64,
}
