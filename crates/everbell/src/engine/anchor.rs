//! The anchor: asks the database what time it is, and repairs what a wrong clock did to timers.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use everbell_core::store::{FUTURE_TOLERANCE, PageRequest, Rearmed, RunFilter, StoreError, StoreResult};
use everbell_core::{Run, RunStatus};
use jiff::Timestamp;
use tokio::sync::Notify;

use super::{EVERBELL, Shared, Step, Wait, audit};
use crate::clock::later;
use crate::events::Event;

/// How often to ask. A step is noticed after this time.
const EVERY: Duration = Duration::from_secs(1);
/// How many timers are armed again in one transaction, and how many runs are canceled at once.
const BATCH: u32 = 500;

/// When this instance noticed a step of the database's clock, by the monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct LastStep(Mutex<Option<Duration>>);

impl LastStep {
    fn set(&self, at: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
    }

    pub(super) fn get(&self) -> Option<Duration> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(crate) struct Anchor {
    shared: Arc<Shared>,
    /// Timers may lie in a future that was false: at the start, and after the clock was set back.
    must_rearm: bool,
}

impl Anchor {
    pub(super) fn new(shared: &Arc<Shared>) -> Anchor {
        Anchor { shared: Arc::clone(shared), must_rearm: true }
    }

    /// Repairs a batch of timers; returns whether there may be more.
    async fn rearm(&self) -> StoreResult<bool> {
        let Shared { store, events, signals, options, .. } = &*self.shared;
        let now = self.shared.now();
        let lease_until = later(now, options.lease.duration.saturating_add(FUTURE_TOLERANCE));
        let entry = audit("timers.rearmed", "database".to_owned(), None, now);
        let rearmed = store.rearm_timers(now, lease_until, BATCH, &entry).await?;
        let canceled = self.cancel_runs_of_the_future(now).await?;
        if rearmed != Rearmed::default() || canceled > 0 {
            signals.wake_all();
            events.tell(Event::TimersRearmed { rearmed, canceled });
        }
        Ok(rearmed.timers >= BATCH || canceled >= BATCH)
    }

    /// A pending run of a false future would hold up its job until that time comes.
    async fn cancel_runs_of_the_future(&self, now: Timestamp) -> StoreResult<u32> {
        let horizon = later(now, FUTURE_TOLERANCE);
        let filter = RunFilter { status: vec![RunStatus::Pending], from: Some(horizon), ..RunFilter::default() };
        let page = PageRequest { limit: BATCH, after: None };
        let pending = self.shared.store.list_runs(&filter, &page).await?.items;
        let is_false = |run: &&Run| run.created_at > horizon && run.scheduled_at > horizon;
        let mut canceled = 0;
        for run in pending.iter().filter(is_false) {
            let reason = Some("planned while a clock was ahead".to_owned());
            let entry = audit("run.cancel", format!("run:{}", run.id), reason, now);
            match self.shared.store.cancel_run(run.id, EVERBELL, now, &entry).await {
                Ok(_) => canceled += 1,
                // It ended meanwhile.
                Err(StoreError::NotFound { .. } | StoreError::Conflict { .. } | StoreError::Invalid(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(canceled)
    }
}

impl Step for Anchor {
    const NAME: &'static str = "anchor";

    async fn step(&mut self) -> StoreResult<Wait> {
        let Shared { clock, store, events, signals, last_step, .. } = &*self.shared;
        if let Some(step) = clock.anchor(&**store).await? {
            let noticed = clock.monotonic();
            last_step.set(noticed);
            self.must_rearm |= step.by.is_negative();
            events.tell(Event::ClockStepped { by: step.by, noticed });
            signals.wake_all();
        }
        if self.must_rearm {
            self.must_rearm = self.rearm().await?;
        }
        Ok(if self.must_rearm { Wait::No } else { Wait::For(EVERY) })
    }

    fn signal(_: &Shared) -> Option<&Notify> {
        None
    }
}
