//! Jobs: creating, changing, finding, listing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use everbell_core::chain::{ChainLink, RunGroup};
use everbell_core::change::NewJob;
use everbell_core::org::OrgTask;
use everbell_core::store::{
    AuditEntry, Changed, DecideFn, Deed, InboxAnswer, InboxRequest, JobFilter, JobRef, JobRow, JobSort, JobStore, Page,
    PageRequest, PurgedJob, RefusedRequest, StoreError, StoreResult, TargetCount,
};
use everbell_core::{
    Definition, Job, JobId, JobKey, JobState, JobStatus, OrgId, Pause, Run, Scope, SkipReason, Spec, Timer,
    Unschedulable, When, enqueue,
};
use jiff::Timestamp;

use super::MemoryStore;
use super::pages::{self, Direction};
use super::state::{State, micros};
use crate::rows::check_cap;

/// Behind every slot.
const NEVER: Timestamp = Timestamp::constant(253_000_000_000, 0);

/// Before every slot.
const NOT_YET: Timestamp = Timestamp::constant(-253_000_000_000, 0);

#[async_trait]
impl JobStore for MemoryStore {
    async fn create_job(&self, new: &NewJob, audit: &AuditEntry) -> StoreResult<JobRow> {
        self.once(audit, |state| {
            state.check_new(new, None)?;
            state.insert_job(new, audit);
            state.write_audit(audit);
            state.write_deed(audit, Deed { job: Some(new.definition.id), ..Deed::default() });
            state.job_row(new.definition.id)
        })
    }

    async fn create_jobs(&self, jobs: &[NewJob], audit: &AuditEntry) -> StoreResult<()> {
        self.once(audit, |state| {
            enqueue::expect_plain(jobs)?;
            let mut keys = BTreeSet::new();
            for new in jobs {
                state.check_new(new, None)?;
                let key = &new.definition.key;
                if !keys.insert(key) {
                    return Err(StoreError::Conflict { what: format!("key `{key}` is there twice") });
                }
            }
            for new in jobs {
                state.insert_job(new, audit);
            }
            state.write_audit(audit);
            Ok(())
        })
    }

    async fn change_job(
        &self,
        job: &JobRef,
        expected_revision: Option<u64>,
        decide: &DecideFn<'_>,
        audit: &AuditEntry,
    ) -> StoreResult<Changed> {
        self.once(audit, |state| state.change_job(job, None, expected_revision, decide, audit))
    }

    async fn purge_job(
        &self,
        key: &JobKey,
        limit: u32,
        so_far: PurgedJob,
        audit: &AuditEntry,
    ) -> StoreResult<PurgedJob> {
        self.once(audit, |state| state.purge_job(key, limit, so_far, audit))
    }

    async fn write_inbox(&self, request: &InboxRequest) -> StoreResult<i64> {
        self.with(|state| Ok(state.write_inbox(request))).inspect(|_| self.notify.notify_waiters())
    }

    async fn open_inbox(&self, limit: u32, without: &[i64]) -> StoreResult<Vec<InboxRequest>> {
        self.with(|state| Ok(state.open_inbox(limit, without)))
    }

    async fn answer_inbox(&self, id: i64, answer: &InboxAnswer, audit: &AuditEntry) -> StoreResult<bool> {
        self.once(audit, |state| state.answer_inbox(id, answer, audit))
    }

    async fn refused_inbox(&self, limit: u32) -> StoreResult<Vec<RefusedRequest>> {
        self.with(|state| Ok(state.refused_inbox(limit)))
    }

    async fn get_job(&self, job: &JobRef) -> StoreResult<JobRow> {
        self.with(|state| state.job_row(state.find_job(job)?.definition.id))
    }

    async fn list_jobs(&self, filter: &JobFilter, page: &PageRequest) -> StoreResult<Page<JobRow>> {
        self.with(|state| {
            let wanted = state.jobs_like(filter);
            let by_id = |row: &JobRow| row.job.definition.id.as_uuid();
            match filter.sort {
                JobSort::Key => Ok(pages::by_text(wanted.collect(), page, Direction::Up, |row| {
                    // Newest version first below an ascending key: the complement sorts the other way round.
                    let version = u32::MAX - row.job.definition.version;
                    (format!("{}\0{version:010}", row.job.definition.key), by_id(row))
                })),
                JobSort::NextRunAt => pages::by_time(wanted.collect(), page, Direction::Up, |row| {
                    (row.next_run_at().unwrap_or(NEVER), by_id(row))
                }),
                JobSort::CreatedAt => pages::by_time(wanted.collect(), page, Direction::Down, |row| {
                    (row.job.definition.created_at, by_id(row))
                }),
                JobSort::Target => Ok(pages::by_text(wanted.collect(), page, Direction::Up, |row| {
                    (row.job.definition.target.to_string(), by_id(row))
                })),
                JobSort::LastRun => pages::by_time(wanted.collect(), page, Direction::Down, |row| {
                    (row.last_run.as_ref().map_or(NOT_YET, happened), by_id(row))
                }),
            }
        })
    }

    async fn count_jobs(&self, filter: &JobFilter, cap: u32) -> StoreResult<u32> {
        self.with(|state| {
            check_cap(cap)?;
            Ok(state.jobs_like(filter).take(cap as usize).count() as u32)
        })
    }

    async fn count_targets(&self) -> StoreResult<Vec<TargetCount>> {
        self.with(|state| {
            let mut targets = BTreeMap::new();
            for job in state.jobs.values().filter(|job| job.state.status != JobStatus::Retired) {
                let (target, status) = (&job.definition.target, job.state.status);
                let none = || TargetCount { target: target.clone(), status, jobs: 0 };
                targets.entry((target, status.as_str())).or_insert_with(none).jobs += 1;
            }
            Ok(targets.into_values().collect())
        })
    }

    async fn chain_links(&self, limit: u32) -> StoreResult<Vec<ChainLink>> {
        self.with(|state| Ok(state.chain_links().into_iter().take(limit as usize).collect()))
    }

    async fn run_groups(&self, job: &JobKey, until: Option<Timestamp>, limit: u32) -> StoreResult<Vec<RunGroup>> {
        self.with(|state| Ok(state.groups_of(job, until, limit)))
    }

    async fn expire_run_groups(&self, limit: u32, now: Timestamp) -> StoreResult<Option<Timestamp>> {
        self.with(|state| Ok(state.expire_groups(limit, micros(now))))
    }

    async fn pauses_ending(&self, limit: u32) -> StoreResult<Vec<(JobId, Timestamp)>> {
        self.with(|state| {
            let until = |job: &Job| job.state.pause.as_ref()?.until;
            let mut ending: Vec<_> = state.jobs.iter().filter_map(|(id, job)| Some((*id, until(job)?))).collect();
            ending.sort_by_key(|(id, until)| (*until, *id));
            ending.truncate(limit as usize);
            Ok(ending)
        })
    }
}

impl State {
    /// Refuses a job whose id, key and version, or living key is taken. `retiring` makes room in the same transaction.
    pub(super) fn check_new(&self, new: &NewJob, retiring: Option<JobId>) -> StoreResult<()> {
        let Definition { id, key, version, .. } = &*new.definition;
        let living = new.state.status != JobStatus::Retired;
        self.check_calendars(&new.definition)?;
        self.check_links(&new.definition)?;
        for (other, job) in &self.jobs {
            let same_key = job.definition.key == *key;
            let still_living = job.state.status != JobStatus::Retired && retiring != Some(*other);
            let what = if other == id {
                format!("a job with the id `{id}` exists")
            } else if same_key && job.definition.version == *version {
                format!("job `{key}` has a version {version}")
            } else if same_key && living && still_living {
                format!("job `{key}` exists, as version {}", job.definition.version)
            } else {
                continue;
            };
            return Err(StoreError::Conflict { what });
        }
        Ok(())
    }

    pub(super) fn insert_job(&mut self, new: &NewJob, audit: &AuditEntry) {
        let mut definition = definition_to_keep(&new.definition);
        // The version before may have been pruned meanwhile.
        definition.supersedes = definition.supersedes.filter(|before| self.jobs.contains_key(before));
        let id = definition.id;
        let before = definition.supersedes;
        self.jobs.insert(id, Job::new(Arc::new(definition), state_to_keep(&new.state)));
        if let Some(before) = before {
            self.move_active(&(before, None), id);
        }
        match &new.timer {
            Some(timer) => {
                self.timers.insert((id, timer.org.clone()), timer_to_keep(timer));
            }
            None => self.begin_org_update(id, &new.definition.key, OrgTask::Arm, audit),
        }
    }

    /// A living version before a retired one, a newer before an older.
    pub(super) fn find_job(&self, job: &JobRef) -> StoreResult<&Job> {
        match job {
            JobRef::Id(id) => self.jobs.get(id).ok_or_else(|| StoreError::not_found("job", id)),
            JobRef::Key(key) => self
                .versions(key)
                .max_by_key(|job| (job.state.status != JobStatus::Retired, job.definition.version))
                .ok_or_else(|| StoreError::not_found("job", key)),
            JobRef::Version(key, version) => self
                .versions(key)
                .find(|job| job.definition.version == *version)
                .ok_or_else(|| StoreError::not_found("job", format_args!("{key}@{version}"))),
        }
    }

    fn versions(&self, key: &JobKey) -> impl Iterator<Item = &Job> {
        self.jobs.values().filter(move |job| job.definition.key == *key)
    }

    pub(super) fn job_row(&self, id: JobId) -> StoreResult<JobRow> {
        let job = self.jobs.get(&id).ok_or_else(|| StoreError::not_found("job", id))?;
        let global = job.definition.scope == Scope::Global;
        let mut row = JobRow::new(job.clone());
        row.timer = self.timers.get(&(id, None)).filter(|_| global).cloned();
        row.last_run = self.last_run(id).map(|run| self.with_lease(run));
        row.next_for_org = self.next_for_org(job);
        Ok(row)
    }

    fn next_for_org(&self, job: &Job) -> Option<(Timestamp, OrgId)> {
        let fires = job.definition.scope == Scope::PerOrg && job.state.status == JobStatus::Active;
        let own = self.timers.iter().filter(|((id, _), _)| fires && *id == job.definition.id);
        own.filter_map(|((_, org), timer)| Some((timer.next_run_at?, org.clone()?))).min()
    }

    /// Of this version and those before it, the last one that was: what an operator skipped is ahead.
    fn last_run(&self, id: JobId) -> Option<&Run> {
        let was = |run: &&Run| run.job_id == Some(id) && !matches!(run.skip, Some(SkipReason::Operator { .. }));
        let own = self.runs().filter(was).max_by_key(|run| (happened(run), run.id));
        let global = |id: &JobId| self.jobs.get(id).is_some_and(|job| job.definition.scope == Scope::Global);
        let before = self.jobs.get(&id).and_then(|job| job.definition.supersedes);
        let before = before.filter(|before| global(&id) && global(before)).and_then(|before| self.last_run(before));
        own.into_iter().chain(before).max_by_key(|run| (happened(run), run.id))
    }

    fn jobs_like(&self, filter: &JobFilter) -> impl Iterator<Item = JobRow> {
        let rows = self.jobs.keys().filter_map(|id| self.job_row(*id).ok());
        rows.filter(|row| is_wanted(row, filter) && filter.scheduled.is_none_or(|is| is == self.is_scheduled(row)))
            .filter(|row| !filter.latest || self.is_latest(row))
    }

    /// Whether no version of the job is newer.
    fn is_latest(&self, row: &JobRow) -> bool {
        let Definition { key, version, .. } = &*row.job.definition;
        !self.jobs.values().any(|job| job.definition.key == *key && job.definition.version > *version)
    }

    /// Whether it has a timer that is armed, its own or one of an org.
    fn is_scheduled(&self, row: &JobRow) -> bool {
        let id = row.job.definition.id;
        self.timers.values().any(|timer| timer.job_id == id && timer.next_run_at.is_some())
    }
}

/// The slot of a run, or the time of its request.
fn happened(run: &Run) -> Timestamp {
    run.slot_at.unwrap_or_else(|| run.id.time())
}

fn is_wanted(row: &JobRow, filter: &JobFilter) -> bool {
    let Job { definition, state, .. } = &row.job;
    let text = filter.text.as_ref().map(|text| text.to_lowercase());
    let contains = |text: &String| {
        [definition.key.as_str(), definition.target.as_str(), &definition.description]
            .iter()
            .any(|own| own.to_lowercase().contains(text))
    };
    (filter.status.is_empty() || filter.status.contains(&state.status))
        && (filter.target.is_empty() || filter.target.contains(&definition.target))
        && filter.key.as_ref().is_none_or(|key| definition.key == *key)
        && text.as_ref().is_none_or(contains)
        && filter.source.is_none_or(|source| definition.source == source)
        && (filter.last_status.is_empty()
            || row.last_run.as_ref().is_some_and(|run| filter.last_status.contains(&run.status)))
        && filter.errored.is_none_or(|errored| state.error.is_some() == errored)
        && filter.failing.is_none_or(|failing| (state.consecutive_failures > 0) == failing)
        && filter.one_time.is_none_or(|one_time| is_one_time(definition) == one_time)
        && filter.label.as_ref().is_none_or(|(name, value)| {
            definition.labels.get(name).is_some_and(|own| value.as_ref().is_none_or(|value| own == value))
        })
}

/// Also of a schedule that cannot be read.
pub(super) fn is_one_time(definition: &Definition) -> bool {
    match &definition.spec {
        Ok(_) => definition.is_one_time(),
        Err(broken) => broken.expression.is_none(),
    }
}

pub(super) fn timer_to_keep(timer: &Timer) -> Timer {
    everbell_core::with!(Timer {
        next_run_at: timer.next_run_at.map(micros),
        last_slot_at: micros(timer.last_slot_at),
        rescheduled_from: timer.rescheduled_from.map(micros),
        ..timer.clone()
    })
}

pub(super) fn state_to_keep(state: &JobState) -> JobState {
    let pause = state.pause.as_ref().map(|pause| Pause {
        at: micros(pause.at),
        until: pause.until.map(micros),
        ..pause.clone()
    });
    everbell_core::with!(JobState { pause, updated_at: micros(state.updated_at), ..state.clone() })
}

fn definition_to_keep(definition: &Definition) -> Definition {
    let spec: Result<Spec, Unschedulable> = definition.spec.as_ref().map_err(Clone::clone).map(spec_to_keep);
    everbell_core::with!(Definition { spec, created_at: micros(definition.created_at), ..definition.clone() })
}

/// Only bounds can be finer than a microsecond; a bound that cannot be set again was set before, so it stays.
fn spec_to_keep(spec: &Spec) -> Spec {
    let bounds = (spec.start_at().map(micros), spec.end_at().map(micros));
    if matches!(spec.when(), When::Once(_)) || bounds == (spec.start_at(), spec.end_at()) {
        return spec.clone();
    }
    spec.clone().with_bounds(bounds.0, bounds.1).unwrap_or_else(|_| spec.clone())
}
