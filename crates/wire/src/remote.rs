//! Runs that their remote sides hold.

use everbell_core::{self as core, RunStatus as Status};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::run_status::RunStatus;

/// The remote side of a run: the program that works on it after its target responded with 202.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemoteSide {
    /// How long it may be silent before the run is lost.
    pub lease_ms: u64,
    /// When the run times out.
    pub deadline: Timestamp,
    /// How far it has come, as last reported.
    pub progress: Option<RunProgress>,
}

/// How far a run has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunProgress {
    /// The part that is done, from 0 to 100.
    pub percent: Option<u16>,
    /// A message for people.
    pub message: Option<String>,
}

/// The response to a report from a remote side.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemoteRun {
    /// The run.
    pub run_id: String,
    /// The number of its attempt.
    pub attempt: u32,
    /// Its state.
    pub status: RunStatus,
    /// Whether it was asked to stop. The remote side should end it then; its lease is no longer extended.
    pub cancel_requested: bool,
    /// When it is lost unless the remote side sends another heartbeat; null unless it is running.
    pub lease_until: Option<Timestamp>,
    /// When it times out; null unless it is running.
    pub deadline: Option<Timestamp>,
}

impl From<&core::handover::Remote> for RemoteSide {
    fn from(remote: &core::handover::Remote) -> RemoteSide {
        RemoteSide {
            lease_ms: u64::try_from(remote.lease.as_millis()).unwrap_or(u64::MAX),
            deadline: remote.deadline,
            progress: remote.progress.as_ref().map(|progress| RunProgress {
                percent: progress.permille.map(|permille| permille / 10),
                message: progress.message.clone(),
            }),
        }
    }
}

impl From<&core::Run> for RemoteRun {
    fn from(run: &core::Run) -> RemoteRun {
        let is_running = run.status == Status::Running;
        RemoteRun {
            run_id: run.id.to_string(),
            attempt: run.attempt,
            status: run.status.into(),
            cancel_requested: run.cancel_by.is_some(),
            lease_until: run.lease_until.filter(|_| is_running),
            deadline: run.remote.as_ref().map(|remote| remote.deadline),
        }
    }
}
