//! Targets: what they are, which instances serve them, and how their runs end.

use everbell_core::store::{FailureTrend, RunCounters};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::declaration::Source;
use crate::top::millis;
use crate::words::words;

words!(
    /// How the failure rate of the last day compares with that of the week before it.
    TargetTrend {
        /// More runs failed than chance explains.
        Higher = "higher",
        /// As before.
        Usual = "usual",
        /// Fewer runs failed than chance explains.
        Lower = "lower",
    }
);

words!(
    /// The kind of work of a target that the configuration or the API defines.
    TargetType {
        /// Writes its payload to the log.
        Log = "log",
        /// Sends an HTTP request.
        Http = "http",
        /// Runs a program.
        Command = "command",
        /// Runs the command of its payload.
        Shell = "shell",
    }
);

/// A target, the instances that serve it, and how its runs end.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// Its label.
    pub target: String,
    /// The kind of its work; null if the instance that responds does not define it.
    pub r#type: Option<TargetType>,
    /// The host that an `http` target calls, or the program that a `command` target runs; null for others, and if only a
    /// reference to the URL is known. Never a secret.
    pub address: Option<String>,
    /// Maximum concurrent runs on each instance; null if there is no limit, or if the instance that responds does not define it.
    #[serde(default)]
    pub concurrency: Option<u32>,
    /// `config` for a block of the configuration of the instance that responds, `api` for a stored target; null for targets that
    /// only other instances or programs define.
    pub source: Option<Source>,
    /// 1, 2, 3, …; grows with each edit of a stored target. The ETag.
    pub revision: Option<u32>,
    /// Why the instance that responds does not serve this stored target; null if it does.
    pub problem: Option<String>,
    /// The live instances that serve it.
    pub instances: Vec<String>,
    /// How many jobs that are not retired name it.
    pub jobs: u64,
    /// The jobs that do not fire because no live instance serves it; only the first if there are very many.
    pub waiting_jobs: Vec<String>,
    /// Its runs of the last 24 hours; null for callers that may not read runs.
    pub last_day: Option<TargetRuns>,
    /// Its `[[target]]` block, with references to secrets as they are written and other secrets hidden; null for callers that
    /// are not admins.
    pub block: Option<String>,
    /// The definition of a stored target, with references to secrets; null for callers that are not admins.
    pub definition: Option<serde_json::Value>,
    /// The actor who wrote this revision of a stored target.
    pub updated_by: Option<String>,
    /// When this revision was written.
    pub updated_at: Option<Timestamp>,
}

/// A target that was written, or would be.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetWritten {
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// Whether there was no stored target with this label.
    pub created: bool,
    /// Why the instance that responds cannot serve it, such as a variable that is not set; null if it can. Other instances check
    /// for themselves.
    pub problem: Option<String>,
    /// The target as it is now; null for a dry run.
    pub target: Option<Target>,
}

/// The runs of a target that ended in the last 24 hours. Trials are not counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetRuns {
    /// How many runs ended or were skipped.
    pub runs: u64,
    /// How many runs succeeded.
    pub succeeded: u64,
    /// How many runs failed.
    pub failed: u64,
    /// How many runs were canceled.
    pub canceled: u64,
    /// How many runs were skipped.
    pub skipped: u64,
    /// The share of runs that succeeded among those that succeeded or failed, from 0 to 1; null without any.
    pub success_rate: Option<f64>,
    /// The share of runs that failed among those that succeeded or failed, from 0 to 1; null without any.
    pub failure_rate: Option<f64>,
    /// The same share in the six days before; null without any.
    pub earlier_failure_rate: Option<f64>,
    /// Whether chance explains the difference between both; null if there are too few runs to say.
    pub trend: Option<TargetTrend>,
    /// About 95% of the runs took at most this long.
    pub p95_ms: Option<i64>,
    /// The longest run.
    pub longest_ms: Option<i64>,
}

impl TargetRuns {
    /// The runs of a day, compared with those of the days before it.
    pub fn new(day: &RunCounters, earlier: &RunCounters) -> TargetRuns {
        TargetRuns {
            runs: day.runs(),
            succeeded: day.succeeded,
            failed: day.failed,
            canceled: day.canceled,
            skipped: day.skipped,
            success_rate: day.success_rate(),
            failure_rate: day.failure_rate(),
            earlier_failure_rate: earlier.failure_rate(),
            trend: day.failure_trend(earlier).map(|trend| match trend {
                FailureTrend::Higher => TargetTrend::Higher,
                FailureTrend::Usual => TargetTrend::Usual,
                FailureTrend::Lower => TargetTrend::Lower,
            }),
            p95_ms: day.took.quantile(0.95).map(millis),
            longest_ms: day.took.longest().map(millis),
        }
    }
}

/// Every target that is defined, that an instance serves or that a job names.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Targets {
    /// Whether every run of the last 24 hours is counted; null for callers that may not read runs. After an upgrade, past runs
    /// are counted in the background.
    pub complete: Option<bool>,
    /// All of them, by label.
    pub items: Vec<Target>,
}
