//! Requests about many jobs or many runs.

use everbell_wire::job::{ScheduleType, Source};
use everbell_wire::run::RunStatus;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::request::MissedSlots;

/// An action on many jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BulkAction {
    /// Pause them.
    Pause,
    /// Resume them.
    Resume,
    /// Run them now.
    RunNow,
    /// Skip their next runs.
    SkipNext,
    /// Retire them.
    Retire,
    /// Edit them.
    Edit,
}

/// Pauses, resumes, runs, skips, retires or edits many jobs.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BulkActionRequest {
    /// The action.
    pub action: BulkAction,
    /// The keys of the jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_keys: Option<Vec<String>>,
    /// Selects jobs by their properties instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<BulkFilter>,
    /// The reason, for the audit trail. Required to pause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When paused jobs resume automatically.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// How the slots of the pause are handled when jobs are resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<MissedSlots>,
    /// How many runs are skipped; one if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// The changes of [`BulkAction::Edit`]: a merge patch with `target`, `labels` and `policies`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edit: Option<Value>,
    /// Return what would change without changing it.
    pub dry_run: bool,
}

/// Runs many runs again.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RerunRequest {
    /// Selects the runs; at least one member is required.
    pub filter: RerunFilter,
    /// The reason, for the audit trail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Return what would be started without starting it.
    pub dry_run: bool,
    /// Include runs that such a request already reran within the last 24 hours.
    pub again: bool,
}

/// Selects runs that have ended. Without a status, runs that failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RerunFilter {
    /// Only runs of the job with this key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_key: Option<String>,
    /// Only runs of jobs with this label: `name` or `name=value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Only runs with one of these statuses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub status: Vec<RunStatus>,
    /// Only runs of one of these targets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub target: Vec<String>,
    /// Only runs for this org.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub org_id: Option<String>,
    /// Only runs that failed with this code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_code: Option<String>,
    /// Only runs that were scheduled or requested at or after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// Only runs that were scheduled or requested before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
}

/// Selects the jobs of an action by their properties. Retired jobs are never selected.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BulkFilter {
    /// Only jobs with one of these targets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub target: Vec<String>,
    /// Only jobs whose key, target or description contains this text, ignoring case.
    #[serde(rename = "q", skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Only jobs that are declared by this source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Only jobs whose last run has one of these statuses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub last_run_status: Vec<RunStatus>,
    /// Only recurring or only one-time jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule_type: Option<ScheduleType>,
    /// Only jobs with this label: `name` or `name=value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}
