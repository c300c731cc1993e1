//! Backfills: runs for past slots. A backfill is a row with a cursor; the first runs are created with it, and the backfiller
//! creates the others as places become free ([`everbell_core::backfill`]).

use std::collections::BTreeMap;

use everbell_core::backfill::{Backfill, BackfillOrder, BackfillSettings, MAX_CHUNK, Rate};
use everbell_core::change::{self, BackfillFacts, JobView};
use everbell_core::plan::MAX_BACKFILLED;
use everbell_core::store::{AuditEntry, JobRef, JobRow, PageRequest, RunFilter, StoreError, StoreResult};
use everbell_core::{
    BackfillId, Definition, Invalid, JobStatus, OrgId, Run as RunRecord, RunId, RunStatus, Spec, Trigger, Zone,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::jobs::Jobs;
use super::names::IntoJobRef;
use super::org_jobs::JobOfOrg;
use super::{Facts, is_in_doubt};
use crate::clock::{earlier, later};
use crate::engine::{known_slots, random};

/// The action of its audit entries.
pub(super) const ACTION: &str = "job.backfill";
/// The page size and the most pages of history that are read.
pub(super) const PAGE_ROWS: u32 = 1_000;
pub(super) const MAX_PAGES: usize = 50;
/// The most slots of a plan that are listed. A plan with more lists none but the first ones, and counts the others.
const MAX_PLANNED_SLOTS: usize = 1_000;
/// How many slots are listed of a plan that has more than that.
const FIRST_SLOTS: usize = 100;

/// How a backfill runs, as far as the caller said.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BackfillOptions {
    pub(super) order: BackfillOrder,
    pub(super) parallel: Option<u32>,
    pub(super) rate: Option<Rate>,
    pub(super) paused_ok: Option<bool>,
}

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
    /// How many slots the range has.
    pub total: u64,
    /// The slots of the range, oldest first: all of them, or only the first 100 if there are more than 1,000.
    pub slots: Vec<BackfillSlot>,
    /// How the backfill runs.
    pub settings: BackfillSettings,
    /// The schedule that the slots are read from.
    pub(super) spec: Spec,
    /// The last slot that is past.
    pub(super) mark: Timestamp,
}

impl BackfillPlan {
    /// Returns the listed slots that get a run.
    pub fn wanted(&self) -> Vec<Timestamp> {
        self.slots.iter().filter(|slot| slot.existing.is_none()).map(|slot| slot.slot).collect()
    }

    /// Whether every slot is listed, so that the number of runs is exact.
    pub fn is_complete(&self) -> bool {
        self.total == self.slots.len() as u64
    }

    /// Returns how many slots get a run; if not every slot is listed, the most that can be.
    pub fn to_create(&self) -> u64 {
        self.total - self.slots.iter().filter(|slot| slot.existing.is_some()).count() as u64
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
    /// The runs that were created with it. The others follow as places become free.
    pub runs: Vec<RunRecord>,
}

impl Jobs {
    /// Returns the effect that a backfill of the slots in `[from, to]` would have. It leaves out slots that have a run
    /// of any version and status; [`Runs::rerun`](super::Runs::rerun) repeats a run. Counting is arithmetic, so the range may be
    /// of any length.
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
        self.plan_slots(job, None, spec, mark, (from, to)).await
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
        let (spec, mark) = (read.spec()?, read.view().timer.last_slot_at);
        self.plan_slots(read.row, Some(org.clone()), spec, mark, (from, to)).await
    }

    async fn plan_slots(
        &self,
        job: JobRow,
        org: Option<OrgId>,
        spec: Spec,
        mark: Timestamp,
        (from, to): (Timestamp, Timestamp),
    ) -> StoreResult<BackfillPlan> {
        let (after, until) = past_range(mark, from, to)?;
        let options = self.context.backfill;
        let is_paused = job.job.state.status == JobStatus::Paused;
        let BackfillOptions { order, parallel, rate, paused_ok } = options;
        let settings = BackfillSettings { order, parallel, rate, paused_ok: paused_ok.unwrap_or(is_paused) };
        settings.check()?;
        let total = if after < until { spec.count_own_times(after, until) } else { 0 };
        let listed = if total > MAX_PLANNED_SLOTS as u64 { FIRST_SLOTS } else { MAX_PLANNED_SLOTS };
        let slots: Vec<Timestamp> =
            spec.own_times_after(after).take_while(|slot| *slot <= until).take(listed).collect();
        let key = &job.job.definition.key;
        let found = self.context.parts.store.runs_of_slots(key, org.as_ref(), &slots).await?;
        let existing: BTreeMap<Timestamp, _> = found.iter().map(|run| (run.at, (run.id, run.status))).collect();
        let slot = |slot| BackfillSlot { slot, existing: existing.get(&slot).copied() };
        let slots = slots.into_iter().map(slot).collect();
        Ok(BackfillPlan { zone: spec.zone().clone(), job, org, total, slots, settings, spec, mark })
    }

    /// Creates a run for each slot in `[from, to]` that has none, however many there are: the first ones at once, the others as
    /// places become free. The runs use the version of the job that is current when they are created. As many are open at once as
    /// the job's `maxConcurrentRuns` or [`Jobs::parallel`] allows, created no faster than [`Jobs::rate`]. They are beside the
    /// schedule: live slots neither wait for them nor are skipped because of them.
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
        let now = self.context.now();
        let id = BackfillId::new(now, random());
        let definition = &plan.job.job.definition;
        let mut after = facts_of(id, from, to);
        after.insert("slots".to_owned(), json!(plan.total));
        after.extend(plan.org.iter().map(|org| ("orgId".to_owned(), json!(org.as_str()))));
        after.extend(settings_facts(&plan.settings));
        let audit = self.context.entry(ACTION, format!("job:{}", definition.key), now, None, Some(&after));
        let owner = (id, definition.key.clone(), plan.org.clone());
        let range = (from, to.min(plan.mark));
        let mut backfill = Backfill::new(owner, range, plan.settings, &self.context.actor, now);
        backfill.reason.clone_from(&audit.reason);
        backfill.trace_context = self.context.trace_context();
        let store = &self.context.parts.store;
        let known = known_slots(&**store, &backfill, &backfill.next_slots(&plan.spec, MAX_CHUNK)).await?;
        let max_active = self.context.parts.options.max_pending_runs;
        let facts = BackfillFacts { runs: &[], slots: &known, max_active };
        let decide = |view: &JobView| change::begin_backfill(view, backfill.clone(), &facts, now);
        let job = JobRef::Id(definition.id);
        let changed = match &plan.org {
            Some(org) => store.change_org_job(&job, org, None, &decide, &audit).await,
            None => store.change_job(&job, None, &decide, &audit).await,
        };
        let runs = match self.context.name_current_version(&job, changed).await {
            Ok(changed) => {
                self.context.parts.events.publish_change(&changed);
                changed.runs
            }
            Err(error) if is_in_doubt(&error) => self.runs_of(id).await.map_err(|_| error)?,
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

    /// Returns the plan and the open runs of a request that was carried out before. Its own runs do not count as existing.
    async fn begun_before(&self, mut plan: BackfillPlan, id: BackfillId) -> StoreResult<BackfillBegun> {
        let ids: Vec<RunId> = plan.slots.iter().filter_map(|slot| Some(slot.existing?.0)).collect();
        let found = self.context.parts.store.look_up_runs(&ids).await?;
        let is_own = |run: RunId| found.iter().any(|one| one.id == run && one.trigger == Trigger::Backfill(id));
        for slot in &mut plan.slots {
            slot.existing = slot.existing.filter(|(run, _)| !is_own(*run));
        }
        let runs = self.runs_of(id).await?;
        Ok(BackfillBegun { id, plan, runs })
    }

    /// Returns the runs of a backfill that are not counted as ended.
    async fn runs_of(&self, id: BackfillId) -> StoreResult<Vec<RunRecord>> {
        let store = &self.context.parts.store;
        let mut runs = Vec::new();
        for open in store.get_backfill(id).await?.open {
            match store.get_run(open.id).await {
                Ok(run) => runs.push(run),
                // Withdrawn since.
                Err(StoreError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(runs)
    }

    /// Visits runs, newest first, up to a bound.
    pub(super) async fn each_run(&self, filter: RunFilter, mut look: impl FnMut(RunRecord)) -> StoreResult<()> {
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

pub(super) fn range(from: Timestamp, to: Timestamp) -> RunFilter {
    let to = later(to, std::time::Duration::from_millis(1));
    RunFilter { from: Some(from), to: Some(to), ..RunFilter::default() }
}

/// Returns the past part of a range: after the first time, up to the second.
fn past_range(mark: Timestamp, from: Timestamp, to: Timestamp) -> Result<(Timestamp, Timestamp), Invalid> {
    if to < from {
        return Err(Invalid::new("to", "must not be before `from`"));
    }
    Ok((earlier(from, std::time::Duration::from_nanos(1)), to.min(mark)))
}

/// Refuses a range with too many slots for a backfill of all orgs, which has no cursor for each.
pub(super) fn expect_bounded(spec: &Spec, mark: Timestamp, from: Timestamp, to: Timestamp) -> Result<(), Invalid> {
    let (after, until) = past_range(mark, from, to)?;
    let count = if after < until { spec.count_own_times(after, until) } else { 0 };
    if count > MAX_BACKFILLED as u64 {
        let reason = format!(
            "the range has {count} slots for each org; at most {MAX_BACKFILLED} at once for all orgs: name one org in `orgId`, or \
             a shorter range"
        );
        return Err(Invalid::new("to", reason));
    }
    Ok(())
}

/// The facts in the audit entry of a backfill, by which it is found again.
pub(super) fn facts_of(id: BackfillId, from: Timestamp, to: Timestamp) -> Facts {
    Facts::from_iter([
        ("backfillId".to_owned(), json!(id.to_string())),
        ("from".to_owned(), json!(from.to_string())),
        ("to".to_owned(), json!(to.to_string())),
    ])
}

/// The settings of a backfill, as its audit entries name them.
pub(super) fn settings_facts(settings: &BackfillSettings) -> Facts {
    let mut facts = Facts::new();
    facts.extend(settings.parallel.map(|parallel| ("parallel".to_owned(), json!(parallel))));
    facts.extend(settings.rate.map(|rate| ("rate".to_owned(), json!(rate.to_string()))));
    if settings.order != BackfillOrder::default() {
        facts.insert("order".to_owned(), json!(settings.order.as_str()));
    }
    if settings.paused_ok {
        facts.insert("pausedOk".to_owned(), json!(true));
    }
    facts
}

/// Reads the audit entry of a backfill.
pub(super) fn asked_for(entry: &AuditEntry) -> Option<(BackfillId, Timestamp, Timestamp)> {
    let after: Value = serde_json::from_str(entry.after.as_ref()?.as_str()).ok()?;
    let text = |name: &str| after.get(name).and_then(Value::as_str);
    Some((text("backfillId")?.parse().ok()?, text("from")?.parse().ok()?, text("to")?.parse().ok()?))
}
