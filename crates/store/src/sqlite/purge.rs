//! Deleting jobs: one on request, with everything about it, and one-time jobs that are over.

use everbell_core::store::{AuditEntry, Deed, PurgedJob, StoreError, StoreResult};
use everbell_core::{JobId, JobKey, RunId, RunStatus, purge};
use jiff::Timestamp;
use uuid::Uuid;

use super::transaction::Tx;
use super::{SqliteStore, audit, batch};
use crate::micros::Micros;

impl SqliteStore {
    pub(super) async fn purge_step(
        &self,
        key: &JobKey,
        limit: u32,
        so_far: PurgedJob,
        audit: &AuditEntry,
    ) -> StoreResult<PurgedJob> {
        let mut held = self.writer(format!("purging job `{key}`")).await?;
        let mut tx = held.begin().await?;
        let (versions, purged) = purge_in(&mut tx, key, limit, so_far, audit).await?;
        tx.commit_and_wake().await?;
        self.known.forget(versions.into_iter().map(JobId::from_uuid));
        Ok(purged)
    }
}

async fn purge_in(
    tx: &mut Tx<'_>,
    key: &JobKey,
    limit: u32,
    so_far: PurgedJob,
    audit: &AuditEntry,
) -> StoreResult<(Vec<Uuid>, PurgedJob)> {
    let name = key.to_string();
    let versions: Vec<(Uuid,)> = tx.all(sqlx::query(include_str!("sql/purge_versions.sql")).bind(name.clone())).await?;
    if versions.is_empty() {
        return Err(StoreError::not_found("job", key));
    }
    let versions: Vec<Uuid> = versions.into_iter().map(|(id,)| id).collect();
    let active: Vec<(Uuid, String)> =
        tx.all(sqlx::query(include_str!("sql/purge_active.sql")).bind(name.clone())).await?;
    let is_at_work = |(_, status): &&(Uuid, String)| status == RunStatus::Running.as_str();
    let at_work: Vec<RunId> = active.iter().filter(is_at_work).map(|(id, _)| RunId::from_uuid(*id)).collect();
    purge::expect_idle(key, &at_work)?;

    let pending = batch::ids(active.into_iter().map(|(id, _)| id));
    tx.run(sqlx::query(include_str!("sql/purge_pending.sql")).bind(pending.clone())).await?;
    let pending = tx.run(sqlx::query(include_str!("sql/delete_runs.sql")).bind(pending)).await?;
    let ids = batch::ids(versions.iter().copied());
    let ended = tx.run(sqlx::query(include_str!("sql/purge_runs.sql")).bind(ids.clone()).bind(limit)).await?;
    let gaps = tx.run(sqlx::query(include_str!("sql/purge_gaps.sql")).bind(ids.clone()).bind(limit)).await?;
    let purged = PurgedJob::some(pending + ended, gaps);
    if ended == u64::from(limit) || gaps == u64::from(limit) {
        let query = sqlx::query(include_str!("sql/purge_retire.sql")).bind(ids.clone());
        tx.run(query.bind(audit.actor.clone()).bind(Micros::from(audit.at))).await?;
        tx.run(sqlx::query(include_str!("sql/purge_disarm.sql")).bind(ids)).await?;
        return Ok((versions, purged));
    }
    tx.run(sqlx::query(include_str!("sql/delete_job_timers.sql")).bind(ids.clone())).await?;
    tx.run(sqlx::query(include_str!("sql/purge_updates.sql")).bind(ids.clone())).await?;
    tx.run(sqlx::query(include_str!("sql/purge_overrides.sql")).bind(name.clone())).await?;
    tx.run(sqlx::query(include_str!("sql/purge_counters.sql")).bind(name.clone())).await?;
    tx.run(sqlx::query(include_str!("sql/purge_backfills.sql")).bind(name.clone())).await?;
    tx.run(sqlx::query(include_str!("sql/purge_run_groups.sql")).bind(name.clone())).await?;
    for sql in [include_str!("sql/purge_refusals.sql"), include_str!("sql/purge_inbox.sql")] {
        tx.run(sqlx::query(sql).bind(name.clone()).bind(purge::REMOVED_REASON)).await?;
    }
    let deleted = tx.run(sqlx::query(include_str!("sql/delete_jobs.sql")).bind(ids)).await?;
    tx.run(sqlx::query(include_str!("sql/purge_audit.sql")).bind(audit.object.clone())).await?;
    let purged = PurgedJob::last(deleted, purged.runs, purged.gaps);
    let deed = || Deed { purged: Some((key.clone(), so_far.and(purged))), ..Deed::default() };
    audit::insert_audit_of(tx, audit, deed).await?;
    Ok((versions, purged))
}

/// Deletes one-time jobs that were retired before this time and that nothing refers to any more. Returns how many, and
/// the definitions that are to be forgotten when this is committed.
pub(super) async fn prune_jobs(tx: &mut Tx<'_>, before: Timestamp, limit: u32) -> StoreResult<(u64, Vec<JobId>)> {
    let query = sqlx::query(include_str!("sql/prune_jobs.sql")).bind(Micros::from(before)).bind(limit);
    let old: Vec<(Uuid,)> = tx.all(query).await?;
    if old.is_empty() {
        return Ok((0, Vec::new()));
    }
    let ids = batch::ids(old.iter().map(|(id,)| *id));
    tx.run(sqlx::query(include_str!("sql/delete_job_timers.sql")).bind(ids.clone())).await?;
    let cut: Vec<(Uuid,)> = tx.all(sqlx::query(include_str!("sql/cut_superseded.sql")).bind(ids.clone())).await?;
    let deleted = tx.run(sqlx::query(include_str!("sql/delete_jobs.sql")).bind(ids)).await?;
    Ok((deleted, old.into_iter().chain(cut).map(|(id,)| JobId::from_uuid(id)).collect()))
}
