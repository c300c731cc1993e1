//! The next fires of a job: what its timer says first, then what its schedule says.

use everbell_core::store::JobRow;
use everbell_core::{JobStatus, Spec, Timer, fire_at};
use jiff::{Timestamp, Zoned};

/// The most fires that are returned at once.
pub(super) const MAX_FIRES: usize = 1_000;

/// Slots lie on whole microseconds at the finest.
const MICROSECOND: std::time::Duration = std::time::Duration::from_micros(1);

/// The fires at or after `from`. One that is due counts as now.
pub(super) fn fires_from(
    row: &JobRow,
    spec: &Spec,
    timer: Option<&Timer>,
    (now, from): (Timestamp, Timestamp),
    count: usize,
) -> Vec<Zoned> {
    let all = upcoming(row, spec, timer, (now, from)).take(count.min(MAX_FIRES));
    all.map(|at| at.to_zoned(spec.zone().as_jiff().clone())).collect()
}

/// All fires at or after `from`, in order.
pub(super) fn upcoming<'a>(
    row: &'a JobRow,
    spec: &'a Spec,
    timer: Option<&'a Timer>,
    (now, from): (Timestamp, Timestamp),
) -> Box<dyn Iterator<Item = Timestamp> + 'a> {
    if from <= now {
        return fires_after(row, spec, timer, now);
    }
    // With jitter, the last slot before that time may fire after it; earlier ones cannot.
    let before = spec.prev_at_or_before(from).map_or(from, |slot| crate::clock::earlier(slot, MICROSECOND));
    // Besides that one, the next fire comes first even if it is earlier.
    Box::new(fires_after(row, spec, timer, before.max(now)).filter(move |at| *at >= from))
}

/// The first fires from now on.
pub(super) fn fires(row: &JobRow, spec: &Spec, timer: Option<&Timer>, now: Timestamp, count: usize) -> Vec<Zoned> {
    let all = fires_after(row, spec, timer, now).take(count);
    all.map(|at| at.to_zoned(spec.zone().as_jiff().clone())).collect()
}

fn fires_after<'a>(
    row: &'a JobRow,
    spec: &'a Spec,
    timer: Option<&'a Timer>,
    now: Timestamp,
) -> Box<dyn Iterator<Item = Timestamp> + 'a> {
    let (definition, state) = (&row.job.definition, &row.job.state);
    let Some(timer) = timer else { return Box::new(std::iter::empty()) };
    let resumed_at = state.pause.as_ref().and_then(|pause| pause.until);
    // A moved fire takes the slots that it passes with it, and one that is due is about to happen.
    let (first, after) = match (state.status, timer.next_run_at, resumed_at) {
        (JobStatus::Active, Some(next), _) => {
            (Some(next), timer.rescheduled_from.unwrap_or(timer.last_slot_at).max(next).max(now))
        }
        (JobStatus::Paused, _, Some(until)) => (None, until.max(now)),
        _ => return Box::new(std::iter::empty()),
    };
    let fire = move |slot| fire_at(spec, definition.id, timer.org.as_ref(), slot, definition.policies.jitter);
    // With jitter the next fire lies behind its slot, so slots are asked for from there on and compared as fires.
    let later = spec.slots_after(after).map(fire).filter(move |at| first.is_none_or(|first| *at > first));
    Box::new(first.into_iter().chain(later))
}
