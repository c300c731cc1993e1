//! Reads, diffs and writes, one job after the other.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use everbell_core::change::{self, Edit, JobView};
use everbell_core::plan::Missed;
use everbell_core::store::{DecideFn, JobFilter, JobRef, JobRow, NewCalendar, PageRequest, StoreError, StoreResult};
use everbell_core::{
    App, Comparison, Declaration, DeclarationHash, JobId, JobKey, JobStatus, Made, Pause, ReleaseId, ReleaseStatus,
    Source, compare,
};
use jiff::Timestamp;
use tracing::{info, warn};

use super::diff::{edit, first};
use super::plan::owned_by;
use super::{Declared, Removed, Rules, SyncAction, SyncPlan, SyncStep, diff};
use crate::build_error::BuildError;
use crate::client::{MAX_ATTEMPTS, audit_entry, before_and_after, current_calendars, facts, is_in_doubt, refusal};
use crate::engine::random;
use crate::parts::Parts;
use crate::schedule::Schedule;

const PAGE_JOBS: u32 = 1_000;
const NO_LONGER_DECLARED: &str = "no longer declared";

/// Syncs schedules into a database.
#[derive(Debug)]
pub(crate) struct Syncer {
    pub(crate) schedules: Vec<Schedule>,
    /// The calendars that are declared, which jobs may name.
    pub(super) calendars: Vec<NewCalendar>,
    /// The kind of owner of the declared jobs.
    pub(crate) source: Source,
    /// The program that owns them: jobs of other owners are left alone.
    pub(crate) app: App,
    pub(crate) removed: Removed,
    pub(crate) adopt: bool,
    /// Whether the last sync has to be repeated, because another release of the program was running.
    held: AtomicBool,
    /// When an operator asked for it, if one did: such a sync takes over from releases that are running.
    asked_at: Option<Timestamp>,
    /// The release of these schedules, which never change.
    release: OnceLock<ReleaseId>,
}

/// The declared and the existing jobs, read at one moment.
struct JobsBefore {
    declared: BTreeMap<JobKey, Declared>,
    /// The current jobs of this source, and every job with a declared key.
    existing: BTreeMap<JobKey, JobRow>,
}

impl Syncer {
    pub(crate) fn new(schedules: Vec<Schedule>, (source, app): (Source, App), removed: Removed, adopt: bool) -> Syncer {
        let (held, release) = (AtomicBool::new(false), OnceLock::new());
        let calendars = Vec::new();
        Syncer { schedules, calendars, source, app, removed, adopt, held, asked_at: None, release }
    }

    /// Takes over from releases that are running, because an operator asks for it.
    pub(crate) fn asked_at(self, at: Timestamp) -> Syncer {
        Syncer { asked_at: Some(at), ..self }
    }

    /// Whether a sync can change something. A program that declares nothing and removes nothing leaves the decision to
    /// others of its name.
    pub(crate) fn can_change(&self) -> bool {
        !self.schedules.is_empty() || !self.calendars.is_empty() || self.removed != Removed::Keep
    }

    /// Returns the plan without carrying it out.
    pub(crate) async fn plan(&self, parts: &Parts) -> StoreResult<SyncPlan> {
        let (actor, seen) = (self.actor(), self.look(parts).await?);
        let status = self.status(parts, &self.release_of(&seen.declared)).await?;
        let keys = seen.declared.keys().chain(seen.existing.keys().filter(|key| !seen.declared.contains_key(*key)));
        let rules = self.rules(&actor, status);
        let steps = keys.filter_map(|key| {
            let action = diff(seen.declared.get(key), seen.existing.get(key), &rules)?;
            Some(SyncStep { key: key.clone(), action })
        });
        let mut steps: Vec<SyncStep> = steps.collect();
        steps.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(SyncPlan { steps, calendars: self.plan_calendars(parts, status).await? })
    }

    /// Returns the plan, or the jobs of another owner, which block all of it.
    pub(crate) async fn expect_no_conflict(&self, parts: &Parts) -> Result<SyncPlan, BuildError> {
        let declared = self.declared(parts)?;
        self.expect_calendars(parts, &declared.values().collect::<Vec<_>>()).await?;
        let plan = self.plan(parts).await?;
        let conflicts: Vec<String> = plan.conflicts().map(conflict).collect();
        if conflicts.is_empty() { Ok(plan) } else { Err(BuildError::Owned(conflicts)) }
    }

    /// Carries out the plan. Jobs of another owner block all of it.
    pub(crate) async fn apply(&self, parts: &Arc<Parts>) -> Result<SyncPlan, BuildError> {
        let plan = self.expect_no_conflict(parts).await?;
        let mut status = ReleaseStatus::Current;
        if self.can_change() {
            let release = self.release(parts)?;
            status = parts.store.declare_release(self.source, &self.app, release, parts.clock.now()).await?;
        }
        let calendars = self.apply_calendars(parts, status).await?;
        let mut steps = Vec::with_capacity(plan.steps.len());
        let parents = self.schedules.iter().map(|schedule| (schedule.key(), schedule.parents())).collect();
        for step in parents_first(plan.steps, &parents) {
            if step.action.is_change() || matches!(step.action, SyncAction::Held { .. }) {
                steps.extend(self.settle(parts, &step.key).await?);
            } else {
                steps.push(step);
            }
        }
        steps.sort_by(|a, b| a.key.cmp(&b.key));
        let done = SyncPlan { steps, calendars };
        let held = done.held().count();
        self.held.store(held > 0 || !status.is_current(), Ordering::Relaxed);
        if held > 0 {
            warn!(
                app = %self.app,
                jobs = held,
                "a newer release of this program is running and keeps these jobs as it declares them; they are synced again \
                 when its instances have ended",
            );
        }
        Ok(done)
    }

    /// Says that this release is running. Syncs again if it had to wait for another one, which may be gone by now.
    pub(crate) async fn keep_up(&self, parts: &Arc<Parts>) -> Result<(), BuildError> {
        let (release, now) = (self.release(parts)?, parts.clock.now());
        let releases = parts.store.releases(self.source, &self.app).await?;
        parts.store.see_release(self.source, &self.app, release, now).await?;
        let waits = self.held.load(Ordering::Relaxed) || releases.left_to(release);
        if !waits || !releases.declare(release, now).1.is_current() {
            return Ok(());
        }
        let done = self.apply(parts).await?;
        done.calendars.iter().filter(|step| step.action.is_change()).for_each(|step| info!("{step}"));
        done.steps.iter().filter(|step| step.action.is_change()).for_each(|step| info!("{step}"));
        Ok(())
    }

    /// Returns whether this release may change jobs now. Writes nothing.
    async fn status(&self, parts: &Parts, release: &ReleaseId) -> StoreResult<ReleaseStatus> {
        if !self.can_change() {
            return Ok(ReleaseStatus::Current);
        }
        let releases = parts.store.releases(self.source, &self.app).await?;
        Ok(releases.declare(release, parts.clock.now()).1)
    }

    /// Everything that this program declares.
    fn release(&self, parts: &Parts) -> StoreResult<&ReleaseId> {
        if let Some(release) = self.release.get() {
            return Ok(release);
        }
        let release = self.release_of(&self.declared(parts)?);
        Ok(self.release.get_or_init(|| release))
    }

    /// Syncs one job. If another instance is doing the same, it looks again.
    async fn settle(&self, parts: &Parts, key: &JobKey) -> Result<Option<SyncStep>, BuildError> {
        for attempt in 1.. {
            match self.settle_once(parts, key).await {
                Err(error) if attempt < MAX_ATTEMPTS && is_worth_a_look(&error) => {}
                Ok(Some(step)) if matches!(step.action, SyncAction::Conflict { .. }) => {
                    return Err(BuildError::Owned(vec![conflict(&step)]));
                }
                answer => return Ok(answer?),
            }
        }
        Ok(None)
    }

    async fn settle_once(&self, parts: &Parts, key: &JobKey) -> StoreResult<Option<SyncStep>> {
        let (actor, now) = (self.actor(), parts.clock.now());
        let schedule = self.schedules.iter().find(|schedule| schedule.key() == key.as_str());
        let declared = schedule.map(|schedule| self.declare(schedule, &actor, now)).transpose()?;
        let existing = find(parts, key).await?;
        // Asked again for each job: another release may have taken over meanwhile.
        let status = self.status(parts, self.release(parts)?).await?;
        let rules = self.rules(&actor, status);
        let Some(action) = diff(declared.as_ref(), existing.as_ref(), &rules) else { return Ok(None) };
        let write = Write { parts, key, app: &self.app, actor: &actor, now };
        match (&action, &declared, &existing) {
            (SyncAction::Create { .. }, Some(wanted), last) => write.create(wanted, last.as_ref()).await?,
            (SyncAction::NewVersion { paused, .. }, Some(wanted), Some(row)) => {
                write.new_version(wanted, row, !paused).await?;
            }
            (SyncAction::Record { .. }, Some(wanted), Some(row)) => write.record(wanted, row).await?,
            (SyncAction::Resume { .. }, Some(wanted), Some(row)) => write.resume(wanted, row).await?,
            (SyncAction::Pause { .. }, _, Some(row)) => write.pause(row).await?,
            (SyncAction::Retire { .. }, _, Some(row)) => write.retire(row).await?,
            _ => {}
        }
        Ok(Some(SyncStep { key: key.clone(), action }))
    }

    async fn look(&self, parts: &Parts) -> StoreResult<JobsBefore> {
        let declared = self.declared(parts)?;
        let mut existing = self.own_jobs(parts).await?;
        for key in declared.keys() {
            if !existing.contains_key(key)
                && let Some(row) = find(parts, key).await?
            {
                existing.insert(key.clone(), row);
            }
        }
        Ok(JobsBefore { declared, existing })
    }

    /// The declared jobs by key, as they would be if they were created now.
    fn declared(&self, parts: &Parts) -> StoreResult<BTreeMap<JobKey, Declared>> {
        let (actor, now) = (self.actor(), parts.clock.now());
        let declared = self.schedules.iter().map(|schedule| {
            let definition = self.declare(schedule, &actor, now)?;
            Ok((definition.key.clone(), definition))
        });
        declared.collect()
    }

    fn release_of(&self, declared: &BTreeMap<JobKey, Declared>) -> ReleaseId {
        let hashes: Vec<_> = declared.iter().map(|(key, job)| (key, DeclarationHash::new(job))).collect();
        let release = ReleaseId::from_jobs(hashes.iter().map(|(key, hash)| (*key, hash)));
        let release = release.with_calendars(&self.calendar_texts());
        self.asked_at.map_or(release.clone(), |at| release.asked_at(at))
    }

    async fn own_jobs(&self, parts: &Parts) -> StoreResult<BTreeMap<JobKey, JobRow>> {
        let status = vec![JobStatus::Active, JobStatus::Paused];
        let filter = JobFilter { status, source: Some(self.source), ..JobFilter::default() };
        let mut page = PageRequest { limit: PAGE_JOBS, after: None };
        let mut jobs = BTreeMap::new();
        loop {
            let found = parts.store.list_jobs(&filter, &page).await?;
            jobs.extend(found.items.into_iter().map(|row| (row.job.definition.key.clone(), row)));
            page.after = found.next;
            if page.after.is_none() {
                return Ok(jobs);
            }
        }
    }

    fn declare(&self, schedule: &Schedule, actor: &str, now: Timestamp) -> StoreResult<Declared> {
        let made = Made { id: JobId::new(now, random()), source: self.source, by: actor, at: now };
        schedule.definition(&made).map_err(refusal)
    }

    /// The actor of a sync, different from the program's own: a sync may undo only what a sync did.
    pub(super) fn actor(&self) -> String {
        format!("sync:{}", self.source)
    }

    fn rules<'a>(&'a self, actor: &'a str, status: ReleaseStatus) -> Rules<'a> {
        let Syncer { source, app, removed, adopt, .. } = self;
        Rules { source: *source, app, actor, removed: *removed, adopt: *adopt, status }
    }
}

/// The steps in an order in which a job comes after the one that it starts after, which has to exist first. Jobs that are
/// retired come last: one that starts after them may be declared again.
fn parents_first(mut steps: Vec<SyncStep>, parents: &BTreeMap<&str, Vec<&str>>) -> Vec<SyncStep> {
    // The longest way to a job from one that starts after no declared job. A circle has no end; the store refuses it.
    let mut depths: BTreeMap<&str, usize> = BTreeMap::new();
    for _ in 0..=parents.len() {
        let depth = |own: &Vec<&str>| own.iter().map(|parent| depths.get(parent).map_or(0, |depth| depth + 1)).max();
        let next = parents.iter().map(|(key, own)| (*key, depth(own).unwrap_or(0))).collect();
        if depths == next {
            break;
        }
        depths = next;
    }
    let depth = |key: &str| depths.get(key).copied().unwrap_or(0);
    steps.sort_by_cached_key(|step| {
        (matches!(step.action, SyncAction::Retire { .. }), depth(step.key.as_str()), step.key.clone())
    });
    steps
}

/// Whether another writer was faster, or the answer was lost: reading again shows the truth.
fn is_worth_a_look(error: &StoreError) -> bool {
    error.is_conflict() || is_in_doubt(error)
}

async fn find(parts: &Parts, key: &JobKey) -> StoreResult<Option<JobRow>> {
    match parts.store.get_job(&JobRef::Key(key.clone())).await {
        Ok(row) => Ok(Some(row)),
        Err(StoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn conflict(step: &SyncStep) -> String {
    let (owner, program) = match &step.action {
        SyncAction::Conflict { version, owner, app } => {
            (format!("version {version} is {}", owned_by(*owner, app.as_ref())), app.is_some())
        }
        _ => (String::new(), false),
    };
    // Two programs that each adopt would take the job from each other at every start.
    let way_out = if program {
        "use another key; if both are one program, give both the same `.app(…)`; if it moves here for good, take it over \
         with `.adopt(true)`"
    } else {
        "take it over with `.adopt(true)`, or use another key"
    };
    format!("schedule `{}` already exists: {owner}; {way_out}", step.key)
}

/// A write about one job, which must not have changed since it was read.
struct Write<'a> {
    parts: &'a Parts,
    key: &'a JobKey,
    app: &'a App,
    actor: &'a str,
    now: Timestamp,
}

impl Write<'_> {
    async fn create(&self, wanted: &Declared, last: Option<&JobRow>) -> StoreResult<()> {
        if last.is_none() {
            wanted.key.expect_visible()?;
        }
        let new = first(&self.parts.with_calendars(wanted.clone()).await?, last);
        let declaration = self.declaration(wanted, new.definition.version);
        let new = new.declared(declaration);
        let after = facts(&new.definition, &new.state, new.next_run_at());
        let audit = audit_entry(self.actor, "job.create", self.object(), None, self.now, (None, Some(&after)));
        self.parts.store.create_job(&new, &audit).await?;
        self.parts.follow_job(&new.definition).await;
        Ok(())
    }

    async fn new_version(&self, wanted: &Declared, row: &JobRow, activate: bool) -> StoreResult<()> {
        let calendars = current_calendars(&*self.parts.store).await?;
        let edit = Edit { calendars, ..edit(&row.job.definition, wanted) };
        let (id, by, now) = (wanted.id, self.actor, self.now);
        let declaration = self.declaration(wanted, row.job.definition.version + 1);
        let decide = |view: &JobView| {
            Ok(change::new_version(view, edit.clone(), id, activate, by, now)?.declared(declaration.clone()))
        };
        self.change(row, "job.new_version", None, &decide).await
    }

    async fn record(&self, wanted: &Declared, row: &JobRow) -> StoreResult<()> {
        let declaration = self.declaration(wanted, row.job.definition.version);
        let decide = |view: &JobView| change::record_declaration(view, declaration.clone(), self.actor, self.now);
        let reason = format!("declared by {}", self.app);
        self.change(row, "job.declare", Some(&reason), &decide).await
    }

    async fn resume(&self, wanted: &Declared, row: &JobRow) -> StoreResult<()> {
        // An edit stays an edit.
        let is_edited = compare(&row.job, wanted) == Comparison::Edited;
        let declaration = self.declaration(wanted, row.job.definition.version);
        let decide = |view: &JobView| {
            let change = change::resume(view, Missed::Skip, self.actor, self.now)?;
            Ok(if is_edited { change } else { change.declared(declaration.clone()) })
        };
        self.change(row, "job.resume", Some("declared again"), &decide).await
    }

    async fn pause(&self, row: &JobRow) -> StoreResult<()> {
        let pause =
            Pause { reason: NO_LONGER_DECLARED.to_owned(), by: self.actor.to_owned(), at: self.now, until: None };
        let decide = |view: &JobView| change::pause(view, pause.clone());
        self.change(row, "job.pause", Some(NO_LONGER_DECLARED), &decide).await
    }

    async fn retire(&self, row: &JobRow) -> StoreResult<()> {
        let decide = |view: &JobView| change::retire(view, self.actor, self.now);
        self.change(row, "job.retire", Some(NO_LONGER_DECLARED), &decide).await
    }

    async fn change(&self, row: &JobRow, action: &str, reason: Option<&str>, decide: &DecideFn<'_>) -> StoreResult<()> {
        let (before, after) = before_and_after(row, decide)?;
        let facts = (Some(&before), Some(&after));
        let audit = audit_entry(self.actor, action, self.object(), reason, self.now, facts);
        let job = JobRef::Id(row.job.definition.id);
        let changed = self.parts.store.change_job(&job, Some(row.job.state.revision), decide, &audit).await?;
        self.parts.events.publish_change(&changed);
        self.parts.follow_change(&changed).await;
        Ok(())
    }

    /// The record of this sync.
    fn declaration(&self, wanted: &Declared, version: u32) -> Declaration {
        Declaration::new(self.app.clone(), wanted).at_version(version)
    }

    fn object(&self) -> String {
        format!("job:{}", self.key)
    }
}
