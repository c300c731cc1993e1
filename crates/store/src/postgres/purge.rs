//! Deleting jobs: one on request, with everything about it, and one-time jobs that are over.

use everbell_core::store::{AuditEntry, Deed, PurgedJob, StoreError, StoreResult};
use everbell_core::{JobId, JobKey, RunId, RunStatus, purge};
use jiff::Timestamp;
use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use uuid::Uuid;

use super::connect::{Conn, on};
use super::outcomes::MAX_DEADLOCK_ATTEMPTS;
use super::statement::Statement;
use super::{PostgresStore, audit, errors};
use crate::micros::Micros;

impl PostgresStore {
    /// One step of a purge, again after a deadlock, which leaves everything as it was.
    pub(super) async fn purge_step(
        &self,
        key: &JobKey,
        limit: u32,
        so_far: PurgedJob,
        audit: &AuditEntry,
    ) -> StoreResult<PurgedJob> {
        let what = format!("purging job `{key}`");
        let mut attempt = 1;
        loop {
            let mut tx = self.begin(&what).await?;
            let done = purge_in(&mut tx, &what, key, limit, so_far, audit).await;
            match self.finish_transaction(&what, tx, done, |_| true).await {
                Err(error) if errors::is_deadlock(&error) && attempt < MAX_DEADLOCK_ATTEMPTS => attempt += 1,
                Err(error) => return Err(error),
                Ok((versions, purged)) => {
                    self.known.forget(versions.into_iter().map(JobId::from_uuid));
                    return Ok(purged);
                }
            }
        }
    }

    /// Deletes one-time jobs that were retired before this time and that nothing refers to any more.
    pub(super) async fn prune_jobs(&self, before: Timestamp, limit: i64) -> StoreResult<u64> {
        let query = sqlx::query_as(include_str!("sql/prune_jobs.sql")).bind(Micros::from(before)).bind(limit);
        let rows: Vec<(Uuid, bool)> = self.alone("pruning finished jobs", query.fetch_all_on(&self.pool)).await?;
        self.known.forget(rows.iter().map(|(id, _)| JobId::from_uuid(*id)));
        Ok(rows.iter().filter(|(_, deleted)| *deleted).count() as u64)
    }
}

/// Locks the runs that have not ended, and returns their statuses.
async fn active_runs(tx: Conn<'_, '_>, what: &str, key: &JobKey) -> StoreResult<Vec<(Uuid, String)>> {
    let query = sqlx::query_as(include_str!("sql/purge_active.sql")).bind(key.as_str().to_owned());
    on(what, query.fetch_all_on(&mut *tx)).await
}

async fn purge_in(
    tx: Conn<'_, '_>,
    what: &str,
    key: &JobKey,
    limit: u32,
    so_far: PurgedJob,
    audit: &AuditEntry,
) -> StoreResult<(Vec<Uuid>, PurgedJob)> {
    let name = || key.as_str().to_owned();
    // In the order of all locks: org updates, timers, active runs, jobs.
    run(tx, what, sqlx::query(include_str!("sql/purge_lock_updates.sql")).bind(name())).await?;
    run(tx, what, sqlx::query(include_str!("sql/purge_lock_timers.sql")).bind(name())).await?;
    active_runs(tx, what, key).await?;
    let query = sqlx::query_scalar(include_str!("sql/purge_versions.sql")).bind(name());
    let versions: Vec<Uuid> = on(what, query.fetch_all_on(&mut *tx)).await?;
    if versions.is_empty() {
        return Err(StoreError::not_found("job", key));
    }
    // Again: a run may have been asked for while the versions were not locked.
    let active = active_runs(tx, what, key).await?;
    let is_at_work = |(_, status): &&(Uuid, String)| status == RunStatus::Running.as_str();
    let at_work: Vec<RunId> = active.iter().filter(is_at_work).map(|(id, _)| RunId::from_uuid(*id)).collect();
    purge::expect_idle(key, &at_work)?;

    let pending: Vec<Uuid> = active.into_iter().map(|(id, _)| id).collect();
    let pending = run(tx, what, sqlx::query(include_str!("sql/purge_pending.sql")).bind(pending)).await?;
    let most = i64::from(limit);
    let query = sqlx::query(include_str!("sql/purge_runs.sql")).bind(versions.clone()).bind(most);
    let ended = run(tx, what, query).await?;
    let query = sqlx::query(include_str!("sql/purge_gaps.sql")).bind(versions.clone()).bind(most);
    let gaps = run(tx, what, query).await?;
    let purged = PurgedJob::some(pending + ended, gaps);
    if ended == u64::from(limit) || gaps == u64::from(limit) {
        let query = sqlx::query(include_str!("sql/purge_retire.sql")).bind(versions.clone());
        run(tx, what, query.bind(audit.actor.clone()).bind(Micros::from(audit.at))).await?;
        run(tx, what, sqlx::query(include_str!("sql/purge_disarm.sql")).bind(versions.clone())).await?;
        return Ok((versions, purged));
    }
    run(tx, what, sqlx::query(include_str!("sql/delete_job_timers.sql")).bind(versions.clone())).await?;
    run(tx, what, sqlx::query(include_str!("sql/purge_updates.sql")).bind(versions.clone())).await?;
    run(tx, what, sqlx::query(include_str!("sql/purge_overrides.sql")).bind(name())).await?;
    let deleted = run(tx, what, sqlx::query(include_str!("sql/delete_jobs.sql")).bind(versions.clone())).await?;
    for sql in [include_str!("sql/purge_refusals.sql"), include_str!("sql/purge_inbox.sql")] {
        run(tx, what, sqlx::query(sql).bind(name()).bind(purge::REMOVED_REASON)).await?;
    }
    run(tx, what, sqlx::query(include_str!("sql/purge_counters.sql")).bind(name())).await?;
    run(tx, what, sqlx::query(include_str!("sql/purge_backfills.sql")).bind(name())).await?;
    run(tx, what, sqlx::query(include_str!("sql/purge_run_groups.sql")).bind(name())).await?;
    run(tx, what, sqlx::query(include_str!("sql/purge_audit.sql")).bind(audit.object.clone())).await?;
    let purged = PurgedJob::last(deleted, purged.runs, purged.gaps);
    let deed = || Deed { purged: Some((key.clone(), so_far.and(purged))), ..Deed::default() };
    audit::insert_audit_of(tx, audit, deed).await?;
    Ok((versions, purged))
}

/// Sends a statement, and returns how many rows it changed.
async fn run(tx: Conn<'_, '_>, what: &str, query: Query<'static, Postgres, PgArguments>) -> StoreResult<u64> {
    Ok(on(what, query.execute_on(tx)).await?.rows_affected())
}
