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
//! A run of A ends once, because its end is fenced, so B starts once. The id of B's run is a hash of B's key and A's run.
//! It begins with the time at which A ended, so the runs that a run has started are found by a range of ids.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::after::After;
use crate::ids::{Invalid, JobKey, RunId};
use crate::job::{Definition, Timer};
use crate::plan::{Admission, Overlaps, Plan, PlanContext, unmet_dependency};
use crate::run::{Gap, GapReason, NewRun, RunStatus, SkipReason, Trigger};

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

/// Decides what follows for a job when runs of the job before it have ended: a run for each that counts, oldest first.
///
/// They obey `overlap`, `maxConcurrentRuns` and `dependsOn` like the slots of a schedule. Those that end while the job is
/// paused or frozen become a gap. The timer stays as it is.
pub fn follow(job: &Definition, timer: &Timer, seen: &PlanContext<'_>, is_paused: bool, ended: &[EndedRun]) -> Plan {
    let mut plan = Plan::nothing(timer);
    let Some(after) = job.spec.as_ref().ok().and_then(|spec| spec.after()) else { return plan };
    let mut ended: Vec<&EndedRun> = ended.iter().filter(|ended| counts(after, ended)).collect();
    ended.sort_by_key(|ended| (ended.finished_at, ended.id));
    let mut overlaps = Overlaps::new(&job.policies, seen.active);
    for ended in ended {
        let at = ended.finished_at;
        let reason = if is_paused {
            Some(GapReason::Paused)
        } else {
            seen.frozen.iter().any(|span| span.contains(at)).then_some(GapReason::Frozen)
        };
        if let Some(reason) = reason {
            add_gap(&mut plan.gaps, at, reason);
            continue;
        }
        let id = RunId::after(&job.key, timer.org.as_ref(), ended.id, at);
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
            trigger: Trigger::After(ended.id),
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
    let asked_for = matches!(ended.trigger, Trigger::Manual(_) | Trigger::Backfill(_));
    after.on.includes(ended.status) && (after.manual || !asked_for)
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

/// A current job that starts after another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainLink {
    /// Its key.
    pub job_key: JobKey,
    /// The rule by which it starts.
    pub after: After,
}

/// The most jobs of a circle that a refusal names.
const MAX_NAMED_JOBS: usize = 8;

/// Refuses a job that would start after a job that does not exist, after itself, or in a circle.
///
/// `parent_exists`: whether a current job has the key that it names. `links`: all current jobs that start after another
/// one; an earlier version of this job among them does not count.
pub fn check_chain(job: &JobKey, after: &After, parent_exists: bool, links: &[ChainLink]) -> Result<(), Invalid> {
    let parent = &after.job_key;
    if parent == job {
        return Err(After::to_itself(job));
    }
    if !parent_exists {
        let reason = format!("there is no current job `{parent}`: create it first, or name one that exists");
        return Err(Invalid::new("after.job", reason));
    }
    let parents: BTreeMap<&JobKey, &JobKey> =
        links.iter().filter(|link| link.job_key != *job).map(|link| (&link.job_key, &link.after.job_key)).collect();
    let mut path = vec![job, parent];
    // Every job has one parent, so a walk that is longer than all links would go round.
    let mut at = parent;
    while let Some(next) = parents.get(at).copied().filter(|_| path.len() <= links.len() + 2) {
        path.push(next);
        if next == job {
            return Err(Invalid::new("after.job", format!("would close a circle: {}", describe_circle(&path))));
        }
        at = next;
    }
    Ok(())
}

/// Names the jobs of a circle, the first ones if there are many.
fn describe_circle(path: &[&JobKey]) -> String {
    let named: Vec<String> = path.iter().take(MAX_NAMED_JOBS).map(|key| format!("`{key}`")).collect();
    let rest = path.len() - named.len();
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    format!("{}{more}", named.join(" starts after "))
}

#[cfg(test)]
mod tests;
