//! Orgs, what they override, and their timers.

use std::collections::HashMap;

use async_trait::async_trait;
use everbell_core::org::{self, Org, OrgUpdate, OrgWrite, Override, OverrideWrite};
use everbell_core::store::{
    AuditEntry, Changed, DecideFn, JobOrg, JobOrgFilter, JobRef, OrgCounts, OrgFilter, OrgJob, OrgStore,
    OrgUpdateProgress, OrgWritten, Page, PageRequest, StoreError, StoreResult,
};
use everbell_core::{JobId, JobKey, OrgId};
use jiff::Timestamp;
use uuid::Uuid;

use super::PostgresStore;
use super::audit::insert_audit;
use super::connect::{Conn, on};
use super::job_changes::Wanted;
use super::org_timers::{RECONCILING, Stepped};
use super::statement::Statement;
use super::timers::column;
use crate::micros::Micros;
use crate::rows::org_updates::{OrgUpdateColumns, readable_org_updates};
use crate::rows::orgs::{
    JobOrgColumns, MAX_COUNTED_ORGS, MAX_LISTED, OrgColumns, OrgCountColumns, OrgJobColumns, OverrideColumns,
    decide_writes, page_of,
};
use crate::rows::{check_limit, readable};

#[async_trait]
impl OrgStore for PostgresStore {
    async fn write_orgs(&self, writes: &[OrgWrite], audit: &AuditEntry) -> StoreResult<Vec<OrgWritten>> {
        const WHAT: &str = "writing orgs";
        let mut tx = self.begin(WHAT).await?;
        let done = put_in(&mut tx, WHAT, writes, audit).await;
        self.finish_transaction(WHAT, tx, done, |written| written.iter().any(|one| one.changed)).await
    }

    async fn delete_org(&self, id: &OrgId, expected_revision: Option<u64>, audit: &AuditEntry) -> StoreResult<()> {
        const WHAT: &str = "deleting an org";
        let mut tx = self.begin(WHAT).await?;
        let done = async {
            let mut there = lock(&mut tx, WHAT, vec![id.to_string()]).await?;
            let org = there.remove(id.as_str()).filter(|org| !org.place.deleted);
            let org = org.ok_or_else(|| StoreError::not_found("org", id))?;
            StoreError::expect_revision("org", id, expected_revision, Some(org.revision))?;
            let query = sqlx::query(include_str!("sql/delete_overrides.sql")).bind(id.to_string());
            on(WHAT, query.execute_on(&mut tx)).await?;
            let gone = org::deleted(&org, &audit.actor, Micros::from(audit.at).into());
            upsert(&mut tx, WHAT, &[(OrgColumns::from(&gone), true)]).await?;
            insert_audit(&mut tx, audit).await
        };
        let done = done.await;
        self.finish_transaction(WHAT, tx, done, |()| true).await
    }

    async fn get_org(&self, id: &OrgId) -> StoreResult<Org> {
        let query = sqlx::query_as(include_str!("sql/get_org.sql")).bind(id.to_string());
        let row: Option<OrgColumns> = self.within("reading an org", query.fetch_optional_on(&self.pool)).await?;
        row.ok_or_else(|| StoreError::not_found("org", id))?.read()
    }

    async fn list_orgs(&self, filter: &OrgFilter, page: &PageRequest) -> StoreResult<Page<Org>> {
        check_limit(page.limit)?;
        let query = sqlx::query_as(include_str!("sql/list_orgs.sql"))
            .persistent(false)
            .bind(filter.text.clone())
            .bind(filter.timezone.clone())
            .bind(filter.enabled)
            .bind(filter.errored)
            .bind(page.after.as_ref().map(|cursor| cursor.value.clone()))
            .bind(i64::from(page.limit) + 1);
        let rows: Vec<OrgColumns> = self.within("listing orgs", query.fetch_all_on(&self.pool)).await?;
        Ok(page_of(rows, page.limit, OrgColumns::read, |org| &org.id))
    }

    async fn count_orgs(&self) -> StoreResult<OrgCounts> {
        let query = sqlx::query_as(include_str!("sql/count_orgs.sql")).bind(i64::from(MAX_COUNTED_ORGS));
        let counts: OrgCountColumns = self.within("counting orgs", query.fetch_one_on(&self.pool)).await?;
        Ok(counts.read())
    }

    async fn write_override(&self, id: &OrgId, write: &OverrideWrite, audit: &AuditEntry) -> StoreResult<Override> {
        const WHAT: &str = "writing an override";
        let override_ = org::override_of(write, &audit.actor, Micros::from(audit.at).into())?;
        let mut tx = self.begin(WHAT).await?;
        let done = async {
            touch(&mut tx, WHAT, id, audit.at).await?;
            let query = sqlx::query(include_str!("sql/write_override.sql"))
                .bind(id.to_string())
                .bind(override_.job_key.to_string())
                .bind(override_.enabled)
                .bind(override_.expression.clone())
                .bind(override_.updated_by.clone())
                .bind(Micros::from(override_.updated_at));
            on(WHAT, query.execute_on(&mut tx)).await?;
            insert_audit(&mut tx, audit).await?;
            Ok(override_.clone())
        };
        let done = done.await;
        self.finish_transaction(WHAT, tx, done, |_| true).await
    }

    async fn delete_override(&self, id: &OrgId, key: &JobKey, audit: &AuditEntry) -> StoreResult<()> {
        const WHAT: &str = "deleting an override";
        let mut tx = self.begin(WHAT).await?;
        let done = async {
            touch(&mut tx, WHAT, id, audit.at).await?;
            let query = sqlx::query(include_str!("sql/delete_override.sql")).bind(id.to_string()).bind(key.to_string());
            if on(WHAT, query.execute_on(&mut tx)).await?.rows_affected() == 0 {
                return Err(StoreError::not_found("override", key));
            }
            insert_audit(&mut tx, audit).await
        };
        let done = done.await;
        self.finish_transaction(WHAT, tx, done, |()| true).await
    }

    async fn list_overrides(&self, id: &OrgId) -> StoreResult<Vec<Override>> {
        self.get_org(id).await?;
        let query = sqlx::query_as(include_str!("sql/list_overrides.sql")).bind(id.to_string());
        let rows: Vec<OverrideColumns> = self.within("listing overrides", query.fetch_all_on(&self.pool)).await?;
        Ok(rows.into_iter().filter_map(|row| row.read().ok()?).collect())
    }

    async fn job_orgs(&self, job: JobId, filter: &JobOrgFilter, page: &PageRequest) -> StoreResult<Page<JobOrg>> {
        check_limit(page.limit)?;
        let key = self.job_row(job.as_uuid()).await?.job.definition.key.to_string();
        let query = sqlx::query_as(include_str!("sql/job_orgs.sql"))
            .persistent(false)
            .bind(job.as_uuid())
            .bind(key)
            .bind(filter.text.clone())
            .bind(filter.errored)
            .bind(filter.armed)
            .bind(page.after.as_ref().map(|cursor| cursor.value.clone()))
            .bind(i64::from(page.limit) + 1);
        let rows: Vec<JobOrgColumns> = self.within("listing the orgs of a job", query.fetch_all_on(&self.pool)).await?;
        Ok(page_of(rows, page.limit, |row| row.read(job), |row| &row.org.id))
    }

    async fn org_jobs(&self, id: &OrgId) -> StoreResult<Vec<OrgJob>> {
        self.get_org(id).await?;
        let query = sqlx::query_as(include_str!("sql/org_jobs.sql")).bind(id.to_string()).bind(i64::from(MAX_LISTED));
        let rows: Vec<OrgJobColumns> =
            self.within("listing the jobs of an org", query.fetch_all_on(&self.pool)).await?;
        Ok(readable(rows, |row| row.job.id, |row| row.read(id, &self.known)).0)
    }

    async fn change_org_job(
        &self,
        job: &JobRef,
        org: &OrgId,
        expected_revision: Option<u64>,
        decide: &DecideFn<'_>,
        audit: &AuditEntry,
    ) -> StoreResult<Changed> {
        self.decide_change(Wanted { job, org: Some(org), expected_revision, is_audited: true }, decide, audit).await
    }

    async fn reconcile_orgs(&self, now: Timestamp, limit: u32) -> StoreResult<OrgUpdateProgress> {
        // Nothing to do is the usual answer.
        let query = sqlx::query_scalar(include_str!("sql/org_update_needed.sql"));
        if !self.within(RECONCILING, query.fetch_one_on(&self.loops)).await? {
            return Ok(OrgUpdateProgress::default());
        }
        let mut tx = self.begin_loop(RECONCILING).await?;
        let done = self.reconcile_in(&mut tx, now, limit).await;
        let done = self.finish_transaction(RECONCILING, tx, done, Stepped::is_news).await?;
        if done.is_news() {
            self.wake.notify_waiters();
        }
        Ok(done.batch.into_progress(&done.inserted, done.orgs, done.more))
    }

    async fn list_org_updates(&self) -> StoreResult<Vec<OrgUpdate>> {
        let query = sqlx::query_as(include_str!("sql/list_org_updates.sql")).bind(i64::from(MAX_LISTED));
        Ok(readable_org_updates(self.within("listing org updates", query.fetch_all_on(&self.pool)).await?))
    }

    async fn stop_org_update(&self, id: Uuid, audit: &AuditEntry) -> StoreResult<OrgUpdate> {
        const WHAT: &str = "stopping an org update";
        let mut tx = self.begin(WHAT).await?;
        let done = async {
            // Waits for a step that is under way.
            let query = sqlx::query_as(include_str!("sql/get_org_update.sql")).bind(id);
            let row: Option<OrgUpdateColumns> = on(WHAT, query.fetch_optional_on(&mut tx)).await?;
            let org_update = row.ok_or_else(|| StoreError::not_found("org update", id))?.read()?;
            org_update.expect_stoppable()?;
            on(WHAT, sqlx::query(include_str!("sql/end_org_update.sql")).bind(id).execute_on(&mut tx)).await?;
            insert_audit(&mut tx, audit).await?;
            Ok(org_update)
        };
        let done = done.await;
        self.finish_transaction(WHAT, tx, done, |_| true).await
    }
}

async fn put_in(
    conn: Conn<'_, '_>,
    what: &str,
    writes: &[OrgWrite],
    audit: &AuditEntry,
) -> StoreResult<Vec<OrgWritten>> {
    let there = lock(conn, what, writes.iter().map(|write| write.id.to_string()).collect()).await?;
    let (answers, rows) = decide_writes(there, writes, audit)?;
    upsert(conn, what, &rows).await?;
    insert_audit(conn, audit).await?;
    Ok(answers)
}

/// These orgs as they are, also those that are gone but for their timers.
async fn lock(conn: Conn<'_, '_>, what: &str, ids: Vec<String>) -> StoreResult<HashMap<String, Org>> {
    let query = sqlx::query_as(include_str!("sql/lock_orgs.sql")).bind(ids);
    let rows: Vec<OrgColumns> = on(what, query.fetch_all_on(&mut *conn)).await?;
    rows.into_iter().map(|row| Ok((row.id.clone(), row.read()?))).collect()
}

async fn upsert(conn: Conn<'_, '_>, what: &str, rows: &[(OrgColumns, bool)]) -> StoreResult<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let query = sqlx::query(include_str!("sql/upsert_orgs.sql"))
        .bind(column(rows, |(o, _)| o.id.as_str()))
        .bind(column(rows, |(o, _)| o.name.as_str()))
        .bind(column(rows, |(o, _)| o.settings.as_str()))
        .bind(column(rows, |(o, _)| o.place.timezone.as_str()))
        .bind(column(rows, |(o, _)| o.place.enabled))
        .bind(column(rows, |(o, _)| o.place.deleted))
        .bind(column(rows, |(o, _)| o.place.changed_at))
        .bind(column(rows, |(o, _)| o.place.moved_from.as_deref()))
        .bind(column(rows, |(o, _)| o.place.moved_at))
        .bind(column(rows, |(o, _)| o.revision))
        .bind(column(rows, |(o, _)| o.created_at))
        .bind(column(rows, |(o, _)| o.updated_by.as_str()))
        .bind(column(rows, |(o, _)| o.updated_at))
        .bind(column(rows, |(_, waiting)| *waiting));
    // Existing rows are locked, so only an org that was created at the same time can conflict.
    if on(what, query.execute_on(&mut *conn)).await?.rows_affected() < rows.len() as u64 {
        let what = "an org in this request was created concurrently; retry".to_owned();
        return Err(StoreError::Conflict { what });
    }
    Ok(())
}

async fn touch(conn: Conn<'_, '_>, what: &str, id: &OrgId, at: Timestamp) -> StoreResult<()> {
    let query = sqlx::query(include_str!("sql/touch_org.sql")).bind(id.to_string()).bind(Micros::from(at));
    if on(what, query.execute_on(&mut *conn)).await?.rows_affected() == 0 {
        return Err(StoreError::not_found("org", id));
    }
    Ok(())
}
