//! The fires to come, with what is special about each.

use everbell::JobStatus;
use everbell_core::freeze::Freeze;
use everbell_wire::preview::note;

use crate::clock::Clock;
use crate::frozen::Frozen;
use crate::markup::Markup;
use crate::pages::action::Subject;

/// A fire that is still to come.
pub(super) struct UpcomingFire {
    pub(super) local: Markup,
    pub(super) offset: String,
    pub(super) utc: String,
    pub(super) away: Markup,
    pub(super) note: Option<String>,
    /// The freeze that keeps it from happening.
    pub(super) frozen: Option<Frozen>,
}

/// The next fires: what the timer says first, then what the schedule says. A paused job fires when it is resumed.
/// A slot that a freeze will turn into a gap is listed, and marked.
pub(super) fn fires(subject: &Subject, clock: &Clock, freezes: &[Freeze], count: usize) -> Vec<UpcomingFire> {
    let (job, timer) = (&subject.row.job, subject.row.timer.as_ref());
    let Some(spec) = subject.spec() else { return Vec::new() };
    if job.state.status == JobStatus::Retired || job.state.error.is_some() {
        return Vec::new();
    }
    let until = job.state.pause.as_ref().map(|pause| pause.until);
    let first = timer.and_then(|timer| timer.next_run_at);
    let moved = timer.and_then(|timer| timer.rescheduled_from);
    let after = match until {
        // Nothing is known of when it goes on.
        Some(None) => return Vec::new(),
        Some(Some(until)) => until,
        // What is late fires once, and then it goes on from now.
        None => moved.or(first).unwrap_or(clock.now).max(clock.now),
    };
    let zone = Some(&subject.zone);
    let line = |at, note: Option<String>| UpcomingFire {
        local: clock.day(at, zone),
        offset: at_offset(at, &clock.zone(zone)),
        utc: at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        away: clock.away(at),
        note,
        frozen: Frozen::at(freezes, &job.definition, at, clock),
    };
    let head = first.filter(|_| until.is_none()).map(|at| match moved {
        Some(from) => {
            let from = from.to_zoned(clock.zone(zone).as_jiff().clone());
            line(at, Some(format!("moved from {}", from.strftime("%Y-%m-%d %H:%M"))))
        }
        None if at < clock.now => line(at, Some("late".to_owned())),
        None => line(at, note(spec, at)),
    });
    let rest = spec.slots_after(after).map(|at| line(at, note(spec, at)));
    head.into_iter().chain(rest).take(count).collect()
}

fn at_offset(at: jiff::Timestamp, zone: &everbell_core::Zone) -> String {
    at.to_zoned(zone.as_jiff().clone()).strftime("%:z").to_string()
}
