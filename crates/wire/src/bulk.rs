//! Actions on many jobs.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::job::ChangedField;
use crate::words::words;

words!(
    /// An action on many jobs.
    BulkAction {
        /// The jobs do not fire until they are resumed.
        Pause = "pause",
        /// They fire again.
        Resume = "resume",
        /// Each gets a run now.
        RunNow = "run_now",
        /// The next runs of each are skipped.
        SkipNext = "skip_next",
        /// They never fire again.
        Retire = "retire",
        /// Those that differ get a new version.
        Edit = "edit",
    }
);

/// The effect of an action on many jobs, done or planned.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bulk {
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// The action.
    pub action: BulkAction,
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
    /// The next run after resuming; in a dry run of a pause, the next run, which the pause would prevent.
    pub next_run_at: Option<Timestamp>,
    /// The run that was requested, for `run_now`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub run_id: Option<String>,
    /// Why it was not changed.
    pub detail: Option<String>,
    /// The members that an `edit` changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub changes: Vec<ChangedField>,
}

words!(
    /// The effect of a request to rerun many runs on one of them.
    RerunOutcome {
        /// It runs again.
        Started = "started",
        /// It runs again when active runs of its job have ended.
        Queued = "queued",
        /// It would run again.
        WouldStart = "would_start",
        /// It was already rerun by a request like this one within the last 24 hours.
        AlreadyRerun = "already_rerun",
        /// The new run was skipped, because another run of the job is active.
        Skipped = "skipped",
        /// It cannot run again.
        Failed = "failed",
    }
);

/// The effect of rerunning many runs, done or planned.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reruns {
    /// Whether nothing was started.
    pub dry_run: bool,
    /// How many runs match.
    pub matched: u64,
    /// How many runs were or would be started.
    pub started: u64,
    /// One entry for each run, oldest first.
    pub items: Vec<RerunItem>,
}

/// The effect of a request to rerun many runs on one of them.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RerunItem {
    /// The run that matches.
    pub run_id: String,
    /// The key of its job; absent for a trial of a target.
    pub job_key: Option<String>,
    /// The slot or the time of the request of that run.
    pub scheduled_at: Timestamp,
    /// The outcome.
    pub outcome: RerunOutcome,
    /// The new run.
    pub new_run_id: Option<String>,
    /// Why it is not rerun.
    pub detail: Option<String>,
}
