//! How long a lease on a run lasts, and what an instance derives from that.

use std::time::Duration;

/// How long an instance may be silent before its runs are lost, and how often it speaks. Kept together because the one
/// makes no sense without the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTerms {
    /// The time that each heartbeat grants.
    pub duration: Duration,
    /// The time between heartbeats: at most a third of the duration, so that two may fail.
    pub heartbeat: Duration,
}

impl Default for LeaseTerms {
    fn default() -> Self {
        LeaseTerms { duration: Duration::from_mins(1), heartbeat: Duration::from_secs(5) }
    }
}

/// The deadlines that an instance derives from its lease, measured on its own monotonic clock from the moment at which
/// it *sent* the last request that granted or renewed the lease. The database counts the lease from the same moment or
/// later.
///
/// ```text
///   sent      claim_within      fence_after           gone_after      duration
///   |---------------|-----------------|-------------------|---------------|
///   a claim starts  a later answer    handlers are asked  handlers are    others may end the run
///                   is dropped        to stop             dropped         and start the next one
/// ```
impl LeaseTerms {
    /// The longest time that an answer to a claim may take. None of the runs of a later answer starts.
    pub fn claim_within(&self) -> Duration {
        (self.duration / 4).min(Duration::from_secs(5))
    }

    /// The time after which an instance that could not renew a lease asks the handler to stop.
    pub fn fence_after(&self) -> Duration {
        self.duration / 4 * 3
    }

    /// The time after which it drops a handler that has not stopped. The rest of the lease allows for small clock
    /// differences.
    pub fn gone_after(&self) -> Duration {
        self.duration / 12 * 11
    }
}
