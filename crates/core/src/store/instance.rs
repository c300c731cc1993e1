//! [`Instance`]: one running process.

use jiff::Timestamp;

use crate::ids::{InstanceId, Target};

/// One running process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Instance {
    /// Its id.
    pub id: InstanceId,
    /// Its host name.
    pub host: String,
    /// Its process id.
    pub pid: u32,
    /// Its release.
    pub version: String,
    /// Such as `scheduler`, `api`.
    pub roles: Vec<String>,
    /// The targets that it serves.
    pub targets: Vec<Target>,
    /// When it started.
    pub started_at: Timestamp,
    /// When it last sent a heartbeat.
    pub heartbeat_at: Timestamp,
    /// Whether it takes no more work.
    pub draining: bool,
    /// How far its host's clock is from the database's.
    pub clock_skew_ms: i64,
    /// Identifies the process and its machine, in a form that only instances of the same machine compare; `None` if
    /// unknown.
    pub process: Option<String>,
}

impl Instance {
    /// An instance that just started, without roles and targets. [`with!`](crate::with!) sets the rest.
    pub fn new(id: InstanceId, host: String, pid: u32, version: String, started_at: Timestamp) -> Instance {
        Instance {
            id,
            host,
            pid,
            version,
            roles: Vec::new(),
            targets: Vec::new(),
            started_at,
            heartbeat_at: started_at,
            draining: false,
            clock_skew_ms: 0,
            process: None,
        }
    }
}
