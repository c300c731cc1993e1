//! Instances, tokens, the audit trail, remembered requests.

use everbell_core::store::{
    AuditEntry, Cursor, Deed, Instance, LastAdmin, NewToken, Page, PageRequest, StoreError, StoreResult, Token,
};
use everbell_core::{InstanceId, Target};
use jiff::Timestamp;

use super::connect::check_limit;
use super::transaction::{Statement, Tx};
use super::{SqliteStore, requests};
use crate::micros::Micros;
use crate::rows::{AuditColumns, InstanceColumns, TokenColumns, audit_json, bad_cursor, readable, words_of};

const MICROS_PER_MINUTE: i64 = 60_000_000;

impl SqliteStore {
    /// One statement, alone in its transaction.
    pub(super) async fn write(&self, what: &str, statement: Statement) -> StoreResult<u64> {
        let mut held = self.writer(what).await?;
        let mut tx = held.begin().await?;
        let written = tx.run(statement).await?;
        if written > 0 {
            tx.commit().await?;
        }
        Ok(written)
    }

    pub(super) async fn write_instance(&self, instance: &Instance) -> StoreResult<bool> {
        let query = sqlx::query(include_str!("sql/upsert_instance.sql"))
            .bind(instance.id.as_uuid())
            .bind(instance.host.clone())
            .bind(instance.pid)
            .bind(instance.version.clone())
            .bind(words_of(instance.roles.iter()))
            .bind(words_of(instance.targets.iter().map(Target::as_str)))
            .bind(Micros::from(instance.started_at))
            .bind(Micros::from(instance.heartbeat_at))
            .bind(instance.draining)
            .bind(instance.clock_skew_ms)
            .bind(instance.process.clone());
        let mut held = self.writer("writing a heartbeat").await?;
        let mut tx = held.begin().await?;
        let (draining,): (bool,) = tx.one(query).await?;
        tx.note_written();
        tx.commit().await?;
        Ok(draining)
    }

    pub(super) async fn read_instances(&self) -> StoreResult<Vec<Instance>> {
        let mut held = self.reader("listing instances").await?;
        let mut tx = held.begin().await?;
        let rows: Vec<InstanceColumns> = tx.all(sqlx::query(include_str!("sql/list_instances.sql"))).await?;
        Ok(readable(rows, |row| row.id, InstanceColumns::read).0)
    }

    pub(super) async fn write_draining(
        &self,
        instance: InstanceId,
        draining: bool,
        audit: &AuditEntry,
    ) -> StoreResult<()> {
        let mut held = self.writer("draining an instance").await?;
        let mut tx = held.begin().await?;
        let query = sqlx::query(include_str!("sql/drain_instance.sql")).bind(instance.as_uuid()).bind(draining);
        if tx.run(query).await? == 0 {
            return Err(StoreError::not_found("instance", instance));
        }
        insert_audit(&mut tx, audit).await?;
        tx.commit_and_wake().await
    }

    pub(super) async fn delete_instance(&self, instance: InstanceId) -> StoreResult<()> {
        let query = sqlx::query(include_str!("sql/leave.sql")).bind(instance.as_uuid());
        self.write("leaving", query).await.map(drop)
    }

    pub(super) async fn delete_instances(&self, before: Timestamp) -> StoreResult<u64> {
        let query = sqlx::query(include_str!("sql/remove_instances.sql")).bind(Micros::from(before));
        self.write("removing instances", query).await
    }

    pub(super) async fn insert_token(&self, token: &NewToken, audit: &AuditEntry) -> StoreResult<Token> {
        let mut held = self.writer(format!("creating token `{}`", token.name)).await?;
        let mut tx = held.begin().await?;
        let query = sqlx::query(include_str!("sql/insert_token.sql"))
            .bind(token.name.clone())
            .bind(token.hash.to_vec())
            .bind(token.role.clone())
            .bind(Micros::from(token.created_at))
            .bind(token.expires_at.map(Micros::from));
        tx.run(query).await?;
        insert_audit(&mut tx, audit).await?;
        tx.commit().await?;
        let kept = |t: Timestamp| Timestamp::from(Micros::from(t));
        Ok(Token {
            name: token.name.clone(),
            role: token.role.clone(),
            created_at: kept(token.created_at),
            expires_at: token.expires_at.map(kept),
            revoked_at: None,
            last_used_at: None,
        })
    }

    pub(super) async fn use_token(&self, hash: &[u8; 32], now: Timestamp) -> StoreResult<Option<Token>> {
        const WHAT: &str = "looking for a token";
        let row: Option<TokenColumns> = {
            let mut held = self.reader(WHAT).await?;
            let mut tx = held.begin().await?;
            let query = sqlx::query(include_str!("sql/find_token.sql")).bind(hash.to_vec()).bind(Micros::from(now));
            tx.first(query).await?
        };
        let Some(mut token) = row.map(TokenColumns::read) else { return Ok(None) };
        let minute = to_the_minute(now);
        if token.last_used_at.is_none_or(|used| Micros::from(used) < minute) {
            let query = sqlx::query(include_str!("sql/touch_token.sql")).bind(token.name.clone()).bind(minute);
            match self.write(WHAT, query).await {
                Ok(_) => token.last_used_at = Some(minute.into()),
                // Whoever comes to see why the disk is full must be let in.
                Err(StoreError::Unavailable { .. }) => {}
                Err(other) => return Err(other),
            }
        }
        Ok(Some(token))
    }

    pub(super) async fn read_tokens(&self) -> StoreResult<Vec<Token>> {
        let mut held = self.reader("listing tokens").await?;
        let mut tx = held.begin().await?;
        let rows: Vec<TokenColumns> = tx.all(sqlx::query(include_str!("sql/list_tokens.sql"))).await?;
        Ok(rows.into_iter().map(TokenColumns::read).collect())
    }

    pub(super) async fn end_token(
        &self,
        name: &str,
        now: Timestamp,
        last_admin: LastAdmin,
        audit: &AuditEntry,
    ) -> StoreResult<()> {
        let mut held = self.writer("revoking a token").await?;
        let mut tx = held.begin().await?;
        if last_admin == LastAdmin::Refuse {
            let admins: Vec<TokenColumns> = tx.all(sqlx::query(include_str!("sql/lock_admins.sql"))).await?;
            let admins: Vec<Token> = admins.into_iter().map(TokenColumns::read).collect();
            Token::expect_another_admin(&admins, name, now)?;
        }
        let query = sqlx::query(include_str!("sql/revoke_token.sql")).bind(name.to_owned()).bind(Micros::from(now));
        if tx.run(query).await? == 0 {
            return Err(StoreError::not_found("token", name));
        }
        tx.run(sqlx::query(include_str!("sql/end_token_sessions.sql")).bind(name.to_owned())).await?;
        insert_audit(&mut tx, audit).await?;
        tx.commit().await
    }

    pub(super) async fn write_audit(&self, audit: &AuditEntry) -> StoreResult<()> {
        let mut held = self.writer("writing the audit trail").await?;
        let mut tx = held.begin().await?;
        insert_audit(&mut tx, audit).await?;
        tx.commit().await
    }

    pub(super) async fn read_audit_page(
        &self,
        object: Option<&str>,
        page: &PageRequest,
    ) -> StoreResult<Page<AuditEntry>> {
        check_limit(page.limit)?;
        let after = page.after.as_ref();
        let value = after.map(|cursor| cursor.value.parse().map(Micros)).transpose();
        let query = sqlx::query(include_str!("sql/list_audit.sql"))
            .bind(object.map(str::to_owned))
            .bind(value.map_err(|_| bad_cursor())?)
            .bind(after.map(|cursor| cursor.id))
            .bind(page.limit + 1);
        let mut held = self.reader("listing the audit trail").await?;
        let mut tx = held.begin().await?;
        let mut rows: Vec<AuditColumns> = tx.all(query).await?;
        let more = rows.len() > page.limit as usize;
        rows.truncate(page.limit as usize);
        let cursor = |row: &AuditColumns| Cursor { value: row.at.0.to_string(), id: row.id };
        let next = rows.last().filter(|_| more).map(cursor);
        let (items, unreadable) = readable(rows, |row| row.id, AuditColumns::read);
        Ok(Page { items, next, unreadable })
    }
}

pub(super) fn to_the_minute(now: Timestamp) -> Micros {
    Micros(Micros::from(now).0.div_euclid(MICROS_PER_MINUTE) * MICROS_PER_MINUTE)
}

/// Writes an entry, and that its request was carried out, if it names one.
pub(super) async fn insert_audit(tx: &mut Tx<'_>, audit: &AuditEntry) -> StoreResult<()> {
    insert_audit_of(tx, audit, Deed::default).await
}

/// The same for a request that made something which its answer is about.
pub(super) async fn insert_audit_of(
    tx: &mut Tx<'_>,
    audit: &AuditEntry,
    deed: impl FnOnce() -> Deed,
) -> StoreResult<()> {
    let query = sqlx::query(include_str!("sql/insert_audit.sql"))
        .bind(audit.id)
        .bind(Micros::from(audit.at))
        .bind(audit.actor.clone())
        .bind(audit.action.clone())
        .bind(audit.object.clone())
        .bind(audit.reason.clone())
        .bind(audit_json(audit.before.as_ref()))
        .bind(audit_json(audit.after.as_ref()))
        .bind(audit.origin.address.clone())
        .bind(audit.origin.request_id.clone())
        .bind(audit.origin.role.clone());
    tx.run(query).await?;
    match &audit.request {
        Some(request) => requests::insert_deed(tx, request, audit, deed()).await,
        None => Ok(()),
    }
}
