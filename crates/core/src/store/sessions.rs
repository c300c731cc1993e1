//! Sessions: who is signed in with a browser.

use jiff::Timestamp;
use uuid::Uuid;

/// The most sessions of one token. A further one ends the oldest.
pub const MAX_SESSIONS_PER_TOKEN: u32 = 100;

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
    /// Who signed in, such as `token:ops`.
    pub actor: String,
    /// When the person signed in.
    pub created_at: Timestamp,
    /// When it ends by itself.
    pub expires_at: Timestamp,
    /// The address of the client.
    pub address: Option<String>,
    /// The browser, as it names itself.
    pub user_agent: Option<String>,
}

/// A session, without its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Public.
    pub id: Uuid,
    /// SHA-256 of the token that it belongs to.
    pub token_hash: [u8; 32],
    /// Who signed in, such as `token:ops`.
    pub actor: String,
    /// When the person signed in.
    pub created_at: Timestamp,
    /// When it ends by itself.
    pub expires_at: Timestamp,
    /// When it was used last, to the minute; at first, when it began.
    pub last_used_at: Timestamp,
    /// The address of the client that signed in.
    pub address: Option<String>,
    /// The browser that signed in, as it names itself.
    pub user_agent: Option<String>,
}

/// Which sessions are meant: all that fit both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Only this one.
    pub id: Option<Uuid>,
    /// Only those of this actor.
    pub actor: Option<String>,
}
