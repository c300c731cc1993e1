//! Changes of a job: read it, decide, commit against what was read, and retry if someone else was faster.

use std::fmt::Debug;
use std::future::IntoFuture;
use std::sync::Arc;

use everbell_core::calendar::Calendar;
use everbell_core::change::{self, Edit, JobChange, JobView};
use everbell_core::plan::Missed;
use everbell_core::store::{AuditEntry, Changed, JobRef, JobRow, StoreError, StoreResult};
use everbell_core::{Definition, Invalid, JobId, OrgId, Pause, Target};
use everbell_store::AppConnection;
use jiff::Timestamp;
use serde_json::json;

use super::in_transaction::Reader;
use super::jobs::Jobs;
use super::names::IntoJobRef;
use super::org_jobs::JobOfOrg;
use super::trail::before_and_after;
use super::{Context, MAX_ATTEMPTS, current_calendars};
use crate::clock::BoxFuture;
use crate::parts::Parts;

/// A change that is made when it is awaited.
#[derive(Clone, Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct Change<V> {
    jobs: Jobs,
    job: Result<JobRef, Invalid>,
    if_revision: Option<u64>,
    /// The org whose timer is changed.
    org: Option<OrgId>,
    pub(super) verb: V,
}

/// The time of a change, and its audit entry.
struct Decided {
    now: Timestamp,
    audit: AuditEntry,
}

/// A change of a job: one of this crate's own.
pub trait Verb: Clone + Debug + Send + Sync + sealed::Decide + 'static {}

mod sealed {
    use super::{Arc, Calendar, Invalid, JobChange, JobView, Target, Timestamp};

    pub trait Decide {
        const ACTION: &'static str;

        fn decide(&self, view: &JobView, by: &str, now: Timestamp) -> Result<JobChange, Invalid>;

        /// The target that must be known.
        fn target(&self) -> Option<&Target> {
            None
        }

        /// Whether it makes a new version, which gets the days of the current calendars.
        const MAKES_VERSION: bool = false;

        /// Takes the current calendars, if it makes a new version.
        fn take_calendars(&mut self, _: Vec<Arc<Calendar>>) {}
    }
}
pub(super) use sealed::Decide;

impl<V: Verb> Change<V> {
    pub(super) fn new(jobs: Jobs, job: impl IntoJobRef, verb: V) -> Change<V> {
        Change { jobs, job: job.into_job_ref(), if_revision: None, org: None, verb }
    }

    /// Makes the change only if the job is still at this revision; otherwise it fails with [`StoreError::Stale`].
    pub fn if_revision(self, revision: u64) -> Change<V> {
        Change { if_revision: Some(revision), ..self }
    }

    async fn commit(self) -> StoreResult<Changed> {
        let job = self.job.clone()?;
        let mut attempts = 1;
        let answer = loop {
            match self.with_calendars().await?.attempt(&job).await {
                Err(error) if error.is_conflict() && self.if_revision.is_none() && attempts < MAX_ATTEMPTS => {
                    attempts += 1;
                }
                answer => break answer,
            }
        };
        self.jobs.context.name_current_version(&job, answer).await
    }

    /// The same change with the calendars as they are now. A version with other days is refused by the store.
    async fn with_calendars(&self) -> StoreResult<Change<V>> {
        let mut change = self.clone();
        if V::MAKES_VERSION {
            change.verb.take_calendars(current_calendars(&*self.jobs.context.parts.store).await?);
        }
        Ok(change)
    }

    /// Tries the change once. The audit entry says what changed, so the job is read first, and must not have changed
    /// since.
    async fn attempt(&self, job: &JobRef) -> StoreResult<Changed> {
        if let Some(changed) = self.jobs.context.changed_before().await? {
            return Ok(changed);
        }
        if let Some(target) = self.verb.target() {
            self.jobs.context.parts.expect_known(target).await?;
        }
        if let Some(org) = &self.org {
            return self.attempt_for(job, org).await;
        }
        let parts = &self.jobs.context.parts;
        let row = parts.store.get_job(job).await?;
        let decided = self.decided(&row)?;
        let (id, revision) = (JobRef::Id(row.job.definition.id), Some(row.job.state.revision));
        let decide = |view: &JobView| self.decide(view, decided.now);
        let changed = parts.store.change_job(&id, revision, &decide, &decided.audit).await?;
        parts.events.publish_change(&changed);
        parts.follow_change(&changed).await;
        Ok(changed)
    }

    fn decide(&self, view: &JobView, now: Timestamp) -> Result<JobChange, Invalid> {
        let Context { parts, actor, .. } = &self.jobs.context;
        let change = self.verb.decide(view, actor, now)?;
        change.successor.iter().try_for_each(|next| parts.check_successor(&view.job.definition, &next.definition))?;
        Ok(change)
    }

    /// Decides about a job as it was read, for its audit entry.
    fn decided(&self, row: &JobRow) -> StoreResult<Decided> {
        let definition = &row.job.definition;
        StoreError::expect_revision("job", &definition.key, self.if_revision, Some(row.job.state.revision))?;
        let now = self.jobs.context.now();
        let (before, after) = before_and_after(row, &|view: &JobView| self.decide(view, now))?;
        let object = format!("job:{}", definition.key);
        Ok(Decided { now, audit: self.jobs.context.entry(V::ACTION, object, now, Some(&before), Some(&after)) })
    }

    /// Makes the change in a transaction of the application, like [`Jobs::create_in`]: it takes effect when that commits.
    /// The job is locked until then, so keep the transaction short. A change for one org cannot be a part of a transaction.
    pub async fn in_tx<C: AppConnection>(self, connection: &mut C) -> StoreResult<Changed> {
        let job = self.job.clone()?;
        if self.org.is_some() {
            return Err(Invalid::new("orgId", "a change for one org cannot be a part of a transaction").into());
        }
        for _ in 1..MAX_ATTEMPTS {
            match self.with_calendars().await?.attempt_in(&job, connection).await {
                Err(error) if error.is_conflict() && self.if_revision.is_none() => {}
                answer => return answer,
            }
        }
        self.with_calendars().await?.attempt_in(&job, connection).await
    }

    async fn attempt_in<C: AppConnection>(&self, job: &JobRef, connection: &mut C) -> StoreResult<Changed> {
        let context = &self.jobs.context;
        let mut inside = connection.enter(&*context.parts.store, V::ACTION).await?;
        if let Some(target) = self.verb.target() {
            context.parts.expect_known_by(target, &mut Reader::Inside(&mut *inside)).await?;
        }
        let row = inside.get_job(job).await?;
        let decided = self.decided(&row)?;
        let (id, revision) = (JobRef::Id(row.job.definition.id), Some(row.job.state.revision));
        let decide = |view: &JobView| self.decide(view, decided.now);
        let changed = inside.change_job(&id, None, revision, &decide, &decided.audit).await?;
        inside.finish().await?;
        Ok(changed)
    }

    /// Like `attempt`, for the timer of an org.
    async fn attempt_for(&self, job: &JobRef, org: &OrgId) -> StoreResult<Changed> {
        let context = &self.jobs.context;
        let read = JobOfOrg::read(context, job, org).await?;
        let definition = &read.row.job.definition;
        let revision = read.row.job.state.revision;
        StoreError::expect_revision("job", &definition.key, self.if_revision, Some(revision))?;
        let now = context.now();
        let decide = |view: &JobView| self.verb.decide(view, &context.actor, now);
        let view = read.view();
        let planned = decide(&view)?;
        let mut after = JobOfOrg::timer_facts(&planned.plan.timer);
        after.insert("orgId".to_owned(), json!(org.as_str()));
        let before = JobOfOrg::timer_facts(&view.timer);
        let object = format!("job:{}", definition.key);
        let audit = context.entry(V::ACTION, object, now, Some(&before), Some(&after));
        let job = JobRef::Id(definition.id);
        let changed = context.parts.store.change_org_job(&job, org, self.if_revision, &decide, &audit).await?;
        context.parts.events.publish_change(&changed);
        Ok(changed)
    }
}

impl<V: Verb> IntoFuture for Change<V> {
    type Output = StoreResult<Changed>;
    type IntoFuture = BoxFuture<'static, StoreResult<Changed>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.commit())
    }
}

impl Parts {
    /// Refuses a new target or payload that do not fit. An edit of something else leaves them alone.
    fn check_successor(&self, old: &Definition, new: &Definition) -> Result<(), Invalid> {
        if (&old.target, &old.payload) == (&new.target, &new.payload) {
            return Ok(());
        }
        self.targets.now().check_payload(&new.target, &new.payload, Some(new.key.as_str()))
    }
}

/// See [`Jobs::pause`].
#[derive(Clone, Debug)]
pub struct Pausing {
    pub(super) reason: String,
    pub(super) until: Option<Timestamp>,
    pub(super) cancel_pending: bool,
}

impl Verb for Pausing {}

impl Decide for Pausing {
    const ACTION: &'static str = "job.pause";

    fn decide(&self, view: &JobView, by: &str, now: Timestamp) -> Result<JobChange, Invalid> {
        let pause = Pause { reason: self.reason.clone(), by: by.to_owned(), at: now, until: self.until };
        if self.cancel_pending { change::pause_and_cancel(view, pause) } else { change::pause(view, pause) }
    }
}

impl Change<Pausing> {
    /// Resumes the job automatically at this time.
    pub fn until(self, at: Timestamp) -> Change<Pausing> {
        Change { verb: Pausing { until: Some(at), ..self.verb }, ..self }
    }

    /// Cancels the runs that have not started. Without this they wait until the job is resumed.
    pub fn cancel_pending(self) -> Change<Pausing> {
        Change { verb: Pausing { cancel_pending: true, ..self.verb }, ..self }
    }
}

/// See [`Jobs::resume`].
#[derive(Clone, Debug, Default)]
pub struct Resuming {
    missed: Missed,
}

impl Verb for Resuming {}

impl Decide for Resuming {
    const ACTION: &'static str = "job.resume";

    fn decide(&self, view: &JobView, by: &str, now: Timestamp) -> Result<JobChange, Invalid> {
        change::resume(view, self.missed, by, now)
    }
}

impl Change<Resuming> {
    /// Creates one run for the latest missed slot.
    pub fn run_missed_once(self) -> Change<Resuming> {
        Change { verb: Resuming { missed: Missed::RunOnce }, ..self }
    }
}

/// See [`Jobs::new_version`].
#[derive(Clone, Debug)]
pub struct Editing {
    pub(super) edit: Edit,
    pub(super) id: JobId,
    pub(super) activate: bool,
}

impl Verb for Editing {}

impl Decide for Editing {
    const ACTION: &'static str = "job.new_version";

    fn decide(&self, view: &JobView, by: &str, now: Timestamp) -> Result<JobChange, Invalid> {
        change::new_version(view, self.edit.clone(), self.id, self.activate, by, now)
    }

    fn target(&self) -> Option<&Target> {
        self.edit.target.as_ref()
    }

    const MAKES_VERSION: bool = true;

    fn take_calendars(&mut self, calendars: Vec<Arc<Calendar>>) {
        self.edit.calendars = calendars;
    }
}

impl Change<Editing> {
    /// Makes the new version active, even if the job is paused.
    pub fn activate(self) -> Change<Editing> {
        Change { verb: Editing { activate: true, ..self.verb }, ..self }
    }
}

/// See [`Jobs::restore_declaration`].
#[derive(Clone, Debug)]
pub(super) struct RestoringDeclaration {
    /// The version that the last sync wrote.
    pub(super) declared: Arc<Definition>,
    pub(super) id: JobId,
    pub(super) calendars: Vec<Arc<Calendar>>,
}

impl Verb for RestoringDeclaration {}

impl Decide for RestoringDeclaration {
    const ACTION: &'static str = "job.restore_declaration";

    fn decide(&self, view: &JobView, by: &str, now: Timestamp) -> Result<JobChange, Invalid> {
        change::restore_declaration(view, &self.declared, &self.calendars, self.id, by, now)
    }

    const MAKES_VERSION: bool = true;

    fn take_calendars(&mut self, calendars: Vec<Arc<Calendar>>) {
        self.calendars = calendars;
    }
}

/// See [`Jobs::reschedule`].
#[derive(Clone, Debug)]
pub struct Rescheduling {
    pub(super) to: Timestamp,
}

impl Verb for Rescheduling {}

impl Decide for Rescheduling {
    const ACTION: &'static str = "job.reschedule";

    fn decide(&self, view: &JobView, by: &str, now: Timestamp) -> Result<JobChange, Invalid> {
        change::reschedule(view, self.to, by, now)
    }
}

impl Change<Rescheduling> {
    /// Moves the next fire for this org, of a per-org job.
    pub fn for_org(self, org: &OrgId) -> Change<Rescheduling> {
        Change { org: Some(org.clone()), ..self }
    }
}

/// See [`Jobs::skip_next`].
#[derive(Clone, Debug)]
pub struct Skipping {
    pub(super) count: u32,
}

impl Verb for Skipping {}

impl Decide for Skipping {
    const ACTION: &'static str = "job.skip_next";

    fn decide(&self, view: &JobView, by: &str, now: Timestamp) -> Result<JobChange, Invalid> {
        change::skip_next(view, self.count, by, now)
    }
}

impl Change<Skipping> {
    /// Skips the next slots for this org, of a per-org job.
    pub fn for_org(self, org: &OrgId) -> Change<Skipping> {
        Change { org: Some(org.clone()), ..self }
    }
}

/// See [`Jobs::retire`].
#[derive(Clone, Debug)]
pub struct Retiring(pub(super) ());

impl Verb for Retiring {}

impl Decide for Retiring {
    const ACTION: &'static str = "job.retire";

    fn decide(&self, view: &JobView, by: &str, now: Timestamp) -> Result<JobChange, Invalid> {
        change::retire(view, by, now)
    }
}
