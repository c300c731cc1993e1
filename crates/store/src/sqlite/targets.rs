//! Targets that admins define.

use async_trait::async_trait;
use everbell_core::store::{
    AuditEntry, MAX_NAMED_USERS, MAX_STORED_TARGETS, StoreError, StoreResult, StoredTarget, TargetStore,
};
use everbell_core::{JobKey, Json, Target};

use super::SqliteStore;
use super::audit::insert_audit;
use super::transaction::Tx;
use crate::micros::Micros;
use crate::rows::readable;
use crate::rows::targets::{TargetColumns, too_many};

#[async_trait]
impl TargetStore for SqliteStore {
    async fn stored_targets(&self) -> StoreResult<Vec<StoredTarget>> {
        let rows: Vec<TargetColumns> =
            self.read("reading targets", sqlx::query(include_str!("sql/stored_targets.sql"))).await?;
        Ok(readable(rows, |row| row.label.clone(), TargetColumns::read).0)
    }

    async fn put_target(
        &self,
        label: &Target,
        definition: &Json,
        expected_revision: Option<u32>,
        audit: &AuditEntry,
    ) -> StoreResult<StoredTarget> {
        let mut held = self.writer("writing a target").await?;
        let mut tx = held.begin().await?;
        let before = find(&mut tx, label).await?;
        StoredTarget::expect(before.as_ref(), label, expected_revision)?;
        if before.is_none() {
            let (all,): (i64,) = tx.one(sqlx::query(include_str!("sql/count_stored_targets.sql"))).await?;
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
        tx.run(query).await?;
        insert_audit(&mut tx, &audit).await?;
        tx.commit().await?;
        Ok(written)
    }

    async fn delete_target(
        &self,
        label: &Target,
        expected_revision: Option<u32>,
        force: bool,
        audit: &AuditEntry,
    ) -> StoreResult<()> {
        let mut held = self.writer("deleting a target").await?;
        let mut tx = held.begin().await?;
        let before = find(&mut tx, label).await?;
        if before.is_none() {
            return Err(StoreError::not_found("target", label));
        }
        StoredTarget::expect(before.as_ref(), label, expected_revision)?;
        if !force {
            let query = sqlx::query(include_str!("sql/jobs_of_target.sql")).bind(label.to_string());
            let users: Vec<(String,)> = tx.all(query.bind(MAX_NAMED_USERS as i64 + 1)).await?;
            let users: Vec<JobKey> = users.iter().filter_map(|(key,)| JobKey::new(key).ok()).collect();
            StoredTarget::expect_unused(label, &users)?;
        }
        tx.run(sqlx::query(include_str!("sql/delete_target.sql")).bind(label.to_string())).await?;
        insert_audit(&mut tx, audit).await?;
        tx.commit().await
    }
}

async fn find(tx: &mut Tx<'_>, label: &Target) -> StoreResult<Option<StoredTarget>> {
    let query = sqlx::query(include_str!("sql/lock_target.sql")).bind(label.to_string());
    let row: Option<TargetColumns> = tx.first(query).await?;
    row.map(TargetColumns::read).transpose()
}
