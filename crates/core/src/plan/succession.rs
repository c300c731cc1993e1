//! How a version ends, and what the next one takes over from it.
//!
//! The slots of a new version begin now, so an edit never fires retroactively. But an edit takes nothing back either: what
//! operators did to fires ahead holds for the next version as well, and a slot that has its outcome gets no other.
//!
//! - Slots that were skipped, or fired early, are behind the next version too, as far as they are its slots.
//! - A fire that was moved stays moved, if it is the next one of the new schedule as well.
//! - A slot that moved to another day and fired there does not fire again, whatever its day is in the next version.
//! - A slot that has come and waits (it was moved, or jitter delays it) is fired by the next version, if it is its slot.

use jiff::Timestamp;

use super::{Plan, PlanContext, Planner, arm, disarm, effective_spec, just_before};
use crate::job::{Definition, Timer};
use crate::run::{Gap, GapReason};
use crate::spec::Spec;
use crate::zone::LATEST;

/// The most slots ahead that are looked at for an outcome that they have already.
const MAX_AHEAD: usize = 1_000;

/// The last plan of a version that ends: slots that are just due still fire, older ones are missed, and nothing follows.
pub fn close(job: &Definition, timer: &Timer, seen: &PlanContext<'_>, reason: GapReason, now: Timestamp) -> Plan {
    let Ok(spec) = effective_spec(job, seen) else {
        return Plan::nothing(&disarm(timer));
    };
    end(Planner::new(job, spec, timer, seen, now), timer, reason, None).0
}

/// Like [`close`], for a version that is replaced. Also returns the timer of the version that replaces it.
pub fn succeed(
    job: &Definition,
    timer: &Timer,
    seen: &PlanContext<'_>,
    reason: GapReason,
    (successor_timer, heir_spec): (&Definition, &Spec),
    now: Timestamp,
) -> (Plan, Timer) {
    let begun_at = |mark| Timer { job_id: successor_timer.id, last_slot_at: mark, ..timer.clone() };
    let heir_seen = PlanContext { org_spec: Some(heir_spec), ..PlanContext::default() };
    let Ok(spec) = effective_spec(job, seen) else {
        return (errored(timer, reason, heir_spec, now), arm(successor_timer, &begun_at(now), &heir_seen));
    };
    let (mut plan, waiting) = end(Planner::new(job, spec, timer, seen, now), timer, reason, Some(heir_spec));
    plan.gaps.extend(stranded(spec, heir_spec, now, plan.timer.last_slot_at));
    let mark = match waiting {
        Some(slot) if slot <= now => just_before(slot),
        _ => reached(spec, heir_spec, now, plan.timer.last_slot_at),
    };
    let begun = Timer { last_local_date: plan.timer.last_local_date, ..begun_at(mark) };
    let mut next = arm(successor_timer, &begun, &heir_seen);
    if let Some(moved) = timer.rescheduled_from.filter(|slot| waiting == Some(*slot))
        && heir_spec.next_after(mark) == Some(moved)
    {
        next = Timer { next_run_at: timer.next_run_at, rescheduled_from: Some(moved), ..next };
    }
    (plan, next)
}

/// Returns the last plan of a version whose schedule cannot be read: if it is errored, its missed slots are those of
/// the schedule that repairs it.
fn errored(timer: &Timer, reason: GapReason, repaired: &Spec, now: Timestamp) -> Plan {
    let mark = timer.last_slot_at;
    let slots = if reason == GapReason::Errored { repaired.count_between(mark, now) } else { 0 };
    let range = (repaired.next_after(mark), repaired.prev_at_or_before(now));
    let (Some(first_slot_at), Some(last_slot_at)) = range else { return Plan::nothing(&disarm(timer)) };
    if slots == 0 {
        return Plan::nothing(&disarm(timer));
    }
    let gap = Gap { first_slot_at, last_slot_at, slots, reason, actor: None };
    Plan { gaps: vec![gap], ..Plan::nothing(&Timer { last_slot_at, ..disarm(timer) }) }
}

/// The last plan, and the slot that is left to the successor because its fire is still to come.
fn end(
    mut planner: Planner<'_>,
    timer: &Timer,
    reason: GapReason,
    successor_timer: Option<&Spec>,
) -> (Plan, Option<Timestamp>) {
    let now = planner.now;
    if let Some(due) = timer.next_run_at.filter(|next| *next <= now) {
        if let Some(slot) = timer.rescheduled_from {
            planner.rescheduled(slot, due);
        }
        if let Some(last) = planner.last_due() {
            planner.gap_until(planner.late_until().min(last), reason);
            planner.fire_each(last, false);
        }
    }
    let waiting = planner.waiting(timer).filter(|slot| successor_timer.is_some_and(|spec| spec.matches(*slot)));
    planner.gap_until(waiting.map_or(now, |slot| just_before(slot).min(now)), reason);
    let plan = planner.finish();
    (Plan { timer: disarm(&plan.timer), retire: false, ..plan }, waiting)
}

impl Planner<'_> {
    /// The slot whose fire is still to come although an operator moved it or its own time has come.
    fn waiting(&self, timer: &Timer) -> Option<Timestamp> {
        timer.next_run_at?;
        let slot = match timer.rescheduled_from {
            Some(moved) => moved,
            None => self.spec.prev_at_or_before(self.now).filter(|slot| self.fire_at(*slot) > self.now)?,
        };
        Some(slot).filter(|slot| *slot > self.mark)
    }
}

/// How far the outcomes of the version before, which reach to `until`, count for the next one as well: as long as its
/// slots were slots of that one too.
fn reached(spec: &Spec, successor_timer: &Spec, now: Timestamp, until: Timestamp) -> Timestamp {
    if spec == successor_timer {
        return until.max(now);
    }
    let has_outcome = |slot: &Timestamp| spec.fires_at(*slot).is_some_and(|at| at <= until);
    let ahead = successor_timer.slots_after(now).take(MAX_AHEAD);
    ahead.take_while(|at| successor_timer.slots_at(*at).iter().all(has_outcome)).last().unwrap_or(now)
}

/// Slots that get a run of neither version, because they move to another day: this one would have fired them after now, and
/// for the next one they are past; or the next one would have fired them before now.
fn stranded(spec: &Spec, successor: &Spec, now: Timestamp, until: Timestamp) -> Vec<Gap> {
    let is_ahead = |slot: &Timestamp| successor.fires_at(*slot).is_some_and(|at| at > now);
    let is_settled = |slot: &Timestamp| spec.fires_at(*slot).is_some_and(|at| at <= until);
    let left = spec.moved_beyond(now).into_iter().filter(|slot| !is_settled(slot) && !is_ahead(slot));
    let too_late = successor.moved_before(now, LATEST, now).into_iter().filter(|slot| !is_settled(slot));
    left.chain(too_late).map(|slot| Gap::new(slot, slot, 1, GapReason::Excluded)).collect()
}
