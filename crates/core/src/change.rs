//! What operators do to a job: each a pure function from the job as it is to the change to be written.
//!
//! A store reads [`JobView`] under a lock, asks one of these, and commits the [`JobChange`] in the same transaction. So a
//! pause, an edit or a run by hand can race with a claim and neither loses nor doubles a slot.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::ids::{Invalid, JobId, Target};
use crate::job::{Definition, Job, JobState, JobStatus, Pause, Source, Timer};
use crate::json::Json;
use crate::plan::{self, Missed, Plan, RunNow, Seen};
use crate::policy::Policies;
use crate::run::{ActiveRun, GapReason};
use crate::spec::Spec;

/// A job as it is, read under a lock.
#[derive(Clone, Debug)]
pub struct JobView {
    /// Definition and state.
    pub job: Job,
    /// Its timer, or the timer of the org that is asked about.
    pub timer: Timer,
    /// The schedule of that org, where it has its own.
    pub org_spec: Option<Spec>,
    /// Its pending and running runs, oldest first.
    pub active: Vec<ActiveRun>,
    /// When the job that it depends on last succeeded.
    pub upstream_succeeded_at: Option<Timestamp>,
}

impl JobView {
    /// What a plan must know besides the job and its timer.
    pub fn seen(&self) -> Seen<'_> {
        Seen {
            active: &self.active,
            upstream_succeeded_at: self.upstream_succeeded_at,
            org_spec: self.org_spec.as_ref(),
        }
    }

    fn job(&self) -> &Definition {
        &self.job.definition
    }

    fn expect_living(&self) -> Result<(), Invalid> {
        if self.job.state.status == JobStatus::Retired {
            return Err(Invalid::new("status", "a retired job is final; create a new job or version"));
        }
        Ok(())
    }
}

/// A job to be inserted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    /// What never changes.
    pub definition: Arc<Definition>,
    /// How it begins.
    pub state: JobState,
    /// Its timer, armed unless the job begins paused.
    pub timer: Timer,
}

/// What is to be written about a job, in one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobChange {
    /// The state as it shall be.
    pub state: JobState,
    /// Runs, gaps, cancellations and the timer as it shall be.
    pub plan: Plan,
    /// The version that takes over.
    pub successor: Option<NewJob>,
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
    let timer = plan::arm(&definition, &blank, &Seen::default());
    NewJob { state: JobState::new(&definition.created_by, now), timer, definition: Arc::new(definition) }
}

/// Stops firing. The slots that go by become a `paused` gap when the job is resumed.
pub fn pause(view: &JobView, pause: Pause) -> Result<JobChange, Invalid> {
    let state = view.job.state.paused(pause)?;
    Ok(JobChange { state, plan: Plan::nothing(&plan::disarm(&view.timer)), successor: None })
}

/// Fires again, from now on. What went by is a gap, or one run if that is asked for.
pub fn resume(view: &JobView, missed: Missed, by: &str, now: Timestamp) -> Result<JobChange, Invalid> {
    let reason = if view.job.state.error.is_some() { GapReason::Errored } else { GapReason::Paused };
    if view.job.state.status == JobStatus::Active && view.job.state.error.is_none() {
        return Err(Invalid::new("status", "the job is not paused"));
    }
    let state = view.job.state.resumed(by, now)?;
    let plan = plan::resume(view.job(), &view.timer, &view.seen(), missed, reason, now)?;
    Ok(JobChange { state, plan, successor: None })
}

/// Ends the job for good. A slot that is due this very moment still fires; history stays.
pub fn retire(view: &JobView, by: &str, now: Timestamp) -> Result<JobChange, Invalid> {
    let state = view.job.state.retired(by, now)?;
    Ok(JobChange { state, plan: last_plan(view, now), successor: None })
}

fn last_plan(view: &JobView, now: Timestamp) -> Plan {
    let reason = match (&view.job.state.error, view.job.state.status) {
        (Some(_), _) => GapReason::Errored,
        (None, JobStatus::Paused) => GapReason::Paused,
        (None, JobStatus::Active | JobStatus::Retired) => GapReason::Missed,
    };
    plan::close(view.job(), &view.timer, &view.seen(), reason, now)
}

/// What the next version does differently. `None` keeps what is.
#[derive(Clone, Debug, Default)]
pub struct Edit {
    /// Another label.
    pub target: Option<Target>,
    /// Another payload.
    pub payload: Option<Json>,
    /// Another schedule.
    pub spec: Option<Spec>,
    /// Other policies.
    pub policies: Option<Policies>,
    /// Another text for people.
    pub description: Option<String>,
    /// Other labels.
    pub labels: Option<BTreeMap<String, String>>,
    /// Another owner of the definition.
    pub source: Option<Source>,
}

/// Retires this version and makes the next one. Its slots begin now, so an edit never fires retroactively; a pause goes
/// on in the new version unless it is to be activated.
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
    let definition = Definition {
        id,
        version: old.version + 1,
        key: old.key.clone(),
        target: edit.target.unwrap_or_else(|| old.target.clone()),
        payload: edit.payload.unwrap_or_else(|| old.payload.clone()),
        spec: edit.spec.map_or_else(|| old.spec.clone(), Ok),
        policies: edit.policies.unwrap_or_else(|| old.policies.clone()),
        scope: old.scope,
        description: edit.description.unwrap_or_else(|| old.description.clone()),
        labels: edit.labels.unwrap_or_else(|| old.labels.clone()),
        source: edit.source.unwrap_or(old.source),
        supersedes: Some(old.id),
        created_by: by.to_owned(),
        created_at: now,
    };
    if let Err(broken) = &definition.spec {
        return Err(Invalid::new("schedule", broken.reason.clone()));
    }
    let mut successor = create(definition);
    if let Some(pause) = view.job.state.pause.clone().filter(|_| !activate) {
        successor.state = JobState { status: JobStatus::Paused, pause: Some(pause), ..successor.state };
        successor.timer = plan::disarm(&successor.timer);
    }
    Ok(JobChange { state, plan: last_plan(view, now), successor: Some(successor) })
}

/// Moves the next fire, and only that.
pub fn reschedule(view: &JobView, to: Timestamp, by: &str, now: Timestamp) -> Result<JobChange, Invalid> {
    view.expect_living()?;
    let timer = plan::reschedule(view.job(), &view.timer, &view.seen(), to, now)?;
    Ok(JobChange { state: touched(view, by, now), plan: Plan::nothing(&timer), successor: None })
}

/// Passes over the next slots.
pub fn skip_next(view: &JobView, count: u32, by: &str, now: Timestamp) -> Result<JobChange, Invalid> {
    view.expect_living()?;
    let plan = plan::skip_next(view.job(), &view.timer, &view.seen(), count, by, now)?;
    Ok(JobChange { state: touched(view, by, now), plan, successor: None })
}

/// Enqueues a run at once. A paused job may be run by hand; a retired one not.
pub fn run_now(view: &JobView, request: &RunNow<'_>, now: Timestamp) -> Result<JobChange, Invalid> {
    view.expect_living()?;
    let plan = plan::run_now(view.job(), &view.timer, &view.seen(), request, now);
    Ok(JobChange { state: view.job.state.clone(), plan, successor: None })
}

/// Enqueues runs for slots that have gone by. A paused job may be backfilled; a retired one not.
pub fn backfill(view: &JobView, request: &plan::Backfill<'_>) -> Result<JobChange, Invalid> {
    view.expect_living()?;
    let plan = plan::backfill(view.job(), &view.timer, &view.seen(), request)?;
    Ok(JobChange { state: view.job.state.clone(), plan, successor: None })
}

fn touched(view: &JobView, by: &str, now: Timestamp) -> JobState {
    let state = view.job.state.clone();
    JobState { revision: state.revision + 1, updated_by: by.to_owned(), updated_at: now, ..state }
}
