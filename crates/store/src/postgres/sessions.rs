//! Sessions.

use everbell_core::store::{
    AuditEntry, MAX_LISTED_SESSIONS, MAX_SESSIONS_PER_TOKEN, NewSession, Session, SessionFilter, StoreResult,
};
use jiff::Timestamp;

use super::PostgresStore;
use super::access::{insert_audit, to_the_minute};
use super::connect::on;
use crate::micros::Micros;
use crate::rows::{SessionColumns, readable};

impl PostgresStore {
    pub(super) async fn insert_session(&self, session: &NewSession, audit: &AuditEntry) -> StoreResult<()> {
        const WHAT: &str = "creating a session";
        let mut tx = self.begin(WHAT).await?;
        let insert = sqlx::query(include_str!("sql/insert_session.sql"))
            .bind(session.id)
            .bind(session.hash.to_vec())
            .bind(session.token_hash.to_vec())
            .bind(session.actor.clone())
            .bind(Micros::from(session.created_at))
            .bind(Micros::from(session.expires_at))
            .bind(session.address.clone())
            .bind(session.user_agent.clone())
            .bind(session.role.clone());
        let trim = sqlx::query(include_str!("sql/trim_sessions.sql"))
            .bind(session.token_hash.to_vec())
            .bind(i64::from(MAX_SESSIONS_PER_TOKEN));
        let done = async {
            on(WHAT, insert.execute(&mut tx)).await?;
            on(WHAT, trim.execute(&mut tx)).await?;
            insert_audit(&mut tx, audit).await
        };
        let done = done.await;
        self.settle(WHAT, tx, done, |()| false).await
    }

    pub(super) async fn use_session(&self, hash: &[u8; 32], now: Timestamp) -> StoreResult<Option<Session>> {
        const WHAT: &str = "looking for a session";
        let query = sqlx::query_as(include_str!("sql/find_session.sql"))
            .bind(hash.to_vec())
            .bind(Micros::from(now))
            .bind(Micros::from(Session::idle_since(now)));
        let row: Option<SessionColumns> = self.within(WHAT, query.fetch_optional(&self.pool)).await?;
        let Some(mut session) = row.map(SessionColumns::read).transpose()? else { return Ok(None) };
        let minute = to_the_minute(now);
        if session.last_used_at < minute {
            let query = sqlx::query(include_str!("sql/touch_session.sql")).bind(session.id).bind(Micros::from(minute));
            self.alone(WHAT, query.execute(&self.pool)).await?;
            session.last_used_at = minute;
        }
        Ok(Some(session))
    }

    pub(super) async fn read_sessions(&self, filter: &SessionFilter, now: Timestamp) -> StoreResult<Vec<Session>> {
        let query = sqlx::query_as(include_str!("sql/list_sessions.sql"))
            .persistent(false)
            .bind(Micros::from(now))
            .bind(filter.id)
            .bind(filter.actor.clone())
            .bind(i64::from(MAX_LISTED_SESSIONS))
            .bind(Micros::from(Session::idle_since(now)));
        let rows: Vec<SessionColumns> = self.within("listing sessions", query.fetch_all(&self.pool)).await?;
        Ok(readable(rows, |row| row.id, SessionColumns::read).0)
    }

    pub(super) async fn delete_sessions(&self, filter: &SessionFilter, audit: &AuditEntry) -> StoreResult<u64> {
        const WHAT: &str = "ending sessions";
        let mut tx = self.begin(WHAT).await?;
        let query = sqlx::query(include_str!("sql/end_sessions.sql")).bind(filter.id).bind(filter.actor.clone());
        let done = async {
            let ended = on(WHAT, query.execute(&mut tx)).await?.rows_affected();
            if ended > 0 {
                insert_audit(&mut tx, audit).await?;
            }
            StoreResult::Ok(ended)
        };
        let done = done.await;
        self.settle(WHAT, tx, done, |_| false).await
    }
}
