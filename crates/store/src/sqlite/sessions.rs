//! Sessions.

use everbell_core::store::{
    AuditEntry, MAX_LISTED_SESSIONS, MAX_SESSIONS_PER_TOKEN, NewSession, Session, SessionFilter, StoreError,
    StoreResult,
};
use jiff::Timestamp;

use super::SqliteStore;
use super::access::{insert_audit, to_the_minute};
use crate::micros::Micros;
use crate::rows::{SessionColumns, readable};

impl SqliteStore {
    pub(super) async fn insert_session(&self, session: &NewSession, audit: &AuditEntry) -> StoreResult<()> {
        let mut held = self.writer("creating a session").await?;
        let mut tx = held.begin().await?;
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
            .bind(MAX_SESSIONS_PER_TOKEN);
        tx.run(insert).await?;
        tx.run(trim).await?;
        insert_audit(&mut tx, audit).await?;
        tx.commit().await
    }

    pub(super) async fn use_session(&self, hash: &[u8; 32], now: Timestamp) -> StoreResult<Option<Session>> {
        const WHAT: &str = "looking for a session";
        let row: Option<SessionColumns> = {
            let mut held = self.reader(WHAT).await?;
            let mut tx = held.begin().await?;
            let query = sqlx::query(include_str!("sql/find_session.sql"))
                .bind(hash.to_vec())
                .bind(Micros::from(now))
                .bind(Micros::from(Session::idle_since(now)));
            tx.first(query).await?
        };
        let Some(mut session) = row.map(SessionColumns::read).transpose()? else { return Ok(None) };
        let minute = to_the_minute(now);
        if Micros::from(session.last_used_at) < minute {
            let query = sqlx::query(include_str!("sql/touch_session.sql")).bind(session.id).bind(minute);
            match self.write(WHAT, query).await {
                Ok(_) => session.last_used_at = minute.into(),
                // Somebody who comes to see why the disk is full must get in.
                Err(StoreError::Unavailable { .. }) => {}
                Err(other) => return Err(other),
            }
        }
        Ok(Some(session))
    }

    pub(super) async fn read_sessions(&self, filter: &SessionFilter, now: Timestamp) -> StoreResult<Vec<Session>> {
        let query = sqlx::query(include_str!("sql/list_sessions.sql"))
            .bind(Micros::from(now))
            .bind(filter.id)
            .bind(filter.actor.clone())
            .bind(MAX_LISTED_SESSIONS)
            .bind(Micros::from(Session::idle_since(now)));
        let mut held = self.reader("listing sessions").await?;
        let mut tx = held.begin().await?;
        let rows: Vec<SessionColumns> = tx.all(query).await?;
        Ok(readable(rows, |row| row.id, SessionColumns::read).0)
    }

    pub(super) async fn delete_sessions(&self, filter: &SessionFilter, audit: &AuditEntry) -> StoreResult<u64> {
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
}
