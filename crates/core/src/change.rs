//! Changes that operators make to a job: each is a pure function from the current job to the change to be written.
//!
//! A store reads [`JobView`] under a lock, calls one of these functions, and commits the [`JobChange`] in the same
//! transaction. So a pause, an edit or a run by hand can race with a claim and neither loses nor doubles a slot.

mod backfills;
mod calendars;
mod declared;
mod runs;

use std::sync::Arc;

use jiff::Timestamp;

use crate::ids::{Invalid, JobId};
use crate::job::{Definition, Job, JobState, JobStatus, Pause, Scope, Timer};
use crate::org::{self, OrgFacts, OrgTask};
use crate::plan::{self, Missed, Plan, PlanContext};
use crate::repair::{self, Repair};
use crate::run::{ActiveRun, GapReason};
use crate::spec::{Spec, When};

pub use crate::edit::Edit;
pub use backfills::{
    BackfillFacts, BackfillWrite, advance_backfill, backfill_waits_for, begin_backfill, pause_backfill,
    resume_backfill, set_backfill, stop_backfill,
};
pub use calendars::follow_calendars;
pub use declared::{record_declaration, restore_declaration};
pub use runs::{backfill, cancel_runs, expect_pending_room, for_all_orgs, run_in_turn, run_now};

/// A job as it is, read under a lock.
#[derive(Clone, Debug)]
pub struct JobView {
    /// Definition and state.
    pub job: Job,
    /// Its timer, or the timer of the org that is asked about. Of a job with one for each org that is asked about as a
    /// whole: one that is not stored.
    pub timer: Timer,
    /// The facts about that org that decide whether and when the job fires for it.
    pub org: Option<OrgFacts>,
    /// Its pending and running runs, oldest first.
    pub active: Vec<ActiveRun>,
    /// When the job that it depends on last succeeded.
    pub upstream_succeeded_at: Option<Timestamp>,
}

impl JobView {
    /// Returns the context that a plan needs besides the job and its timer.
    fn seen<'a>(&'a self, org_spec: Option<&'a Spec>) -> PlanContext<'a> {
        PlanContext { active: &self.active, upstream_succeeded_at: self.upstream_succeeded_at, org_spec, frozen: &[] }
    }

    /// The schedule of the org that is asked about.
    fn org_spec(&self) -> Result<Option<Spec>, Invalid> {
        let spec = self.org.as_ref().map(|facts| org::spec_for(self.job(), facts)).transpose();
        spec.map_err(|reason| Invalid::new("timezone", reason))
    }

    /// Whether it has a timer for each org, and all of them are meant.
    fn is_of_all_orgs(&self) -> bool {
        self.job().scope == Scope::PerOrg && self.timer.org.is_none()
    }

    /// Whether this is about one timer.
    fn expect_one_timer(&self) -> Result<(), Invalid> {
        let refusal = "this job fires per org: name the org in `orgId`";
        if self.is_of_all_orgs() { Err(Invalid::new("orgId", refusal)) } else { Ok(()) }
    }

    /// Like `expect_one_timer`, for actions that can also be asked for all orgs.
    fn expect_one_or_all(&self) -> Result<(), Invalid> {
        if self.is_of_all_orgs() { Err(Invalid::for_whom()) } else { Ok(()) }
    }

    fn job(&self) -> &Definition {
        &self.job.definition
    }

    fn expect_living(&self) -> Result<(), Invalid> {
        if self.job.state.status == JobStatus::Retired {
            return Err(Invalid::retired());
        }
        Ok(())
    }
}

/// A job to be inserted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    /// The immutable part of the job.
    pub definition: Arc<Definition>,
    /// The initial state.
    pub state: JobState,
    /// Its timer, armed unless the job starts paused. `None` for a per-org job: an org update creates those timers.
    pub timer: Option<Timer>,
}

impl NewJob {
    /// Continues the revisions of the version before it, so that no two versions of a key ever share one.
    #[must_use]
    pub fn following(mut self, last: &JobState) -> NewJob {
        self.state.revision = last.revision + 1;
        self
    }

    /// Begins paused: nothing fires before an operator resumes the job. The reason is checked as that of any pause.
    pub fn paused(self, reason: &str) -> Result<NewJob, Invalid> {
        let JobState { revision, updated_by: by, updated_at: at, .. } = self.state.clone();
        let state = self.state.paused(Pause { reason: reason.to_owned(), by, at, until: None })?;
        Ok(NewJob { state: JobState { revision, ..state }, timer: self.timer.as_ref().map(plan::disarm), ..self })
    }

    /// When it fires first, if it has one timer and that is armed.
    pub fn next_run_at(&self) -> Option<Timestamp> {
        self.timer.as_ref()?.next_run_at
    }
}

/// A change of a job, to be written in one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobChange {
    /// The new state.
    pub state: JobState,
    /// Runs, gaps and cancellations to write, and the new timer.
    pub plan: Plan,
    /// The version that takes over.
    pub successor: Option<NewJob>,
    /// A task to carry out for each org afterwards.
    pub org_task: Option<OrgTask>,
    /// The effect on the runs that have not started, of all orgs.
    pub pending: PendingRuns,
    /// A backfill that begins or changes.
    pub backfill: Option<Box<BackfillWrite>>,
}

impl JobChange {
    /// A change of the state and the plan, and of nothing else.
    pub(crate) fn new(state: JobState, plan: Plan) -> JobChange {
        JobChange { state, plan, successor: None, org_task: None, pending: PendingRuns::Leave, backfill: None }
    }
}

impl JobView {
    /// A change that leaves the state as it is.
    pub(crate) fn planned(&self, plan: Plan) -> JobChange {
        JobChange::new(self.job.state.clone(), plan)
    }
}

/// The effect of a change on the runs of a job that have not started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PendingRuns {
    /// They stay as they are.
    #[default]
    Leave,
    /// They wait until the job is resumed. Runs at work that are tried again wait as well.
    Hold,
    /// They need not wait any more.
    Release,
    /// They are canceled. Runs at work that are tried again wait until the job is resumed.
    Cancel,
    /// They are canceled, because no resume will come. Runs at work end as they would have, with their other attempts.
    End,
}

impl PendingRuns {
    /// Whether runs wait until the job is resumed.
    pub fn holds(self) -> bool {
        matches!(self, PendingRuns::Hold | PendingRuns::Cancel)
    }

    /// Whether runs that have not begun are canceled.
    pub fn cancels(self) -> bool {
        matches!(self, PendingRuns::Cancel | PendingRuns::End)
    }
}

/// A new job: its slots begin now, and nothing fires.
pub fn create(definition: Definition) -> NewJob {
    let now = definition.created_at;
    let blank = Timer {
        job_id: definition.id,
        org: None,
        next_run_at: None,
        last_slot_at: now,
        rescheduled_from: None,
        last_local_date: None,
    };
    let timer = (definition.scope == Scope::Global).then(|| plan::arm(&definition, &blank, &PlanContext::default()));
    NewJob { state: JobState::new(&definition.created_by, now), timer, definition: Arc::new(definition) }
}

/// Stops firing. The slots that go by become a `paused` gap when the job is resumed. Runs that have not begun wait until
/// then.
pub fn pause(view: &JobView, pause: Pause) -> Result<JobChange, Invalid> {
    let state = view.job.state.paused(pause)?;
    let pending = PendingRuns::Hold;
    Ok(JobChange { pending, ..JobChange::new(state, Plan::nothing(&plan::disarm(&view.timer))) })
}

/// Stops firing, and cancels the runs that have not begun.
pub fn pause_and_cancel(view: &JobView, reason: Pause) -> Result<JobChange, Invalid> {
    Ok(JobChange { pending: PendingRuns::Cancel, ..pause(view, reason)? })
}

/// Resumes the job from now on. Missed slots become a gap, or one run if that is asked for.
pub fn resume(view: &JobView, missed: Missed, by: &str, now: Timestamp) -> Result<JobChange, Invalid> {
    let reason = if view.job.state.error.is_some() { GapReason::Errored } else { GapReason::Paused };
    if view.job.state.status == JobStatus::Active && view.job.state.error.is_none() {
        return Err(Invalid::new("status", "the job is not paused"));
    }
    let state = view.job.state.resumed(by, now)?;
    let pending = PendingRuns::Release;
    if view.is_of_all_orgs() {
        if let Err(broken) = &view.job().spec {
            return Err(Invalid::new("schedule", broken.reason.clone()));
        }
        let org_task = Some(OrgTask::Resume { at: now, missed, reason });
        return Ok(JobChange { org_task, pending, ..JobChange::new(state, Plan::nothing(&view.timer)) });
    }
    let plan = plan::resume(view.job(), &view.timer, &view.seen(None), missed, reason, now)?;
    Ok(JobChange { pending, ..JobChange::new(state, plan) })
}

/// Brings a job back that would never fire again: see [`repair::needed`].
pub fn repair(view: &JobView, by: &str, now: Timestamp) -> Result<JobChange, Invalid> {
    let timer = (!view.is_of_all_orgs()).then_some(&view.timer);
    match repair::needed(&view.job, timer) {
        None => Err(Invalid::new("status", "the job needs no repair")),
        Some(Repair::EndError) => resume(view, Missed::Skip, by, now),
        Some(Repair::Arm) => {
            let timer = plan::arm(view.job(), &view.timer, &view.seen(None));
            Ok(JobChange::new(touched(view, by, now), Plan::nothing(&timer)))
        }
    }
}

/// Ends the job for good. A slot that is due this very moment still fires; history stays. Runs that a pause holds are
/// canceled: nothing would ever release them.
pub fn retire(view: &JobView, by: &str, now: Timestamp) -> Result<JobChange, Invalid> {
    let state = view.job.state.retired(by, now)?;
    let org_task = view.is_of_all_orgs().then_some(OrgTask::Arm);
    let pending = match view.job.state.status {
        JobStatus::Paused => PendingRuns::End,
        JobStatus::Active | JobStatus::Retired => PendingRuns::Leave,
    };
    Ok(JobChange { org_task, pending, ..JobChange::new(state, last_plan(view, now)) })
}

fn last_plan(view: &JobView, now: Timestamp) -> Plan {
    if view.is_of_all_orgs() {
        return Plan::nothing(&view.timer);
    }
    plan::close(view.job(), &view.timer, &view.seen(None), reason_to_end(view), now)
}

/// Why past slots have no run when a version ends.
fn reason_to_end(view: &JobView) -> GapReason {
    match (&view.job.state.error, view.job.state.status) {
        (Some(_), _) => GapReason::Errored,
        (None, JobStatus::Paused) => GapReason::Paused,
        (None, JobStatus::Active | JobStatus::Retired) => GapReason::Missed,
    }
}

/// Retires this version and makes the next one. Its slots begin now, so an edit never fires retroactively, and what
/// operators did to the fires ahead holds for it too ([`plan::succeed`]). A pause goes on unless it is to be activated.
pub fn new_version(
    view: &JobView,
    edit: Edit,
    id: JobId,
    activate: bool,
    by: &str,
    now: Timestamp,
) -> Result<JobChange, Invalid> {
    let state = view.job.state.retired(by, now)?;
    let old = view.job();
    let policies = edit.policies.unwrap_or_else(|| old.policies.clone()).with_calendars(&edit.calendars)?;
    let spec = edit.spec.map_or_else(|| old.spec.clone(), Ok).map(|spec| spec.with_calendars(&policies.calendars));
    let stays_one_time = matches!(&spec, Ok(spec) if matches!(spec.when(), When::Once(_)));
    let definition = Definition {
        id,
        version: old.version + 1,
        key: old.key.clone(),
        target: edit.target.unwrap_or_else(|| old.target.clone()),
        payload: edit.payload.unwrap_or_else(|| old.payload.clone()),
        spec,
        policies,
        scope: edit.scope.unwrap_or(old.scope),
        description: edit.description.unwrap_or_else(|| old.description.clone()),
        labels: edit.labels.unwrap_or_else(|| old.labels.clone()),
        source: edit.source.unwrap_or(old.source),
        supersedes: Some(old.id),
        created_by: by.to_owned(),
        created_at: now,
        trace_context: old.trace_context.clone().filter(|_| stays_one_time),
    };
    if let Err(broken) = &definition.spec {
        return Err(Invalid::new("schedule", broken.reason.clone()));
    }
    let mut successor = create(definition).following(&state);
    let plan = match (&successor.definition.spec, successor.timer.is_some() && !view.is_of_all_orgs()) {
        (Ok(spec), true) => {
            let successor_timer = (successor.definition.as_ref(), spec);
            let (plan, timer) =
                plan::succeed(old, &view.timer, &view.seen(None), reason_to_end(view), successor_timer, now);
            successor.timer = Some(timer);
            plan
        }
        _ => last_plan(view, now),
    };
    let JobState { pause, consecutive_failures, declaration, .. } = view.job.state.clone();
    successor.state.declaration = declaration;
    let pending = if pause.is_some() && activate { PendingRuns::Release } else { PendingRuns::Leave };
    if !activate || pause.is_none() {
        successor.state.consecutive_failures = consecutive_failures;
    }
    if let Some(pause) = pause.filter(|_| !activate) {
        successor.state = JobState { status: JobStatus::Paused, pause: Some(pause), ..successor.state };
        successor.timer = successor.timer.as_ref().map(plan::disarm);
    }
    // A per-org successor takes over the timers in its own org update; any other successor does not.
    let org_task = (view.is_of_all_orgs() && successor.timer.is_some()).then_some(OrgTask::Arm);
    Ok(JobChange { successor: Some(successor), org_task, pending, ..JobChange::new(state, plan) })
}

/// Moves the next fire, and only that.
pub fn reschedule(view: &JobView, to: Timestamp, by: &str, now: Timestamp) -> Result<JobChange, Invalid> {
    view.expect_living()?;
    view.expect_one_timer()?;
    let spec = view.org_spec()?;
    let timer = plan::reschedule(view.job(), &view.timer, &view.seen(spec.as_ref()), to, now)?;
    Ok(JobChange::new(touched(view, by, now), Plan::nothing(&timer)))
}

/// Passes over the next slots.
pub fn skip_next(view: &JobView, count: u32, by: &str, now: Timestamp) -> Result<JobChange, Invalid> {
    view.expect_living()?;
    view.expect_one_timer()?;
    let spec = view.org_spec()?;
    let plan = plan::skip_next(view.job(), &view.timer, &view.seen(spec.as_ref()), count, by, now)?;
    Ok(JobChange::new(touched(view, by, now), plan))
}

fn touched(view: &JobView, by: &str, now: Timestamp) -> JobState {
    let state = view.job.state.clone();
    JobState { revision: state.revision + 1, updated_by: by.to_owned(), updated_at: now, ..state }
}
