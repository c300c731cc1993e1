//! Instances, and the status of a server.

use everbell_core::store;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A running process of everbell.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Instance {
    /// Its id.
    pub id: String,
    /// The name of its machine.
    pub host: String,
    /// Its process id.
    pub pid: u32,
    /// The version of everbell.
    pub version: String,
    /// Its roles, such as `api` and `scheduler`.
    pub roles: Vec<String>,
    /// The targets that it serves.
    pub targets: Vec<String>,
    /// When it started.
    pub started_at: Timestamp,
    /// When it wrote its last heartbeat.
    pub heartbeat_at: Timestamp,
    /// Whether its last heartbeat is younger than a lease.
    pub alive: bool,
    /// Whether it takes no more work.
    pub draining: bool,
    /// How far the clock of its machine is ahead of the database's.
    pub clock_skew_ms: i64,
}

impl Instance {
    /// An instance, which is alive if it wrote a heartbeat since then.
    pub fn new(instance: &store::Instance, alive_since: Timestamp) -> Instance {
        Instance {
            id: instance.id.to_string(),
            host: instance.host.clone(),
            pid: instance.pid,
            version: instance.version.clone(),
            roles: instance.roles.clone(),
            targets: instance.targets.iter().map(ToString::to_string).collect(),
            started_at: instance.started_at,
            heartbeat_at: instance.heartbeat_at,
            alive: instance.heartbeat_at >= alive_since,
            draining: instance.draining,
            clock_skew_ms: instance.clock_skew_ms,
        }
    }
}

/// A server and its database.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The version of everbell.
    pub version: String,
    /// The version of the built-in IANA time zone data.
    pub tz_data: String,
    /// The time of the database.
    pub now: Timestamp,
    /// The caller, such as `token:ops`.
    pub actor: String,
    /// The role of the caller.
    pub role: crate::Role,
    /// The database and its version.
    pub database: String,
    /// The version of the schema.
    pub schema_version: u32,
    /// The size of the database; null if it is unknown.
    pub size_bytes: Option<u64>,
    /// How many jobs are active.
    pub active_jobs: u64,
    /// How many jobs are paused.
    pub paused_jobs: u64,
    /// How many jobs cannot fire, because their schedule or timer cannot be read.
    pub errored_jobs: u64,
    /// How many orgs there are, counted up to 10,000.
    pub orgs: u32,
    /// For how many pairs of a job and an org the job cannot fire, counted up to 10,000.
    pub errored_org_timers: u32,
    /// How many runs have not started.
    pub pending_runs: u64,
    /// How many runs are being executed.
    pub running_runs: u64,
    /// How many timers are due and not yet planned.
    pub due_timers: u64,
    /// When the oldest of them became due.
    pub oldest_due_at: Option<Timestamp>,
    /// When the oldest open transaction of another session began.
    pub oldest_transaction_at: Option<Timestamp>,
    /// Notes about the database for operators.
    pub notes: Vec<String>,
}
