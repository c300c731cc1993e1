//! [`Beat`]: the answer to a heartbeat.

use super::LeaseReport;

/// The answer to a heartbeat: everything that an instance has to know about itself and its neighbours, in one round trip
/// whose cost does not depend on the number of runs that the instance holds.
#[allow(clippy::struct_excessive_bools, reason = "each answers a question of its own")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beat {
    /// Whether the instance is asked to take no more work.
    pub draining: bool,
    /// Whether the instance was unknown before: it has just started, or it was forgotten.
    pub is_new: bool,
    /// Grows whenever a run of this instance is recorded as lost. An instance that sees another number than before asks
    /// for the runs that it still holds.
    pub losses: u64,
    /// The runs of this instance whose cancellation was requested, by id.
    pub to_cancel: Vec<LeaseReport>,
    /// Whether another instance is known that has no lease of its own, such as one of a release that extends the lease of
    /// each run. It looks only at those leases, so they have to be extended for it.
    pub has_unleased: bool,
    /// Whether the lease of another instance ended before this heartbeat.
    pub has_lapsed: bool,
    /// The work for the targets of this instance, if it asked for that.
    pub work: Option<WorkSeen>,
}

/// Whether there is work for the targets of an instance. It may say so without reason, for the planner and the claimer to
/// look closer, and it misses none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkSeen {
    /// Whether a timer is due.
    pub is_due: bool,
    /// Whether a pending run may start.
    pub is_pending: bool,
}
