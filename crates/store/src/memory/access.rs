//! Instances, tokens, the audit trail, remembered requests, and pruning.

use everbell_core::store::{
    AuditEntry, Instance, LastAdmin, NewToken, Page, PageRequest, PruneBefore, Pruned, StoreError, StoreResult, Token,
};
use everbell_core::{InstanceId, Run, RunId};
use jiff::Timestamp;
use uuid::Uuid;

use super::pages::{self, Direction};
use super::sessions::StoredSession;
use super::state::{State, micros, new_token};

const MICROS_PER_MINUTE: i64 = 60_000_000;

impl State {
    /// Whether it drains is the operators' to say, so a heartbeat of a known instance leaves that alone.
    pub(super) fn heartbeat(&mut self, instance: &Instance) -> bool {
        let id = instance.id.as_uuid();
        let draining = self.instances.get(&id).map_or(instance.draining, |known| known.draining);
        let seen = Instance {
            started_at: micros(instance.started_at),
            heartbeat_at: micros(instance.heartbeat_at),
            draining,
            ..instance.clone()
        };
        self.instances.insert(id, seen);
        draining
    }

    pub(super) fn list_instances(&self) -> Vec<Instance> {
        let mut instances: Vec<Instance> = self.instances.values().cloned().collect();
        instances.sort_by_key(|instance| (instance.started_at, instance.id));
        instances
    }

    pub(super) fn drain_instance(&mut self, id: InstanceId, draining: bool, audit: &AuditEntry) -> StoreResult<()> {
        let instance = self.instances.get_mut(&id.as_uuid());
        instance.ok_or_else(|| StoreError::not_found("instance", id))?.draining = draining;
        self.write_audit(audit);
        Ok(())
    }

    pub(super) fn leave(&mut self, id: InstanceId) {
        self.instances.remove(&id.as_uuid());
    }

    pub(super) fn remove_instances(&mut self, before: Timestamp) -> u64 {
        let known = self.instances.len();
        self.instances.retain(|_, instance| instance.heartbeat_at >= micros(before));
        (known - self.instances.len()) as u64
    }

    pub(super) fn create_token(&mut self, token: &NewToken, audit: &AuditEntry) -> StoreResult<Token> {
        if self.tokens.contains_key(&token.name) {
            return Err(StoreError::Conflict { what: format!("a token named `{}` exists", token.name) });
        }
        if self.tokens.values().any(|known| known.hash == token.hash) {
            return Err(StoreError::Conflict { what: "this token exists under another name".to_owned() });
        }
        let stored = new_token(token);
        let token = stored.token.clone();
        self.tokens.insert(token.name.clone(), stored);
        self.write_audit(audit);
        Ok(token)
    }

    pub(super) fn find_token(&mut self, hash: &[u8; 32], now: Timestamp) -> Option<Token> {
        let now = micros(now);
        let token = &mut self.tokens.values_mut().find(|stored| stored.hash == *hash)?.token;
        if token.revoked_at.is_some() || token.expires_at.is_some_and(|at| at <= now) {
            return None;
        }
        token.last_used_at = token.last_used_at.max(Some(to_the_minute(now)));
        Some(token.clone())
    }

    pub(super) fn list_tokens(&self) -> Vec<Token> {
        self.tokens.values().map(|stored| stored.token.clone()).collect()
    }

    /// A token that was revoked before stays revoked since then.
    pub(super) fn revoke_token(
        &mut self,
        name: &str,
        now: Timestamp,
        last_admin: LastAdmin,
        audit: &AuditEntry,
    ) -> StoreResult<()> {
        if last_admin == LastAdmin::Refuse {
            Token::expect_another_admin(&self.list_tokens(), name, micros(now))?;
        }
        let stored = self.tokens.get_mut(name).ok_or_else(|| StoreError::not_found("token", name))?;
        stored.token.revoked_at.get_or_insert(micros(now));
        let hash = stored.hash;
        self.sessions.retain(|_, known| known.session.token_hash != hash);
        self.write_audit(audit);
        Ok(())
    }

    pub(super) fn list_audit(&self, object: Option<&str>, page: &PageRequest) -> StoreResult<Page<AuditEntry>> {
        let wanted = self.audit.values().filter(|entry| object.is_none_or(|object| entry.object == object));
        pages::by_time(wanted.cloned().collect(), page, Direction::Down, |entry: &AuditEntry| (entry.at, entry.id))
    }

    pub(super) fn prune(&mut self, before: PruneBefore, limit: u32) -> Pruned {
        let (audit_before, requests_before) = (micros(before.audit), micros(before.requests));
        let before = micros(before.history);
        let limit = limit as usize;
        // A run of an old slot that ended lately, such as one of a backfill, is not old.
        let is_old = |run: &Run| run.finished_at.unwrap_or(run.created_at) < before;
        let old = self.ended.range(..RunId::first_at(before)).filter(|(_, run)| is_old(run));
        let runs: Vec<RunId> = old.map(|(id, _)| *id).take(limit).collect();
        for id in &runs {
            self.ended.remove(id);
            self.outputs.remove(id);
        }
        self.slots.retain(|_, id| !runs.contains(id));
        let gaps: Vec<Uuid> =
            self.gaps.iter().filter(|(_, gap)| gap.created_at < before).map(|(id, _)| *id).take(limit).collect();
        for id in &gaps {
            self.gaps.remove(id);
        }
        let audit: Vec<_> =
            self.audit.values().filter(|entry| entry.at < audit_before).map(|entry| entry.id).take(limit).collect();
        for id in &audit {
            self.audit.remove(id);
        }
        let old = self.requests.iter().filter(|(_, request)| request.at < requests_before);
        let answers: Vec<String> = old.map(|(key, _)| key.clone()).take(limit).collect();
        for key in &answers {
            self.requests.remove(key);
        }
        let ended = |session: &StoredSession| session.session.ends_at() <= requests_before;
        let sessions: Vec<Uuid> =
            self.sessions.iter().filter(|(_, session)| ended(session)).map(|(id, _)| *id).take(limit).collect();
        for id in &sessions {
            self.sessions.remove(id);
        }
        Pruned {
            runs: runs.len() as u64,
            gaps: gaps.len() as u64,
            audit: audit.len() as u64,
            answers: answers.len() as u64,
        }
    }
}

/// The beginning of the minute.
pub(super) fn to_the_minute(now: Timestamp) -> Timestamp {
    let minute = now.as_microsecond().div_euclid(MICROS_PER_MINUTE) * MICROS_PER_MINUTE;
    Timestamp::from_microsecond(minute).unwrap_or(now)
}
