//! [`Pulse`]: what readiness and metrics must know about the loops of this process, learned from events.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use everbell::{Event, Round, Timestamp};
use everbell_core::InstanceId;
use jiff::SignedDuration;

/// The state of the instance of this process. Cheap to clone; all clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<Mutex<State>>);

#[derive(Clone, Debug, Default)]
struct State {
    tick: Option<Tick>,
    draining: bool,
    /// Whether the process is stopping, which is final.
    stopping: bool,
    /// When a heartbeat was last written, by the monotonic clock.
    beat: Option<Duration>,
    /// Why the last heartbeat was not written.
    beat_error: Option<String>,
    /// The last step of the database's clock: how far, and when, by the monotonic clock.
    step: Option<(SignedDuration, Duration)>,
    /// The youngest entry of the database, if it was younger than its clock at the start.
    future: Option<Timestamp>,
    /// The time that history is pruned by, while that is behind the clock.
    pruning_held: Option<Timestamp>,
}

/// The state of the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockNews {
    pub step: Option<(SignedDuration, Duration)>,
    pub future: Option<Timestamp>,
    pub pruning_held: Option<Timestamp>,
}

/// A look for due timers that went well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// The instance.
    pub instance: InstanceId,
    /// When it started.
    pub at: Timestamp,
    /// When it started, by the monotonic clock.
    pub begun: Duration,
}

impl Pulse {
    pub fn observe(&self, event: &Event) {
        match event {
            Event::Round { instance, round: Round::Plan, at, begun, claimed: Some(_), .. } => {
                self.locked().tick = Some(Tick { instance: *instance, at: *at, begun: *begun });
            }
            Event::Draining(draining) => self.locked().draining = *draining,
            Event::Heartbeat { begun, error: None } => {
                let mut state = self.locked();
                (state.beat, state.beat_error) = (Some(*begun), None);
            }
            Event::Heartbeat { error, .. } => self.locked().beat_error.clone_from(error),
            Event::ClockStepped { by, noticed } => self.locked().step = Some((*by, *noticed)),
            Event::FutureEntries { newest } => self.locked().future = Some(*newest),
            Event::PruningHeld { trusted } => self.locked().pruning_held = *trusted,
            _ => {}
        }
    }

    /// The last one.
    pub fn tick(&self) -> Option<Tick> {
        self.locked().tick
    }

    /// Returns when a heartbeat was last written, by the monotonic clock, and the error of the last one.
    pub fn heartbeat(&self) -> (Option<Duration>, Option<String>) {
        let state = self.locked();
        (state.beat, state.beat_error.clone())
    }

    /// Returns the state of the clock.
    pub fn clock(&self) -> ClockNews {
        let state = self.locked();
        ClockNews { step: state.step, future: state.future, pruning_held: state.pruning_held }
    }

    /// Whether the instance takes no more work.
    pub fn is_draining(&self) -> bool {
        let state = self.locked();
        state.draining || state.stopping
    }

    /// The process takes no more work and ends when what it has is done.
    pub fn stop(&self) {
        self.locked().stopping = true;
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
