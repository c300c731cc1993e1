//! Rows of sessions.

use everbell_core::Invalid;
use everbell_core::store::{Session, StoreResult};
use uuid::Uuid;

use super::corrupt;
use super::from_row::by_name;
use crate::micros::Micros;

/// A row of `sessions`, without the hash.
#[derive(Clone, Debug)]
pub(crate) struct SessionColumns {
    pub(crate) id: Uuid,
    pub(crate) token_hash: Vec<u8>,
    pub(crate) actor: String,
    pub(crate) role: String,
    pub(crate) created_at: Micros,
    pub(crate) expires_at: Micros,
    pub(crate) last_used_at: Micros,
    pub(crate) address: Option<String>,
    pub(crate) user_agent: Option<String>,
}

by_name!(SessionColumns { id, token_hash, actor, role, created_at, expires_at, last_used_at, address, user_agent });

impl SessionColumns {
    pub(crate) fn read(self) -> StoreResult<Session> {
        let token_hash = <[u8; 32]>::try_from(self.token_hash)
            .map_err(|_| corrupt("sessions", self.id, Invalid::new("token_hash", "is not a SHA-256")))?;
        Ok(Session {
            id: self.id,
            token_hash,
            actor: self.actor,
            role: self.role,
            created_at: self.created_at.into(),
            expires_at: self.expires_at.into(),
            last_used_at: self.last_used_at.into(),
            address: self.address,
            user_agent: self.user_agent,
        })
    }
}
