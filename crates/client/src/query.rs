//! Filters of lists and streams.

use everbell_wire::TopBy;
use everbell_wire::gap::GapReason;
use everbell_wire::job::{JobStatus, ScheduleType, Source};
use everbell_wire::run::{RunStatus, TriggerType};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::Error;

/// Selects jobs. The default selects every job that is not retired.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobQuery {
    /// Only jobs with one of these statuses.
    pub status: Vec<JobStatus>,
    /// Only jobs with one of these targets.
    pub target: Vec<String>,
    /// All versions of the job with this key.
    pub job_key: Option<String>,
    /// Only jobs whose key, target or description contains this text, ignoring case.
    #[serde(rename = "q")]
    pub text: Option<String>,
    /// Only jobs that are declared by this source.
    pub source: Option<Source>,
    /// Only jobs whose last run has one of these statuses.
    pub last_run_status: Vec<RunStatus>,
    /// Only jobs that cannot fire because their schedule or timer cannot be read, or only the others.
    pub errored: Option<bool>,
    /// Only jobs that have failed since their last success, or only the others.
    pub failing: Option<bool>,
    /// Only recurring or only one-time jobs.
    pub schedule_type: Option<ScheduleType>,
    /// Only jobs with a next run, or only the others.
    pub scheduled: Option<bool>,
    /// Only jobs with this label: `name` or `name=value`.
    pub label: Option<String>,
    /// The order: `jobKey`, `nextRunAt`, `-createdAt`, `target` or `-lastRunAt`.
    pub sort: Option<String>,
}

/// Selects runs. The default selects all of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunQuery {
    /// Only runs of the job with this key, in any version.
    pub job_key: Option<String>,
    /// Only runs of the job version with this id.
    pub job_id: Option<String>,
    /// Only runs whose ids begin with this, at least 8 hexadecimal digits.
    pub id_prefix: Option<String>,
    /// Only runs with one of these statuses.
    pub status: Vec<RunStatus>,
    /// Only runs of one of these targets.
    pub target: Vec<String>,
    /// Only runs that were triggered this way.
    pub trigger_type: Option<TriggerType>,
    /// Only runs for this org.
    pub org_id: Option<String>,
    /// Only runs that this instance executed.
    pub instance_id: Option<String>,
    /// Only runs that failed with this code.
    pub failure_code: Option<String>,
    /// Only runs of jobs with this label: `name` or `name=value`.
    pub label: Option<String>,
    /// Only runs that were scheduled or requested at or after this time.
    pub from: Option<Timestamp>,
    /// Only runs that were scheduled or requested before this time.
    pub to: Option<Timestamp>,
}

/// Selects jobs by their runs. The default selects those that cost most time in 24 hours.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TopQuery {
    /// The window, which ends now: `24h`, `7d` or `30d`.
    pub window: Option<String>,
    /// The order.
    pub by: Option<TopBy>,
    /// Only jobs with this label: `name` or `name=value`.
    pub label: Option<String>,
    /// Only jobs with one of these targets; any if empty.
    pub target: Vec<String>,
    /// Only jobs that have failed since their last success, or only the others.
    pub failing: Option<bool>,
    /// The largest number of jobs, 20 if absent.
    pub limit: Option<u32>,
}

/// Selects orgs. The default selects all of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OrgQuery {
    /// Only orgs whose id or name contains this text, ignoring case.
    pub text: Option<String>,
    /// Only orgs in this time zone.
    pub timezone: Option<String>,
    /// Only orgs that jobs fire for, or only the others.
    pub enabled: Option<bool>,
    /// Only orgs that some job cannot fire for because of an error, or only the others.
    pub errored: Option<bool>,
}

/// Selects orgs of a job. The default selects all of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobOrgQuery {
    /// Only orgs whose id or name contains this text, ignoring case.
    pub text: Option<String>,
    /// Only orgs that the job cannot fire for because of an error, or only the others.
    pub errored: Option<bool>,
    /// Only orgs that the job has a next run for, or only the others.
    pub armed: Option<bool>,
    /// The largest number of orgs.
    pub limit: Option<u32>,
    /// Where the page begins: the `nextCursor` of the page before.
    pub cursor: Option<String>,
}

/// Selects gaps of a job. The default selects all of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GapQuery {
    /// Only gaps for this reason.
    pub reason: Option<GapReason>,
    /// Only gaps that end at or after this time.
    pub from: Option<Timestamp>,
    /// Only gaps that start before this time.
    pub to: Option<Timestamp>,
    /// Only gaps of this org.
    pub org_id: Option<String>,
}

/// Selects gaps of all jobs. The default selects all of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AllGapsQuery {
    /// Only gaps for this reason.
    pub reason: Option<GapReason>,
    /// Only gaps that end at or after this time.
    pub from: Option<Timestamp>,
    /// Only gaps that start before this time.
    pub to: Option<Timestamp>,
    /// Only gaps of the job with this key.
    pub job_key: Option<String>,
    /// Only gaps of jobs with this label: `name` or `name=value`.
    pub label: Option<String>,
    /// Only gaps of this org.
    pub org_id: Option<String>,
}

/// Selects fires to come. The default selects the next 50.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NextQuery {
    /// Only fires at or after this time; now if absent.
    pub from: Option<Timestamp>,
    /// Only times before this one.
    pub to: Option<Timestamp>,
    /// Only fires of jobs with this label: `name` or `name=value`.
    pub label: Option<String>,
    /// The largest number of fires.
    pub limit: Option<u32>,
}

/// Selects audit entries. The default selects all of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AuditQuery {
    /// Only entries about this object, such as `job:daily-briefing`.
    pub object: Option<String>,
}

/// Selects problems of jobs. The default selects all of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProblemQuery {
    /// Only open problems, or only closed ones.
    pub open: Option<bool>,
    /// Only problems of this kind, such as `failed`.
    pub kind: Option<String>,
    /// Only problems of the job with this key.
    pub job_key: Option<String>,
    /// Only problems of the runs for this org.
    pub org_id: Option<String>,
    /// Only problems of current jobs with this label: `name` or `name=value`.
    pub label: Option<String>,
}

/// Selects backfills. The default selects all of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackfillQuery {
    /// Only backfills of current jobs with this label: `name` or `name=value`.
    pub label: Option<String>,
}

/// Selects notification messages. The default selects all of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryQuery {
    /// Only the message with this id.
    pub id: Option<String>,
    /// Only messages to this channel.
    pub channel: Option<String>,
    /// Only messages about the problem with this id.
    pub problem_id: Option<String>,
    /// Only messages with this status: `pending`, `delivered` or `dead`.
    pub status: Option<String>,
}

/// Selects events. The default selects all of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventQuery {
    /// Only events of these types, such as `run.failed`, `run.*` or `job.*`.
    pub types: Vec<String>,
    /// Only events of the job with this key.
    pub job_key: Option<String>,
}

/// The members of a value as parameters. Absent values and empty lists are left out.
pub(crate) fn parameters(query: &impl Serialize) -> Result<Vec<(String, String)>, Error> {
    let value = serde_json::to_value(query).map_err(|error| Error::Invalid(error.to_string()))?;
    let members = value.as_object().cloned().unwrap_or_default().into_iter();
    Ok(members.filter_map(|(name, value)| Some((name, text(&value)?))).collect())
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(items) if items.is_empty() => None,
        Value::Array(items) => Some(items.iter().filter_map(text).collect::<Vec<_>>().join(",")),
        other => Some(other.to_string()),
    }
}

#[test]
fn queries_have_only_what_was_set() {
    let names = |query: &JobQuery| {
        let pairs = parameters(query).unwrap();
        pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
    };
    assert_eq!(names(&JobQuery::default()), "");
    let query = JobQuery {
        status: vec![JobStatus::Active, JobStatus::Paused],
        text: Some("brief".to_owned()),
        errored: Some(false),
        ..JobQuery::default()
    };
    assert_eq!(names(&query), "errored=false&q=brief&status=active,paused");
}
