//! Tokens, sessions, the audit trail, remembered requests.

use async_trait::async_trait;
use everbell_core::store::{
    AccessStore, AuditEntry, Cursor, LastAdmin, MAX_LISTED_SESSIONS, MAX_SESSIONS_PER_TOKEN, NewSession, NewToken,
    Page, PageRequest, REQUEST_RETENTION, Remembered, RequestKey, Session, SessionFilter, StoreError, StoreResult,
    Token,
};
use jiff::Timestamp;

use super::PostgresStore;
use super::audit::insert_audit;
use super::connect::on;
use super::statement::Statement;
use crate::micros::Micros;
use crate::rows::binds::bind_session;
use crate::rows::{
    AuditColumns, RequestRow, SessionColumns, TokenColumns, check_limit, page_of, readable, remembered, token_from,
};

#[async_trait]
impl AccessStore for PostgresStore {
    async fn create_token(&self, token: &NewToken, audit: &AuditEntry) -> StoreResult<Token> {
        let what = format!("creating token `{}`", token.name);
        let mut tx = self.begin(&what).await?;
        let query = sqlx::query(include_str!("sql/create_token.sql"))
            .bind(token.name.clone())
            .bind(token.hash.to_vec())
            .bind(token.role.clone())
            .bind(Micros::from(token.created_at))
            .bind(token.expires_at.map(Micros::from));
        let done = async {
            on(&what, query.execute_on(&mut tx)).await?;
            insert_audit(&mut tx, audit).await
        };
        let done = done.await;
        self.finish_transaction(&what, tx, done, |()| false).await?;
        Ok(token_from(token))
    }

    async fn find_token(&self, hash: &[u8; 32], now: Timestamp) -> StoreResult<Option<Token>> {
        const WHAT: &str = "looking for a token";
        let query = sqlx::query_as(include_str!("sql/find_token.sql")).bind(hash.to_vec()).bind(Micros::from(now));
        let row: Option<TokenColumns> = self.within(WHAT, query.fetch_optional_on(&self.pool)).await?;
        let Some(mut token) = row.map(TokenColumns::read) else { return Ok(None) };
        let minute = Timestamp::from(Micros::minute_of(now));
        if token.last_used_at.is_none_or(|used| used < minute) {
            let query =
                sqlx::query(include_str!("sql/touch_token.sql")).bind(token.name.clone()).bind(Micros::from(minute));
            self.alone(WHAT, query.execute_on(&self.pool)).await?;
            token.last_used_at = Some(minute);
        }
        Ok(Some(token))
    }

    async fn list_tokens(&self) -> StoreResult<Vec<Token>> {
        let query = sqlx::query_as(include_str!("sql/list_tokens.sql"));
        let rows: Vec<TokenColumns> = self.within("listing tokens", query.fetch_all_on(&self.pool)).await?;
        Ok(rows.into_iter().map(TokenColumns::read).collect())
    }

    async fn revoke_token(
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
                let admins = sqlx::query_as(include_str!("sql/lock_admins.sql")).fetch_all_on(&mut tx);
                let admins: Vec<TokenColumns> = on(WHAT, admins).await?;
                let admins: Vec<Token> = admins.into_iter().map(TokenColumns::read).collect();
                Token::expect_another_admin(&admins, name, now)?;
            }
            if on(WHAT, query.execute_on(&mut tx)).await?.rows_affected() == 0 {
                return Err(StoreError::not_found("token", name));
            }
            let sessions = sqlx::query(include_str!("sql/end_token_sessions.sql")).bind(name.to_owned());
            on(WHAT, sessions.execute_on(&mut tx)).await?;
            insert_audit(&mut tx, audit).await
        };
        let done = done.await;
        self.finish_transaction(WHAT, tx, done, |()| false).await
    }

    async fn create_session(&self, session: &NewSession, audit: &AuditEntry) -> StoreResult<()> {
        const WHAT: &str = "creating a session";
        let mut tx = self.begin(WHAT).await?;
        let insert = bind_session!(sqlx::query(include_str!("sql/create_session.sql")), session);
        let trim = sqlx::query(include_str!("sql/trim_sessions.sql"))
            .bind(session.token_hash.to_vec())
            .bind(i64::from(MAX_SESSIONS_PER_TOKEN));
        let done = async {
            on(WHAT, insert.execute_on(&mut tx)).await?;
            on(WHAT, trim.execute_on(&mut tx)).await?;
            insert_audit(&mut tx, audit).await
        };
        let done = done.await;
        self.finish_transaction(WHAT, tx, done, |()| false).await
    }

    async fn find_session(&self, hash: &[u8; 32], now: Timestamp) -> StoreResult<Option<Session>> {
        const WHAT: &str = "looking for a session";
        let query = sqlx::query_as(include_str!("sql/find_session.sql"))
            .bind(hash.to_vec())
            .bind(Micros::from(now))
            .bind(Micros::from(Session::idle_since(now)));
        let row: Option<SessionColumns> = self.within(WHAT, query.fetch_optional_on(&self.pool)).await?;
        let Some(mut session) = row.map(SessionColumns::read).transpose()? else { return Ok(None) };
        let minute = Timestamp::from(Micros::minute_of(now));
        if session.last_used_at < minute {
            let query = sqlx::query(include_str!("sql/touch_session.sql")).bind(session.id).bind(Micros::from(minute));
            self.alone(WHAT, query.execute_on(&self.pool)).await?;
            session.last_used_at = minute;
        }
        Ok(Some(session))
    }

    async fn list_sessions(&self, filter: &SessionFilter, now: Timestamp) -> StoreResult<Vec<Session>> {
        let query = sqlx::query_as(include_str!("sql/list_sessions.sql"))
            .persistent(false)
            .bind(Micros::from(now))
            .bind(filter.id)
            .bind(filter.actor.clone())
            .bind(i64::from(MAX_LISTED_SESSIONS))
            .bind(Micros::from(Session::idle_since(now)));
        let rows: Vec<SessionColumns> = self.within("listing sessions", query.fetch_all_on(&self.pool)).await?;
        Ok(readable(rows, |row| row.id, SessionColumns::read).0)
    }

    async fn end_sessions(&self, filter: &SessionFilter, audit: &AuditEntry) -> StoreResult<u64> {
        const WHAT: &str = "ending sessions";
        let mut tx = self.begin(WHAT).await?;
        let query = sqlx::query(include_str!("sql/end_sessions.sql")).bind(filter.id).bind(filter.actor.clone());
        let done = async {
            let ended = on(WHAT, query.execute_on(&mut tx)).await?.rows_affected();
            if ended > 0 {
                insert_audit(&mut tx, audit).await?;
            }
            StoreResult::Ok(ended)
        };
        let done = done.await;
        self.finish_transaction(WHAT, tx, done, |_| false).await
    }

    async fn append_audit(&self, audit: &AuditEntry) -> StoreResult<()> {
        const WHAT: &str = "writing the audit trail";
        let mut tx = self.begin(WHAT).await?;
        let done = insert_audit(&mut tx, audit).await;
        self.finish_transaction(WHAT, tx, done, |()| false).await
    }

    async fn list_audit(&self, object: Option<&str>, page: &PageRequest) -> StoreResult<Page<AuditEntry>> {
        check_limit(page.limit)?;
        let query = sqlx::query_as(include_str!("sql/list_audit.sql"))
            .persistent(false)
            .bind(object.map(str::to_owned))
            .bind(page.after.as_ref().map(|cursor| cursor.id))
            .bind(i64::from(page.limit) + 1);
        let rows: Vec<AuditColumns> = self.within("listing the audit trail", query.fetch_all_on(&self.pool)).await?;
        let cursor = |row: &AuditColumns| Cursor { value: String::new(), id: row.id };
        Ok(page_of(rows, page.limit, cursor, |row| row.id, AuditColumns::read))
    }

    async fn find_request(&self, request: &RequestKey, now: Timestamp) -> StoreResult<Remembered> {
        let query = sqlx::query_as(include_str!("sql/find_request.sql"))
            .bind(request.key.clone())
            .bind(Micros::earlier(now, REQUEST_RETENTION));
        let row: Option<RequestRow> = self.within("looking for a request", query.fetch_optional_on(&self.pool)).await?;
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
            .bind(i32::from(status))
            .bind(body.to_owned())
            .bind(Micros::earlier(now, REQUEST_RETENTION));
        self.alone("remembering an answer", query.execute_on(&self.pool)).await.map(drop)
    }
}
