//! Jobs.

use std::collections::BTreeMap;

use everbell_core as core;
use everbell_core::store::JobRow;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

pub use crate::after::{After, Chain, ChainJob, ChainOn, GroupBy, GroupedRun, Parents, RunGroup};
use crate::declaration::JobDeclaration;
pub use crate::declaration::Source;
use crate::form::iso;
use crate::job_schedule::local;
pub use crate::job_schedule::{Schedule, ScheduleType};
use crate::run::{RunStatus, millis_between};
use crate::words::words;
use crate::{Policies, Raw, Warning};

words!(
    /// Whether a job fires.
    JobStatus from core::JobStatus {
        /// It fires.
        Active = "active",
        /// It does not fire until it is resumed.
        Paused = "paused",
        /// It never fires again.
        Retired = "retired",
    }
);

words!(
    /// Whether a job fires for each org.
    Scope from core::Scope {
        /// It fires once for each slot.
        Global = "global",
        /// It fires for each org, in the zone of the org.
        PerOrg = "per_org",
    }
);

/// A job. The first sixteen members never change their meaning.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// The id of this version.
    pub id: String,
    /// The name that all versions share.
    pub job_key: String,
    /// The number of this version, from 1.
    pub version: u32,
    /// The target of its runs.
    pub target: String,
    /// The input of its runs.
    #[schema(value_type = Value)]
    pub payload: Option<Raw>,
    /// Whether it fires more than once.
    pub schedule_type: ScheduleType,
    /// When it fires, for a recurring job.
    pub cron_expression: Option<String>,
    /// When it fires, for a one-time job.
    pub run_at: Option<Timestamp>,
    /// The job that it starts after, instead of at times; a list if it waits for several.
    pub after: Option<Parents>,
    /// How runs of several jobs are grouped: by the same slot, or by the same local date.
    #[serde(default)]
    pub after_group: Option<GroupBy>,
    /// How long to wait for runs of several jobs after the first of them ends.
    #[serde(default)]
    pub after_within: Option<String>,
    /// The IANA time zone of the schedule.
    pub timezone: String,
    /// Whether it fires.
    pub status: JobStatus,
    /// Why it is paused.
    pub pause_reason: Option<String>,
    /// The version that this one replaced.
    pub supersedes_job_id: Option<String>,
    /// The actor that created this version.
    pub created_by: String,
    /// The actor that changed it last.
    pub updated_by: String,
    /// When this version was created.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
    /// A description for people.
    pub description: String,
    /// The schedule in words.
    pub schedule_text: String,
    /// When it fires next; null if it does not. With scope `per_org`: when it fires for the first org.
    pub next_run_at: Option<Timestamp>,
    /// The org that `nextRunAt` is for, for a job with scope `per_org`.
    pub next_org_id: Option<String>,
    /// `nextRunAt` in the zone of the job; null if it fires in the zone of each org.
    pub next_run_at_local: Option<String>,
    /// The slot that was moved to `nextRunAt`.
    pub rescheduled_from: Option<Timestamp>,
    /// The reason of the freeze that keeps the job from firing at `nextRunAt`. A one-time job waits until its end.
    pub next_run_frozen: Option<String>,
    /// When that freeze ends.
    pub next_run_frozen_until: Option<Timestamp>,
    /// The most recently scheduled run.
    pub last_run: Option<LastRun>,
    /// How many runs failed since the last success.
    pub consecutive_failures: u32,
    /// Why an active job cannot fire.
    pub error: Option<String>,
    /// The actor that paused it.
    pub paused_by: Option<String>,
    /// When it was paused.
    pub paused_at: Option<Timestamp>,
    /// When it resumes automatically.
    pub paused_until: Option<Timestamp>,
    /// It does not fire before this time.
    pub start_at: Option<Timestamp>,
    /// It does not fire after this time.
    pub end_at: Option<Timestamp>,
    /// The rules by which it fires and its runs are executed.
    pub policies: Policies,
    /// Names and values for people and filters.
    pub labels: BTreeMap<String, String>,
    /// Whether it fires for each org.
    pub scope: Scope,
    /// Its owner.
    pub source: Source,
    /// The declaration of the job in a program or a configuration file; null for other jobs, and for those that were not
    /// synced since programs have names.
    pub declaration: Option<JobDeclaration>,
    /// Grows with every change; also the `ETag`.
    pub revision: u64,
    /// Warnings about the schedule; only for a single job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub warnings: Option<Vec<Warning>>,
}

/// The most recently scheduled run, in short.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastRun {
    /// Its id.
    pub id: String,
    /// Its status.
    pub status: RunStatus,
    /// When it was to start.
    pub scheduled_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// How long its last attempt took.
    pub duration_ms: Option<i64>,
    /// Why it failed.
    pub failure_code: Option<String>,
}

/// A new version of a job, and the version that it replaced.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewVersion {
    /// The new version.
    #[serde(flatten)]
    pub job: Job,
    /// The version that was replaced.
    pub superseded: Superseded,
    /// The members that differ.
    pub changes: Vec<ChangedField>,
}

/// The version that was replaced.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Superseded {
    /// Its id.
    pub id: String,
    /// Its number.
    pub version: u32,
    /// Its status now.
    pub status: JobStatus,
    /// When it would have fired next.
    pub next_run_at: Option<Timestamp>,
}

/// A member that differs between two versions.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChangedField {
    /// Its name, such as `policies.timeout`.
    pub field: String,
    /// The value before.
    pub from: Value,
    /// The value after.
    pub to: Value,
}

/// A job that was paused.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Paused {
    /// The job.
    #[serde(flatten)]
    pub job: Job,
    /// How many runs have not started and wait until the job is resumed.
    pub held_runs: u64,
    /// How many runs were canceled that had not started.
    pub canceled_runs: u64,
}

/// A job that was deleted for good.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PurgedJob {
    /// The key of the job.
    pub job_key: String,
    /// How many versions were deleted.
    pub versions: u64,
    /// How many runs were deleted.
    pub runs: u64,
    /// How many gaps were deleted.
    pub gaps: u64,
}

/// A job that was resumed.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Resumed {
    /// The job.
    #[serde(flatten)]
    pub job: Job,
    /// How the slots of the pause were handled.
    pub resumed: Resumption,
}

words!(
    /// How the slots of a pause are handled.
    ResumeAction {
        /// None of them is run.
        Skip = "skip",
        /// The latest of them is run once.
        FireOnce = "fire_once",
    }
);

/// How the slots of a pause were handled.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resumption {
    /// How many slots passed during the pause.
    pub missed_slots: u64,
    /// How they are handled.
    pub action: ResumeAction,
    /// The runs that were created for them.
    pub run_ids: Vec<String>,
    /// How many runs had not started when the job was paused, and may start now.
    pub released_runs: u64,
}

impl From<&JobRow> for Job {
    fn from(row: &JobRow) -> Job {
        let JobRow { job, timer, last_run, next_for_org, .. } = row;
        let (definition, state) = (&*job.definition, &job.state);
        let Schedule { kind, expression, run_at, after, fan_in, timezone, text } = Schedule::from(definition);
        let (after_group, after_within) = fan_in.map(|(group, within)| (group, iso(within))).unzip();
        let spec = definition.spec.as_ref().ok();
        let next = row.next_run_at();
        let own = spec.filter(|_| next_for_org.is_none());
        let pause = state.pause.as_ref();
        Job {
            id: definition.id.to_string(),
            job_key: definition.key.to_string(),
            version: definition.version,
            target: definition.target.to_string(),
            payload: Raw::from_stored(&definition.payload),
            schedule_type: kind,
            cron_expression: expression,
            run_at,
            after,
            after_group,
            after_within,
            timezone,
            status: state.status.into(),
            pause_reason: pause.map(|pause| pause.reason.clone()),
            supersedes_job_id: definition.supersedes.map(|id| id.to_string()),
            created_by: definition.created_by.clone(),
            updated_by: state.updated_by.clone(),
            created_at: definition.created_at,
            updated_at: state.updated_at,
            description: definition.description.clone(),
            schedule_text: text,
            next_run_at: next,
            next_org_id: next_for_org.as_ref().map(|(_, org)| org.to_string()),
            next_run_at_local: next.zip(own).map(|(at, spec)| local(at, spec)),
            rescheduled_from: timer.as_ref().and_then(|timer| timer.rescheduled_from),
            next_run_frozen: None,
            next_run_frozen_until: None,
            last_run: last_run.as_ref().map(LastRun::from),
            consecutive_failures: state.consecutive_failures,
            error: state.error.clone(),
            paused_by: pause.map(|pause| pause.by.clone()),
            paused_at: pause.map(|pause| pause.at),
            paused_until: pause.and_then(|pause| pause.until),
            start_at: definition.bounds().0,
            end_at: definition.bounds().1,
            policies: Policies::from(definition),
            labels: definition.labels.clone(),
            scope: definition.scope.into(),
            source: definition.source.into(),
            declaration: JobDeclaration::from_job(job),
            revision: state.revision,
            warnings: None,
        }
    }
}

impl From<&core::Run> for LastRun {
    fn from(run: &core::Run) -> LastRun {
        LastRun {
            id: run.id.to_string(),
            status: run.status.into(),
            scheduled_at: run.scheduled_at,
            finished_at: run.finished_at,
            duration_ms: millis_between(run.started_at, run.finished_at),
            failure_code: run.failure.as_ref().map(|failure| failure.code.as_str().to_owned()),
        }
    }
}

impl From<&JobRow> for Superseded {
    fn from(row: &JobRow) -> Superseded {
        Superseded {
            id: row.job.definition.id.to_string(),
            version: row.job.definition.version,
            status: row.job.state.status.into(),
            next_run_at: None,
        }
    }
}
