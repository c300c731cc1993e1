//! A [`OrgUpdate`]: a walk over all orgs of a job, in small steps, each a transaction that also remembers how far it came.

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

/// Something that is to be done for every org of a job. Those of one job key are done one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrgUpdate {
    /// Which: the id of the entry in the audit trail.
    pub id: Uuid,
    /// For which job.
    pub job: JobId,
    /// Its key.
    pub job_key: JobKey,
    /// What.
    pub work: OrgTask,
    /// Who asked for it.
    pub actor: String,
    /// When.
    pub at: Timestamp,
    /// The org that was reached.
    pub reached: Option<OrgId>,
    /// How many orgs were looked at.
    pub seen: u64,
}

impl OrgUpdate {
    /// Whether it looks after timers and has yet to come by this org with a job of this key. What changed about the org is
    /// then its to see.
    pub fn is_ahead_of(&self, key: &JobKey, org: &OrgId) -> bool {
        matches!(self.work, OrgTask::Arm | OrgTask::Resume { .. })
            && self.job_key == *key
            && self.reached.as_ref().is_none_or(|reached| reached < org)
    }

    /// Whether the runs that it makes wait until the job is resumed: the job was paused after somebody asked for them. Who
    /// asks for runs of a paused job means it.
    pub fn is_held_by(&self, state: &JobState) -> bool {
        state.pause.as_ref().is_some_and(|pause| pause.at >= self.at)
    }

    /// Whether it may end before it is at its end: not if timers depend on it.
    pub fn expect_stoppable(&self) -> Result<(), Invalid> {
        match self.work {
            OrgTask::RunNow { .. } | OrgTask::Backfill { .. } => Ok(()),
            OrgTask::Arm | OrgTask::Resume { .. } => {
                Err(Invalid::new("sweepId", "is about timers, which have to follow their job: it ends by itself"))
            }
        }
    }
}

/// What an org update does for each org.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrgTask {
    /// Makes, moves and removes timers: the job is new, replaced or retired, or somebody wants the set made anew.
    Arm,
    /// Wakes the timers of a job that is not paused or errored any more.
    Resume {
        /// Since when.
        at: Timestamp,
        /// What about the slots that went by.
        missed: Missed,
        /// Why they went by.
        reason: GapReason,
    },
    /// A run by hand for each org that the job is not off for.
    RunNow {
        /// Another payload than the job's.
        payload: Option<Json>,
        /// Another overlap policy than the job's.
        overlap: Option<Overlap>,
    },
    /// Runs for the slots of a range that have none.
    Backfill {
        /// Which.
        id: BackfillId,
        /// The range.
        from: Timestamp,
        /// The range.
        to: Timestamp,
    },
}

impl OrgTask {
    /// What it is called.
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

/// One step of an org update: an org.
#[derive(Clone, Copy, Debug)]
pub struct OrgUpdateStep<'a> {
    /// The org update.
    pub org_update: &'a OrgUpdate,
    /// When.
    pub now: Timestamp,
}

/// Decides what an org update does for one org. The same answer each time, with the same ids of runs.
pub fn take_step(view: &OrgView, step: OrgUpdateStep<'_>) -> TimerChanges {
    let plan = match &step.org_update.work {
        // What is over is swept up by the org update that ended it, which hands on what is to be remembered.
        OrgTask::Resume { .. } if matches!(view.eligibility(), Eligibility::Over(_)) => None,
        work @ (OrgTask::Arm | OrgTask::Resume { .. }) => return reconcile(view, Some(work)),
        OrgTask::RunNow { payload, overlap } => run_now(view, step, payload.as_ref(), *overlap),
        OrgTask::Backfill { id, from, to } => backfill(view, *id, *from, *to),
    };
    // Runs beside the schedule leave the timer as it is.
    let org_error = view.timer.as_ref().and_then(|old| old.error.clone());
    let fate = plan.map_or(TimerChange::Keep, |plan| TimerChange::Write(Box::new(Plan { org_error, ..plan })));
    TimerChanges { before: None, fate }
}

fn run_now(view: &OrgView, step: OrgUpdateStep<'_>, payload: Option<&Json>, overlap: Option<Overlap>) -> Option<Plan> {
    // A paused job may be run by hand; one that the org does not take part in is not run for it.
    let wanted = view.facts.place.enabled && view.facts.wish.as_ref().is_none_or(|wish| wish.enabled);
    if matches!(view.eligibility(), Eligibility::Over(_)) || !wanted {
        return None;
    }
    let old = view.timer.as_ref()?;
    let id: RunId = org_update_run_id(step.org_update.id, view.job.id, &view.org, step.org_update.at);
    let request = RunNow { id, actor: &step.org_update.actor, payload: payload.cloned(), overlap };
    Some(plan::run_now(&view.job, &old.timer, &view.seen(&old.active), &request, step.now))
}

/// How many slots of a range a backfill finds for an org: it makes at most so many runs, because some may be there.
pub fn backfill_size(
    job: &Definition,
    facts: &OrgFacts,
    timer: Option<&Timer>,
    (from, to): (Timestamp, Timestamp),
) -> u64 {
    let (true, Some(timer), Ok(spec)) = (is_backfilled(&eligibility(job, facts)), timer, spec_for(job, facts)) else {
        return 0;
    };
    spec.count_between(plan::just_before(from), to.min(timer.last_slot_at)).min(MAX_BACKFILLED as u64)
}

fn is_backfilled(eligibility: &Eligibility) -> bool {
    matches!(eligibility, Eligibility::Eligible(_) | Eligibility::Off(_))
}

fn backfill(view: &OrgView, id: BackfillId, from: Timestamp, to: Timestamp) -> Option<Plan> {
    if !is_backfilled(&view.eligibility()) {
        return None;
    }
    let old = view.timer.as_ref()?;
    let spec = spec_for(&view.job, &view.facts).ok()?;
    let until = to.min(old.timer.last_slot_at);
    let slots: Vec<Timestamp> =
        spec.slots_after(plan::just_before(from)).take_while(|slot| *slot <= until).take(MAX_BACKFILLED).collect();
    let seen = PlanContext { org_spec: Some(&spec), ..view.seen(&old.active) };
    plan::backfill(&view.job, &old.timer, &seen, &Backfill { id, slots: &slots })
        .ok()
        .filter(|plan| !plan.runs.is_empty())
}
