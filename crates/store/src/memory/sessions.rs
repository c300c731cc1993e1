//! Sessions.

use everbell_core::store::{
    AuditEntry, MAX_LISTED_SESSIONS, MAX_SESSIONS_PER_TOKEN, NewSession, Session, SessionFilter, StoreError,
    StoreResult,
};
use jiff::Timestamp;
use uuid::Uuid;

use super::access::to_the_minute;
use super::state::{State, micros};

#[derive(Clone, Debug)]
pub(super) struct StoredSession {
    pub(super) hash: [u8; 32],
    pub(super) session: Session,
}

impl State {
    pub(super) fn create_session(&mut self, new: &NewSession, audit: &AuditEntry) -> StoreResult<()> {
        let is_taken = |known: &StoredSession| known.hash == new.hash || known.session.id == new.id;
        if self.sessions.values().any(is_taken) {
            return Err(StoreError::Conflict { what: "this session exists".to_owned() });
        }
        let session = Session {
            id: new.id,
            token_hash: new.token_hash,
            actor: new.actor.clone(),
            role: new.role.clone(),
            created_at: micros(new.created_at),
            expires_at: micros(new.expires_at),
            last_used_at: micros(new.created_at),
            address: new.address.clone(),
            user_agent: new.user_agent.clone(),
        };
        self.sessions.insert(new.id, StoredSession { hash: new.hash, session });
        let of_token = self.sessions.values().map(|known| &known.session).filter(|s| s.token_hash == new.token_hash);
        let mut newest: Vec<(Timestamp, Uuid)> = of_token.map(|session| (session.created_at, session.id)).collect();
        newest.sort_unstable_by(|a, b| b.cmp(a));
        for (_, id) in newest.into_iter().skip(MAX_SESSIONS_PER_TOKEN as usize) {
            self.sessions.remove(&id);
        }
        self.write_audit(audit);
        Ok(())
    }

    pub(super) fn find_session(&mut self, hash: &[u8; 32], now: Timestamp) -> Option<Session> {
        let session = &mut self.sessions.values_mut().find(|known| known.hash == *hash)?.session;
        if session.ends_at() <= micros(now) {
            return None;
        }
        session.last_used_at = session.last_used_at.max(to_the_minute(now));
        Some(session.clone())
    }

    pub(super) fn list_sessions(&self, filter: &SessionFilter, now: Timestamp) -> Vec<Session> {
        let wanted = |session: &&Session| session.ends_at() > micros(now) && fits(filter, session);
        let mut sessions: Vec<Session> =
            self.sessions.values().map(|known| &known.session).filter(wanted).cloned().collect();
        sessions.sort_by_key(|session| std::cmp::Reverse((session.created_at, session.id)));
        sessions.truncate(MAX_LISTED_SESSIONS as usize);
        sessions
    }

    pub(super) fn end_sessions(&mut self, filter: &SessionFilter, audit: &AuditEntry) -> u64 {
        let before = self.sessions.len();
        self.sessions.retain(|_, known| !fits(filter, &known.session));
        let ended = (before - self.sessions.len()) as u64;
        if ended > 0 {
            self.write_audit(audit);
        }
        ended
    }
}

fn fits(filter: &SessionFilter, session: &Session) -> bool {
    filter.id.is_none_or(|id| session.id == id) && filter.actor.as_ref().is_none_or(|actor| session.actor == *actor)
}
