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
        /// Create none: it already has a run.
        Skip = "skip",
    }
);

words!(
    /// The order in which a backfill runs its slots.
    BackfillOrder {
        /// The oldest slot first.
        Oldest = "oldest",
        /// The newest slot first.
        Newest = "newest",
    }
);

words!(
    /// How far a backfill is.
    BackfillStatus {
        /// Some of its runs are pending or running, or not created yet.
        Running = "running",
        /// An operator paused it: it creates no runs until it is resumed.
        Paused = "paused",
        /// It creates no more runs, although slots are left.
        Stopped = "stopped",
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
    /// How many slots get a run; if `exact` is false, an upper bound. For all orgs: an upper bound in a dry run, because some
    /// slots may already have a run; otherwise null.
    pub to_create: Option<u64>,
    /// How many slots the range has; null for all orgs.
    pub total: Option<u64>,
    /// Whether `toCreate` is exact: every slot of the range was checked.
    #[serde(default)]
    pub exact: bool,
    /// The order of its slots; null for all orgs.
    pub order: Option<BackfillOrder>,
    /// How many of its runs may be pending or running at once; null for the job's limit.
    pub parallel: Option<u32>,
    /// The rate at which it creates runs, such as `10/m`; null for no limit.
    pub rate: Option<String>,
    /// Whether it continues while the job is paused.
    #[serde(default)]
    pub paused_ok: bool,
    /// The orgs that a dry run for all orgs counted.
    pub orgs: Option<BackfillOrgs>,
    /// The slots of the range, oldest first: all of them, or the first 100 if there are more than 1,000. `runId` of a slot whose run
    /// is not created yet is null.
    pub slots: Vec<BackfillSlot>,
}

/// The orgs that a dry run counted.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackfillOrgs {
    /// How many orgs were checked: the first thousand by id, if there are more.
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
    /// How many runs have not started, including those that are not created yet.
    pub pending: u64,
    /// How many runs are being executed.
    pub running: u64,
    /// How many runs succeeded.
    pub succeeded: u64,
    /// How many runs failed.
    pub failed: u64,
    /// How many runs were canceled.
    pub canceled: u64,
    /// Its org, for a job with scope `per_org`.
    #[serde(default)]
    pub org_id: Option<String>,
    /// How many slots have no run yet; slots that another request covers are skipped later. 0 when the backfill has ended.
    #[serde(default)]
    pub left: u64,
    /// How many slots already had a run.
    #[serde(default)]
    pub existing: u64,
    /// The order of its slots; null if all runs were created at once.
    #[serde(default)]
    pub order: Option<BackfillOrder>,
    /// How many of its runs may be pending or running at once; null for the job's limit.
    #[serde(default)]
    pub parallel: Option<u32>,
    /// The rate at which it creates runs, such as `10/m`; null for no limit.
    #[serde(default)]
    pub rate: Option<String>,
    /// Whether it continues while the job is paused.
    #[serde(default)]
    pub paused_ok: bool,
    /// How many of its runs ended per hour since its beginning or last change; null if none did, or if it does not run.
    #[serde(default)]
    pub runs_per_hour: Option<u64>,
    /// When it will be done at this rate; null if that is unknown.
    #[serde(default)]
    pub estimated_done_at: Option<Timestamp>,
    /// Why it creates no runs at the moment, although its status is `running`.
    #[serde(default)]
    pub waits_for: Option<String>,
    /// Why it stopped by itself.
    #[serde(default)]
    pub stopped_because: Option<String>,
}

/// A backfill that was stopped.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct StoppedBackfill {
    /// Its id.
    pub id: String,
    /// How many slots will not run because of the stop: runs that had not started, and slots whose run was not created yet.
    pub canceled: u64,
}
