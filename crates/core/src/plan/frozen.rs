//! Plans while a freeze is in force, or after one.

use jiff::Timestamp;

use super::{Plan, PlanContext, Planner, just_before};
use crate::frozen_span::FrozenSpan;
use crate::job::{Definition, Timer};
use crate::run::{EarlierGap, Gap, GapReason};
use crate::spec::{Spec, When};

/// Like [`super::plan`], for a timer that is due and a job that one or more freezes concern.
///
/// The slots of the freezes are none for the planner, so they are neither missed nor caught up; they become a gap. The
/// timer goes on to the next slot, frozen or not: a freeze that ends early needs nothing to be armed again.
pub(super) fn plan(
    job: &Definition,
    spec: &Spec,
    timer: &Timer,
    seen: &PlanContext<'_>,
    now: Timestamp,
    next_run_at: Timestamp,
) -> Plan {
    let meant_at = timer.rescheduled_from.map(|_| next_run_at);
    if let When::Once(at) = spec.when() {
        return one_time(Planner::new(job, spec, timer, seen, now), timer, meant_at.unwrap_or(*at));
    }
    let thawed = spec.clone().without(seen.frozen);
    let mut planner = Planner { base: spec, ..Planner::new(job, &thawed, timer, seen, now) };
    if let Some(slot) = timer.rescheduled_from {
        if seen.frozen.iter().any(|span| span.contains(next_run_at)) {
            planner.freeze(slot);
        } else {
            planner.rescheduled(slot, next_run_at);
        }
    }
    planner.due_slots();
    let plan = planner.finish();
    Plan { earlier: earlier_gap(job, spec, timer, seen, &plan), ..plan }
}

/// The gap that the first frozen one continues: no slot lies between the mark of the timer and it, and the freeze has
/// slots before it. Whether that gap was written is for the store to see: the job may have been paused until then.
fn earlier_gap(
    job: &Definition,
    spec: &Spec,
    timer: &Timer,
    seen: &PlanContext<'_>,
    plan: &Plan,
) -> Option<EarlierGap> {
    let gap = plan.gaps.iter().find(|gap| gap.reason == GapReason::Frozen)?;
    let next = spec.next_after(timer.last_slot_at).filter(|next| *next == gap.first_slot_at)?;
    let span = seen.frozen.iter().find(|span| span.contains(next))?;
    let first_slot_at = spec.next_after(just_before(span.from).max(job.created_at))?;
    (first_slot_at < next).then_some(EarlierGap { first_slot_at, last_slot_at: timer.last_slot_at })
}

/// A one-time job waits until the end of the freeze: its fire moves there, as an operator could have moved it.
fn one_time(mut planner: Planner<'_>, timer: &Timer, meant_at: Timestamp) -> Plan {
    let slot = timer.rescheduled_from.or_else(|| planner.spec.next_after(timer.last_slot_at));
    let end = thawed_at(planner.seen.frozen, meant_at);
    if end > planner.now {
        return Plan::nothing(&Timer { next_run_at: Some(end), rescheduled_from: slot, ..timer.clone() });
    }
    if let Some(slot) = slot {
        planner.rescheduled(slot, end);
    }
    planner.due_slots();
    planner.finish()
}

/// The first instant at or after this one that is not frozen.
pub(crate) fn thawed_at(frozen: &[FrozenSpan], at: Timestamp) -> Timestamp {
    frozen.iter().fold(at, |at, span| if span.contains(at) { span.until } else { at })
}

impl Planner<'_> {
    /// Accounts for a slot whose fire was moved into a freeze.
    fn freeze(&mut self, slot: Timestamp) {
        self.account_for_skips(just_before(slot).min(self.now));
        // It may lie in the freeze itself.
        self.skip_mark = self.skip_mark.max(slot);
        let slots = self.spec.slots_at(slot).len() as u64;
        self.gaps.push(Gap::new(slot, slot, slots, GapReason::Frozen));
        self.mark = self.mark.max(slot);
    }
}
