//! The progress of backfills. Those of earlier releases, and those for all orgs, have no row: they are found by their audit
//! entries, and their runs are counted.

use std::collections::{BTreeMap, BTreeSet};

use everbell_core::backfill::{Backfill, BackfillProgress, BackfillStatus};
use everbell_core::change::backfill_waits_for;
use everbell_core::org::{OrgTask, OrgUpdate};
use everbell_core::store::{
    AuditEntry, JobRef, JobRow, MAX_BACKFILLS, PageRequest, RunFilter, StoreError, StoreResult,
};
use everbell_core::{BackfillId, JobKey, RunId, RunStatus, Trigger};
use jiff::Timestamp;

use super::backfill::{ACTION, MAX_PAGES, PAGE_ROWS, asked_for, range};
use super::jobs::Jobs;
use super::names::IntoJobRef;
use crate::engine::backfill_spec;

/// The most backfills that are listed.
const MAX_LISTED_BACKFILLS: usize = 100;

/// The progress of a backfill.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackfillReport {
    /// Its id.
    pub id: BackfillId,
    /// The job.
    pub job_key: JobKey,
    /// When it was requested.
    pub asked_at: Timestamp,
    /// The actor that requested it.
    pub asked_by: String,
    /// The reason that was given.
    pub reason: Option<String>,
    /// The start of the range.
    pub from: Timestamp,
    /// The end of the range.
    pub to: Timestamp,
    /// The number of its runs by status. Slots whose run is not created yet count as pending.
    pub runs: BTreeMap<&'static str, u64>,
    /// Whether it is for all orgs, and some of them do not have their runs yet.
    pub updating_orgs: bool,
    /// Its row and progress; `None` for one of an earlier release or for all orgs, whose runs were all created at once.
    pub details: Option<Box<BackfillDetails>>,
}

/// The row of a backfill and its progress.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackfillDetails {
    /// The row.
    pub backfill: Backfill,
    /// How far it is.
    pub progress: BackfillProgress,
    /// Why it creates no runs at the moment, although its status is `running`.
    pub waits_for: Option<&'static str>,
}

impl BackfillReport {
    /// Returns its status.
    pub fn status(&self) -> BackfillStatus {
        match &self.details {
            Some(details) if details.backfill.status == BackfillStatus::Stopped || !self.is_done() => {
                details.backfill.status
            }
            _ if self.is_done() => BackfillStatus::Done,
            _ => BackfillStatus::Running,
        }
    }

    /// Whether it is over: all its runs are created, or it was stopped, and none of them is pending or running.
    pub fn is_done(&self) -> bool {
        !self.updating_orgs
            && [RunStatus::Pending, RunStatus::Running].iter().all(|status| !self.runs.contains_key(status.as_str()))
    }
}

impl Jobs {
    /// Lists the backfills of a job, newest first, with their progress.
    pub async fn backfills(&self, job: impl IntoJobRef) -> StoreResult<Vec<BackfillReport>> {
        let row = self.get(job).await?;
        let key = &row.job.definition.key;
        let stored = self.context.parts.store.backfills_of(key, MAX_LISTED_BACKFILLS as u32).await?;
        let known: BTreeSet<BackfillId> = stored.iter().map(|backfill| backfill.id).collect();
        let mut reports = Vec::with_capacity(stored.len());
        for backfill in stored {
            reports.push(self.report_of_row(&row, backfill).await?);
        }
        let org_updates = self.context.parts.store.list_org_updates().await?;
        let object = format!("job:{key}");
        let mut page = PageRequest { limit: PAGE_ROWS, after: None };
        for _ in 0..MAX_PAGES {
            let entries = self.context.parts.store.list_audit(Some(&object), &page).await?;
            for entry in entries.items.into_iter().filter(|entry| entry.action == ACTION) {
                let is_known = asked_for(&entry).is_some_and(|(id, _, _)| known.contains(&id));
                if !is_known && reports.len() < 2 * MAX_LISTED_BACKFILLS {
                    reports.extend(self.report_of_entry(key, entry, &org_updates).await?);
                }
            }
            page.after = entries.next;
            if page.after.is_none() {
                break;
            }
        }
        reports.sort_by_key(|report| std::cmp::Reverse((report.asked_at, report.id)));
        reports.truncate(MAX_LISTED_BACKFILLS);
        Ok(reports)
    }

    /// Returns a backfill of a job with its progress.
    pub async fn backfill_report(&self, job: impl IntoJobRef, id: BackfillId) -> StoreResult<BackfillReport> {
        let row = self.get(job).await?;
        match self.context.parts.store.get_backfill(id).await {
            Ok(backfill) if backfill.job_key == row.job.definition.key => self.report_of_row(&row, backfill).await,
            Ok(_) => Err(StoreError::not_found("backfill", id)),
            Err(StoreError::NotFound { .. }) => {
                let reports = self.backfills(&JobRef::Id(row.job.definition.id)).await?;
                let found = reports.into_iter().find(|report| report.id == id);
                found.ok_or_else(|| StoreError::not_found("backfill", id))
            }
            Err(error) => Err(error),
        }
    }

    /// Lists the backfills that create runs or whose runs have not all ended, of one job or of all.
    pub async fn open_backfills(&self, job: Option<&JobKey>) -> StoreResult<Vec<BackfillReport>> {
        let mut reports = Vec::new();
        for backfill in self.context.parts.store.open_backfills(job, MAX_BACKFILLS).await? {
            match self.get(&backfill.job_key).await {
                Ok(row) => reports.push(self.report_of_row(&row, backfill).await?),
                // Purged meanwhile.
                Err(StoreError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        reports.sort_by_key(|report| std::cmp::Reverse((report.asked_at, report.id)));
        Ok(reports)
    }

    /// Returns the backfill of an audit entry with its progress; `None` if the entry cannot be read.
    pub(super) async fn backfill_of_entry(
        &self,
        key: &JobKey,
        entry: AuditEntry,
        org_updates: &[OrgUpdate],
    ) -> StoreResult<Option<BackfillReport>> {
        let Some((id, _, _)) = asked_for(&entry) else { return Ok(None) };
        match self.context.parts.store.get_backfill(id).await {
            Ok(backfill) => self.report_of_row(&self.get(key).await?, backfill).await.map(Some),
            Err(StoreError::NotFound { .. }) => self.report_of_entry(key, entry, org_updates).await,
            Err(error) => Err(error),
        }
    }

    async fn report_of_row(&self, row: &JobRow, backfill: Backfill) -> StoreResult<BackfillReport> {
        let store = &self.context.parts.store;
        let ids: Vec<RunId> = backfill.open.iter().map(|open| open.id).collect();
        let found = if ids.is_empty() { Vec::new() } else { store.look_up_runs(&ids).await? };
        let spec =
            if backfill.status.is_over() { None } else { backfill_spec(&**store, row, backfill.org.as_ref()).await? };
        let progress = backfill.progress(&found, spec.as_ref(), self.context.now());
        let counts = progress.counts;
        let waiting = progress.pending + progress.left;
        let runs = [
            (RunStatus::Pending, waiting),
            (RunStatus::Running, progress.running),
            (RunStatus::Succeeded, counts.succeeded),
            (RunStatus::Failed, counts.failed),
            (RunStatus::Canceled, counts.canceled),
        ];
        Ok(BackfillReport {
            id: backfill.id,
            job_key: backfill.job_key.clone(),
            asked_at: backfill.requested_at,
            asked_by: backfill.requested_by.clone(),
            reason: backfill.reason.clone(),
            from: backfill.from,
            to: backfill.to,
            runs: runs
                .into_iter()
                .filter(|(_, runs)| *runs > 0)
                .map(|(status, runs)| (status.as_str(), runs))
                .collect(),
            updating_orgs: false,
            details: Some(Box::new(BackfillDetails {
                waits_for: backfill_waits_for(&row.job.state, &backfill),
                backfill,
                progress,
            })),
        })
    }

    async fn report_of_entry(
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
        Ok(Some(BackfillReport {
            id,
            job_key: key.clone(),
            asked_at: entry.at,
            asked_by: entry.actor,
            reason: entry.reason,
            from,
            to,
            runs,
            updating_orgs,
            details: None,
        }))
    }
}
