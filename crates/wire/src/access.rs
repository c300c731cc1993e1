//! Tokens, sessions and audit entries.

use everbell_core::store;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::raw::parsed;
use crate::words::words;

words!(
    /// The rights of a caller.
    Role {
        /// Read only.
        Viewer = "viewer",
        /// Read and act: pause, resume, run now, cancel.
        Operator = "operator",
        /// Everything: change jobs, orgs, tokens and the configuration.
        Admin = "admin",
    }
);

/// A token, without its secret.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Token {
    /// Its name, which is unique.
    pub name: String,
    /// The role of its callers.
    pub role: Role,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it ends; null for never.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked; null if it was not.
    pub revoked_at: Option<Timestamp>,
    /// When it was used last, to the minute.
    pub last_used_at: Option<Timestamp>,
}

/// A token that was just created, with its secret, which is never shown again.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct NewToken {
    /// The token.
    #[serde(flatten)]
    pub about: Token,
    /// The secret. The server keeps only its hash.
    pub token: String,
}

impl From<&store::Token> for Token {
    fn from(token: &store::Token) -> Token {
        Token {
            name: token.name.clone(),
            role: Role::from_word(&token.role),
            created_at: token.created_at,
            expires_at: token.expires_at,
            revoked_at: token.revoked_at,
            // Kept to the minute.
            last_used_at: token.last_used_at.map(|at| at.max(token.created_at)),
        }
    }
}

/// An action by a person, a program or everbell itself.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// Its id.
    pub id: String,
    /// When it happened.
    pub at: Timestamp,
    /// The actor, such as `token:ops`.
    pub actor: String,
    /// The action, such as `job.pause`.
    pub action: String,
    /// The object of the action, such as `job:daily-briefing`.
    pub object: String,
    /// The reason that the actor gave.
    pub reason: Option<String>,
    /// The members that changed, before the change.
    pub before: Option<Value>,
    /// The members that changed, after the change.
    pub after: Option<Value>,
    /// The address of the client; null for actions of everbell itself.
    pub from: Option<String>,
    /// The `X-Request-Id` of the request.
    pub request_id: Option<String>,
    /// The role of the actor; null where it needed none.
    pub role: Option<Role>,
}

impl From<&store::AuditEntry> for AuditEntry {
    fn from(entry: &store::AuditEntry) -> AuditEntry {
        AuditEntry {
            id: entry.id.to_string(),
            at: entry.at,
            actor: entry.actor.clone(),
            action: entry.action.clone(),
            object: entry.object.clone(),
            reason: entry.reason.clone(),
            before: parsed(entry.before.as_ref()),
            after: parsed(entry.after.as_ref()),
            from: entry.origin.address.clone(),
            request_id: entry.origin.request_id.clone(),
            role: entry.origin.role.as_deref().map(Role::from_word),
        }
    }
}

/// A browser that is signed in.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// Its id.
    pub id: String,
    /// The actor that signed in, such as `token:ops`.
    pub actor: String,
    /// The role of the actor.
    pub role: Role,
    /// When the browser signed in.
    pub created_at: Timestamp,
    /// When it ends if it is not used again.
    pub expires_at: Timestamp,
    /// When it was used last, to the minute.
    pub last_used_at: Timestamp,
    /// The address of the client that signed in.
    pub from: Option<String>,
    /// The browser, as it names itself.
    pub user_agent: Option<String>,
    /// Whether it is the session of this request.
    pub current: bool,
}

/// Sessions that were ended.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EndedSessions {
    /// How many there were.
    pub ended: u64,
}

impl Session {
    /// A session; `is_current` says whether it is that of the request.
    pub fn new(session: &store::Session, is_current: bool) -> Session {
        Session {
            id: session.id.to_string(),
            actor: session.actor.clone(),
            role: Role::from_word(&session.role),
            created_at: session.created_at,
            expires_at: session.ends_at(),
            last_used_at: session.last_used_at.max(session.created_at),
            from: session.address.clone(),
            user_agent: session.user_agent.clone(),
            current: is_current,
        }
    }
}
