//! Operator actions on a schedule: arm, resume, move, skip, run by hand. Decided with the parts of [`super::plan`].

use jiff::Timestamp;

use super::local_days::begins;
use super::overlap::{Admission, Overlaps};
use super::{Fire, Plan, PlanContext, Planner, effective_spec, just_before};
use crate::ids::{Invalid, RunId};
use crate::jitter::fire_at;
use crate::job::{Definition, Timer};
use crate::json::Json;
use crate::policy::Overlap;
use crate::run::{GapReason, NewRun, SkipReason, Trigger};
use crate::trace_context::TraceContext;

/// The most slots that one skip-next passes over.
const MAX_SKIPPED: u32 = 100;

/// How the slots missed during a pause are treated when it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missed {
    /// They stay a gap, and the schedule continues from now on.
    #[default]
    Skip,
    /// They get one run, for the latest of them.
    RunOnce,
}

/// Points the timer at the next fire after its high-water mark, without firing anything itself.
///
/// A new job is armed with `last_slot_at` = now, so its slots begin now. After an org moved to another zone the mark
/// stays, so a local day that the move jumped over becomes due, and one that it repeats is recognised.
pub fn arm(job: &Definition, timer: &Timer, seen: &PlanContext<'_>) -> Timer {
    let next_run_at = effective_spec(job, seen).ok().and_then(|spec| {
        let slot = spec.next_after(timer.last_slot_at)?;
        Some(fire_at(spec, job.id, timer.org.as_ref(), slot, job.policies.jitter))
    });
    Timer { next_run_at, rescheduled_from: None, ..timer.clone() }
}

/// Returns the timer without a next fire. The mark stays, so missed slots can be accounted for later.
pub fn disarm(timer: &Timer) -> Timer {
    Timer { next_run_at: None, rescheduled_from: None, ..timer.clone() }
}

/// Ends a pause or an error: the slots since the mark become a gap of that reason, or one run for the latest and a gap
/// for the others. Then the schedule continues from now, with its own cadence.
pub fn resume(
    job: &Definition,
    timer: &Timer,
    seen: &PlanContext<'_>,
    missed: Missed,
    reason: GapReason,
    now: Timestamp,
) -> Result<Plan, Invalid> {
    let spec = effective_spec(job, seen).map_err(|reason| Invalid::new("schedule", reason))?;
    let mut planner = Planner::new(job, spec, timer, seen, now);
    let last = spec.prev_at_or_before(now).filter(|last| *last > timer.last_slot_at);
    match (missed, last) {
        (Missed::RunOnce, Some(last)) => {
            planner.gap_until(just_before(last), reason);
            planner.fire(Fire { fold: Some(reason), ..planner.fire_of(last) });
        }
        _ => planner.gap_until(now, reason),
    }
    // An org may want an earlier time still today: its day begins at midnight.
    let settled = if timer.org.is_some() { begins(spec, now) } else { now };
    planner.mark = planner.mark.max(settled);
    Ok(planner.finish())
}

/// Moves the next fire, and only that, to `to`.
pub fn reschedule(
    job: &Definition,
    timer: &Timer,
    seen: &PlanContext<'_>,
    to: Timestamp,
    now: Timestamp,
) -> Result<Timer, Invalid> {
    let spec = effective_spec(job, seen).map_err(|reason| Invalid::new("schedule", reason))?;
    if timer.next_run_at.is_none() {
        return Err(Invalid::new(
            "nextRunAt",
            "the job has no next run to move: it is paused, retired, errored or done",
        ));
    }
    if to < now {
        return Err(Invalid::new("nextRunAt", "must not be in the past"));
    }
    let slot = timer.rescheduled_from.or_else(|| spec.next_after(timer.last_slot_at));
    let slot = slot.ok_or_else(|| Invalid::new("nextRunAt", "the job has no next run to move"))?;
    Ok(Timer { next_run_at: Some(to), rescheduled_from: Some(slot), ..timer.clone() })
}

/// Passes over the slots of the next `count` times. Each is recorded as a skipped run that names the actor.
pub fn skip_next(
    job: &Definition,
    timer: &Timer,
    seen: &PlanContext<'_>,
    count: u32,
    actor: &str,
    now: Timestamp,
) -> Result<Plan, Invalid> {
    let spec = effective_spec(job, seen).map_err(|reason| Invalid::new("schedule", reason))?;
    if !(1..=MAX_SKIPPED).contains(&count) {
        return Err(Invalid::new("count", format!("must be from 1 to {MAX_SKIPPED}, not {count}")));
    }
    if timer.next_run_at.is_none() {
        return Err(Invalid::new("count", "the job has no next run to skip: it is paused, retired, errored or done"));
    }
    let mut planner = Planner::new(job, spec, timer, seen, now);
    for _ in 0..count {
        let Some(slot) = spec.next_after(planner.mark) else { break };
        let before = planner.runs.len();
        planner.fire(planner.fire_of(slot));
        for run in planner.runs.iter_mut().skip(before) {
            run.skip = Some(SkipReason::Operator { actor: actor.to_owned() });
            run.held = false;
        }
    }
    // Nothing was admitted, so nothing is to be canceled or replaced.
    planner.overlaps.finish();
    Ok(planner.finish())
}

/// A run by hand, as it was asked for.
#[derive(Clone, Debug)]
pub struct RunNow<'a> {
    /// See [`RunId::by_hand`].
    pub id: RunId,
    /// The actor who asked.
    pub actor: &'a str,
    /// Another payload than the job's.
    pub payload: Option<Json>,
    /// Another overlap policy than the job's: [`Overlap::Allow`] forces, [`Overlap::Queue`] waits.
    pub overlap: Option<Overlap>,
    /// The trace that the run continues.
    pub trace_context: Option<TraceContext>,
}

/// Enqueues a run at once. Obeys overlap; leaves the timer alone.
pub fn run_now(job: &Definition, timer: &Timer, seen: &PlanContext<'_>, request: &RunNow<'_>, now: Timestamp) -> Plan {
    let policy = request.overlap.unwrap_or(job.policies.overlap);
    let mut overlaps = Overlaps::new(&job.policies, seen.active).with_policy(policy);
    let admitted = match overlaps.admit(request.id) {
        Admission::Start => (None, false),
        Admission::Hold => (None, true),
        Admission::Skip { blocking } => (Some(SkipReason::Overlap { blocking }), false),
    };
    by_hand(timer, request, overlaps, admitted, now)
}

/// Enqueues one of many runs: it waits for its turn however many wait before it, and neither is skipped nor replaces others.
pub fn run_in_turn(
    job: &Definition,
    timer: &Timer,
    seen: &PlanContext<'_>,
    request: &RunNow<'_>,
    now: Timestamp,
) -> Plan {
    let mut overlaps = Overlaps::new(&job.policies, seen.active);
    let admitted = overlaps.wait(request.id);
    by_hand(timer, request, overlaps, admitted, now)
}

fn by_hand(
    timer: &Timer,
    request: &RunNow<'_>,
    mut overlaps: Overlaps,
    (skip, held): (Option<SkipReason>, bool),
    now: Timestamp,
) -> Plan {
    let run = NewRun {
        id: request.id,
        slot_at: None,
        scheduled_at: now,
        trigger: Trigger::Manual(request.actor.to_owned()),
        skip,
        held,
        parallel: None,
        catch_up: false,
        folded: 0,
        local_date: None,
        payload: request.payload.clone(),
        trace_context: request.trace_context.clone(),
    };
    let (cancel, _) = overlaps.finish();
    Plan { runs: vec![run], cancel, ..Plan::nothing(timer) }
}
