//! Backfills.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::OrgUpdateStarted;
use crate::run::RunStatus;
use crate::words::words;

words!(
    /// The action of a backfill for a slot.
    SlotAction {
        /// Create a run for it.
        Create = "create",
        /// Nothing: it has a run.
        Skip = "skip",
    }
);

words!(
    /// How far a backfill is.
    BackfillStatus {
        /// Some of its runs are pending or running, or not created yet.
        Running = "running",
        /// All of its runs have ended.
        Done = "done",
    }
);

/// A backfill that was started, or the plan of one.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Backfill {
    /// Its id; null for a dry run.
    pub id: Option<String>,
    /// Whether nothing was created.
    pub dry_run: bool,
    /// The start of the range, inclusive.
    pub from: Timestamp,
    /// The end of the range, inclusive.
    pub to: Timestamp,
    /// Its org, for a job with scope `per_org`.
    pub org_id: Option<String>,
    /// The org update that creates its runs, if it is for all orgs.
    #[serde(rename = "sweep")]
    pub org_update: Option<OrgUpdateStarted>,
    /// How many slots get a run. For all orgs: the most that a dry run expects, because some may have a run; otherwise null.
    pub to_create: Option<u64>,
    /// The orgs that a dry run for all orgs counted.
    pub orgs: Option<BackfillOrgs>,
    /// The slots of the range.
    pub slots: Vec<BackfillSlot>,
}

/// The orgs that a dry run counted.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackfillOrgs {
    /// How many were looked at: the first thousand by id, if there are more.
    pub looked_at: u64,
    /// Whether there are more.
    pub more: bool,
    /// How many of them have slots in the range.
    pub with_slots: u64,
}

/// A slot of a backfill.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackfillSlot {
    /// The slot.
    pub slot_at: Timestamp,
    /// The slot in the zone of the job or the org.
    pub local: String,
    /// Whether it gets a run.
    pub action: SlotAction,
    /// The status of the run that it has.
    pub because: Option<RunStatus>,
    /// The run that it has or gets.
    pub run_id: Option<String>,
}

/// The progress of a backfill.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackfillReport {
    /// Its id.
    pub id: String,
    /// The key of the job.
    #[serde(default)]
    pub job_key: String,
    /// Its progress.
    pub status: BackfillStatus,
    /// When it was requested.
    pub asked_at: Timestamp,
    /// The actor that requested it.
    pub asked_by: String,
    /// The reason that was given.
    pub reason: Option<String>,
    /// The start of the range, inclusive.
    pub from: Timestamp,
    /// The end of the range, inclusive.
    pub to: Timestamp,
    /// How many runs have not started.
    pub pending: u64,
    /// How many runs are being executed.
    pub running: u64,
    /// How many runs succeeded.
    pub succeeded: u64,
    /// How many runs failed.
    pub failed: u64,
    /// How many runs were canceled.
    pub canceled: u64,
}

/// A backfill that was stopped.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct StoppedBackfill {
    /// Its id.
    pub id: String,
    /// How many runs were canceled that had not started.
    pub canceled: u64,
}
