//! [`Pulse`]: what readiness and metrics must know about the loops of this process, learned from events.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use everbell::{Event, Round, Timestamp};
use everbell_core::InstanceId;

/// The state of the instance of this process. Cheap to clone; all clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pulse(Arc<Mutex<State>>);

#[derive(Clone, Copy, Debug, Default)]
struct State {
    tick: Option<Tick>,
    draining: bool,
    /// The process is told to stop, which nobody takes back.
    stopping: bool,
}

/// A look for due timers that went well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tick {
    /// Who looked.
    pub(crate) instance: InstanceId,
    /// When it began.
    pub(crate) at: Timestamp,
    /// When it began, by the monotonic clock.
    pub(crate) begun: Duration,
}

impl Pulse {
    pub(crate) fn observe(&self, event: &Event) {
        match event {
            Event::Round { instance, round: Round::Plan, at, begun, claimed: Some(_), .. } => {
                self.locked().tick = Some(Tick { instance: *instance, at: *at, begun: *begun });
            }
            Event::Draining(draining) => self.locked().draining = *draining,
            _ => {}
        }
    }

    /// The last one.
    pub(crate) fn tick(&self) -> Option<Tick> {
        self.locked().tick
    }

    /// Whether the instance takes no more work.
    pub(crate) fn is_draining(&self) -> bool {
        let State { draining, stopping, .. } = *self.locked();
        draining || stopping
    }

    /// The process takes no more work and ends when what it has is done.
    pub(crate) fn stop(&self) {
        self.locked().stopping = true;
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
