//! Targets that admins define.

use async_trait::async_trait;
use everbell_core::store::{
    AuditEntry, MAX_NAMED_USERS, MAX_STORED_TARGETS, StoreError, StoreResult, StoredTarget, TargetStore,
};
use everbell_core::{JobKey, Json, Target};

use super::PostgresStore;
use super::audit::insert_audit;
use super::connect::{Conn, on};
use super::statement::Statement;
use crate::micros::Micros;
use crate::rows::readable;
use crate::rows::targets::{TargetColumns, too_many};

const WRITING: &str = "writing a target";
const DELETING: &str = "deleting a target";

#[async_trait]
impl TargetStore for PostgresStore {
    async fn stored_targets(&self) -> StoreResult<Vec<StoredTarget>> {
        let query = sqlx::query_as(include_str!("sql/stored_targets.sql"));
        let rows: Vec<TargetColumns> = self.within("reading targets", query.fetch_all_on(&self.pool)).await?;
        Ok(readable(rows, |row| row.label.clone(), TargetColumns::read).0)
    }

    async fn put_target(
        &self,
        label: &Target,
        definition: &Json,
        expected_revision: Option<u32>,
        audit: &AuditEntry,
    ) -> StoreResult<StoredTarget> {
        let mut tx = self.begin(WRITING).await?;
        let done = async {
            let before = lock(&mut tx, WRITING, label).await?;
            StoredTarget::expect(before.as_ref(), label, expected_revision)?;
            if before.is_none() {
                let query = sqlx::query_as(include_str!("sql/count_stored_targets.sql"));
                let (all,): (i64,) = on(WRITING, query.fetch_one_on(&mut tx)).await?;
                if all >= MAX_STORED_TARGETS as i64 {
                    return Err(too_many().into());
                }
            }
            let audit = AuditEntry { at: Micros::from(audit.at).into(), ..audit.clone() };
            let written = StoredTarget::next(before.as_ref(), label, definition, &audit.actor, audit.at);
            let row = TargetColumns::new(&written);
            let query = sqlx::query(include_str!("sql/put_target.sql"))
                .bind(row.label)
                .bind(row.revision)
                .bind(row.definition)
                .bind(row.updated_by)
                .bind(row.created_at)
                .bind(row.updated_at);
            if on(WRITING, query.execute_on(&mut tx)).await?.rows_affected() == 0 {
                let what = format!("target `{label}` was written by another request");
                return Err(StoreError::Conflict { what });
            }
            insert_audit(&mut tx, &audit).await?;
            Ok(written)
        };
        let done = done.await;
        self.finish_transaction(WRITING, tx, done, |_| false).await
    }

    async fn delete_target(
        &self,
        label: &Target,
        expected_revision: Option<u32>,
        force: bool,
        audit: &AuditEntry,
    ) -> StoreResult<()> {
        let mut tx = self.begin(DELETING).await?;
        let done = async {
            let before = lock(&mut tx, DELETING, label).await?;
            if before.is_none() {
                return Err(StoreError::not_found("target", label));
            }
            StoredTarget::expect(before.as_ref(), label, expected_revision)?;
            if !force {
                let query = sqlx::query_as(include_str!("sql/jobs_of_target.sql")).bind(label.to_string());
                let query = query.bind(MAX_NAMED_USERS as i64 + 1);
                let users: Vec<(String,)> = on(DELETING, query.fetch_all_on(&mut tx)).await?;
                let users: Vec<JobKey> = users.iter().filter_map(|(key,)| JobKey::new(key).ok()).collect();
                StoredTarget::expect_unused(label, &users)?;
            }
            let query = sqlx::query(include_str!("sql/delete_target.sql")).bind(label.to_string());
            on(DELETING, query.execute_on(&mut tx)).await?;
            insert_audit(&mut tx, audit).await
        };
        let done = done.await;
        self.finish_transaction(DELETING, tx, done, |()| false).await
    }
}

async fn lock(conn: Conn<'_, '_>, what: &str, label: &Target) -> StoreResult<Option<StoredTarget>> {
    let query = sqlx::query_as(include_str!("sql/lock_target.sql")).bind(label.to_string());
    let row: Option<TargetColumns> = on(what, query.fetch_optional_on(conn)).await?;
    row.map(TargetColumns::read).transpose()
}
