//! A thin facade for programs that know schedules instead of jobs: a schedule is the living version of a job.

use axum::http::StatusCode;
use everbell::client::Change;
use everbell::core::store::PageRequest;
use everbell::{JobFilter, JobRow, JobStatus};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::{edits, jobs};
use crate::form::{Fault, Field, Form, Kind, Naming, TEXT, optional, required};
use crate::http::call::{Answer, Call, Payload};
use crate::http::problem::{Kind as ProblemKind, Problem};

macro_rules! schedule_fields {
    ($need:ident) => {
        &[
            $need("name", TEXT, "The name of the schedule: the key of its job."),
            $need("cron_expression", Kind::Text { min: 1, max: 1_000 }, "When it fires."),
            optional("timezone", Kind::Text { min: 1, max: 100 }, "The IANA time zone; UTC if absent or null."),
            optional("enabled", Kind::Flag, "Whether it fires; true if absent."),
            $need("target", TEXT, "What to do."),
            optional("payload", Kind::Json, "What the target gets."),
        ]
    };
}

/// A whole schedule.
pub(crate) const SCHEDULE: &[Field] = schedule_fields!(required);
/// What is different about a schedule.
pub(crate) const PATCH: &[Field] = schedule_fields!(optional);

/// The most schedules of a list, which has no pages.
const MOST: u32 = 1_000;
const DISABLED: &str = "disabled by the schedules API";

/// A schedule.
#[derive(Serialize, ToSchema)]
#[schema(as = Schedule)]
pub(crate) struct ScheduleDocument {
    id: String,
    name: String,
    /// The label `kind` of the job, or `task`.
    kind: String,
    target: String,
    cron_expression: Option<String>,
    /// The same as `cron_expression`.
    cron_spec: Option<String>,
    timezone: String,
    enabled: bool,
    next_run_at: Option<String>,
    last_run_at: Option<String>,
    last_run_id: Option<String>,
    created_at: String,
    updated_at: String,
}

impl ScheduleDocument {
    fn new(call: &Call, row: &JobRow) -> ScheduleDocument {
        let job = call.visible(row.into());
        ScheduleDocument {
            kind: job.labels.get("kind").cloned().unwrap_or_else(|| "task".to_owned()),
            id: job.id,
            name: job.job_key,
            target: job.target,
            cron_spec: job.cron_expression.clone(),
            cron_expression: job.cron_expression,
            timezone: job.timezone,
            enabled: job.status == "active",
            next_run_at: job.next_run_at,
            last_run_at: job.last_run.as_ref().map(|run| run.scheduled_at.clone()),
            last_run_id: job.last_run.map(|run| run.id),
            created_at: job.created_at,
            updated_at: job.updated_at,
        }
    }
}

pub(crate) async fn list(call: Call) -> Result<Answer, Problem> {
    let filter = JobFilter { status: vec![JobStatus::Active, JobStatus::Paused], ..JobFilter::default() };
    let page = call.jobs().list(&filter, &PageRequest { limit: MOST, after: None }).await?;
    let recurring = page.items.iter().filter(|row| !row.job.definition.is_one_time());
    Answer::ok(&recurring.map(|row| ScheduleDocument::new(&call, row)).collect::<Vec<_>>())
}

pub(crate) async fn get(call: Call) -> Result<Answer, Problem> {
    let row = call.jobs().get(call.job()?).await?;
    shown(&call, StatusCode::OK, &row)
}

pub(crate) async fn create(call: Call) -> Result<Answer, Problem> {
    let (enabled, call) = translated(call, SCHEDULE, true)?;
    let answer = renamed(jobs::create(call.clone()).await)?;
    let row = call.jobs().get(named(&answer).as_str()).await?;
    let row = if enabled == Some(false) { call.jobs().pause(row.job.definition.id, DISABLED).await?.job } else { row };
    shown(&call, StatusCode::CREATED, &row)
}

/// PUT: what is absent is cleared.
pub(crate) async fn replace(call: Call) -> Result<Answer, Problem> {
    changed(call, SCHEDULE, true).await
}

/// PATCH: what is absent stays, and `null` clears.
pub(crate) async fn patch(call: Call) -> Result<Answer, Problem> {
    changed(call, PATCH, false).await
}

async fn changed(call: Call, fields: &'static [Field], whole: bool) -> Result<Answer, Problem> {
    let row = call.jobs().get(call.job()?).await?;
    let own = row.job.definition.key.as_str();
    if call.body.get("name").and_then(Value::as_str).is_some_and(|name| name != own) {
        let detail = format!("cannot change: it is `{own}`");
        return Err(Problem::body(vec![Fault::new("/name", "invalid", detail)]));
    }
    let (enabled, call) = translated(call, fields, whole)?;
    let patched = renamed(edits::patch(call.clone()).await)?;
    let row = call.jobs().get(&row.job.definition.key).await?;
    if call.if_match.is_some() && !patched.headers.contains(&("etag", jobs::etag(&row))) {
        return Err(Problem::new(ProblemKind::RevisionMismatch, "The schedule was changed meanwhile."));
    }
    let id = row.job.definition.id;
    let guard = call.if_match.map(|_| row.job.state.revision).into_iter();
    let row = match (enabled, row.job.state.status) {
        (Some(false), JobStatus::Active) => guard.fold(call.jobs().pause(id, DISABLED), Change::if_revision).await?.job,
        (Some(true), JobStatus::Paused) => guard.fold(call.jobs().resume(id), Change::if_revision).await?.job,
        _ => row,
    };
    shown(&call, StatusCode::OK, &row)
}

/// A schedule, with the revision of its job as the `ETag`.
fn shown(call: &Call, status: StatusCode, row: &JobRow) -> Result<Answer, Problem> {
    Ok(Answer::json(status, &ScheduleDocument::new(call, row))?.header("etag", jobs::etag(row)))
}

/// The call as the API of jobs takes it, and whether the schedule shall fire.
fn translated(mut call: Call, fields: &'static [Field], whole: bool) -> Result<(Option<bool>, Call), Problem> {
    let form = Form::read(&call.body, fields, Naming::Camel);
    let enabled = form.value("enabled").and_then(Value::as_bool).or(whole.then_some(true));
    let faults = form.faults();
    if !faults.is_empty() {
        return Err(Problem::body(faults));
    }
    let mut body = Map::new();
    for (theirs, ours) in
        [("name", "jobKey"), ("cron_expression", "cronExpression"), ("timezone", "timezone"), ("target", "target")]
    {
        match call.body.get(theirs) {
            Some(value) => drop(body.insert(ours.to_owned(), value.clone())),
            None if whole => drop(body.insert(ours.to_owned(), Value::Null)),
            None => {}
        }
    }
    if call.path.iter().any(|(name, _)| name == "jobId") {
        body.remove("jobKey");
    }
    if whole || call.body.get("payload").is_some() {
        body.insert("payload".to_owned(), call.body.get("payload").cloned().unwrap_or(Value::Null));
    }
    call.body = Value::Object(body);
    Ok((enabled, call))
}

fn named(answer: &Answer) -> String {
    let text = match &answer.body {
        Payload::Text(_, text) => text.as_str(),
        _ => "",
    };
    let document: Value = serde_json::from_str(text).unwrap_or_else(|_| json!({}));
    document["jobKey"].as_str().unwrap_or_default().to_owned()
}

/// Problems name the members as this facade spells them.
fn renamed(answer: Result<Answer, Problem>) -> Result<Answer, Problem> {
    answer.map_err(|problem| problem.renamed(&[("#/cronExpression", "#/cron_expression"), ("#/jobKey", "#/name")]))
}
