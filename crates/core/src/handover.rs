//! The remote side of a run: which run it may hold, for how long, and how far it says that it has come.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::ids::{Invalid, RunId};
use crate::json::storable_text;

/// The shortest time without a heartbeat after which a run is lost.
pub const MIN_LEASE: Duration = Duration::from_secs(1);

/// The longest one.
pub const MAX_LEASE: Duration = Duration::from_hours(24);

/// The longest message about the progress of a run.
pub const MAX_PROGRESS_MESSAGE_BYTES: usize = 500;

/// A run as its remote side may hold it, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handover {
    /// The run.
    pub run: RunId,
    /// The attempt that must be the current one.
    pub attempt: u32,
    /// How long it may be silent before the run is lost.
    pub lease: Duration,
    /// When the run times out.
    pub deadline: Timestamp,
}

impl Handover {
    /// The end of the lease that a sign of life at `now` grants: never later than the deadline.
    pub fn lease_until(&self, now: Timestamp) -> Timestamp {
        lease_until(self.lease, self.deadline, now)
    }
}

fn lease_until(lease: Duration, deadline: Timestamp, now: Timestamp) -> Timestamp {
    let lease = SignedDuration::try_from(lease).unwrap_or(SignedDuration::MAX);
    now.checked_add(lease).map_or(deadline, |until| until.min(deadline))
}

/// The remote side that holds a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// How long the remote side may be silent until the run is lost.
    pub lease: Duration,
    /// When the run times out.
    pub deadline: Timestamp,
    /// How far it has come, as far as the remote side said.
    pub progress: Option<Progress>,
}

impl Remote {
    /// The end of the lease that a sign of life at `now` grants: never later than the deadline.
    pub fn lease_until(&self, now: Timestamp) -> Timestamp {
        lease_until(self.lease, self.deadline, now)
    }
}

/// How far a run has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// In thousandths, up to 1,000.
    pub permille: Option<u16>,
    /// For people.
    pub message: Option<String>,
}

impl Progress {
    /// A fraction from 0 to 1, and a message that is made fit to be stored. One of them at least is needed.
    pub fn new(done: Option<f64>, message: Option<&str>) -> Result<Progress, Invalid> {
        if done.is_some_and(|done| !(0.0..=1.0).contains(&done)) {
            return Err(Invalid::new("done", "must be between 0 and 1"));
        }
        let message = message.map(|message| storable_text(message.trim(), MAX_PROGRESS_MESSAGE_BYTES));
        let message = message.filter(|message| !message.is_empty());
        if done.is_none() && message.is_none() {
            return Err(Invalid::new("done", "`done`, `message` or both are needed"));
        }
        Ok(Progress { permille: done.map(|done| (done * 1_000.0).round() as u16), message })
    }

    /// The fraction from 0 to 1.
    pub fn done(&self) -> Option<f64> {
        self.permille.map(|permille| f64::from(permille) / 1_000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_a_fraction_a_message_or_both() {
        assert_eq!(Progress::new(Some(0.4567), Some(" rows ")).unwrap().permille, Some(457));
        assert_eq!(Progress::new(Some(1.0), None).unwrap().done(), Some(1.0));
        for (done, message) in [(Some(1.1), None), (Some(f64::NAN), None), (None, None), (None, Some(" "))] {
            assert_eq!(Progress::new(done, message).unwrap_err().field, "done");
        }
    }
}
