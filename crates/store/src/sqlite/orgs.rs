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
use serde::Serialize;
use uuid::Uuid;

use super::audit::insert_audit;
use super::org_timers::{org_updates, write_org_update};
use super::transaction::Tx;
use super::{SqliteStore, batch};
use crate::micros::Micros;
use crate::rows::org_updates::{OrgUpdateBatch, OrgUpdateColumns};
use crate::rows::orgs::{
    JobOrgColumns, MAX_COUNTED_ORGS, MAX_LISTED, OrgColumns, OrgCountColumns, OrgJobColumns, OverrideColumns,
    decide_writes, page_of,
};
use crate::rows::{check_limit, readable};

#[async_trait]
impl OrgStore for SqliteStore {
    async fn write_orgs(&self, writes: &[OrgWrite], audit: &AuditEntry) -> StoreResult<Vec<OrgWritten>> {
        let mut held = self.writer("writing orgs").await?;
        let mut tx = held.begin().await?;
        let there = read(&mut tx, writes.iter().map(|write| &write.id)).await?;
        let (answers, rows) = decide_writes(there, writes, audit)?;
        upsert(&mut tx, &rows).await?;
        insert_audit(&mut tx, audit).await?;
        tx.commit_and_wake().await?;
        Ok(answers)
    }

    async fn delete_org(&self, id: &OrgId, expected_revision: Option<u64>, audit: &AuditEntry) -> StoreResult<()> {
        let mut held = self.writer("deleting an org").await?;
        let mut tx = held.begin().await?;
        let org = living(&mut tx, id).await?;
        StoreError::expect_revision("org", id, expected_revision, Some(org.revision))?;
        tx.run(sqlx::query(include_str!("sql/delete_overrides.sql")).bind(id.to_string())).await?;
        let gone = org::deleted(&org, &audit.actor, Micros::from(audit.at).into());
        upsert(&mut tx, &[(OrgColumns::from(&gone), true)]).await?;
        insert_audit(&mut tx, audit).await?;
        tx.commit_and_wake().await
    }

    async fn get_org(&self, id: &OrgId) -> StoreResult<Org> {
        let mut held = self.reader("reading an org").await?;
        living(&mut held.begin().await?, id).await
    }

    async fn list_orgs(&self, filter: &OrgFilter, page: &PageRequest) -> StoreResult<Page<Org>> {
        check_limit(page.limit)?;
        let query = sqlx::query(include_str!("sql/list_orgs.sql"))
            .bind(filter.text.clone())
            .bind(filter.timezone.clone())
            .bind(filter.enabled)
            .bind(filter.errored)
            .bind(page.after.as_ref().map(|cursor| cursor.value.clone()))
            .bind(page.limit + 1);
        let mut held = self.reader("listing orgs").await?;
        let rows: Vec<OrgColumns> = held.begin().await?.all(query).await?;
        Ok(page_of(rows, page.limit, OrgColumns::read, |org| &org.id))
    }

    async fn count_orgs(&self) -> StoreResult<OrgCounts> {
        let query = sqlx::query(include_str!("sql/count_orgs.sql")).bind(MAX_COUNTED_ORGS);
        let mut held = self.reader("counting orgs").await?;
        let counts: OrgCountColumns = held.begin().await?.one(query).await?;
        Ok(counts.read())
    }

    async fn write_override(&self, id: &OrgId, write: &OverrideWrite, audit: &AuditEntry) -> StoreResult<Override> {
        let override_ = org::override_of(write, &audit.actor, Micros::from(audit.at).into())?;
        let mut held = self.writer("writing an override").await?;
        let mut tx = held.begin().await?;
        touch(&mut tx, id, audit.at).await?;
        let query = sqlx::query(include_str!("sql/write_override.sql"))
            .bind(id.to_string())
            .bind(override_.job_key.to_string())
            .bind(override_.enabled)
            .bind(override_.expression.clone())
            .bind(override_.updated_by.clone())
            .bind(Micros::from(override_.updated_at));
        tx.run(query).await?;
        insert_audit(&mut tx, audit).await?;
        tx.commit_and_wake().await?;
        Ok(override_)
    }

    async fn delete_override(&self, id: &OrgId, key: &JobKey, audit: &AuditEntry) -> StoreResult<()> {
        let mut held = self.writer("deleting an override").await?;
        let mut tx = held.begin().await?;
        touch(&mut tx, id, audit.at).await?;
        let query = sqlx::query(include_str!("sql/delete_override.sql")).bind(id.to_string()).bind(key.to_string());
        if tx.run(query).await? == 0 {
            return Err(StoreError::not_found("override", key));
        }
        insert_audit(&mut tx, audit).await?;
        tx.commit_and_wake().await
    }

    async fn list_overrides(&self, id: &OrgId) -> StoreResult<Vec<Override>> {
        let mut held = self.reader("listing overrides").await?;
        let mut tx = held.begin().await?;
        living(&mut tx, id).await?;
        let query = sqlx::query(include_str!("sql/list_overrides.sql")).bind(id.to_string());
        let rows: Vec<OverrideColumns> = tx.all(query).await?;
        Ok(rows.into_iter().filter_map(|row| row.read().ok()?).collect())
    }

    async fn job_orgs(&self, job: JobId, filter: &JobOrgFilter, page: &PageRequest) -> StoreResult<Page<JobOrg>> {
        check_limit(page.limit)?;
        let mut held = self.reader("listing the orgs of a job").await?;
        let mut tx = held.begin().await?;
        let key = self.job_row(&mut tx, job.as_uuid()).await?.job.definition.key.to_string();
        let query = sqlx::query(include_str!("sql/job_orgs.sql"))
            .bind(job.as_uuid())
            .bind(key)
            .bind(filter.text.clone())
            .bind(filter.errored)
            .bind(filter.armed)
            .bind(page.after.as_ref().map(|cursor| cursor.value.clone()))
            .bind(page.limit + 1);
        let rows: Vec<JobOrgColumns> = tx.all(query).await?;
        Ok(page_of(rows, page.limit, |row| row.read(job), |row| &row.org.id))
    }

    async fn org_jobs(&self, id: &OrgId) -> StoreResult<Vec<OrgJob>> {
        let mut held = self.reader("listing the jobs of an org").await?;
        let mut tx = held.begin().await?;
        living(&mut tx, id).await?;
        let query = sqlx::query(include_str!("sql/org_jobs.sql")).bind(id.to_string()).bind(MAX_LISTED);
        let rows: Vec<OrgJobColumns> = tx.all(query).await?;
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
        self.decide_change(job, Some(org), expected_revision, decide, audit).await
    }

    async fn reconcile_orgs(&self, now: Timestamp, limit: u32) -> StoreResult<OrgUpdateProgress> {
        let now: Timestamp = Micros::from(now).into();
        // Nothing to do is the usual answer, and needs no right to write.
        if !self.needs_reconciling().await? {
            return Ok(OrgUpdateProgress::default());
        }
        let mut held = self.writer("looking after the timers of orgs").await?;
        let mut tx = held.begin().await?;
        let mut batch = OrgUpdateBatch::default();
        let stepped = match self.look_at_waiting(&mut tx, limit, &mut batch).await? {
            None => self.step(&mut tx, now, limit, &mut batch).await?,
            some => some,
        };
        let Some(orgs) = stepped else {
            let query = sqlx::query(include_str!("sql/remove_orgs.sql")).bind(limit);
            let removed = tx.run(query).await?;
            tx.commit().await?;
            return Ok(OrgUpdateProgress { more: removed >= u64::from(limit), ..OrgUpdateProgress::default() });
        };
        let inserted = write_org_update(&mut tx, &batch, now).await?;
        if batch.timers.is_empty() && inserted.is_empty() {
            tx.commit().await?;
        } else {
            tx.commit_and_wake().await?;
        }
        Ok(batch.into_progress(&inserted, orgs, true))
    }

    async fn list_org_updates(&self) -> StoreResult<Vec<OrgUpdate>> {
        let mut held = self.reader("listing org updates").await?;
        org_updates(&mut held.begin().await?, i64::from(MAX_LISTED)).await
    }

    async fn stop_org_update(&self, id: Uuid, audit: &AuditEntry) -> StoreResult<OrgUpdate> {
        let mut held = self.writer("stopping an org update").await?;
        let mut tx = held.begin().await?;
        let row: Option<OrgUpdateColumns> =
            tx.first(sqlx::query(include_str!("sql/get_org_update.sql")).bind(id)).await?;
        let org_update = row.ok_or_else(|| StoreError::not_found("org update", id))?.read()?;
        org_update.expect_stoppable()?;
        tx.run(sqlx::query(include_str!("sql/end_org_update.sql")).bind(id)).await?;
        insert_audit(&mut tx, audit).await?;
        tx.commit_and_wake().await?;
        Ok(org_update)
    }
}

async fn living(tx: &mut Tx<'_>, id: &OrgId) -> StoreResult<Org> {
    let query = sqlx::query(include_str!("sql/get_org.sql")).bind(id.to_string());
    let row: Option<OrgColumns> = tx.first(query).await?;
    row.ok_or_else(|| StoreError::not_found("org", id))?.read()
}

/// These orgs as they are, also those that are gone but for their timers.
async fn read(tx: &mut Tx<'_>, ids: impl Iterator<Item = &OrgId>) -> StoreResult<HashMap<String, Org>> {
    let query = sqlx::query(include_str!("sql/lock_orgs.sql")).bind(batch::rows(ids.map(OrgId::as_str)));
    let rows: Vec<OrgColumns> = tx.all(query).await?;
    rows.into_iter().map(|row| Ok((row.id.clone(), row.read()?))).collect()
}

async fn upsert(tx: &mut Tx<'_>, rows: &[(OrgColumns, bool)]) -> StoreResult<()> {
    if !rows.is_empty() {
        tx.run(sqlx::query(include_str!("sql/upsert_orgs.sql")).bind(batch::rows(rows.iter().map(org_row)))).await?;
    }
    Ok(())
}

fn org_row((o, waiting): &(OrgColumns, bool)) -> impl Serialize + '_ {
    (
        &o.id,
        &o.name,
        &o.settings,
        &o.place.timezone,
        o.place.enabled,
        o.place.deleted,
        o.place.changed_at,
        &o.place.moved_from,
        o.place.moved_at,
        o.revision,
        o.created_at,
        &o.updated_by,
        o.updated_at,
        *waiting,
    )
}

async fn touch(tx: &mut Tx<'_>, id: &OrgId, at: Timestamp) -> StoreResult<()> {
    let query = sqlx::query(include_str!("sql/touch_org.sql")).bind(id.to_string()).bind(Micros::from(at));
    if tx.run(query).await? == 0 {
        return Err(StoreError::not_found("org", id));
    }
    Ok(())
}
