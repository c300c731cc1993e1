//! Timers of orgs, reconciled with orgs, overrides and jobs, a step at a time. Locks are taken in the order of
//! `sweeps`, `orgs`, `timers`, and then as everywhere.

use std::collections::{HashMap, HashSet};

use everbell_core::org::{OrgFacts, OrgSettings, OrgTask, OrgUpdate, OrgUpdateStep};
use everbell_core::plan::REPLACER;
use everbell_core::store::{AuditEntry, StoreError, StoreResult};
use everbell_core::{ActiveRun, Definition, Job, OrgId};
use jiff::Timestamp;
use uuid::Uuid;

use super::PostgresStore;
use super::connect::{Conn, on};
use super::job_changes::move_active;
use super::statement::Statement;
use super::timers::{column, upstream_of, write};
use crate::micros::Micros;
use crate::rows::org_updates::{
    OrgOverrideColumns, OrgUpdateBatch, OrgUpdateColumns, ReconcileInput, SteppedOrgColumns, TakenOver,
    readable_org_updates, stepped_orgs,
};
use crate::rows::orgs::{FactsColumns, OrgTimerColumns};
use crate::rows::{JobColumns, Owner, active_by_owner, org_text};

pub(super) const RECONCILING: &str = "looking after the timers of orgs";

/// The effects of a step, before they are reported.
pub(super) struct Stepped {
    pub(super) batch: OrgUpdateBatch,
    pub(super) inserted: HashSet<Uuid>,
    pub(super) orgs: usize,
    pub(super) more: bool,
}

impl Stepped {
    fn nothing(more: bool) -> Stepped {
        Stepped { batch: OrgUpdateBatch::default(), inserted: HashSet::new(), orgs: 0, more }
    }

    /// Whether other loops have to look again because of it.
    pub(super) fn is_news(&self) -> bool {
        !self.batch.timers.is_empty() || !self.inserted.is_empty()
    }
}

impl PostgresStore {
    pub(super) async fn reconcile_in(&self, tx: Conn<'_, '_>, now: Timestamp, limit: u32) -> StoreResult<Stepped> {
        if let Some(done) = self.look_at_waiting(&mut *tx, now, limit).await? {
            return Ok(done);
        }
        if let Some(done) = self.step(&mut *tx, now, limit).await? {
            return Ok(done);
        }
        let query = sqlx::query(include_str!("sql/remove_orgs.sql")).bind(i64::from(limit));
        let removed = on(RECONCILING, query.execute_on(&mut *tx)).await?.rows_affected();
        Ok(Stepped::nothing(removed >= u64::from(limit)))
    }

    /// Orgs that changed.
    async fn look_at_waiting(&self, tx: Conn<'_, '_>, now: Timestamp, limit: u32) -> StoreResult<Option<Stepped>> {
        let jobs: Vec<JobColumns> =
            on(RECONCILING, sqlx::query_as(include_str!("sql/org_wide_jobs.sql")).fetch_all_on(&mut *tx)).await?;
        // A job that cannot be read becomes errored when it is due; skip it here.
        let jobs: Vec<Job> = jobs.into_iter().filter_map(|row| row.read(&self.known).ok()).collect();
        let most = (limit as usize / jobs.len().max(1)).max(1);
        let query = sqlx::query_as(include_str!("sql/waiting_orgs.sql")).bind(most as i64);
        let rows: Vec<SteppedOrgColumns> = on(RECONCILING, query.fetch_all_on(&mut *tx)).await?;
        if rows.is_empty() {
            return Ok(None);
        }
        let ids: Vec<String> = rows.iter().map(|row| row.id.clone()).collect();
        let orgs = stepped_orgs(rows);
        // After the orgs are locked, so that an org update that passed them before their change is seen to be past
        // them.
        let org_updates = org_updates(&mut *tx).await?;
        let mut looked = look(&mut *tx, jobs.iter().map(|job| &*job.definition), &orgs).await?;
        let mut batch = OrgUpdateBatch::default();
        batch.reconcile(&jobs, &org_updates, &orgs, &mut looked);
        let inserted = write_org_update(&mut *tx, &batch, now).await?;
        on(RECONCILING, sqlx::query(include_str!("sql/clear_waiting.sql")).bind(ids).execute_on(&mut *tx)).await?;
        Ok(Some(Stepped { batch, inserted, orgs: orgs.len(), more: true }))
    }

    /// Takes a step of the org update that waits longest.
    async fn step(&self, tx: Conn<'_, '_>, now: Timestamp, limit: u32) -> StoreResult<Option<Stepped>> {
        let query = sqlx::query_as(include_str!("sql/lock_org_update.sql"));
        let row: Option<OrgUpdateColumns> = on(RECONCILING, query.fetch_optional_on(&mut *tx)).await?;
        let Some(row) = row else { return Ok(None) };
        let (id, job_id) = (row.id, row.job_id);
        let read = match row.read() {
            Ok(org_update) => self.job_of(&mut *tx, &org_update).await.map(|(job, before)| (org_update, job, before)),
            Err(error) => Err(error),
        };
        let (org_update, job, before) = match read {
            Err(why @ StoreError::Corrupt { .. }) => {
                let mut batch = OrgUpdateBatch::default();
                batch.give_up(job_id, &why);
                let inserted = write_org_update(&mut *tx, &batch, now).await?;
                on(RECONCILING, sqlx::query(include_str!("sql/end_org_update.sql")).bind(id).execute_on(&mut *tx))
                    .await?;
                return Ok(Some(Stepped { batch, inserted, orgs: 0, more: true }));
            }
            read => read?,
        };
        let query = sqlx::query_as(include_str!("sql/orgs_behind.sql"))
            .bind(org_text(org_update.reached.as_ref()).to_owned())
            .bind(i64::from(limit));
        let rows: Vec<SteppedOrgColumns> = on(RECONCILING, query.fetch_all_on(&mut *tx)).await?;
        let last = rows.last().filter(|_| rows.len() == limit as usize).map(|row| row.id.clone());
        let orgs = stepped_orgs(rows);
        let both = [Some(&job.definition), before.as_ref()];
        let mut looked = look(&mut *tx, both.into_iter().flatten().map(|job| &**job), &orgs).await?;
        // A pause that comes now waits for these runs and holds them; one that came before is seen here.
        let query = sqlx::query_as(include_str!("sql/share_job.sql")).bind(org_update.job.as_uuid());
        let row: JobColumns = on(RECONCILING, query.fetch_one_on(&mut *tx)).await?;
        let job = row.read(&self.known)?;
        let mut batch = OrgUpdateBatch::default();
        let now = Micros::from(now).into();
        batch.step(OrgUpdateStep { org_update: &org_update, now }, &job, before.as_ref(), &orgs, &mut looked);
        let inserted = write_org_update(&mut *tx, &batch, now).await?;
        if batch.paused && !inserted.is_empty() {
            let ids: Vec<Uuid> = inserted.iter().copied().collect();
            on(RECONCILING, sqlx::query(include_str!("sql/pause_new_runs.sql")).bind(ids).execute_on(&mut *tx)).await?;
        }
        match last {
            Some(last) => {
                let query = sqlx::query(include_str!("sql/move_org_update.sql"))
                    .bind(org_update.id)
                    .bind(last)
                    .bind((org_update.seen + orgs.len() as u64) as i64)
                    .bind(Micros::from(now));
                on(RECONCILING, query.execute_on(&mut *tx)).await?;
            }
            None => {
                on(
                    RECONCILING,
                    sqlx::query(include_str!("sql/end_org_update.sql")).bind(org_update.id).execute_on(&mut *tx),
                )
                .await?;
            }
        }
        Ok(Some(Stepped { batch, inserted, orgs: orgs.len(), more: true }))
    }

    /// Returns the job of an org update, and the previous version if that may still have timers.
    async fn job_of(
        &self,
        tx: Conn<'_, '_>,
        org_update: &OrgUpdate,
    ) -> StoreResult<(Job, Option<std::sync::Arc<Definition>>)> {
        let query = sqlx::query_as(include_str!("sql/read_jobs.sql")).bind(vec![org_update.job.as_uuid()]);
        let row: JobColumns = on(RECONCILING, query.fetch_one_on(&mut *tx)).await?;
        let job = row.read(&self.known)?;
        let before = job.definition.supersedes.filter(|_| org_update.task == OrgTask::Arm);
        let learned = self.learn(tx, before.into_iter()).await?;
        let before = before.and_then(|id| learned.get(id));
        Ok((job, before))
    }
}

pub(super) async fn org_updates(conn: Conn<'_, '_>) -> StoreResult<Vec<OrgUpdate>> {
    let query = sqlx::query_as(include_str!("sql/list_org_updates.sql")).bind(i64::MAX);
    Ok(readable_org_updates(on(RECONCILING, query.fetch_all_on(&mut *conn)).await?))
}

/// Everything that is known of these jobs and these orgs together; their timers are locked.
async fn look<'a>(
    conn: Conn<'_, '_>,
    jobs: impl Iterator<Item = &'a Definition> + Clone,
    orgs: &[(OrgId, OrgSettings)],
) -> StoreResult<ReconcileInput> {
    let ids: Vec<String> = orgs.iter().map(|(id, _)| id.to_string()).collect();
    let keys: Vec<String> = jobs.clone().map(|job| job.key.to_string()).collect();
    let query = sqlx::query_as(include_str!("sql/read_overrides.sql")).bind(ids.clone()).bind(keys);
    let overrides: Vec<OrgOverrideColumns> = on(RECONCILING, query.fetch_all_on(&mut *conn)).await?;
    let query = sqlx::query_as(include_str!("sql/lock_org_timers.sql"))
        .bind(jobs.clone().map(|job| job.id.as_uuid()).collect::<Vec<_>>())
        .bind(ids);
    let timers: Vec<OrgTimerColumns> = on(RECONCILING, query.fetch_all_on(&mut *conn)).await?;
    let mut looked = ReconcileInput::new(overrides, timers)?;
    let owners: Vec<Owner> = looked.timers().cloned().collect();
    looked.with_active(org_active_of(&mut *conn, &owners).await?);
    let upstream = jobs.filter_map(|job| job.policies.depends_on.as_ref().map(|on| on.job_key.to_string()));
    looked.upstream = upstream_of(conn, upstream.collect()).await?;
    Ok(looked)
}

async fn write_org_update(conn: Conn<'_, '_>, batch: &OrgUpdateBatch, now: Timestamp) -> StoreResult<HashSet<Uuid>> {
    if !batch.timers.is_empty() {
        let t = &batch.timers;
        let query = sqlx::query(include_str!("sql/upsert_timers.sql"))
            .bind(column(t, |t| t.timer.job_id))
            .bind(column(t, |t| t.timer.org_id.as_str()))
            .bind(column(t, |t| t.target.as_str()))
            .bind(column(t, |t| t.timer.next_run_at))
            .bind(column(t, |t| t.timer.last_slot_at))
            .bind(column(t, |t| t.timer.rescheduled_from))
            .bind(column(t, |t| t.timer.last_local_date.as_deref()))
            .bind(column(t, |t| t.error.as_deref()));
        on(RECONCILING, query.execute_on(&mut *conn)).await?;
    }
    if !batch.removed.is_empty() {
        let query = sqlx::query(include_str!("sql/delete_timers.sql"))
            .bind(column(&batch.removed, |(job, _)| *job))
            .bind(column(&batch.removed, |(_, org)| org.as_str()));
        on(RECONCILING, query.execute_on(&mut *conn)).await?;
    }
    let inserted = write(&mut *conn, RECONCILING, &batch.plans, REPLACER, now).await?;
    if let Some(TakenOver { from, to, orgs }) = &batch.taken_over {
        move_active(conn, RECONCILING, *from, *to, orgs.clone()).await?;
    }
    Ok(inserted)
}

/// Starts an org update, in the transaction that makes it necessary.
pub(super) async fn begin(
    conn: Conn<'_, '_>,
    what: &str,
    job: &Definition,
    task: &OrgTask,
    audit: &AuditEntry,
) -> StoreResult<()> {
    let org_update = OrgUpdateColumns::new(job, task, audit);
    let query = sqlx::query(include_str!("sql/insert_org_update.sql"))
        .bind(org_update.id)
        .bind(org_update.job_id)
        .bind(org_update.job_key)
        .bind(org_update.work)
        .bind(org_update.detail)
        .bind(org_update.actor)
        .bind(org_update.at);
    on(what, query.execute_on(&mut *conn)).await.map(drop)
}

/// Returns the facts that decide about these timers of orgs.
pub(super) async fn facts_of(conn: Conn<'_, '_>, owners: &[Owner]) -> StoreResult<HashMap<Owner, OrgFacts>> {
    let query = sqlx::query_as(include_str!("sql/read_org_facts.sql"))
        .bind(column(owners, |(job, _)| *job))
        .bind(column(owners, |(_, org)| org.as_str()));
    let rows: Vec<FactsColumns> = on("reading orgs", query.fetch_all_on(&mut *conn)).await?;
    // The plan marks missing ones as errored, each alone.
    Ok(rows.into_iter().filter_map(|row| row.read().ok()).collect())
}

/// The active runs of these jobs for these orgs, oldest first.
pub(super) async fn org_active_of(conn: Conn<'_, '_>, owners: &[Owner]) -> StoreResult<HashMap<Owner, Vec<ActiveRun>>> {
    if owners.is_empty() {
        return Ok(HashMap::new());
    }
    let query = sqlx::query_as(include_str!("sql/read_org_active.sql"))
        .bind(column(owners, |(job, _)| *job))
        .bind(column(owners, |(_, org)| org.as_str()));
    Ok(active_by_owner(on("reading active runs", query.fetch_all_on(&mut *conn)).await?))
}
