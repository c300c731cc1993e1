//! The anchor: asks the database what time it is, and repairs what a wrong clock did to timers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use everbell_core::store::{FUTURE_TOLERANCE, PageRequest, Rearmed, RunFilter, StoreError, StoreResult};
use everbell_core::{Run, RunStatus};
use jiff::Timestamp;
use tokio::sync::Notify;

use super::{EVERBELL, Shared, Step, Wait, audit};
use crate::clock::later;
use crate::events::Event;

/// How often to ask. A step is noticed after this time.
const ANCHOR_INTERVAL: Duration = Duration::from_secs(1);
/// How often to ask while nothing is in flight and nothing is due for [`CALM_BEFORE`]. The planner and the claimer
/// ask before they start runs.
const CALM_INTERVAL: Duration = Duration::from_secs(15);
/// How long before the next fire the clock is followed closely again.
const CALM_BEFORE: Duration = Duration::from_mins(1);
/// How many timers are armed again in one transaction, and how many runs are canceled at once.
const MAX_REARMED_ROWS: u32 = 500;

/// An older anchor proves nothing about a clock that may have been set since.
const MAX_ANCHOR_AGE: Duration = Duration::from_secs(5);

/// This instance's knowledge of the database's clock. All times are monotonic.
#[derive(Debug, Default)]
pub(crate) struct Anchoring(Mutex<State>);

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// When the database was asked last.
    anchored_at: Option<Duration>,
    /// When a step was noticed last.
    last_step: Option<Duration>,
    /// Whether a step back was noticed whose timers have not been repaired.
    must_rearm: bool,
    /// Until when nothing is due for [`CALM_BEFORE`], as far as the planner has seen.
    calm_until: Option<Duration>,
}

impl Anchoring {
    /// The planner has looked: the next timer is due then.
    pub(super) fn note_next_due(&self, at: Option<Duration>) {
        self.locked().calm_until = Some(at.map_or(Duration::MAX, |at| at.saturating_sub(CALM_BEFORE)));
    }

    /// Whether nothing is due for a while.
    fn is_calm(&self, monotonic: Duration) -> bool {
        self.locked().calm_until.is_some_and(|until| until > monotonic)
    }

    /// How long until the database is asked again, at this interval.
    fn left(&self, monotonic: Duration, every: Duration) -> Duration {
        self.locked().anchored_at.map_or(Duration::ZERO, |at| every.saturating_sub(monotonic.saturating_sub(at)))
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When a step was noticed last.
    pub(super) fn last_step(&self) -> Option<Duration> {
        self.locked().last_step
    }

    fn is_stale(&self, monotonic: Duration) -> bool {
        self.locked().anchored_at.is_none_or(|at| monotonic.saturating_sub(at) > MAX_ANCHOR_AGE)
    }
}

impl Shared {
    /// Asks the database what time it is, and reports a step of its clock.
    pub(super) async fn anchor(&self) -> StoreResult<()> {
        let Shared { clock, store, events, signals, anchoring, .. } = self;
        let asked = clock.monotonic();
        let step = clock.anchor(&**store).await?;
        let noticed = clock.monotonic();
        {
            let mut state = anchoring.locked();
            state.anchored_at = Some(asked);
            if let Some(step) = step {
                state.last_step = Some(noticed);
                state.must_rearm |= step.by.is_negative();
            }
        }
        if let Some(step) = step {
            events.publish(Event::ClockStepped { by: step.by, noticed });
            signals.wake_all();
            signals.anchor.notify_one();
        }
        Ok(())
    }

    /// The time, from an anchor that is young enough to start runs by. An instance that was frozen may have missed that the
    /// clock was set back meanwhile, and would start runs before their slots.
    pub(super) async fn anchored_now(&self) -> StoreResult<Timestamp> {
        if self.anchoring.is_stale(self.clock.monotonic()) {
            self.anchor().await?;
        }
        Ok(self.now())
    }
}

#[derive(Debug)]
pub(crate) struct Anchor {
    shared: Arc<Shared>,
    /// Timers may lie in a future that was false: at the start, and after the clock was set back.
    must_rearm: bool,
    /// When it asked the database last, by the monotonic clock.
    asked_at: Option<Duration>,
}

impl Anchor {
    pub(super) fn new(shared: &Arc<Shared>) -> Anchor {
        Anchor { shared: Arc::clone(shared), must_rearm: true, asked_at: None }
    }

    /// Whether it looks before its time, because runs have started.
    fn was_woken(&self) -> bool {
        let now = self.shared.clock.monotonic();
        let must_rearm = self.must_rearm || self.shared.anchoring.locked().must_rearm;
        !must_rearm && self.asked_at.is_some_and(|at| now.saturating_sub(at) < ANCHOR_INTERVAL)
    }

    /// How long until the database is asked again.
    fn wait(&self) -> Duration {
        let Shared { store, inflight, clock, anchoring, .. } = &*self.shared;
        let now = clock.monotonic();
        let is_calm = store.hears_others() && inflight.is_empty() && anchoring.is_calm(now);
        anchoring.left(now, if is_calm { CALM_INTERVAL } else { ANCHOR_INTERVAL })
    }

    /// Repairs a batch of timers; returns whether there may be more.
    async fn rearm(&self) -> StoreResult<bool> {
        let Shared { store, events, signals, options, .. } = &*self.shared;
        let now = self.shared.now();
        let lease_until = later(now, options.lease.duration.saturating_add(FUTURE_TOLERANCE));
        let entry = audit("timers.rearmed", "database".to_owned(), None, now);
        let rearmed = store.rearm_timers(now, lease_until, MAX_REARMED_ROWS, &entry).await?;
        let canceled = self.cancel_runs_of_the_future(now).await?;
        if rearmed != Rearmed::default() || canceled > 0 {
            signals.wake_all();
            events.publish(Event::TimersRearmed { rearmed, canceled });
        }
        Ok(rearmed.timers >= MAX_REARMED_ROWS || canceled >= MAX_REARMED_ROWS)
    }

    /// A pending run of a false future would hold up its job until that time comes.
    async fn cancel_runs_of_the_future(&self, now: Timestamp) -> StoreResult<u32> {
        let horizon = later(now, FUTURE_TOLERANCE);
        let filter = RunFilter { status: vec![RunStatus::Pending], from: Some(horizon), ..RunFilter::default() };
        let page = PageRequest { limit: MAX_REARMED_ROWS, after: None };
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
        if self.was_woken() {
            return Ok(Wait::For(self.wait()));
        }
        let begun = self.shared.clock.monotonic();
        self.shared.anchor().await?;
        self.asked_at = Some(begun);
        self.must_rearm |= std::mem::take(&mut self.shared.anchoring.locked().must_rearm);
        if self.must_rearm {
            self.must_rearm = self.rearm().await?;
        }
        Ok(if self.must_rearm { Wait::No } else { Wait::For(self.wait()) })
    }

    fn signal(shared: &Shared) -> Option<&Notify> {
        Some(&shared.signals.anchor)
    }
}
