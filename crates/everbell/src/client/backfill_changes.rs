//! Changes of a backfill: pause, resume, settings, stop. Each is one audit entry, however many runs it concerns.

use everbell_core::backfill::{Backfill, BackfillSettings, Rate, SlotRun};
use everbell_core::change::{self, JobChange, JobView};
use everbell_core::plan::MAX_BACKFILLED;
use everbell_core::store::{Changed, JobRef, JobRow, RunFilter, StoreError, StoreResult};
use everbell_core::{BackfillId, Invalid, OrgId, RunId, RunStatus, Trigger};
use serde_json::json;

use super::backfill::{range, settings_facts};
use super::backfill_reports::BackfillReport;
use super::jobs::Jobs;
use super::names::IntoJobRef;
use super::{Facts, MAX_ATTEMPTS};

/// The settings of a backfill that change. `None` keeps the current value, `Some(None)` returns to the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackfillEdit {
    /// How many of its runs may be open at once.
    pub parallel: Option<Option<u32>>,
    /// How many runs it creates in a time.
    pub rate: Option<Option<Rate>>,
    /// Whether it goes on while its job is paused.
    pub paused_ok: Option<bool>,
}

impl BackfillEdit {
    fn apply(self, settings: BackfillSettings) -> BackfillSettings {
        BackfillSettings {
            order: settings.order,
            parallel: self.parallel.unwrap_or(settings.parallel),
            rate: self.rate.unwrap_or(settings.rate),
            paused_ok: self.paused_ok.unwrap_or(settings.paused_ok),
        }
    }
}

/// The decision about a change: from the job, the backfill and its open runs.
type Decide<'a> = dyn Fn(&JobView, &Backfill, &[SlotRun]) -> Result<JobChange, Invalid> + Send + Sync + 'a;

impl Jobs {
    /// Pauses a backfill. Its runs that have not started are withdrawn until it is resumed; those at work, with their other
    /// attempts, continue. Refuses one that is not running.
    pub async fn pause_backfill(&self, job: impl IntoJobRef, id: BackfillId) -> StoreResult<BackfillReport> {
        let row = self.get(job).await?;
        let now = self.context.now();
        let decide = |view: &JobView, stored: &Backfill, _: &[SlotRun]| change::pause_backfill(view, stored, now);
        self.change_backfill(&row, id, "job.backfill_pause", Facts::new(), &decide).await?;
        self.backfill_report(&JobRef::Id(row.job.definition.id), id).await
    }

    /// Resumes a paused backfill. Refuses one that is not paused.
    pub async fn resume_backfill(&self, job: impl IntoJobRef, id: BackfillId) -> StoreResult<BackfillReport> {
        let row = self.get(job).await?;
        let now = self.context.now();
        let decide = |view: &JobView, stored: &Backfill, _: &[SlotRun]| change::resume_backfill(view, stored, now);
        self.change_backfill(&row, id, "job.backfill_resume", Facts::new(), &decide).await?;
        self.backfill_report(&JobRef::Id(row.job.definition.id), id).await
    }

    /// Changes how a backfill runs, from its next run on. Refuses one that is over.
    pub async fn set_backfill(
        &self,
        job: impl IntoJobRef,
        id: BackfillId,
        edit: BackfillEdit,
    ) -> StoreResult<BackfillReport> {
        let row = self.get(job).await?;
        let stored = self.stored_backfill(&row, id).await?.ok_or_else(all_created)?;
        let facts = settings_facts(&edit.apply(stored.settings));
        let now = self.context.now();
        let decide = |view: &JobView, stored: &Backfill, _: &[SlotRun]| {
            change::set_backfill(view, stored, edit.apply(stored.settings), now)
        };
        self.change_backfill(&row, id, "job.backfill_set", facts, &decide).await?;
        self.backfill_report(&JobRef::Id(row.job.definition.id), id).await
    }

    /// Stops a backfill: it creates no more runs, and those that have not started are withdrawn, as if they had never been created,
    /// so the same range can be requested again. Runs that wait for another attempt are canceled. Running ones continue, but
    /// one that begins at this very moment may be asked to stop. Returns how many slots will not run because of this; none if it is
    /// over.
    ///
    /// One of an earlier release, or one for all orgs, has its runs already: those that have not started are canceled.
    pub async fn stop_backfill(&self, job: impl IntoJobRef, id: BackfillId) -> StoreResult<u64> {
        let row = self.get(job).await?;
        let Some(stored) = self.stored_backfill(&row, id).await? else {
            return self.stop_created(&row, id).await;
        };
        if stored.status.is_over() {
            return Ok(0);
        }
        let report = self.backfill_report(&JobRef::Id(row.job.definition.id), id).await?;
        let waiting = report.runs.get(RunStatus::Pending.as_str()).copied().unwrap_or(0);
        let now = self.context.now();
        let facts = Facts::from_iter([("notRun".to_owned(), json!(waiting))]);
        let decide =
            |view: &JobView, stored: &Backfill, runs: &[SlotRun]| change::stop_backfill(view, stored, runs, now);
        match self.change_backfill(&row, id, STOP, facts, &decide).await {
            // It came to its end meanwhile.
            Err(StoreError::Invalid(refused)) if refused.field == "status" => Ok(0),
            changed => changed.map(|()| waiting),
        }
    }

    /// Changes a backfill with one audit entry; decides again when a step of it was faster.
    async fn change_backfill(
        &self,
        row: &JobRow,
        id: BackfillId,
        action: &str,
        mut facts: Facts,
        decide: &Decide<'_>,
    ) -> StoreResult<()> {
        facts.insert("backfillId".to_owned(), json!(id.to_string()));
        let (store, definition) = (&self.context.parts.store, &row.job.definition);
        let now = self.context.now();
        let audit = self.context.entry(action, format!("job:{}", definition.key), now, None, Some(&facts));
        let mut last = StoreError::not_found("backfill", id);
        for _ in 0..MAX_ATTEMPTS {
            if self.context.done_before().await?.is_some() {
                return Ok(());
            }
            let stored = self.stored_backfill(row, id).await?.ok_or_else(all_created)?;
            let ids: Vec<RunId> = stored.open.iter().map(|open| open.id).collect();
            let runs = store.look_up_runs(&ids).await?;
            let decide = |view: &JobView| decide(view, &stored, &runs);
            match self.write_change(row, stored.org.as_ref(), &decide, &audit).await {
                Ok(changed) => {
                    self.context.parts.events.publish_change(&changed);
                    return Ok(());
                }
                Err(error @ StoreError::Conflict { .. }) => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    async fn write_change(
        &self,
        row: &JobRow,
        org: Option<&OrgId>,
        decide: &everbell_core::store::DecideFn<'_>,
        audit: &everbell_core::store::AuditEntry,
    ) -> StoreResult<Changed> {
        let (store, job) = (&self.context.parts.store, JobRef::Id(row.job.definition.id));
        let Some(org) = org else { return store.change_job(&job, None, decide, audit).await };
        match store.change_org_job(&job, org, None, decide, audit).await {
            // The org is gone, and its backfill can still be stopped.
            Err(StoreError::NotFound { .. }) => store.change_job(&job, None, decide, audit).await,
            answer => answer,
        }
    }

    /// Returns the row of a backfill of this job; `None` for one that is known by its audit entry only.
    async fn stored_backfill(&self, row: &JobRow, id: BackfillId) -> StoreResult<Option<Backfill>> {
        let missing = || StoreError::not_found("backfill", id);
        match self.context.parts.store.get_backfill(id).await {
            Ok(stored) if stored.job_key == row.job.definition.key => Ok(Some(stored)),
            Ok(_) => Err(missing()),
            Err(StoreError::NotFound { .. }) => {
                let reports = self.backfills(&JobRef::Id(row.job.definition.id)).await?;
                if reports.iter().any(|report| report.id == id) { Ok(None) } else { Err(missing()) }
            }
            Err(error) => Err(error),
        }
    }

    /// Cancels the runs of a backfill that has no row. If it is for all orgs and still creates runs, it creates no more.
    async fn stop_created(&self, row: &JobRow, id: BackfillId) -> StoreResult<u64> {
        let definition = &row.job.definition;
        let report = self.backfill_report(&JobRef::Id(definition.id), id).await?;
        if report.updating_orgs {
            self.stop_making(id).await?;
        }
        let key = definition.key.clone();
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
            let audit = context.entry(STOP, format!("job:{}", definition.key), now, None, Some(&after));
            let decide = |view: &JobView| Ok(change::cancel_runs(view, runs));
            let job = JobRef::Id(definition.id);
            let changed = self.context.parts.store.change_job(&job, None, &decide, &audit).await?;
            self.context.parts.events.publish_change(&changed);
        }
        Ok(pending.len() as u64)
    }
}

/// The action of the entry about a stop.
const STOP: &str = "job.backfill_stop";

/// The refusal to change a backfill that has no row.
fn all_created() -> StoreError {
    let reason = "all runs of this backfill were created when it was requested, so it can only be stopped";
    Invalid::new("status", reason).into()
}
