//! Events of the stream at `/events`.

use everbell_core as core;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::run::RunStatus;

/// A change of a run, such as `run.succeeded`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunEvent {
    /// The id of the run.
    pub run_id: String,
    /// The key of its job; null for a trial of a target.
    pub job_key: Option<String>,
    /// The label of what it executes.
    pub target: String,
    /// Its state now.
    pub status: RunStatus,
    /// The number of the current or last attempt, from 1; 0 before the first.
    pub attempt: u32,
    /// When it was to start.
    pub scheduled_at: Timestamp,
    /// Why it failed, as a stable word.
    pub failure_code: Option<String>,
}

impl From<&core::Run> for RunEvent {
    fn from(run: &core::Run) -> RunEvent {
        RunEvent {
            run_id: run.id.to_string(),
            job_key: run.job_key.as_ref().map(ToString::to_string),
            target: run.target.to_string(),
            status: run.status.into(),
            attempt: run.attempt,
            scheduled_at: run.scheduled_at,
            failure_code: run.failure.as_ref().map(|failure| failure.code.as_str().to_owned()),
        }
    }
}
