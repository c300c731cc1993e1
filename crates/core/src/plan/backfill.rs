//! Backfills: runs for past slots, on request.

use jiff::Timestamp;

use super::local_days::local_date;
use super::overlap::Overlaps;
use super::{Plan, PlanContext, effective_spec};
use crate::ids::{BackfillId, Invalid, RunId};
use crate::job::{Definition, Timer};
use crate::run::{NewRun, Trigger};
use crate::trace_context::TraceContext;

/// The most runs of a backfill at once.
pub const MAX_PARALLEL: u32 = 1_000;

/// The most slots of one backfill.
pub const MAX_BACKFILLED: usize = 1_000;

/// A backfill, as it was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Backfill<'a> {
    /// The backfill that the runs belong to.
    pub id: BackfillId,
    /// Its slots, oldest first. The commit skips those that already have a run.
    pub slots: &'a [Timestamp],
    /// How many of its runs may be at work at once: default as many as the job allows.
    pub parallel: Option<u32>,
    /// The trace that the runs continue.
    pub trace_context: Option<&'a TraceContext>,
}

/// Enqueues a run for each slot. They wait for each other, however many they are: all of them are wanted. They do not wait
/// for the runs of the schedule, and those not for them. Leaves the timer alone, so nothing that is still to come changes.
pub fn backfill(
    job: &Definition,
    timer: &Timer,
    seen: &PlanContext<'_>,
    request: &Backfill<'_>,
) -> Result<Plan, Invalid> {
    let spec = effective_spec(job, seen).map_err(|reason| Invalid::new("schedule", reason))?;
    if job.is_one_time() {
        return Err(Invalid::new("from", "a one-time job has no past slots to backfill; run it now instead"));
    }
    if request.slots.len() > MAX_BACKFILLED {
        return Err(Invalid::new("to", format!("at most {MAX_BACKFILLED} slots at once, not {}", request.slots.len())));
    }
    if request.parallel.is_some_and(|parallel| !(1..=MAX_PARALLEL).contains(&parallel)) {
        return Err(Invalid::new("parallel", format!("must be from 1 to {MAX_PARALLEL}")));
    }
    let mut overlaps = Overlaps::of_backfills(&job.policies, seen.active, request.parallel);
    let mut runs = Vec::with_capacity(request.slots.len());
    for slot in request.slots {
        let fires_at = spec.fires_at(*slot);
        // What lies behind the mark is still to be planned, and would get its outcome twice.
        if fires_at.unwrap_or(*slot) > timer.last_slot_at {
            return Err(Invalid::new("to", format!("the slot {slot} is in the future")));
        }
        if fires_at.is_none() {
            return Err(Invalid::new("from", format!("{slot} is not a slot of the schedule")));
        }
        let id = RunId::for_slot(job.id, timer.org.as_ref(), *slot);
        let (skip, held) = overlaps.wait(id);
        runs.push(NewRun {
            id,
            slot_at: Some(*slot),
            scheduled_at: *slot,
            trigger: Trigger::Backfill(request.id),
            skip,
            held,
            parallel: request.parallel,
            catch_up: true,
            folded: 0,
            local_date: timer.org.as_ref().map(|_| local_date(spec, *slot)),
            payload: None,
            trace_context: request.trace_context.cloned(),
        });
    }
    Ok(Plan { runs, ..Plan::nothing(timer) })
}
