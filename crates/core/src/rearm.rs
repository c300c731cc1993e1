//! Repairs timers that were moved into the future by a clock that was ahead.
//!
//! ```text
//!          true now                                   false now
//!   ───────────┤·····│·····│·····│·····│·····│·····│······┤──────────► time
//!   past       └── accounted for in advance: a gap, runs ──┘ mark
//! ```
//!
//! The mark goes back to the true now, and the next fire is the next slot after it. A gap that was written in the false
//! future is cut there, because its slots are still to come. A run that was executed for such a slot stays, and the unique
//! slot key keeps that slot from running again. So each slot still ends in exactly one run or gap.

use jiff::Timestamp;

use crate::job::{Definition, Timer};
use crate::org;
use crate::plan::{PlanContext, arm, disarm, just_before};
use crate::run::Gap;
use crate::spec::Spec;

/// The timer, with its mark not after `now` and its next fire after it. Without a schedule that can be read it is disarmed.
pub fn rearm(job: &Definition, timer: &Timer, spec: Option<&Spec>, now: Timestamp) -> Timer {
    let today = spec.map(|spec| org::local_date(spec, now));
    let begun = Timer {
        last_slot_at: timer.last_slot_at.min(now),
        last_local_date: timer.last_local_date.filter(|date| today.is_some_and(|today| *date <= today)),
        ..timer.clone()
    };
    match spec {
        Some(_) => arm(job, &begun, &PlanContext { org_spec: spec, ..PlanContext::default() }),
        None => disarm(&begun),
    }
}

/// The part of a gap that is not after `now`, if there is one.
pub fn cut_gap(gap: &Gap, spec: Option<&Spec>, now: Timestamp) -> Option<Gap> {
    if gap.last_slot_at <= now {
        return Some(gap.clone());
    }
    let spec = spec?;
    let last = spec.prev_at_or_before(now).filter(|last| *last >= gap.first_slot_at)?;
    let slots = spec.count_between(just_before(gap.first_slot_at), last);
    (slots > 0).then(|| Gap { last_slot_at: last, slots, ..gap.clone() })
}
