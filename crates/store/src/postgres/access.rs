//! Instances, tokens, the audit trail, remembered requests.

use everbell_core::InstanceId;
use everbell_core::store::{
    AuditEntry, Cursor, Deed, Instance, LastAdmin, NewToken, Page, PageRequest, StoreError, StoreResult, Token,
};
use jiff::{SignedDuration, Timestamp};

use super::PostgresStore;
use super::connect::{Conn, check_limit, on};
use super::requests;
use crate::micros::Micros;
use crate::rows::{AuditColumns, InstanceColumns, TokenColumns, audit_json, readable, words_of};

impl PostgresStore {
    pub(super) async fn write_instance(&self, instance: &Instance) -> StoreResult<bool> {
        let query = sqlx::query_scalar(include_str!("sql/upsert_instance.sql"))
            .bind(instance.id.as_uuid())
            .bind(instance.host.clone())
            .bind(i64::from(instance.pid))
            .bind(instance.version.clone())
            .bind(words_of(instance.roles.iter()))
            .bind(words_of(instance.targets.iter().map(everbell_core::Target::as_str)))
            .bind(Micros::from(instance.started_at))
            .bind(Micros::from(instance.heartbeat_at))
            .bind(instance.draining)
            .bind(instance.clock_skew_ms)
            .bind(instance.process.clone());
        self.alone("writing a heartbeat", query.fetch_one(&self.loops)).await
    }

    pub(super) async fn read_instances(&self) -> StoreResult<Vec<Instance>> {
        let query = sqlx::query_as(include_str!("sql/list_instances.sql"));
        let rows: Vec<InstanceColumns> = self.within("listing instances", query.fetch_all(&self.pool)).await?;
        Ok(readable(rows, |row| row.id, InstanceColumns::read).0)
    }

    pub(super) async fn write_draining(
        &self,
        instance: InstanceId,
        draining: bool,
        audit: &AuditEntry,
    ) -> StoreResult<()> {
        const WHAT: &str = "draining an instance";
        let mut tx = self.begin(WHAT).await?;
        let query = sqlx::query(include_str!("sql/drain_instance.sql")).bind(instance.as_uuid()).bind(draining);
        let done = async {
            if on(WHAT, query.execute(&mut tx)).await?.rows_affected() == 0 {
                return Err(StoreError::not_found("instance", instance));
            }
            insert_audit(&mut tx, audit).await
        };
        let done = done.await;
        self.settle(WHAT, tx, done, |()| true).await
    }

    pub(super) async fn delete_instance(&self, instance: InstanceId) -> StoreResult<()> {
        let query = sqlx::query(include_str!("sql/leave.sql")).bind(instance.as_uuid());
        self.alone("leaving", query.execute(&self.loops)).await.map(drop)
    }

    pub(super) async fn delete_instances(&self, before: Timestamp) -> StoreResult<u64> {
        let query = sqlx::query(include_str!("sql/remove_instances.sql")).bind(Micros::from(before));
        Ok(self.alone("removing instances", query.execute(&self.pool)).await?.rows_affected())
    }

    pub(super) async fn insert_token(&self, token: &NewToken, audit: &AuditEntry) -> StoreResult<Token> {
        let what = format!("creating token `{}`", token.name);
        let mut tx = self.begin(&what).await?;
        let query = sqlx::query(include_str!("sql/insert_token.sql"))
            .bind(token.name.clone())
            .bind(token.hash.to_vec())
            .bind(token.role.clone())
            .bind(Micros::from(token.created_at))
            .bind(token.expires_at.map(Micros::from));
        let done = async {
            on(&what, query.execute(&mut tx)).await?;
            insert_audit(&mut tx, audit).await
        };
        let done = done.await;
        self.settle(&what, tx, done, |()| false).await?;
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
        let query = sqlx::query_as(include_str!("sql/find_token.sql")).bind(hash.to_vec()).bind(Micros::from(now));
        let row: Option<TokenColumns> = self.within(WHAT, query.fetch_optional(&self.pool)).await?;
        let Some(mut token) = row.map(TokenColumns::read) else { return Ok(None) };
        let minute = to_the_minute(now);
        if token.last_used_at.is_none_or(|used| used < minute) {
            let query =
                sqlx::query(include_str!("sql/touch_token.sql")).bind(token.name.clone()).bind(Micros::from(minute));
            self.alone(WHAT, query.execute(&self.pool)).await?;
            token.last_used_at = Some(minute);
        }
        Ok(Some(token))
    }

    pub(super) async fn read_tokens(&self) -> StoreResult<Vec<Token>> {
        let query = sqlx::query_as(include_str!("sql/list_tokens.sql"));
        let rows: Vec<TokenColumns> = self.within("listing tokens", query.fetch_all(&self.pool)).await?;
        Ok(rows.into_iter().map(TokenColumns::read).collect())
    }

    pub(super) async fn end_token(
        &self,
        name: &str,
        now: Timestamp,
        last_admin: LastAdmin,
        audit: &AuditEntry,
    ) -> StoreResult<()> {
        const WHAT: &str = "revoking a token";
        let mut tx = self.begin(WHAT).await?;
        let query = sqlx::query(include_str!("sql/revoke_token.sql")).bind(name.to_owned()).bind(Micros::from(now));
        let done = async {
            if last_admin == LastAdmin::Refuse {
                let admins = sqlx::query_as(include_str!("sql/lock_admins.sql")).fetch_all(&mut tx);
                let admins: Vec<TokenColumns> = on(WHAT, admins).await?;
                let admins: Vec<Token> = admins.into_iter().map(TokenColumns::read).collect();
                Token::expect_another_admin(&admins, name, now)?;
            }
            if on(WHAT, query.execute(&mut tx)).await?.rows_affected() == 0 {
                return Err(StoreError::not_found("token", name));
            }
            let sessions = sqlx::query(include_str!("sql/end_token_sessions.sql")).bind(name.to_owned());
            on(WHAT, sessions.execute(&mut tx)).await?;
            insert_audit(&mut tx, audit).await
        };
        let done = done.await;
        self.settle(WHAT, tx, done, |()| false).await
    }

    pub(super) async fn write_audit(&self, audit: &AuditEntry) -> StoreResult<()> {
        const WHAT: &str = "writing the audit trail";
        let mut tx = self.begin(WHAT).await?;
        let done = insert_audit(&mut tx, audit).await;
        self.settle(WHAT, tx, done, |()| false).await
    }

    pub(super) async fn read_audit_page(
        &self,
        object: Option<&str>,
        page: &PageRequest,
    ) -> StoreResult<Page<AuditEntry>> {
        check_limit(page.limit)?;
        let query = sqlx::query_as(include_str!("sql/list_audit.sql"))
            .persistent(false)
            .bind(object.map(str::to_owned))
            .bind(page.after.as_ref().map(|cursor| cursor.id))
            .bind(i64::from(page.limit) + 1);
        let mut rows: Vec<AuditColumns> = self.within("listing the audit trail", query.fetch_all(&self.pool)).await?;
        let more = rows.len() > page.limit as usize;
        rows.truncate(page.limit as usize);
        let next = rows.last().filter(|_| more).map(|row| Cursor { value: String::new(), id: row.id });
        let (items, unreadable) = readable(rows, |row| row.id, AuditColumns::read);
        Ok(Page { items, next, unreadable })
    }
}

/// Writes an entry, and that its request was carried out, if it names one.
pub(super) async fn insert_audit(conn: Conn<'_, '_>, audit: &AuditEntry) -> StoreResult<()> {
    insert_audit_of(conn, audit, Deed::default).await
}

/// The same for a request that made something which its answer is about.
pub(super) async fn insert_audit_of(
    conn: Conn<'_, '_>,
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
    on("writing the audit trail", query.execute(&mut *conn)).await?;
    match &audit.request {
        Some(request) => requests::insert_deed(conn, request, audit, deed()).await,
        None => Ok(()),
    }
}

/// Tokens remember when they were used to the minute.
pub(super) fn to_the_minute(t: Timestamp) -> Timestamp {
    let second = t.as_second();
    t.checked_sub(SignedDuration::new(second.rem_euclid(60), t.subsec_nanosecond())).unwrap_or(t)
}
