//! Timers of orgs, reconciled with orgs, overrides and jobs, a step at a time.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use everbell_core::org::{OrgFacts, OrgSettings, OrgTask, OrgUpdate, OrgUpdateStep};
use everbell_core::plan::REPLACER;
use everbell_core::store::{AuditEntry, StoreError, StoreResult};
use everbell_core::{ActiveRun, Definition, Job, OrgId};
use jiff::Timestamp;
use serde::Serialize;
use uuid::Uuid;

use super::SqliteStore;
use super::batch::{self, Hex};
use super::job_changes::move_active;
use super::timers::{upstream_of, write};
use super::transaction::Tx;
use crate::micros::Micros;
use crate::rows::org_updates::{
    OrgOverrideColumns, OrgTimerValues, OrgUpdateBatch, OrgUpdateColumns, ReconcileInput, SteppedOrgColumns, TakenOver,
    readable_org_updates, stepped_orgs,
};
use crate::rows::orgs::{FactsColumns, OrgTimerColumns};
use crate::rows::{JobColumns, Owner, active_by_owner, org_text};

impl SqliteStore {
    pub(super) async fn needs_reconciling(&self) -> StoreResult<bool> {
        let mut held = self.reader("looking for orgs that changed").await?;
        let (needed,): (bool,) =
            held.begin().await?.one(sqlx::query(include_str!("sql/org_update_needed.sql"))).await?;
        Ok(needed)
    }

    /// Orgs that changed, if there are any; how many there were.
    pub(super) async fn look_at_waiting(
        &self,
        tx: &mut Tx<'_>,
        limit: u32,
        batch: &mut OrgUpdateBatch,
    ) -> StoreResult<Option<usize>> {
        let jobs: Vec<JobColumns> = tx.all(sqlx::query(include_str!("sql/org_wide_jobs.sql"))).await?;
        // A job that cannot be read becomes errored when it is due; skip it here.
        let jobs: Vec<Job> = jobs.into_iter().filter_map(|row| row.read(&self.known).ok()).collect();
        let most = (limit as usize / jobs.len().max(1)).max(1);
        let query = sqlx::query(include_str!("sql/waiting_orgs.sql")).bind(most as i64);
        let rows: Vec<SteppedOrgColumns> = tx.all(query).await?;
        if rows.is_empty() {
            return Ok(None);
        }
        let ids = batch::rows(rows.iter().map(|row| &row.id));
        let orgs = stepped_orgs(rows);
        let org_updates = org_updates(tx, i64::MAX).await?;
        let mut looked = look(tx, jobs.iter().map(|job| &*job.definition), &orgs).await?;
        batch.reconcile(&jobs, &org_updates, &orgs, &mut looked);
        tx.run(sqlx::query(include_str!("sql/clear_waiting.sql")).bind(ids)).await?;
        Ok(Some(orgs.len()))
    }

    /// Takes a step of the org update that waits longest, if there is one; returns the number of orgs visited.
    pub(super) async fn step(
        &self,
        tx: &mut Tx<'_>,
        now: Timestamp,
        limit: u32,
        batch: &mut OrgUpdateBatch,
    ) -> StoreResult<Option<usize>> {
        let row: Option<OrgUpdateColumns> = tx.first(sqlx::query(include_str!("sql/lock_org_update.sql"))).await?;
        let Some(row) = row else { return Ok(None) };
        let (id, job_id) = (row.id, row.job_id);
        let read = match row.read() {
            Ok(org_update) => self.job_of(tx, &org_update).await.map(|(job, before)| (org_update, job, before)),
            Err(error) => Err(error),
        };
        let (org_update, job, before) = match read {
            Err(why @ StoreError::Corrupt { .. }) => {
                batch.give_up(job_id, &why);
                tx.run(sqlx::query(include_str!("sql/end_org_update.sql")).bind(id)).await?;
                return Ok(Some(0));
            }
            read => read?,
        };
        let query = sqlx::query(include_str!("sql/orgs_behind.sql"));
        let query = query.bind(org_text(org_update.reached.as_ref()).to_owned()).bind(limit);
        let rows: Vec<SteppedOrgColumns> = tx.all(query).await?;
        let last = rows.last().filter(|_| rows.len() == limit as usize).map(|row| row.id.clone());
        let orgs = stepped_orgs(rows);
        let both = [Some(&job.definition), before.as_ref()];
        let mut looked = look(tx, both.into_iter().flatten().map(|job| &**job), &orgs).await?;
        batch.step(OrgUpdateStep { org_update: &org_update, now }, &job, before.as_ref(), &orgs, &mut looked);
        let query = match last {
            Some(last) => sqlx::query(include_str!("sql/move_org_update.sql"))
                .bind(org_update.id)
                .bind(last)
                .bind((org_update.seen + orgs.len() as u64) as i64)
                .bind(Micros::from(now)),
            None => sqlx::query(include_str!("sql/end_org_update.sql")).bind(org_update.id),
        };
        tx.run(query).await?;
        Ok(Some(orgs.len()))
    }

    /// Returns the job of an org update, and the previous version if that may still have timers.
    async fn job_of(&self, tx: &mut Tx<'_>, org_update: &OrgUpdate) -> StoreResult<(Job, Option<Arc<Definition>>)> {
        let query = sqlx::query(include_str!("sql/read_jobs.sql")).bind(batch::ids([org_update.job.as_uuid()]));
        let row: JobColumns = tx.one(query).await?;
        let job = row.read(&self.known)?;
        let before = job.definition.supersedes.filter(|_| org_update.task == OrgTask::Arm);
        let learned = self.learn(tx, before.into_iter()).await?;
        let before = before.and_then(|id| learned.get(id));
        Ok((job, before))
    }
}

pub(super) async fn org_updates(tx: &mut Tx<'_>, most: i64) -> StoreResult<Vec<OrgUpdate>> {
    Ok(readable_org_updates(tx.all(sqlx::query(include_str!("sql/list_org_updates.sql")).bind(most)).await?))
}

/// Everything that is known of these jobs and these orgs together.
async fn look<'a>(
    tx: &mut Tx<'_>,
    jobs: impl Iterator<Item = &'a Definition> + Clone,
    orgs: &[(OrgId, OrgSettings)],
) -> StoreResult<ReconcileInput> {
    let ids = batch::rows(orgs.iter().map(|(id, _)| id.as_str()));
    let keys = batch::rows(jobs.clone().map(|job| job.key.as_str()));
    let query = sqlx::query(include_str!("sql/read_overrides.sql")).bind(ids.clone()).bind(keys);
    let overrides: Vec<OrgOverrideColumns> = tx.all(query).await?;
    let jobs_text = batch::ids(jobs.clone().map(|job| job.id.as_uuid()));
    let query = sqlx::query(include_str!("sql/lock_org_timers.sql")).bind(jobs_text).bind(ids);
    let timers: Vec<OrgTimerColumns> = tx.all(query).await?;
    let mut looked = ReconcileInput::new(overrides, timers)?;
    let owners: Vec<Owner> = looked.timers().cloned().collect();
    looked.with_active(org_active_of(tx, &owners).await?);
    let upstream = jobs.filter_map(|job| job.policies.depends_on.as_ref().map(|on| on.job_key.to_string()));
    looked.upstream = upstream_of(tx, upstream.collect()).await?;
    Ok(looked)
}

pub(super) async fn write_org_update(
    tx: &mut Tx<'_>,
    batch: &OrgUpdateBatch,
    now: Timestamp,
) -> StoreResult<HashSet<Uuid>> {
    if !batch.timers.is_empty() {
        let rows = batch::rows(batch.timers.iter().map(timer_row));
        tx.run(sqlx::query(include_str!("sql/upsert_timers.sql")).bind(rows)).await?;
    }
    if !batch.removed.is_empty() {
        tx.run(sqlx::query(include_str!("sql/delete_timers.sql")).bind(owner_rows(&batch.removed))).await?;
    }
    let inserted = write(tx, &batch.plans, REPLACER, now).await?.runs;
    if batch.paused && !inserted.is_empty() {
        let ids = batch::ids(inserted.iter().copied());
        tx.run(sqlx::query(include_str!("sql/pause_new_runs.sql")).bind(ids)).await?;
    }
    if let Some(TakenOver { from, to, orgs }) = &batch.taken_over {
        move_active(tx, *from, *to, orgs.iter().map(String::as_str)).await?;
    }
    Ok(inserted)
}

fn timer_row(t: &OrgTimerValues) -> impl Serialize + '_ {
    let OrgTimerValues { timer, target, error } = t;
    let (mark, moved) = (timer.last_slot_at, timer.rescheduled_from);
    (Hex(timer.job_id), &timer.org_id, target, timer.next_run_at, mark, moved, &timer.last_local_date, error)
}

/// Starts an org update, in the transaction that makes it necessary.
pub(super) async fn begin(tx: &mut Tx<'_>, job: &Definition, task: &OrgTask, audit: &AuditEntry) -> StoreResult<()> {
    let org_update = OrgUpdateColumns::new(job, task, audit);
    let query = sqlx::query(include_str!("sql/insert_org_update.sql"))
        .bind(org_update.id)
        .bind(org_update.job_id)
        .bind(org_update.job_key)
        .bind(org_update.work)
        .bind(org_update.detail)
        .bind(org_update.actor)
        .bind(org_update.at);
    tx.run(query).await.map(drop)
}

/// Returns the facts that decide about these timers of orgs.
pub(super) async fn facts_of(tx: &mut Tx<'_>, owners: &[Owner]) -> StoreResult<HashMap<Owner, OrgFacts>> {
    if owners.is_empty() {
        return Ok(HashMap::new());
    }
    let query = sqlx::query(include_str!("sql/read_org_facts.sql")).bind(owner_rows(owners));
    let rows: Vec<FactsColumns> = tx.all(query).await?;
    // The plan marks missing ones as errored, each alone.
    Ok(rows.into_iter().filter_map(|row| row.read().ok()).collect())
}

/// The active runs of these jobs for these orgs, oldest first.
pub(super) async fn org_active_of(tx: &mut Tx<'_>, owners: &[Owner]) -> StoreResult<HashMap<Owner, Vec<ActiveRun>>> {
    if owners.is_empty() {
        return Ok(HashMap::new());
    }
    let query = sqlx::query(include_str!("sql/read_org_active.sql")).bind(owner_rows(owners));
    Ok(active_by_owner(tx.all(query).await?))
}

fn owner_rows(owners: &[Owner]) -> String {
    batch::rows(owners.iter().map(|(job, org)| (Hex(*job), org)))
}
