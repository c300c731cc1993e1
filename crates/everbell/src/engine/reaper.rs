//! The reaper: ends runs whose instance was not heard of until the lease ran out.

use std::sync::Arc;
use std::time::Duration;

use everbell_core::settle::{Outcome, Transition, settle};
use everbell_core::store::{Recorded, StoreResult};
use jiff::Timestamp;
use tokio::sync::Notify;

use super::{Shared, Step, Wait, pauses};
use crate::clock::earlier;
use crate::events::Event;
use crate::run::info_of;

/// How many runs are ended at once.
const BATCH: u32 = 100;

/// An instance is forgotten after so many leases of silence.
const FORGET_AFTER: u32 = 10;

#[derive(Debug)]
pub(crate) struct Reaper {
    shared: Arc<Shared>,
    /// Since when the database answers without a failure in between, by the monotonic clock.
    reachable_since: Option<Duration>,
}

impl Reaper {
    pub(super) fn new(shared: &Arc<Shared>) -> Reaper {
        Reaper { shared: Arc::clone(shared), reachable_since: None }
    }

    async fn reap(&mut self, now: Timestamp) -> StoreResult<Wait> {
        let Shared { store, options, inflight, events, .. } = &*self.shared;
        let expired = store.expired_leases(now, BATCH).await?;
        let reached = self.shared.clock.monotonic();
        let since = *self.reachable_since.get_or_insert(reached);
        // After a start or an outage everybody who lives gets the time to say so.
        let left = (2 * options.lease.heartbeat).saturating_sub(reached.saturating_sub(since));
        if !left.is_zero() {
            return Ok(Wait::For(left));
        }
        // What this instance holds itself is the business of its heartbeat.
        let lost = expired.iter().filter(|run| !inflight.contains((run.id, run.attempt)));
        let lost: Vec<Transition> = lost.filter_map(|run| settle(run, Outcome::Lost, now)).collect();
        if !lost.is_empty() {
            let recorded = store.record(&lost, now).await?;
            for (transition, recorded) in lost.iter().zip(recorded) {
                let Recorded::Applied { consecutive_failures } = recorded else { continue };
                let run = store.get_run(transition.run_id).await.ok();
                events.tell(Event::Reaped { run: transition.run_id, info: run.as_ref().map(info_of) });
                if consecutive_failures > 0
                    && let Some(run) = run
                    && let (Some(job), Some(key)) = (run.job_id, &run.job_key)
                {
                    pauses::pause_failing(&self.shared, job, key).await;
                }
            }
            self.shared.signals.claim.notify_one();
        }
        store.remove_instances(earlier(now, FORGET_AFTER * options.lease.duration)).await?;
        let full = expired.len() == BATCH as usize && !lost.is_empty();
        Ok(if full { Wait::No } else { Wait::For(options.lease.heartbeat) })
    }
}

impl Step for Reaper {
    const NAME: &'static str = "reaper";

    async fn step(&mut self) -> StoreResult<Wait> {
        let waited = self.reap(self.shared.now()).await;
        if waited.is_err() {
            self.reachable_since = None;
        }
        waited
    }

    fn signal(_: &Shared) -> Option<&Notify> {
        None
    }
}
