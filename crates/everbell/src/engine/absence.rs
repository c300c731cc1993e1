//! Absences: an instance that begins to schedule writes down for how long no other one did.

use std::time::Duration;

use everbell_core::Trigger;
use everbell_core::outage::{Absence, MIN_ABSENCE};
use everbell_core::store::{PageRequest, RunFilter, StoreResult};
use jiff::Timestamp;
use tracing::warn;

use super::Shared;
use crate::clock::later;

/// The role of an instance that plans and runs.
const SCHEDULER: &str = "scheduler";
/// The newest runs among which the last one of a schedule is looked for.
const NEWEST_RUNS: u32 = 50;

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
        let instances = self.store.list_instances().await?.into_iter();
        let schedulers = instances.filter(|instance| instance.roles.iter().any(|role| role == SCHEDULER));
        // Another instance may have sent a heartbeat after `now` was read, and its clock may be ahead by less than a lease.
        // A heartbeat that is still later is of a clock that was wrong.
        let soon = later(now, self.options.lease.duration);
        let heard = schedulers.map(|instance| instance.heartbeat_at).filter(|at| *at <= soon).max();
        let departed = self.store.last_departure().await?.filter(|at| *at <= soon);
        let heard = match heard.max(departed) {
            // Only a departure is known, and perhaps not the last one: earlier releases write none down.
            Some(at) if heard < Some(at) => Some(at).max(self.last_planned(now).await?),
            heard => heard,
        };
        let absence = Absence::since(heard, now, self.options.lease.heartbeat);
        if let Some(absence) = &absence {
            self.store.add_absence(absence).await?;
        }
        Ok(absence)
    }

    /// Returns when the newest runs that a schedule made were planned.
    async fn last_planned(&self, now: Timestamp) -> StoreResult<Option<Timestamp>> {
        let page = PageRequest { limit: NEWEST_RUNS, after: None };
        let runs = self.store.list_runs(&RunFilter::default(), &page).await?.items;
        let planned = runs.iter().filter(|run| matches!(run.trigger, Trigger::Schedule(_))).map(|run| run.created_at);
        Ok(planned.filter(|at| *at <= now).max())
    }
}
