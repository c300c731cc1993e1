//! [`Frozen`]: a freeze that keeps a job from firing at a time, as pages say it beside that time.

use std::fmt;

use everbell::client::freeze_at;
use everbell_core::freeze::Freeze;
use everbell_core::{Definition, Zone};
use jiff::Timestamp;

use crate::clock::Clock;

/// A freeze that keeps a job from firing.
pub(crate) struct Frozen {
    /// The time in words at which it ends.
    pub(crate) until: String,
    pub(crate) reason: String,
}

impl Frozen {
    /// The freeze that keeps the job from firing at this time, if there is one; times in the zone of the job.
    pub(crate) fn at(freezes: &[Freeze], job: &Definition, at: Timestamp, clock: &Clock) -> Option<Frozen> {
        let zone = job.spec.as_ref().ok().map(everbell_core::Spec::zone);
        Frozen::in_zone(freezes, job, at, clock, zone)
    }

    /// Like [`Frozen::at`], with times in another zone, such as that of an org.
    pub(crate) fn in_zone(
        freezes: &[Freeze],
        job: &Definition,
        at: Timestamp,
        clock: &Clock,
        zone: Option<&Zone>,
    ) -> Option<Frozen> {
        let freeze = freeze_at(freezes, job, at)?;
        let until = freeze.span().map_or(freeze.ends_at, |span| span.until);
        Some(Frozen { until: clock.words(until, zone), reason: freeze.reason.clone() })
    }
}

impl fmt::Display for Frozen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "frozen until {}: {}", self.until, self.reason)
    }
}

/// The first time from this one on at which no freeze keeps a job from firing. A one-time job waits until the end of its
/// freeze. `None` if its schedule ends before.
pub(crate) fn first_thawed(freezes: &[Freeze], job: &Definition, at: Timestamp) -> Option<Timestamp> {
    let spec = job.spec.as_ref().ok()?;
    let mut at = at;
    // Each turn leaves a freeze behind.
    for _ in 0..=freezes.len() {
        let Some(until) = freeze_at(freezes, job, at).and_then(Freeze::span).map(|span| span.until) else {
            return Some(at);
        };
        at = match spec.expression() {
            Some(_) => spec.next_after(just_before(until))?,
            None => until,
        };
    }
    None
}

/// The last instant before another, as precise as the databases are.
pub(crate) fn just_before(at: Timestamp) -> Timestamp {
    at.checked_sub(jiff::SignedDuration::from_micros(1)).unwrap_or(at)
}
