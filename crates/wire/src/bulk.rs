//! Actions on many jobs.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::words::words;

/// The effect of an action on many jobs, done or planned.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bulk {
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// The action, such as `pause`.
    pub action: String,
    /// How many jobs were or would be changed.
    pub changed: u64,
    /// One entry for each job.
    pub items: Vec<BulkItem>,
}

words!(
    /// The effect of an action on one of many jobs.
    BulkOutcome {
        /// It was changed.
        Changed = "changed",
        /// It would be changed.
        WouldChange = "would_change",
        /// It was in that state before.
        Unchanged = "unchanged",
        /// It could not be changed.
        Failed = "failed",
    }
);

/// The effect of an action on one of many jobs.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BulkItem {
    /// The id of the job.
    pub id: String,
    /// The key of the job.
    pub job_key: String,
    /// The outcome.
    pub outcome: BulkOutcome,
    /// The first fire after resuming; in a dry run of a pause the fire that it would prevent.
    pub next_run_at: Option<Timestamp>,
    /// Why it was not changed.
    pub detail: Option<String>,
}
