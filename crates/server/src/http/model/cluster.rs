//! Who is there, and what happened: targets, instances, tokens, audit.

use everbell_core::store::{AuditEntry, Instance, Session, Token};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{parsed, time, times};

/// A label and who serves it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Target)]
pub(crate) struct TargetDocument {
    pub(crate) target: String,
    /// The live instances that serve it.
    pub(crate) instances: Vec<String>,
    /// How many living jobs name it.
    pub(crate) jobs: u64,
    /// The jobs that name it although nobody serves it, which do not fire; of very many only the first.
    pub(crate) waiting_jobs: Vec<String>,
    /// How many of its runs succeeded or failed, among the newest thousand of all targets within the last day; null for
    /// who may not read runs.
    pub(crate) recent_runs: Option<u64>,
    /// How many of those failed.
    pub(crate) recent_failures: Option<u64>,
    /// The share of those that failed, from 0 to 1; null without any.
    pub(crate) failure_rate: Option<f64>,
}

/// Every label that is served or named.
#[derive(Serialize, ToSchema)]
#[schema(as = Targets)]
pub(crate) struct TargetsDocument {
    pub(crate) items: Vec<TargetDocument>,
}

/// One running process.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Instance)]
pub(crate) struct InstanceDocument {
    pub(crate) id: String,
    pub(crate) host: String,
    pub(crate) pid: u32,
    pub(crate) version: String,
    pub(crate) roles: Vec<String>,
    pub(crate) targets: Vec<String>,
    pub(crate) started_at: String,
    pub(crate) heartbeat_at: String,
    /// Heard of within the time of a lease.
    pub(crate) alive: bool,
    pub(crate) draining: bool,
    pub(crate) clock_skew_ms: i64,
}

impl InstanceDocument {
    pub(crate) fn of(instance: &Instance, alive_since: Timestamp) -> InstanceDocument {
        InstanceDocument {
            id: instance.id.to_string(),
            host: instance.host.clone(),
            pid: instance.pid,
            version: instance.version.clone(),
            roles: instance.roles.clone(),
            targets: instance.targets.iter().map(ToString::to_string).collect(),
            started_at: time(instance.started_at),
            heartbeat_at: time(instance.heartbeat_at),
            alive: instance.heartbeat_at >= alive_since,
            draining: instance.draining,
            clock_skew_ms: instance.clock_skew_ms,
        }
    }
}

/// A token, without itself.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Token)]
pub(crate) struct TokenDocument {
    pub(crate) name: String,
    /// `viewer`, `operator` or `admin`.
    pub(crate) role: String,
    pub(crate) created_at: String,
    pub(crate) expires_at: Option<String>,
    pub(crate) revoked_at: Option<String>,
    /// To the minute.
    pub(crate) last_used_at: Option<String>,
}

/// A token that was just made: the only time that it is shown.
#[derive(Serialize, ToSchema)]
#[schema(as = NewToken)]
pub(crate) struct NewTokenDocument {
    #[serde(flatten)]
    pub(crate) about: TokenDocument,
    /// To be kept by who asked for it.
    pub(crate) token: String,
}

impl From<&Token> for TokenDocument {
    fn from(token: &Token) -> TokenDocument {
        TokenDocument {
            name: token.name.clone(),
            role: token.role.clone(),
            created_at: time(token.created_at),
            expires_at: times(token.expires_at),
            revoked_at: times(token.revoked_at),
            last_used_at: times(token.last_used_at),
        }
    }
}

/// What somebody did.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AuditEntry)]
pub(crate) struct AuditDocument {
    pub(crate) id: String,
    pub(crate) at: String,
    /// Such as `token:ops`.
    pub(crate) actor: String,
    /// Such as `job.pause`.
    pub(crate) action: String,
    /// Such as `job:daily-briefing`.
    pub(crate) object: String,
    pub(crate) reason: Option<String>,
    /// How it was, as far as it changed.
    pub(crate) before: Option<Value>,
    /// How it is, as far as it changed.
    pub(crate) after: Option<Value>,
    /// The address of the client; null for what everbell does by itself.
    pub(crate) from: Option<String>,
    /// The `X-Request-Id` of the request.
    pub(crate) request_id: Option<String>,
    /// The role of who asked.
    pub(crate) role: Option<String>,
}

impl From<&AuditEntry> for AuditDocument {
    fn from(entry: &AuditEntry) -> AuditDocument {
        AuditDocument {
            id: entry.id.to_string(),
            at: time(entry.at),
            actor: entry.actor.clone(),
            action: entry.action.clone(),
            object: entry.object.clone(),
            reason: entry.reason.clone(),
            before: parsed(entry.before.as_ref()),
            after: parsed(entry.after.as_ref()),
            from: entry.origin.address.clone(),
            request_id: entry.origin.request_id.clone(),
            role: entry.origin.role.clone(),
        }
    }
}

/// A browser that is signed in.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Session)]
pub(crate) struct SessionDocument {
    pub(crate) id: String,
    /// Who signed in, such as `token:ops`.
    pub(crate) actor: String,
    pub(crate) role: String,
    pub(crate) created_at: String,
    /// When it ends if it is not used any more.
    pub(crate) expires_at: String,
    /// To the minute.
    pub(crate) last_used_at: String,
    /// The address of the client that signed in.
    pub(crate) from: Option<String>,
    /// The browser, as it names itself.
    pub(crate) user_agent: Option<String>,
    /// Whether it is the session of this request.
    pub(crate) current: bool,
}

impl SessionDocument {
    pub(crate) fn of(session: &Session, own: Option<Uuid>) -> SessionDocument {
        SessionDocument {
            id: session.id.to_string(),
            actor: session.actor.clone(),
            role: session.role.clone(),
            created_at: time(session.created_at),
            expires_at: time(session.ends_at()),
            last_used_at: time(session.last_used_at),
            from: session.address.clone(),
            user_agent: session.user_agent.clone(),
            current: own == Some(session.id),
        }
    }
}
