//! [`follow`]: which jobs start when a run of another job ends, by their [`After`]. The third way to start a run, beside slots
//! and requests.
//!
//! ```text
//! run of A ends ─► settle ─► record: A's outcome, and in the same transaction, for each job B that starts after A:
//!                              follow(B) ─┬ A's run counts for B ─┬ B is active ──► run of B, or a skipped one (overlap)
//!                                         │                       ├ B is paused ──► gap `paused`
//!                                         │                       └ B is frozen ──► gap `frozen`
//!                                         └ else ─► nothing
//! ```
//!
//! A job that starts after several others ([`FanIn`](crate::fan_in::FanIn)) waits for one run of each of them, see `fan_in.rs`.
//!
//! A run of A ends once, because its end is fenced, so B starts once. The id of B's run is a hash of B's key and A's run.
//! It begins with the time at which A ended, so the runs that a run has started are found by a range of ids.

mod fan_in;
mod graph;
mod links;

use jiff::Timestamp;

use crate::after::After;
use crate::ids::RunId;
use crate::job::{Definition, Timer};
use crate::plan::{Admission, Overlaps, Plan, PlanContext, unmet_dependency};
use crate::run::{Gap, GapReason, NewRun, RunStatus, SkipReason, Trigger};

pub use fan_in::{FanInEnd, GroupedRun, REMEMBERED, RunGroup, expire_all, join};
pub use graph::{ChainJob, related};
pub use links::{ChainLink, check_chain};

/// A run that has just ended, as far as the jobs after it care.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedRun {
    /// Its id.
    pub id: RunId,
    /// Succeeded, failed or canceled.
    pub status: RunStatus,
    /// Its cause.
    pub trigger: Trigger,
    /// When it ended.
    pub finished_at: Timestamp,
}

/// A run that another one starts when it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The run that ended last: with it everything had ended that the job waits for.
    pub cause: RunId,
    /// All runs that the job waited for.
    pub trigger: Trigger,
    /// When the last one ended.
    pub at: Timestamp,
}

/// Decides what follows for a job when runs of the job before it have ended: a run for each that counts, oldest first.
pub fn follow(job: &Definition, timer: &Timer, seen: &PlanContext<'_>, is_paused: bool, ended: &[EndedRun]) -> Plan {
    let Some(after) = job.spec.as_ref().ok().and_then(|spec| spec.after()) else { return Plan::nothing(timer) };
    let mut ended: Vec<&EndedRun> = ended.iter().filter(|ended| counts(after, ended)).collect();
    ended.sort_by_key(|ended| (ended.finished_at, ended.id));
    let start = |ended: &EndedRun| Start { cause: ended.id, trigger: Trigger::After(ended.id), at: ended.finished_at };
    let starts: Vec<Start> = ended.into_iter().map(start).collect();
    start_runs(job, timer, seen, is_paused, &starts)
}

/// Decides about runs that start because others have ended.
///
/// They obey `overlap`, `maxConcurrentRuns` and `dependsOn` like the slots of a schedule. Those that would start while the
/// job is paused or frozen become a gap. The timer stays as it is.
pub fn start_runs(job: &Definition, timer: &Timer, seen: &PlanContext<'_>, is_paused: bool, starts: &[Start]) -> Plan {
    let mut plan = Plan::nothing(timer);
    let mut overlaps = Overlaps::new(&job.policies, seen.active);
    for Start { cause, trigger, at } in starts {
        let at = *at;
        let reason = if is_paused {
            Some(GapReason::Paused)
        } else {
            seen.frozen.iter().any(|span| span.contains(at)).then_some(GapReason::Frozen)
        };
        if let Some(reason) = reason {
            add_gap(&mut plan.gaps, at, reason);
            continue;
        }
        let id = RunId::after(&job.key, timer.org.as_ref(), *cause, at);
        let (skip, held) = match unmet_dependency(job, seen, at) {
            Some(reason) => (Some(reason), false),
            None => match overlaps.admit(id) {
                Admission::Start => (None, false),
                Admission::Hold => (None, true),
                Admission::Skip { blocking } => (Some(SkipReason::Overlap { blocking }), false),
            },
        };
        plan.runs.push(NewRun {
            id,
            slot_at: None,
            scheduled_at: at,
            trigger: trigger.clone(),
            skip,
            held,
            parallel: None,
            catch_up: false,
            folded: 0,
            local_date: None,
            payload: None,
            trace_context: None,
        });
    }
    let (cancel, replaced) = overlaps.finish();
    for run in &mut plan.runs {
        if let Some((_, by)) = replaced.iter().find(|(id, _)| *id == run.id) {
            run.skip = Some(SkipReason::Overlap { blocking: *by });
            run.held = false;
        }
    }
    plan.cancel = cancel;
    plan
}

/// Whether this run starts the job.
fn counts(after: &After, ended: &EndedRun) -> bool {
    after.on.includes(ended.status) && after.heeds(&ended.trigger)
}

/// Counts a start that did not happen in the last gap, if that has the same reason.
fn add_gap(gaps: &mut Vec<Gap>, at: Timestamp, reason: GapReason) {
    match gaps.last_mut().filter(|gap| gap.reason == reason) {
        Some(gap) => {
            gap.last_slot_at = at;
            gap.slots += 1;
        }
        None => gaps.push(Gap { first_slot_at: at, last_slot_at: at, slots: 1, reason, actor: None }),
    }
}

#[cfg(test)]
mod tests;
