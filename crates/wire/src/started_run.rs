//! [`StartedRun`]: what the document of a run says about the runs that it started.

use everbell_core as core;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::run_status::RunStatus;

/// A run that another one started when it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartedRun {
    /// Its id.
    pub id: String,
    /// The key of its job.
    pub job_key: Option<String>,
    /// Its current status.
    pub status: RunStatus,
}

impl From<&core::Run> for StartedRun {
    fn from(run: &core::Run) -> StartedRun {
        StartedRun {
            id: run.id.to_string(),
            job_key: run.job_key.as_ref().map(ToString::to_string),
            status: run.status.into(),
        }
    }
}
