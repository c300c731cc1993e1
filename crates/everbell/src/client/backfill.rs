//! Backfills: runs for past slots.
//!
//! A backfill is nothing but its runs, which carry its id, and its audit entry, which records the request. It has no
//! further state that could disagree with them.

use std::collections::{BTreeMap, BTreeSet};

use everbell_core::change::{self, JobView};
use everbell_core::org::{OrgTask, OrgUpdate};
use everbell_core::plan::{Backfill, MAX_BACKFILLED};
use everbell_core::store::{AuditEntry, JobRef, JobRow, PageRequest, RunFilter, StoreError, StoreResult};
use everbell_core::{
    BackfillId, Definition, Invalid, JobKey, OrgId, Run as RunRecord, RunId, RunStatus, Spec, Trigger, Zone,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::jobs::Jobs;
use super::names::IntoJobRef;
use super::org_jobs::JobOfOrg;
use super::{Facts, is_in_doubt};
use crate::clock::{earlier, later};
use crate::engine::random;

/// The action of its audit entries.
pub(super) const ACTION: &str = "job.backfill";
/// The page size and the most pages of history that are read.
pub(super) const PAGE_ROWS: u32 = 1_000;
const MAX_PAGES: usize = 50;
/// The most backfills that are listed.
const MAX_LISTED_BACKFILLS: usize = 100;

/// The effect of a backfill of a range, planned or carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackfillPlan {
    /// The job.
    pub job: JobRow,
    /// The org, if the backfill is for one.
    pub org: Option<OrgId>,
    /// The zone of the slots' local times.
    pub zone: Zone,
    /// Every slot of the range, oldest first.
    pub slots: Vec<BackfillSlot>,
}

impl BackfillPlan {
    /// Returns the slots that get a run.
    pub fn wanted(&self) -> Vec<Timestamp> {
        self.slots.iter().filter(|slot| slot.existing.is_none()).map(|slot| slot.slot).collect()
    }
}

/// A slot of a backfill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackfillSlot {
    /// The slot.
    pub slot: Timestamp,
    /// The run that it already has, so that it is left out.
    pub existing: Option<(RunId, RunStatus)>,
}

/// A backfill that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackfillBegun {
    /// Its id.
    pub id: BackfillId,
    /// The slots of the range.
    pub plan: BackfillPlan,
    /// The runs that were created, oldest first.
    pub runs: Vec<RunRecord>,
}

/// The progress of a backfill.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackfillReport {
    /// Its id.
    pub id: BackfillId,
    /// The audit entry of the request: when, by whom, and why.
    pub asked: AuditEntry,
    /// The start of the range.
    pub from: Timestamp,
    /// The end of the range.
    pub to: Timestamp,
    /// The number of its runs by status.
    pub runs: BTreeMap<&'static str, u64>,
    /// Whether it is for all orgs, and some of them do not have their runs yet.
    pub updating_orgs: bool,
}

impl BackfillReport {
    /// Whether all its runs are created, and none of them is pending or running.
    pub fn is_done(&self) -> bool {
        !self.updating_orgs
            && [RunStatus::Pending, RunStatus::Running].iter().all(|status| !self.runs.contains_key(status.as_str()))
    }
}

impl Jobs {
    /// Returns the effect that a backfill of the slots in `[from, to]` would have. It leaves out slots that have a run
    /// of any version and status; [`Runs::rerun`](super::Runs::rerun) repeats a run.
    pub async fn plan_backfill(
        &self,
        job: impl IntoJobRef,
        from: Timestamp,
        to: Timestamp,
    ) -> StoreResult<BackfillPlan> {
        let job = self.get(job).await?;
        let definition = &job.job.definition;
        let spec = definition.spec.clone().map_err(|broken| Invalid::new("schedule", broken.reason))?;
        let mark = job.timer.as_ref().map_or(definition.created_at, |timer| timer.last_slot_at);
        let slots = bounded(&spec, mark, from, to)?;
        self.plan_slots(job, None, &spec, slots, (from, to)).await
    }

    /// Like [`Jobs::plan_backfill`], for one org of a per-org job.
    pub async fn plan_backfill_for(
        &self,
        job: impl IntoJobRef,
        org: &OrgId,
        from: Timestamp,
        to: Timestamp,
    ) -> StoreResult<BackfillPlan> {
        let read = JobOfOrg::read(&self.context, &job.into_job_ref()?, org).await?;
        let spec = read.spec()?;
        let slots = bounded(&spec, read.view().timer.last_slot_at, from, to)?;
        self.plan_slots(read.row, Some(org.clone()), &spec, slots, (from, to)).await
    }

    async fn plan_slots(
        &self,
        job: JobRow,
        org: Option<OrgId>,
        spec: &Spec,
        slots: Vec<Timestamp>,
        (from, to): (Timestamp, Timestamp),
    ) -> StoreResult<BackfillPlan> {
        let key = job.job.definition.key.clone();
        let filter = RunFilter { job_key: Some(key), org: org.clone(), ..range(from, to) };
        let mut existing = BTreeMap::new();
        self.each_run(filter, |run| {
            if let Some(slot) = run.slot_at {
                existing.entry(slot).or_insert((run.id, run.status));
            }
        })
        .await?;
        let slots = slots.into_iter().map(|slot| BackfillSlot { slot, existing: existing.get(&slot).copied() });
        Ok(BackfillPlan { slots: slots.collect(), zone: spec.zone().clone(), org, job })
    }

    /// Creates a run for each slot in `[from, to]` that has none. The runs use the current version of the job, and wait
    /// for each other as its `maxConcurrentRuns` or [`Jobs::parallel`] demands. They are beside the schedule: live slots
    /// neither wait for them nor are skipped because of them.
    pub async fn backfill(&self, job: impl IntoJobRef, from: Timestamp, to: Timestamp) -> StoreResult<BackfillBegun> {
        let plan = self.plan_backfill(job, from, to).await?;
        self.begin_backfill(plan, from, to).await
    }

    /// Like [`Jobs::backfill`], for one org of a per-org job.
    pub async fn backfill_for(
        &self,
        job: impl IntoJobRef,
        org: &OrgId,
        from: Timestamp,
        to: Timestamp,
    ) -> StoreResult<BackfillBegun> {
        let plan = self.plan_backfill_for(job, org, from, to).await?;
        self.begin_backfill(plan, from, to).await
    }

    async fn begin_backfill(&self, plan: BackfillPlan, from: Timestamp, to: Timestamp) -> StoreResult<BackfillBegun> {
        if let Some(id) = self.backfill_before(&plan.job.job.definition).await? {
            return self.begun_before(plan, id).await;
        }
        let wanted = plan.wanted();
        let now = self.context.now();
        let id = BackfillId::new(now, random());
        let definition = &plan.job.job.definition;
        let mut after = facts_of(id, from, to);
        after.insert("slots".to_owned(), json!(wanted.len()));
        after.extend(plan.org.iter().map(|org| ("orgId".to_owned(), json!(org.as_str()))));
        let trace_context = self.context.trace_context();
        let parallel = self.context.parallel;
        after.extend(parallel.map(|parallel| ("parallel".to_owned(), json!(parallel))));
        let audit = self.context.entry(ACTION, format!("job:{}", definition.key), now, None, Some(&after));
        let request = Backfill { id, slots: &wanted, parallel, trace_context: trace_context.as_ref() };
        let most = self.context.parts.options.max_pending_runs;
        let decide = |view: &JobView| {
            change::expect_pending_room(view, wanted.len(), most)?;
            change::backfill(view, &request)
        };
        let (store, job) = (&self.context.parts.store, JobRef::Id(definition.id));
        let changed = match &plan.org {
            Some(org) => store.change_org_job(&job, org, None, &decide, &audit).await,
            None => store.change_job(&job, None, &decide, &audit).await,
        };
        let runs = match changed {
            Ok(changed) => {
                self.context.parts.events.publish_change(&changed);
                changed.runs
            }
            Err(error) if is_in_doubt(&error) => {
                let mut runs = self.runs_of(plan.job.job.definition.id, id, from, to).await.map_err(|_| error)?;
                runs.reverse();
                runs
            }
            Err(error) => return Err(error),
        };
        Ok(BackfillBegun { id, plan, runs })
    }

    /// Returns the backfill that this request started before, by its audit entry.
    pub(super) async fn backfill_before(&self, job: &Definition) -> StoreResult<Option<BackfillId>> {
        let Some(deed) = self.context.done_before().await? else { return Ok(None) };
        let object = format!("job:{}", job.key);
        let mut page = PageRequest { limit: PAGE_ROWS, after: None };
        for _ in 0..MAX_PAGES {
            let entries = self.context.parts.store.list_audit(Some(&object), &page).await?;
            if let Some(entry) = entries.items.iter().find(|entry| entry.id == deed.entry) {
                return Ok(asked_for(entry).map(|(id, _, _)| id));
            }
            page.after = entries.next;
            if page.after.is_none() {
                break;
            }
        }
        Ok(None)
    }

    /// Returns the plan and the runs of a request that was carried out before. Its own runs do not count as existing.
    async fn begun_before(&self, mut plan: BackfillPlan, id: BackfillId) -> StoreResult<BackfillBegun> {
        let runs = self.context.changed_before().await?.map(|changed| changed.runs).unwrap_or_default();
        let own: BTreeSet<RunId> = runs.iter().map(|run| run.id).collect();
        for slot in &mut plan.slots {
            slot.existing = slot.existing.filter(|(run, _)| !own.contains(run));
        }
        Ok(BackfillBegun { id, plan, runs })
    }

    /// Lists the backfills of a job, newest first, with their progress.
    pub async fn backfills(&self, job: impl IntoJobRef) -> StoreResult<Vec<BackfillReport>> {
        let job = self.get(job).await?;
        let object = format!("job:{}", job.job.definition.key);
        let org_updates = self.context.parts.store.list_org_updates().await?;
        let mut reports = Vec::new();
        let mut page = PageRequest { limit: PAGE_ROWS, after: None };
        for _ in 0..MAX_PAGES {
            let entries = self.context.parts.store.list_audit(Some(&object), &page).await?;
            for entry in entries.items.into_iter().filter(|entry| entry.action == ACTION) {
                let report = self.backfill_report(&job.job.definition.key, entry, &org_updates).await?;
                reports.extend(report);
                if reports.len() == MAX_LISTED_BACKFILLS {
                    return Ok(reports);
                }
            }
            page.after = entries.next;
            if page.after.is_none() {
                break;
            }
        }
        Ok(reports)
    }

    /// Returns the backfill of an audit entry with its progress; `None` if the entry cannot be read.
    pub(super) async fn backfill_report(
        &self,
        key: &JobKey,
        entry: AuditEntry,
        org_updates: &[OrgUpdate],
    ) -> StoreResult<Option<BackfillReport>> {
        let Some((id, from, to)) = asked_for(&entry) else { return Ok(None) };
        let mut runs: BTreeMap<&'static str, u64> = BTreeMap::new();
        let filter = RunFilter { job_key: Some(key.clone()), ..range(from, to) };
        self.each_run(filter, |run| {
            if run.trigger == Trigger::Backfill(id) {
                *runs.entry(run.status.as_str()).or_default() += 1;
            }
        })
        .await?;
        let updating_orgs = org_updates
            .iter()
            .any(|org_update| matches!(org_update.task, OrgTask::Backfill { id: own, .. } if own == id));
        Ok(Some(BackfillReport { id, asked: entry, from, to, runs, updating_orgs }))
    }

    /// Cancels the runs of a backfill that have not started, and returns their number. Running ones continue, but one that begins at this very moment may be asked to stop. If it is
    /// for all orgs and still creates runs, it creates no more.
    pub async fn stop_backfill(&self, job: impl IntoJobRef, id: BackfillId) -> StoreResult<u64> {
        let job = self.get(job).await?;
        let reports = self.backfills(&JobRef::Id(job.job.definition.id)).await?;
        let report = reports.into_iter().find(|report| report.id == id);
        let report = report.ok_or_else(|| StoreError::not_found("backfill", id))?;
        if report.updating_orgs {
            self.stop_making(id).await?;
        }
        let key = job.job.definition.key.clone();
        let filter =
            RunFilter { job_key: Some(key), status: vec![RunStatus::Pending], ..range(report.from, report.to) };
        let mut pending = Vec::new();
        self.each_run(filter, |run| {
            if run.trigger == Trigger::Backfill(id) {
                pending.push(run.id);
            }
        })
        .await?;
        let now = self.context.now();
        for runs in pending.chunks(MAX_BACKFILLED) {
            let mut after = Facts::from_iter([("backfillId".to_owned(), json!(id.to_string()))]);
            after.insert("canceled".to_owned(), json!(runs.len()));
            // Taken again, this finds nothing left to cancel.
            let context = self.context.repeatable();
            let object = format!("job:{}", job.job.definition.key);
            let audit = context.entry("job.backfill_stop", object, now, None, Some(&after));
            let decide = |view: &JobView| Ok(change::cancel_runs(view, runs));
            let job = JobRef::Id(job.job.definition.id);
            let changed = self.context.parts.store.change_job(&job, None, &decide, &audit).await?;
            self.context.parts.events.publish_change(&changed);
        }
        Ok(pending.len() as u64)
    }

    async fn runs_of(
        &self,
        job: everbell_core::JobId,
        id: BackfillId,
        from: Timestamp,
        to: Timestamp,
    ) -> StoreResult<Vec<RunRecord>> {
        let mut runs = Vec::new();
        self.each_run(RunFilter { job_id: Some(job), ..range(from, to) }, |run| {
            if run.trigger == Trigger::Backfill(id) {
                runs.push(run);
            }
        })
        .await?;
        Ok(runs)
    }

    /// Visits runs, newest first, up to a bound.
    async fn each_run(&self, filter: RunFilter, mut look: impl FnMut(RunRecord)) -> StoreResult<()> {
        let mut page = PageRequest { limit: PAGE_ROWS, after: None };
        for _ in 0..MAX_PAGES {
            let runs = self.context.parts.store.list_runs(&filter, &page).await?;
            runs.items.into_iter().for_each(&mut look);
            page.after = runs.next;
            if page.after.is_none() {
                break;
            }
        }
        Ok(())
    }
}

fn range(from: Timestamp, to: Timestamp) -> RunFilter {
    let to = later(to, std::time::Duration::from_millis(1));
    RunFilter { from: Some(from), to: Some(to), ..RunFilter::default() }
}

/// Returns the past slots of a range, if they are not too many.
pub(super) fn bounded(spec: &Spec, mark: Timestamp, from: Timestamp, to: Timestamp) -> Result<Vec<Timestamp>, Invalid> {
    if to < from {
        return Err(Invalid::new("to", "must not be before `from`"));
    }
    let (after, until) = (earlier(from, std::time::Duration::from_nanos(1)), to.min(mark));
    let count = spec.count_between(after, until);
    if count > MAX_BACKFILLED as u64 {
        return Err(Invalid::new("to", format!("the range has {count} slots; at most {MAX_BACKFILLED} at once")));
    }
    Ok(spec.slots_after(after).take_while(|slot| *slot <= until).collect())
}

/// The facts in the audit entry of a backfill, by which it is found again.
pub(super) fn facts_of(id: BackfillId, from: Timestamp, to: Timestamp) -> Facts {
    Facts::from_iter([
        ("backfillId".to_owned(), json!(id.to_string())),
        ("from".to_owned(), json!(from.to_string())),
        ("to".to_owned(), json!(to.to_string())),
    ])
}

/// Reads the audit entry of a backfill.
fn asked_for(entry: &AuditEntry) -> Option<(BackfillId, Timestamp, Timestamp)> {
    let after: Value = serde_json::from_str(entry.after.as_ref()?.as_str()).ok()?;
    let text = |name: &str| after.get(name).and_then(Value::as_str);
    Some((text("backfillId")?.parse().ok()?, text("from")?.parse().ok()?, text("to")?.parse().ok()?))
}
