//! The engine: loops that carry values between the store and the two decisions of core.
//!
//! ```text
//!   planner ──► claimer ──► executor ──► recorder                  the way of a run
//!   heartbeat, reaper, remote_reaper, output_saver, resumer, backfiller, repairer, reconciler, pruner, counter, anchor
//!                                                                what keeps it honest
//! ```
//!
//! Each loop is a [`Step`]: it looks, decides, commits and says when it wants to look again; [`drive`] repeats it, woken
//! earlier by a signal. Steps share nothing but [`Shared`], so a test can call any of them in any order.

mod absence;
mod anchor;
mod announce;
mod backfiller;
mod batch;
mod claimer;
mod claims;
mod counter;
mod drive;
mod executor;
mod heartbeat;
mod inflight;
mod last_beat;
mod options;
mod outage;
mod outcome_group;
mod output_saver;
mod patience;
mod pauses;
mod planner;
mod process;
mod pruner;
mod reachable;
mod reaper;
mod reconciler;
mod recorder;
mod remote;
mod remote_reaper;
mod repairer;
mod resumer;
mod second_planner;
mod shutdown;
mod signals;
mod starting;
#[cfg(test)]
mod tests;
mod trust;
mod upstream;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use everbell_core::InstanceId;
use everbell_core::store::{AuditEntry, Instance, Store};
use jiff::Timestamp;
use tokio::sync::mpsc;
use uuid::Uuid;

pub(crate) use anchor::{Anchor, Anchoring};
pub(crate) use backfiller::{Backfiller, backfill_spec, known_slots};
pub(crate) use claimer::Claimer;
pub(crate) use claims::Claims;
pub(crate) use counter::Counter;
pub(crate) use drive::{Step, Wait};
pub(crate) use executor::Done;
pub(crate) use heartbeat::Heartbeat;
pub(crate) use inflight::{Attempt, Inflight};
pub(crate) use last_beat::LastBeat;
pub use options::EngineOptions;
pub(crate) use outage::Outage;
pub(crate) use output_saver::OutputSaver;
pub(crate) use planner::{Keys, Planner, decide, into_events};
pub(crate) use pruner::Pruner;
pub(crate) use reaper::Reaper;
pub(crate) use reconciler::{MAX_ORGS_PER_STEP, Reconciler};
pub(crate) use recorder::Recorder;
pub(crate) use remote::end as end_remote_run;
pub(crate) use remote_reaper::RemoteReaper;
pub(crate) use repairer::Repairer;
pub(crate) use resumer::Resumer;
pub(crate) use second_planner::SecondPlanner;
pub use shutdown::EngineFailed;
pub(crate) use signals::Signals;
pub(crate) use starting::Starting;

use self::inflight::{Rooms, Take};
use self::patience::Patience;
use self::process::Process;
use self::starting::Beginning;
use crate::clock::Clock;
use crate::events::{Event, Events, Round};
use crate::targets::{Serving, Targets};

/// The time between two looks of a loop that others look for.
const RESTING_POLL: Duration = Duration::from_mins(1);

/// The actor of everbell's own actions.
pub(crate) const EVERBELL: &str = "everbell";

/// The state that the loops of an instance share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) targets: Serving,
    pub(crate) options: EngineOptions,
    pub(crate) events: Events,
    pub(crate) instance: InstanceId,
    pub(crate) started_at: Timestamp,
    pub(crate) inflight: Arc<Inflight>,
    pub(crate) claims: Claims,
    pub(crate) signals: Signals,
    pub(crate) outage: Outage,
    pub(crate) anchoring: Anchoring,
    pub(crate) last_beat: LastBeat,
    pub(crate) remote: remote::RemoteRuns,
    patience: Mutex<Patience>,
    /// This process, if the machine can identify it.
    process: Option<Process>,
    done: mpsc::UnboundedSender<Done>,
    draining: AtomicBool,
    /// Until the first heartbeat.
    beginning: Mutex<Option<Beginning>>,
}

/// One instance: everything that makes schedules fire.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) shared: Arc<Shared>,
    pub(crate) planner: Planner,
    pub(crate) second_planner: SecondPlanner,
    pub(crate) claimer: Claimer,
    pub(crate) recorder: Recorder,
    pub(crate) heartbeat: Heartbeat,
    pub(crate) reaper: Reaper,
    pub(crate) remote_reaper: RemoteReaper,
    pub(crate) resumer: Resumer,
    pub(crate) backfiller: Backfiller,
    pub(crate) repairer: Repairer,
    pub(crate) output_saver: OutputSaver,
    pub(crate) reconciler: Reconciler,
    pub(crate) pruner: Pruner,
    pub(crate) counter: Counter,
    pub(crate) anchor: Anchor,
    guard: AbortAll,
}

/// Aborts all handlers of an engine that is dropped without a shutdown. Their leases expire.
#[derive(Debug)]
struct AbortAll(Option<Arc<Shared>>);

impl AbortAll {
    fn new(shared: &Arc<Shared>) -> AbortAll {
        AbortAll(Some(Arc::clone(shared)))
    }

    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for AbortAll {
    fn drop(&mut self) {
        self.0.as_ref().inspect(|shared| shared.inflight.abort_all());
    }
}

impl Engine {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        targets: Serving,
        options: EngineOptions,
        events: Events,
    ) -> Engine {
        let started_at = clock.now();
        let (done, queue) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            inflight: Arc::new(Inflight::new(options.concurrency, options.batch)),
            claims: Claims::default(),
            instance: InstanceId::new(started_at, random()),
            store,
            clock,
            targets,
            options,
            events,
            started_at,
            signals: Signals::default(),
            outage: Outage::default(),
            anchoring: Anchoring::default(),
            last_beat: LastBeat::default(),
            remote: remote::RemoteRuns::default(),
            patience: Mutex::default(),
            process: Process::own(),
            done,
            draining: AtomicBool::new(false),
            beginning: Mutex::new(None),
        });
        Engine {
            planner: Planner::new(&shared),
            second_planner: SecondPlanner::new(&shared),
            claimer: Claimer::new(&shared),
            recorder: Recorder::new(&shared, queue),
            heartbeat: Heartbeat::new(&shared),
            reaper: Reaper::new(&shared),
            remote_reaper: RemoteReaper::new(&shared),
            resumer: Resumer::new(&shared),
            backfiller: Backfiller::new(&shared),
            repairer: Repairer::new(&shared),
            output_saver: OutputSaver::new(&shared),
            reconciler: Reconciler::new(&shared),
            pruner: Pruner::new(&shared),
            counter: Counter::new(&shared),
            anchor: Anchor::new(&shared),
            guard: AbortAll::new(&shared),
            shared,
        }
    }
}

impl Shared {
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Counts this instance among those that start, until its first heartbeat or its end.
    pub(crate) fn begin(&self, starting: &Starting) {
        *self.beginning.lock().unwrap_or_else(PoisonError::into_inner) = Some(starting.begin());
    }

    /// Others see this instance from here on.
    fn has_begun(&self) {
        *self.beginning.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Whether no more work shall be taken.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    pub(crate) fn set_draining(&self, draining: bool) {
        if self.draining.swap(draining, Ordering::Relaxed) != draining {
            self.events.publish(Event::Draining(draining));
            self.signals.wake_all();
        }
    }

    /// Whether heartbeats look for work instead of the planner and the claimer: nothing is in flight, and others are heard.
    pub(crate) fn may_rest(&self) -> bool {
        let options = &self.options;
        self.store.hears_others()
            && self.inflight.is_empty()
            && !self.is_draining()
            && !self.targets.now().is_empty()
            && options.poll >= options.lease.heartbeat
    }

    /// The longest time between two looks of the planner or the claimer.
    pub(crate) fn poll(&self) -> Duration {
        let heartbeat = self.options.lease.heartbeat;
        let rests = self.may_rest() && self.last_beat.looks_for_work(self.clock.monotonic(), 2 * heartbeat);
        if rests { self.options.poll.max(RESTING_POLL) } else { self.options.poll }
    }

    /// Publishes the result of a look for work that began at `at`, and at `begun` of the monotonic clock.
    pub(crate) fn looked(&self, round: Round, at: Timestamp, begun: Duration, claimed: Option<usize>) {
        let took = self.clock.monotonic().saturating_sub(begun);
        let claimed = claimed.map(|claimed| u32::try_from(claimed).unwrap_or(u32::MAX));
        self.events.publish(Event::Round { instance: self.instance, round, at, begun, claimed, took });
    }

    fn patience(&self) -> MutexGuard<'_, Patience> {
        self.patience.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves places for new slots. Those of targets whose pending runs may wait are left to them.
    fn reserve_for_slots(&self, targets: &Targets, most: u32) -> Rooms<'_> {
        self.inflight.reserve(targets, Take::Slots, most, |target| !self.claims.may_wait(target))
    }

    /// The row by which other instances know this one.
    pub(crate) fn instance(&self, now: Timestamp) -> Instance {
        let targets = self.targets.now();
        everbell_core::with!(Instance {
            roles: targets.roles.as_ref().unwrap_or(&self.options.roles).clone(),
            targets: targets.names().cloned().collect(),
            heartbeat_at: now,
            draining: self.is_draining(),
            clock_skew_ms: i64::try_from(self.clock.host_skew().as_millis()).unwrap_or(i64::MAX),
            process: self.process.as_ref().map(Process::to_string),
            ..Instance::new(
                self.instance,
                self.options.host.clone(),
                std::process::id(),
                env!("CARGO_PKG_VERSION").to_owned(),
                self.started_at
            )
        })
    }
}

/// 80 bits of randomness, for ids.
pub(crate) fn random() -> [u8; 10] {
    let mut bits = [0; 10];
    bits[..5].copy_from_slice(&Uuid::new_v4().as_bytes()[..5]);
    bits[5..].copy_from_slice(&Uuid::new_v4().as_bytes()[..5]);
    bits
}

/// Creates an audit entry for an action of this instance itself.
pub(crate) fn audit(action: &str, object: String, reason: Option<String>, at: Timestamp) -> AuditEntry {
    AuditEntry {
        id: everbell_core::RunId::by_hand(at, random()).as_uuid(),
        at,
        actor: EVERBELL.to_owned(),
        action: action.to_owned(),
        object,
        reason,
        before: None,
        after: None,
        request: None,
        origin: everbell_core::store::Origin::default(),
    }
}
