//! Who is there, and what happened: targets, instances, tokens, audit.

use everbell_core::store::{AuditEntry, Instance, Token};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

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
        }
    }
}
