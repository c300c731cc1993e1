//! An [`OrgUpdate`]: a walk over all orgs of a job, in small steps. Each step is a transaction that also saves the
//! position.

use jiff::Timestamp;
use uuid::Uuid;

use super::reconcile::{OrgView, TimerChange, TimerChanges, reconcile};
use super::{Eligibility, OrgFacts, eligibility, spec_for};
use crate::ids::{BackfillId, Invalid, JobId, JobKey, OrgId, RunId, org_update_run_id};
use crate::job::{Definition, JobState, Timer};
use crate::json::Json;
use crate::plan::{self, Backfill, MAX_BACKFILLED, Missed, Plan, PlanContext, RunNow};
use crate::policy::Overlap;
use crate::run::GapReason;
use crate::trace_context::TraceContext;

/// A task that is carried out for every org of a job. The org updates of one job key run one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrgUpdate {
    /// Its id, which is also the id of its audit entry.
    pub id: Uuid,
    /// The job.
    pub job: JobId,
    /// The key of that job.
    pub job_key: JobKey,
    /// The task.
    pub task: OrgTask,
    /// The actor who asked for it.
    pub actor: String,
    /// When it was asked for.
    pub at: Timestamp,
    /// The last org that was visited.
    pub reached: Option<OrgId>,
    /// How many orgs were visited.
    pub seen: u64,
}

impl OrgUpdate {
    /// Whether it maintains timers and has not yet reached this org for a job of this key. If so, it will see what
    /// changed about the org.
    pub fn is_ahead_of(&self, key: &JobKey, org: &OrgId) -> bool {
        matches!(self.task, OrgTask::Arm | OrgTask::Resume { .. })
            && self.job_key == *key
            && self.reached.as_ref().is_none_or(|reached| reached < org)
    }

    /// Whether its runs wait until the job is resumed, because the job was paused after they were asked for. Runs that
    /// are asked for while the job is paused start at once.
    pub fn is_held_by(&self, state: &JobState) -> bool {
        state.pause.as_ref().is_some_and(|pause| pause.at >= self.at)
    }

    /// Refuses to stop an org update that timers depend on.
    pub fn expect_stoppable(&self) -> Result<(), Invalid> {
        match self.task {
            OrgTask::RunNow { .. } | OrgTask::Backfill { .. } => Ok(()),
            OrgTask::Arm | OrgTask::Resume { .. } => Err(Invalid::new(
                "sweepId",
                "sets timers, which must follow their job: it ends by itself and cannot be stopped",
            )),
        }
    }
}

/// The task of an org update, carried out for each org.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrgTask {
    /// Creates, moves and removes timers: the job is new, replaced or retired, or a rebuild of its timers was asked
    /// for.
    Arm,
    /// Arms the timers of a job that is no longer paused or errored.
    Resume {
        /// When the job was resumed.
        at: Timestamp,
        /// How to treat the missed slots.
        missed: Missed,
        /// Why they were missed.
        reason: GapReason,
    },
    /// Runs the job once by hand for each org that it is not off for.
    RunNow {
        /// The payload, if not the job's own.
        payload: Option<Json>,
        /// The overlap policy, if not the job's own.
        overlap: Option<Overlap>,
        /// The trace that the runs continue.
        trace_context: Option<TraceContext>,
    },
    /// Creates runs for the slots of a range that have none.
    Backfill {
        /// The backfill that the runs belong to.
        id: BackfillId,
        /// The start of the range.
        from: Timestamp,
        /// The end of the range.
        to: Timestamp,
        /// The trace that the runs continue.
        trace_context: Option<TraceContext>,
    },
}

impl OrgTask {
    /// Returns the name of the task, as it is stored.
    pub fn as_str(&self) -> &'static str {
        match self {
            OrgTask::Arm => "arm",
            OrgTask::Resume { .. } => "resume",
            OrgTask::RunNow { .. } => "run_now",
            OrgTask::Backfill { .. } => "backfill",
        }
    }

    pub(super) fn resumed_at(&self) -> Option<Timestamp> {
        match self {
            OrgTask::Resume { at, .. } => Some(*at),
            _ => None,
        }
    }
}

/// A step of an org update: its task for one org.
#[derive(Clone, Copy, Debug)]
pub struct OrgUpdateStep<'a> {
    /// The org update.
    pub org_update: &'a OrgUpdate,
    /// The current time.
    pub now: Timestamp,
}

/// Decides what an org update does for one org. Always returns the same decision, with the same run ids.
pub fn take_step(view: &OrgView, step: OrgUpdateStep<'_>) -> TimerChanges {
    let plan = match &step.org_update.task {
        // The org update that ended the job or org removes the timer, and passes on what has to be remembered.
        OrgTask::Resume { .. } if matches!(view.eligibility(), Eligibility::Over(_)) => None,
        task @ (OrgTask::Arm | OrgTask::Resume { .. }) => return reconcile(view, Some(task)),
        OrgTask::RunNow { payload, overlap, trace_context } => {
            let (payload, trace_context) = (payload.clone(), trace_context.clone());
            run_now(view, step, |id, actor| RunNow { id, actor, payload, overlap: *overlap, trace_context })
        }
        OrgTask::Backfill { id, from, to, trace_context } => backfill(view, *id, (*from, *to), trace_context.as_ref()),
    };
    // Runs beside the schedule leave the timer as it is.
    let org_error = view.timer.as_ref().and_then(|old| old.error.clone());
    let change = plan.map_or(TimerChange::Keep, |plan| TimerChange::Write(Box::new(Plan { org_error, ..plan })));
    TimerChanges { before: None, change }
}

fn run_now<'a>(
    view: &OrgView,
    step: OrgUpdateStep<'a>,
    request: impl FnOnce(RunId, &'a str) -> RunNow<'a>,
) -> Option<Plan> {
    // A paused job may be run by hand; one that the org does not take part in is not run for it.
    let wanted = view.facts.place.enabled && view.facts.override_.as_ref().is_none_or(|override_| override_.enabled);
    if matches!(view.eligibility(), Eligibility::Over(_)) || !wanted {
        return None;
    }
    let old = view.timer.as_ref()?;
    let id: RunId = org_update_run_id(step.org_update.id, view.job.id, &view.org, step.org_update.at);
    let request = request(id, &step.org_update.actor);
    Some(plan::run_now(&view.job, &old.timer, &view.seen(&old.active), &request, step.now))
}

/// Counts the slots of a range that a backfill finds for an org: the upper bound of its runs, because some slots may
/// have one.
pub fn backfill_size(
    job: &Definition,
    facts: &OrgFacts,
    timer: Option<&Timer>,
    (from, to): (Timestamp, Timestamp),
) -> u64 {
    let (true, Some(timer), Ok(spec)) = (is_backfilled(&eligibility(job, facts)), timer, spec_for(job, facts)) else {
        return 0;
    };
    spec.count_own_times(plan::just_before(from), to.min(timer.last_slot_at)).min(MAX_BACKFILLED as u64)
}

fn is_backfilled(eligibility: &Eligibility) -> bool {
    matches!(eligibility, Eligibility::Eligible(_) | Eligibility::Off(_))
}

fn backfill(
    view: &OrgView,
    id: BackfillId,
    (from, to): (Timestamp, Timestamp),
    trace_context: Option<&TraceContext>,
) -> Option<Plan> {
    if !is_backfilled(&view.eligibility()) {
        return None;
    }
    let old = view.timer.as_ref()?;
    let spec = spec_for(&view.job, &view.facts).ok()?;
    let until = to.min(old.timer.last_slot_at);
    let range = spec.own_times_after(plan::just_before(from)).take_while(|slot| *slot <= until);
    let is_planned = |slot: &Timestamp| spec.fires_at(*slot).is_some_and(|at| at <= old.timer.last_slot_at);
    let slots: Vec<Timestamp> = range.filter(is_planned).take(MAX_BACKFILLED).collect();
    let seen = PlanContext { org_spec: Some(&spec), ..view.seen(&old.active) };
    plan::backfill(&view.job, &old.timer, &seen, &Backfill { id, slots: &slots, parallel: None, trace_context })
        .ok()
        .filter(|plan| !plan.runs.is_empty())
}
