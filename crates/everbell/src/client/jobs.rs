//! [`Jobs`]: everything that is done with jobs.

use std::borrow::Borrow;

use everbell_core::backfill::{BackfillOrder, Rate};
use everbell_core::chain::{ChainLink, RunGroup};
use everbell_core::change::{self, Edit, NewJob};
use everbell_core::store::{
    AuditEntry, Changed, JobFilter, JobRef, JobRow, Page, PageRequest, StoreError, StoreResult,
};
use everbell_core::{Definition, Invalid, JobId, JobKey, Made, OrgId, Source, Target, TraceContext};
use jiff::Timestamp;
use tracing::warn;

use super::backfill::BackfillOptions;
use super::changes::{Change, Editing, Pausing, Rescheduling, RestoringDeclaration, Resuming, Retiring, Skipping};
use super::in_transaction::Reader;
use super::names::IntoJobRef;
use super::org_updates::OrgUpdateStarted;
use super::run_now::{OrgRunNow, RunNowRequest};
use super::served::TargetStatus;
use super::{Context, facts, is_in_doubt, refusal};
use crate::engine::random;
use crate::schedule::Schedule;

/// The most versions of a job that are listed.
const MAX_VERSIONS: u32 = 1_000;

/// The most jobs with parents that are listed.
const MAX_CHAIN_LINKS: u32 = 10_000;

/// Actions on jobs: `bell.jobs().by("ana").pause("daily-briefing", "the mail server is down").await?`.
#[derive(Clone, Debug)]
pub struct Jobs {
    pub(super) context: Context,
}

impl Jobs {
    pub(crate) fn new(context: Context) -> Jobs {
        Jobs { context }
    }

    /// Acts in the name of this actor: default `code`.
    #[must_use]
    pub fn by(self, actor: &str) -> Jobs {
        Jobs { context: self.context.by(actor) }
    }

    /// Sets the origin of the request, for the audit trail.
    #[must_use]
    pub fn with_origin(self, origin: everbell_core::store::Origin) -> Jobs {
        Jobs { context: self.context.with_origin(origin) }
    }

    /// Sets the reason, for the audit trail.
    #[must_use]
    pub fn because(self, reason: &str) -> Jobs {
        Jobs { context: self.context.because(reason) }
    }

    /// Sets how many runs of a backfill may be at work at once: default as many as the job's `maxConcurrentRuns` and `overlap`
    /// allow. Backfills of all orgs have that default.
    #[must_use]
    pub fn parallel(self, runs: u32) -> Jobs {
        self.backfill_options(|options| options.parallel = Some(runs))
    }

    /// Sets how many runs a backfill creates in a time: default no limit. Backfills of all orgs have that default.
    #[must_use]
    pub fn rate(self, rate: Rate) -> Jobs {
        self.backfill_options(|options| options.rate = Some(rate))
    }

    /// Sets the order in which a backfill runs its slots: default the oldest first.
    #[must_use]
    pub fn order(self, order: BackfillOrder) -> Jobs {
        self.backfill_options(|options| options.order = order)
    }

    /// Sets whether a backfill goes on while its job is paused: default only if the job is paused at the request.
    #[must_use]
    pub fn paused_ok(self, paused_ok: bool) -> Jobs {
        self.backfill_options(|options| options.paused_ok = Some(paused_ok))
    }

    fn backfill_options(mut self, change: impl FnOnce(&mut BackfillOptions)) -> Jobs {
        change(&mut self.context.backfill);
        self
    }

    /// Sets the trace that new runs and one-time jobs continue, or none: default the current one of
    /// [`Builder::tracing`](crate::Builder::tracing).
    #[must_use]
    pub fn trace_context(self, context: impl Into<Option<TraceContext>>) -> Jobs {
        Jobs { context: self.context.in_trace(context.into()) }
    }

    /// Returns the current jobs that start after another one, by key: at most 10,000.
    pub async fn chain_links(&self) -> StoreResult<Vec<ChainLink>> {
        self.context.parts.store.chain_links(MAX_CHAIN_LINKS).await
    }

    /// Returns the groups of runs that a job which starts after several others waits or waited for, the one that opened
    /// last first.
    pub async fn run_groups(&self, job: &JobKey, limit: u32) -> StoreResult<Vec<RunGroup>> {
        self.context.parts.store.run_groups(job, None, limit).await
    }

    /// Creates a job. Its slots start now, and nothing fires at once. Refuses a key that a current job has, and a
    /// target that is unknown ([`Jobs::check_target`]). A job of a known target that no live instance serves at this
    /// moment waits until one does.
    ///
    /// No declaration owns the job: a sync neither edits nor removes it.
    pub async fn create(&self, schedule: impl Borrow<Schedule>) -> StoreResult<JobRow> {
        self.create_in_state(schedule.borrow(), None).await
    }

    /// Like [`Jobs::create`], but the job begins paused for this reason, from 3 to 500 characters: no slot fires before
    /// an operator resumes it.
    pub async fn create_paused(&self, schedule: impl Borrow<Schedule>, reason: &str) -> StoreResult<JobRow> {
        self.create_in_state(schedule.borrow(), Some(reason)).await
    }

    async fn create_in_state(&self, schedule: &Schedule, pause: Option<&str>) -> StoreResult<JobRow> {
        if let Some(job) = self.context.done_before().await?.and_then(|deed| deed.job) {
            return self.get(job).await;
        }
        let mut reader = Reader::Store(&*self.context.parts.store);
        let (new, audit) = self.prepare_by(schedule, pause, &mut reader).await?;
        let store = &self.context.parts.store;
        let row = match store.create_job(&new, &audit).await {
            Err(error) if is_in_doubt(&error) => {
                store.get_job(&JobRef::Id(new.definition.id)).await.map_err(|_| error)?
            }
            answer => answer?,
        };
        self.context.parts.follow_job(&row.job.definition).await;
        Ok(row)
    }

    /// Returns the rows that [`Jobs::create`] writes, for a store that writes them together with something else.
    /// [`Jobs::create_in`] does that for a transaction of yours.
    ///
    /// A key whose versions are all retired continues with the next version. It reads what is committed, not what the
    /// caller's transaction has written: two jobs of one key that are prepared for the same transaction conflict when the
    /// second one is written.
    pub async fn prepare(&self, schedule: impl Borrow<Schedule>) -> StoreResult<(NewJob, AuditEntry)> {
        self.prepare_by(schedule.borrow(), None, &mut Reader::Store(&*self.context.parts.store)).await
    }

    /// Like `prepare`, by what this reader sees, and paused if there is a reason.
    pub(super) async fn prepare_by(
        &self,
        schedule: &Schedule,
        pause: Option<&str>,
        reader: &mut Reader<'_>,
    ) -> StoreResult<(NewJob, AuditEntry)> {
        let Context { parts, actor, .. } = &self.context;
        let now = self.context.now();
        let made = Made { id: JobId::new(now, random()), source: Source::Api, by: actor, at: now };
        let definition = schedule.definition(&made).map_err(refusal)?.in_trace(self.context.trace_context());
        let mut definition = parts.with_calendars(definition).await?;
        if self.context.expect_known(&definition.target, reader).await? == TargetStatus::Unserved {
            let (job, target_label) = (&definition.key, &definition.target);
            warn!(%job, %target_label, "no live instance serves the target of this job; it does not fire until one does");
        }
        parts.targets.now().check_payload(&definition.target, &definition.payload, Some(definition.key.as_str()))?;
        let new = match reader.get_job(&(&definition.key).into_job_ref()?).await {
            Ok(last) => {
                definition.version = last.job.definition.version + 1;
                definition.supersedes = Some(last.job.definition.id);
                change::create(definition).following(&last.job.state)
            }
            Err(StoreError::NotFound { .. }) => {
                definition.key.expect_visible()?;
                change::create(definition)
            }
            Err(error) => return Err(error),
        };
        if new.definition.is_one_time() && new.next_run_at().is_none() {
            return Err(Invalid::new("runAt", "must be in the future").into());
        }
        let has_clock = new.definition.spec.as_ref().is_ok_and(|spec| !spec.is_following());
        if has_clock && new.timer.as_ref().is_some_and(|timer| timer.next_run_at.is_none()) {
            return Err(never_fires(&new.definition).into());
        }
        let new = match pause {
            Some(reason) => new.paused(reason)?,
            None => new,
        };
        let after = facts(&new.definition, &new.state, new.next_run_at());
        let object = format!("job:{}", new.definition.key);
        let audit = self.context.entry("job.create", object, now, None, Some(&after));
        Ok((new, audit))
    }

    /// Refuses an unknown target, and names those that are known. Returns whether an instance serves it.
    ///
    /// A target is known if this program or a live instance serves it, if the program says so
    /// ([`Builder::knows`](crate::Builder::knows)), or if a job already has it.
    pub async fn check_target(&self, target: &str) -> StoreResult<TargetStatus> {
        self.context.parts.expect_known(&Target::new(target)?).await
    }

    /// Returns the job, with its timer and last run.
    pub async fn get(&self, job: impl IntoJobRef) -> StoreResult<JobRow> {
        self.context.parts.store.get_job(&job.into_job_ref()?).await
    }

    /// Lists jobs, a page at a time.
    pub async fn list(&self, filter: &JobFilter, page: &PageRequest) -> StoreResult<Page<JobRow>> {
        self.context.parts.store.list_jobs(filter, page).await
    }

    /// Counts the jobs that match, up to `cap`, which is 1 to 10,000.
    pub async fn count(&self, filter: &JobFilter, cap: u32) -> StoreResult<u32> {
        self.context.parts.store.count_jobs(filter, cap).await
    }

    /// Lists all versions of a job, newest first.
    pub async fn versions(&self, key: &str) -> StoreResult<Vec<JobRow>> {
        let filter = JobFilter { key: Some(JobKey::new(key)?), ..JobFilter::default() };
        let page = PageRequest { limit: MAX_VERSIONS, after: None };
        let versions = self.list(&filter, &page).await?.items;
        if versions.is_empty() { Err(StoreError::not_found("job", key)) } else { Ok(versions) }
    }

    /// Pauses the job. The reason is recorded and shown; missed slots become a `paused` gap. Runs that have not started
    /// wait until the job is resumed, or are canceled ([`Change::cancel_pending`]).
    pub fn pause(&self, job: impl IntoJobRef, reason: impl Into<String>) -> Change<Pausing> {
        let reason = reason.into();
        let jobs = self.clone().because(&reason);
        Change::new(jobs, job, Pausing { reason, until: None, cancel_pending: false })
    }

    /// Resumes the job from now on.
    pub fn resume(&self, job: impl IntoJobRef) -> Change<Resuming> {
        Change::new(self.clone(), job, Resuming::default())
    }

    /// Replaces the job by its next version, with this edit. Its slots start now. [`Jobs::edit`] is easier to write.
    pub fn new_version(&self, job: impl IntoJobRef, edit: Edit) -> Change<Editing> {
        let id = JobId::new(self.context.now(), random());
        Change::new(self.clone(), job, Editing { edit, id, activate: false })
    }

    /// Goes back to what the program or the configuration file declares, if the job was edited since: the next version has
    /// the content that the last sync gave it. An operator's pause goes on. Refused for a job that was not edited, and for
    /// one that is not declared.
    pub async fn restore_declaration(&self, job: impl IntoJobRef) -> StoreResult<Changed> {
        self.restore_declaration_if(job, None).await
    }

    /// Like [`Jobs::restore_declaration`], only if the job is still at this revision, if one is given; otherwise it fails
    /// with [`StoreError::Stale`].
    pub async fn restore_declaration_if(&self, job: impl IntoJobRef, revision: Option<u64>) -> StoreResult<Changed> {
        let row = self.get(job).await?;
        let key = &row.job.definition.key;
        let declared = match &row.job.state.declaration {
            Some(record) => {
                let version = JobRef::Version(key.clone(), record.version);
                self.context.parts.store.get_job(&version).await?.job.definition
            }
            // The decision refuses it.
            None => row.job.definition.clone(),
        };
        let id = JobId::new(self.context.now(), random());
        let change = Change::new(
            self.clone(),
            JobRef::Key(key.clone()),
            RestoringDeclaration { declared, id, calendars: Vec::new() },
        );
        match revision {
            Some(revision) => change.if_revision(revision).await,
            None => change.await,
        }
    }

    /// Moves the next fire, and only that.
    pub fn reschedule(&self, job: impl IntoJobRef, to: Timestamp) -> Change<Rescheduling> {
        Change::new(self.clone(), job, Rescheduling { to })
    }

    /// Skips the next slots, 1 to 100 of them; each is recorded as skipped.
    pub fn skip_next(&self, job: impl IntoJobRef, count: u32) -> Change<Skipping> {
        Change::new(self.clone(), job, Skipping { count })
    }

    /// Ends the job for good. Its history stays.
    pub fn retire(&self, job: impl IntoJobRef) -> Change<Retiring> {
        Change::new(self.clone(), job, Retiring(()))
    }

    /// Runs the job at once, and leaves its next fire alone. Obeys the job's overlap policy.
    pub fn run_now(&self, job: impl IntoJobRef) -> RunNowRequest {
        RunNowRequest::new(self.context.clone(), job.into_job_ref())
    }

    /// Like [`Jobs::run_now`], for each of these orgs, at most 100, of a per-org job. Each succeeds or fails by itself.
    pub async fn run_now_for(&self, job: impl IntoJobRef, orgs: &[OrgId]) -> StoreResult<Vec<OrgRunNow>> {
        self.run_now(job).for_orgs(orgs).await
    }

    /// Like [`Jobs::run_now`], for every org that the job is not off for, a few at a time.
    pub async fn run_now_for_all(&self, job: impl IntoJobRef) -> StoreResult<OrgUpdateStarted> {
        self.run_now(job).for_all_orgs().await
    }
}

fn never_fires(definition: &Definition) -> Invalid {
    if definition.policies.calendars.is_empty() {
        return Invalid::new("endAt", "the schedule never fires: it has no slot between now and its end");
    }
    Invalid::new("policies.calendar", "the schedule never fires: its calendars leave no slot between now and its end")
}
