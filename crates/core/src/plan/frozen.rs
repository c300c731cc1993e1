//! Plans while a freeze is in force, or after one.

use jiff::Timestamp;

use super::{Plan, PlanContext, Planner, just_before};
use crate::frozen_span::FrozenSpan;
use crate::job::{Definition, Timer};
use crate::run::{Gap, GapReason};
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
    planner.finish()
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
