//! Sessions of people who signed in with a browser.

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

/// The most sessions of one token. A further one ends the oldest.
pub const MAX_SESSIONS_PER_TOKEN: u32 = 100;

/// A session that is not used for this long has ended.
pub const SESSION_IDLE_TIMEOUT: SignedDuration = SignedDuration::from_hours(12);

/// A session ends this long after the person signed in, however often it is used.
pub const MAX_SESSION_AGE: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The most sessions in one list.
pub const MAX_LISTED_SESSIONS: u32 = 1_000;

/// A session to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSession {
    /// Public, for lists and the audit trail.
    pub id: Uuid,
    /// SHA-256 of the secret in the cookie.
    pub hash: [u8; 32],
    /// SHA-256 of the token that it belongs to.
    pub token_hash: [u8; 32],
    /// The actor who signed in, such as `token:ops`.
    pub actor: String,
    /// The role of the token when the person signed in.
    pub role: String,
    /// When the person signed in.
    pub created_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
    /// The address of the client.
    pub address: Option<String>,
    /// The browser, as it names itself.
    pub user_agent: Option<String>,
}

/// A session, without its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The id, which is not secret.
    pub id: Uuid,
    /// SHA-256 of the token that it belongs to.
    pub token_hash: [u8; 32],
    /// The actor who signed in, such as `token:ops`.
    pub actor: String,
    /// The role of the token when the person signed in.
    pub role: String,
    /// When the person signed in.
    pub created_at: Timestamp,
    /// When it expires, even if it is used.
    pub expires_at: Timestamp,
    /// When it was last used, to the minute; at first, when it started.
    pub last_used_at: Timestamp,
    /// The address of the client that signed in.
    pub address: Option<String>,
    /// The browser that signed in, as it names itself.
    pub user_agent: Option<String>,
}

impl Session {
    /// Returns when it ends if it is no longer used.
    pub fn ends_at(&self) -> Timestamp {
        let idle = self.last_used_at.checked_add(SESSION_IDLE_TIMEOUT);
        idle.map_or(self.expires_at, |idle| idle.min(self.expires_at))
    }

    /// The latest last use of a session that is no longer valid at `now`.
    pub fn idle_since(now: Timestamp) -> Timestamp {
        now.checked_sub(SESSION_IDLE_TIMEOUT).unwrap_or(Timestamp::MIN)
    }
}

/// A filter of sessions. A session must fit both members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Only this one.
    pub id: Option<Uuid>,
    /// Only those of this actor.
    pub actor: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ends_when_idle_or_old() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let session = Session {
            id: Uuid::nil(),
            token_hash: [0; 32],
            actor: "token:ops".to_owned(),
            role: "viewer".to_owned(),
            created_at: at("2026-03-01T00:00:00Z"),
            expires_at: at("2026-03-08T00:00:00Z"),
            last_used_at: at("2026-03-01T06:00:00Z"),
            address: None,
            user_agent: None,
        };
        assert_eq!(session.ends_at(), at("2026-03-01T18:00:00Z"));
        // The inverse of `ends_at`.
        assert_eq!(Session::idle_since(session.ends_at()), session.last_used_at);
        let old = Session { last_used_at: at("2026-03-07T20:00:00Z"), ..session };
        assert_eq!(old.ends_at(), old.expires_at);
    }
}
