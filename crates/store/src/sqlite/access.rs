//! Tokens, sessions, the audit trail, remembered requests.

use async_trait::async_trait;
use everbell_core::store::{
    AccessStore, AuditEntry, Cursor, LastAdmin, MAX_LISTED_SESSIONS, MAX_SESSIONS_PER_TOKEN, NewSession, NewToken,
    Page, PageRequest, REQUEST_RETENTION, Remembered, RequestKey, Session, SessionFilter, StoreError, StoreResult,
    Token,
};
use jiff::Timestamp;

use super::SqliteStore;
use super::audit::insert_audit;
use crate::micros::Micros;
use crate::rows::binds::bind_session;
use crate::rows::{
    AuditColumns, RequestRow, SessionColumns, TokenColumns, check_limit, cursor_time, page_of, readable, remembered,
    token_from,
};

#[async_trait]
impl AccessStore for SqliteStore {
    async fn create_token(&self, token: &NewToken, audit: &AuditEntry) -> StoreResult<Token> {
        let mut held = self.writer(format!("creating token `{}`", token.name)).await?;
        let mut tx = held.begin().await?;
        let query = sqlx::query(include_str!("sql/create_token.sql"))
            .bind(token.name.clone())
            .bind(token.hash.to_vec())
            .bind(token.role.clone())
            .bind(Micros::from(token.created_at))
            .bind(token.expires_at.map(Micros::from));
        tx.run(query).await?;
        insert_audit(&mut tx, audit).await?;
        tx.commit().await?;
        Ok(token_from(token))
    }

    async fn find_token(&self, hash: &[u8; 32], now: Timestamp) -> StoreResult<Option<Token>> {
        const WHAT: &str = "looking for a token";
        let row: Option<TokenColumns> = {
            let query = sqlx::query(include_str!("sql/find_token.sql")).bind(hash.to_vec()).bind(Micros::from(now));
            self.read_first(WHAT, query).await?
        };
        let Some(mut token) = row.map(TokenColumns::read) else { return Ok(None) };
        let minute = Micros::minute_of(now);
        if token.last_used_at.is_none_or(|used| Micros::from(used) < minute) {
            let query = sqlx::query(include_str!("sql/touch_token.sql")).bind(token.name.clone()).bind(minute);
            match self.write(WHAT, query).await {
                Ok(_) => token.last_used_at = Some(minute.into()),
                // An operator who comes to see why the disk is full must be able to sign in.
                Err(StoreError::Unavailable { .. }) => {}
                Err(other) => return Err(other),
            }
        }
        Ok(Some(token))
    }

    async fn list_tokens(&self) -> StoreResult<Vec<Token>> {
        let rows: Vec<TokenColumns> =
            self.read("listing tokens", sqlx::query(include_str!("sql/list_tokens.sql"))).await?;
        Ok(rows.into_iter().map(TokenColumns::read).collect())
    }

    async fn revoke_token(
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

    async fn create_session(&self, session: &NewSession, audit: &AuditEntry) -> StoreResult<()> {
        let mut held = self.writer("creating a session").await?;
        let mut tx = held.begin().await?;
        let insert = bind_session!(sqlx::query(include_str!("sql/create_session.sql")), session);
        let trim = sqlx::query(include_str!("sql/trim_sessions.sql"))
            .bind(session.token_hash.to_vec())
            .bind(MAX_SESSIONS_PER_TOKEN);
        tx.run(insert).await?;
        tx.run(trim).await?;
        insert_audit(&mut tx, audit).await?;
        tx.commit().await
    }

    async fn find_session(&self, hash: &[u8; 32], now: Timestamp) -> StoreResult<Option<Session>> {
        const WHAT: &str = "looking for a session";
        let row: Option<SessionColumns> = {
            let query = sqlx::query(include_str!("sql/find_session.sql"))
                .bind(hash.to_vec())
                .bind(Micros::from(now))
                .bind(Micros::from(Session::idle_since(now)));
            self.read_first(WHAT, query).await?
        };
        let Some(mut session) = row.map(SessionColumns::read).transpose()? else { return Ok(None) };
        let minute = Micros::minute_of(now);
        if Micros::from(session.last_used_at) < minute {
            let query = sqlx::query(include_str!("sql/touch_session.sql")).bind(session.id).bind(minute);
            match self.write(WHAT, query).await {
                Ok(_) => session.last_used_at = minute.into(),
                // An operator who comes to see why the disk is full must be able to sign in.
                Err(StoreError::Unavailable { .. }) => {}
                Err(other) => return Err(other),
            }
        }
        Ok(Some(session))
    }

    async fn list_sessions(&self, filter: &SessionFilter, now: Timestamp) -> StoreResult<Vec<Session>> {
        let query = sqlx::query(include_str!("sql/list_sessions.sql"))
            .bind(Micros::from(now))
            .bind(filter.id)
            .bind(filter.actor.clone())
            .bind(MAX_LISTED_SESSIONS)
            .bind(Micros::from(Session::idle_since(now)));
        let rows: Vec<SessionColumns> = self.read("listing sessions", query).await?;
        Ok(readable(rows, |row| row.id, SessionColumns::read).0)
    }

    async fn end_sessions(&self, filter: &SessionFilter, audit: &AuditEntry) -> StoreResult<u64> {
        let mut held = self.writer("ending sessions").await?;
        let mut tx = held.begin().await?;
        let query = sqlx::query(include_str!("sql/end_sessions.sql")).bind(filter.id).bind(filter.actor.clone());
        let ended = tx.run(query).await?;
        if ended > 0 {
            insert_audit(&mut tx, audit).await?;
            tx.commit().await?;
        }
        Ok(ended)
    }

    async fn append_audit(&self, audit: &AuditEntry) -> StoreResult<()> {
        let mut held = self.writer("writing the audit trail").await?;
        let mut tx = held.begin().await?;
        insert_audit(&mut tx, audit).await?;
        tx.commit().await
    }

    async fn list_audit(&self, object: Option<&str>, page: &PageRequest) -> StoreResult<Page<AuditEntry>> {
        check_limit(page.limit)?;
        let after = page.after.as_ref();
        let query = sqlx::query(include_str!("sql/list_audit.sql"))
            .bind(object.map(str::to_owned))
            .bind(cursor_time(after)?)
            .bind(after.map(|cursor| cursor.id))
            .bind(page.limit + 1);
        let rows: Vec<AuditColumns> = self.read("listing the audit trail", query).await?;
        let cursor = |row: &AuditColumns| Cursor { value: row.at.0.to_string(), id: row.id };
        Ok(page_of(rows, page.limit, cursor, |row| row.id, AuditColumns::read))
    }

    async fn find_request(&self, request: &RequestKey, now: Timestamp) -> StoreResult<Remembered> {
        let query = sqlx::query(include_str!("sql/find_request.sql"))
            .bind(request.key.clone())
            .bind(Micros::earlier(now, REQUEST_RETENTION));
        let row: Option<RequestRow> = self.read_first("looking for a request", query).await?;
        remembered(request, row)
    }

    async fn remember_answer(
        &self,
        request: &RequestKey,
        (status, body): (u16, &str),
        now: Timestamp,
    ) -> StoreResult<()> {
        let query = sqlx::query(include_str!("sql/remember_answer.sql"))
            .bind(request.key.clone())
            .bind(request.fingerprint.to_vec())
            .bind(Micros::from(now))
            .bind(status)
            .bind(body.to_owned())
            .bind(Micros::earlier(now, REQUEST_RETENTION));
        self.write("remembering an answer", query).await.map(drop)
    }
}
