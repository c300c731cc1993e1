//! Tokens, sessions, the audit trail, remembered requests.

use async_trait::async_trait;
use everbell_core::store::{
    AccessStore, AuditEntry, LastAdmin, MAX_LISTED_SESSIONS, MAX_SESSIONS_PER_TOKEN, NewSession, NewToken, Page,
    PageRequest, Remembered, RequestKey, Session, SessionFilter, StoreError, StoreResult, Token,
};
use jiff::Timestamp;
use uuid::Uuid;

use super::MemoryStore;
use super::pages::{self, Direction};
use super::state::{State, StoredRequest, StoredSession, StoredToken, micros};
use crate::micros::Micros;
use crate::rows::token_from;

#[async_trait]
impl AccessStore for MemoryStore {
    async fn create_token(&self, token: &NewToken, audit: &AuditEntry) -> StoreResult<Token> {
        self.once_quietly(audit, |state| {
            if state.tokens.contains_key(&token.name) {
                return Err(StoreError::Conflict { what: format!("a token named `{}` exists", token.name) });
            }
            if state.tokens.values().any(|known| known.hash == token.hash) {
                return Err(StoreError::Conflict { what: "this token exists under another name".to_owned() });
            }
            let stored = StoredToken { token: token_from(token), hash: token.hash };
            let token = stored.token.clone();
            state.tokens.insert(token.name.clone(), stored);
            state.write_audit(audit);
            Ok(token)
        })
    }

    async fn find_token(&self, hash: &[u8; 32], now: Timestamp) -> StoreResult<Option<Token>> {
        self.with(|state| Ok(state.find_token(hash, now)))
    }

    async fn list_tokens(&self) -> StoreResult<Vec<Token>> {
        self.with(|state| Ok(state.list_tokens()))
    }

    /// A token that was revoked before stays revoked since then.
    async fn revoke_token(
        &self,
        name: &str,
        now: Timestamp,
        last_admin: LastAdmin,
        audit: &AuditEntry,
    ) -> StoreResult<()> {
        self.once_quietly(audit, |state| {
            if last_admin == LastAdmin::Refuse {
                Token::expect_another_admin(&state.list_tokens(), name, micros(now))?;
            }
            let stored = state.tokens.get_mut(name).ok_or_else(|| StoreError::not_found("token", name))?;
            stored.token.revoked_at.get_or_insert(micros(now));
            let hash = stored.hash;
            state.sessions.retain(|_, known| known.session.token_hash != hash);
            state.write_audit(audit);
            Ok(())
        })
    }

    async fn create_session(&self, new: &NewSession, audit: &AuditEntry) -> StoreResult<()> {
        self.with(|state| {
            let is_taken = |known: &StoredSession| known.hash == new.hash || known.session.id == new.id;
            if state.sessions.values().any(is_taken) {
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
            state.sessions.insert(new.id, StoredSession { hash: new.hash, session });
            let of_token =
                state.sessions.values().map(|known| &known.session).filter(|s| s.token_hash == new.token_hash);
            let mut newest: Vec<(Timestamp, Uuid)> = of_token.map(|session| (session.created_at, session.id)).collect();
            newest.sort_unstable_by(|a, b| b.cmp(a));
            for (_, id) in newest.into_iter().skip(MAX_SESSIONS_PER_TOKEN as usize) {
                state.sessions.remove(&id);
            }
            state.write_audit(audit);
            Ok(())
        })
    }

    async fn find_session(&self, hash: &[u8; 32], now: Timestamp) -> StoreResult<Option<Session>> {
        self.with(|state| Ok(state.find_session(hash, now)))
    }

    async fn list_sessions(&self, filter: &SessionFilter, now: Timestamp) -> StoreResult<Vec<Session>> {
        self.with(|state| {
            let wanted = |session: &&Session| session.ends_at() > micros(now) && fits(filter, session);
            let mut sessions: Vec<Session> =
                state.sessions.values().map(|known| &known.session).filter(wanted).cloned().collect();
            sessions.sort_by_key(|session| std::cmp::Reverse((session.created_at, session.id)));
            sessions.truncate(MAX_LISTED_SESSIONS as usize);
            Ok(sessions)
        })
    }

    async fn end_sessions(&self, filter: &SessionFilter, audit: &AuditEntry) -> StoreResult<u64> {
        self.with(|state| {
            let before = state.sessions.len();
            state.sessions.retain(|_, known| !fits(filter, &known.session));
            let ended = (before - state.sessions.len()) as u64;
            if ended > 0 {
                state.write_audit(audit);
            }
            Ok(ended)
        })
    }

    async fn append_audit(&self, audit: &AuditEntry) -> StoreResult<()> {
        self.once_quietly(audit, |state| {
            state.write_audit(audit);
            Ok(())
        })
    }

    async fn list_audit(&self, object: Option<&str>, page: &PageRequest) -> StoreResult<Page<AuditEntry>> {
        self.with(|state| {
            let wanted = state.audit.values().filter(|entry| object.is_none_or(|object| entry.object == object));
            pages::by_time(wanted.cloned().collect(), page, Direction::Down, |entry: &AuditEntry| (entry.at, entry.id))
        })
    }

    async fn find_request(&self, request: &RequestKey, now: Timestamp) -> StoreResult<Remembered> {
        self.with(|state| {
            Ok(match state.known_request(request, now) {
                None => Remembered::New,
                Some(known) if known.fingerprint != request.fingerprint => Remembered::Different,
                Some(StoredRequest { answer: Some((status, body)), .. }) => Remembered::Answered(*status, body.clone()),
                Some(StoredRequest { deed: Some(deed), .. }) => Remembered::Done(deed.clone()),
                Some(_) => Remembered::InDoubt,
            })
        })
    }

    async fn remember_answer(
        &self,
        request: &RequestKey,
        (status, body): (u16, &str),
        now: Timestamp,
    ) -> StoreResult<()> {
        self.with(|state| {
            let answer = Some((status, body.to_owned()));
            let now = micros(now);
            match state.requests.get_mut(&request.key).filter(|known| !known.is_forgotten(now)) {
                Some(known) if known.fingerprint == request.fingerprint && known.answer.is_none() => {
                    known.answer = answer;
                }
                Some(_) => {}
                None => {
                    let new = StoredRequest { fingerprint: request.fingerprint, at: now, deed: None, answer };
                    state.requests.insert(request.key.clone(), new);
                }
            }
            Ok(())
        })
    }
}

impl State {
    pub(super) fn find_token(&mut self, hash: &[u8; 32], now: Timestamp) -> Option<Token> {
        let now = micros(now);
        let token = &mut self.tokens.values_mut().find(|stored| stored.hash == *hash)?.token;
        if token.revoked_at.is_some() || token.expires_at.is_some_and(|at| at <= now) {
            return None;
        }
        token.last_used_at = token.last_used_at.max(Some(Timestamp::from(Micros::minute_of(now))));
        Some(token.clone())
    }

    pub(super) fn list_tokens(&self) -> Vec<Token> {
        self.tokens.values().map(|stored| stored.token.clone()).collect()
    }

    pub(super) fn find_session(&mut self, hash: &[u8; 32], now: Timestamp) -> Option<Session> {
        let session = &mut self.sessions.values_mut().find(|known| known.hash == *hash)?.session;
        if session.ends_at() <= micros(now) {
            return None;
        }
        session.last_used_at = session.last_used_at.max(Timestamp::from(Micros::minute_of(now)));
        Some(session.clone())
    }
}

fn fits(filter: &SessionFilter, session: &Session) -> bool {
    filter.id.is_none_or(|id| session.id == id) && filter.actor.as_ref().is_none_or(|actor| session.actor == *actor)
}
