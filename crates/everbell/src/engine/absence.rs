//! Absences: an instance that begins to schedule writes down for how long no other one did.

use std::time::Duration;

use everbell_core::outage::{Absence, MIN_ABSENCE};
use everbell_core::store::StoreResult;
use jiff::Timestamp;
use tracing::warn;

use super::Shared;

/// The role of an instance that plans and runs.
const SCHEDULER: &str = "scheduler";

impl Shared {
    /// Whether a heartbeat may end an absence: the first one of this instance, and one that comes much too late, after this
    /// time by the monotonic clock.
    pub(super) fn may_end_absence(&self, since_last: Option<Duration>) -> bool {
        let is_late = since_last.is_none_or(|since| since >= MIN_ABSENCE);
        let targets = self.targets.now();
        is_late && targets.roles.as_ref().unwrap_or(&self.options.roles).iter().any(|role| role == SCHEDULER)
    }

    /// Writes down the absence that ends with the heartbeat at `now`, which is not written yet. A database that does not
    /// respond is asked again with the next heartbeat. Any other failure costs a line in a report, so it is logged, and the
    /// heartbeat goes on.
    pub(super) async fn note_absence(&self, now: Timestamp) -> StoreResult<()> {
        match self.find_absence(now).await {
            Ok(Some(absence)) => {
                warn!(from = %absence.from, until = %absence.until, "no instance was scheduling for a while");
            }
            Ok(None) => {}
            Err(error) if error.is_transient() => return Err(error),
            Err(error) => warn!(%error, "could not write down for how long no instance was scheduling"),
        }
        Ok(())
    }

    async fn find_absence(&self, now: Timestamp) -> StoreResult<Option<Absence>> {
        let departed = self.store.last_departure().await?;
        let instances = self.store.list_instances().await?.into_iter();
        let schedulers = instances.filter(|instance| instance.roles.iter().any(|role| role == SCHEDULER));
        // One in the future is of a clock that was wrong.
        let heard = schedulers.map(|instance| instance.heartbeat_at).chain(departed).filter(|at| *at <= now).max();
        let absence = Absence::since(heard, now, self.options.lease.heartbeat);
        if let Some(absence) = &absence {
            self.store.add_absence(absence).await?;
        }
        Ok(absence)
    }
}
