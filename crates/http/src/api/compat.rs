//! A thin facade for programs that know schedules instead of jobs: a schedule is the living version of a job.

use axum::http::StatusCode;
use everbell::client::Change;
use everbell::core::store::{JobRef, PageRequest};
use everbell::{JobFilter, JobId, JobRow, JobStatus};
use everbell_wire as wire;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::{edits, jobs};
use crate::call::{Answer, Call, Payload};
use crate::page;
use crate::problem::{Kind as ProblemKind, Problem};
use everbell_wire::form::{Fault, Field, Form, Kind, Naming, TEXT, optional, required};

const READ_ONLY: Kind = Kind::Json;
const IGNORED: &str = "Read-only. Ignored, so a response can be sent back as a request.";

macro_rules! schedule_fields {
    ($need:ident) => {
        &[
            $need("name", TEXT, "The name of the schedule: the key of its job."),
            optional("cron_expression", EXPRESSION, "The cron expression. A new schedule needs it, or `cron_spec`."),
            optional("cron_spec", EXPRESSION, "Same as `cron_expression`."),
            optional("timezone", Kind::Text { min: 1, max: 100 }, "The IANA time zone. Default: UTC."),
            optional("enabled", Kind::Flag, "Whether it fires. Default: true for a new schedule, otherwise unchanged."),
            $need("target", TEXT, "The target of the schedule."),
            optional("payload", Kind::Json, "The input of the target."),
            optional("kind", TEXT, "Read-only: the label `kind` of the job."),
            optional("id", READ_ONLY, IGNORED),
            optional("next_run_at", READ_ONLY, IGNORED),
            optional("last_run_at", READ_ONLY, IGNORED),
            optional("last_enqueued_at", READ_ONLY, IGNORED),
            optional("last_run_id", READ_ONLY, IGNORED),
            optional("created_at", READ_ONLY, IGNORED),
            optional("updated_at", READ_ONLY, IGNORED),
        ]
    };
}

const EXPRESSION: Kind = Kind::Text { min: 1, max: 1_000 };

/// A whole schedule.
pub const SCHEDULE: &[Field] = schedule_fields!(required);
/// What is different about a schedule.
pub const PATCH: &[Field] = schedule_fields!(optional);

/// The query of a list.
pub const LIST: &[Field] = &[
    optional("limit", Kind::Integer { min: 1, max: 1_000 }, "The most schedules of a page. Default: 1000."),
    optional(
        "cursor",
        Kind::Text { min: 1, max: 2_000 },
        "Where the page starts, from the `Link` header of the previous page.",
    ),
];

const MAX_LIMIT: u32 = 1_000;
const DISABLED: &str = "disabled by the schedules API";

/// A schedule.
#[derive(Serialize, ToSchema)]
#[schema(as = Schedule)]
pub struct ScheduleDocument {
    /// The id of the first version of the job, which never changes.
    id: String,
    /// The key of the job.
    name: String,
    /// The label `kind` of the job, or `task`.
    kind: String,
    /// The target of the job.
    target: String,
    /// The input of the target.
    #[schema(value_type = Value)]
    payload: Option<wire::Raw>,
    /// The cron expression.
    cron_expression: Option<String>,
    /// Same as `cron_expression`.
    cron_spec: Option<String>,
    /// The IANA time zone.
    timezone: String,
    /// Whether it fires.
    enabled: bool,
    /// When it fires next; null if it does not.
    next_run_at: Option<Timestamp>,
    /// When the last run was scheduled.
    last_run_at: Option<Timestamp>,
    /// When the last run was created.
    last_enqueued_at: Option<Timestamp>,
    /// The id of the last run.
    last_run_id: Option<String>,
    /// When it was created.
    created_at: Timestamp,
    /// When it was changed last.
    updated_at: Timestamp,
}

impl wire::Example for ScheduleDocument {
    fn example() -> ScheduleDocument {
        let job = wire::Job::example();
        ScheduleDocument {
            id: job.id,
            name: job.job_key,
            kind: "task".to_owned(),
            target: job.target,
            payload: job.payload,
            cron_spec: job.cron_expression.clone(),
            cron_expression: job.cron_expression,
            timezone: job.timezone,
            enabled: true,
            next_run_at: job.next_run_at,
            last_run_at: job.last_run.as_ref().map(|run| run.scheduled_at),
            last_enqueued_at: job.last_run.as_ref().map(|run| run.scheduled_at),
            last_run_id: job.last_run.map(|run| run.id),
            created_at: job.created_at,
            updated_at: job.updated_at,
        }
    }
}

impl ScheduleDocument {
    fn new(call: &Call, row: &JobRow, id: JobId) -> ScheduleDocument {
        let job = call.visible(row.into());
        let last_run = row.last_run.as_ref().filter(|_| job.last_run.is_some());
        ScheduleDocument {
            kind: kind(row).to_owned(),
            id: id.to_string(),
            name: job.job_key,
            target: job.target,
            payload: job.payload,
            cron_spec: job.cron_expression.clone(),
            cron_expression: job.cron_expression,
            timezone: job.timezone,
            enabled: job.status == wire::job::JobStatus::Active,
            next_run_at: job.next_run_at,
            last_run_at: last_run.map(|run| run.scheduled_at),
            last_enqueued_at: last_run.map(|run| run.created_at),
            last_run_id: job.last_run.map(|run| run.id),
            created_at: job.created_at,
            updated_at: job.updated_at,
        }
    }

    /// The document of a row, with the id that all versions share.
    async fn read(call: &Call, row: &JobRow) -> Result<ScheduleDocument, Problem> {
        let definition = &row.job.definition;
        let first = match definition.version {
            1 => definition.id,
            _ => call.jobs().get(JobRef::Version(definition.key.clone(), 1)).await?.job.definition.id,
        };
        Ok(ScheduleDocument::new(call, row, first))
    }
}

fn kind(row: &JobRow) -> &str {
    row.job.definition.labels.get("kind").map_or("task", String::as_str)
}

/// The current version of the schedule that the path names, by its key or by the id of any version.
async fn current(call: &Call) -> Result<JobRow, Problem> {
    let row = call.jobs().get(call.job()?).await?;
    match row.job.state.status {
        JobStatus::Retired => Ok(call.jobs().get(&row.job.definition.key).await?),
        JobStatus::Active | JobStatus::Paused => Ok(row),
    }
}

/// A list is a bare array, so the `Link` header names the next page.
pub async fn list(call: Call) -> Result<Answer, Problem> {
    let filter =
        JobFilter { status: vec![JobStatus::Active, JobStatus::Paused], one_time: Some(false), ..JobFilter::default() };
    let limit = call.query(LIST).count("limit").unwrap_or(MAX_LIMIT);
    let request = PageRequest { limit, ..page::request(&call)? };
    let rows = call.jobs().list(&filter, &request).await?;
    let mut documents = Vec::with_capacity(rows.items.len());
    for row in &rows.items {
        documents.push(ScheduleDocument::read(&call, row).await?);
    }
    let next = page::next(&call, rows.next.as_ref());
    Ok(page::linked(&call, "/api/v1/schedules", next.as_deref(), Answer::ok(&documents)?))
}

pub(crate) async fn get(call: Call) -> Result<Answer, Problem> {
    let row = current(&call).await?;
    shown(&call, StatusCode::OK, &row).await
}

pub(crate) async fn create(call: Call) -> Result<Answer, Problem> {
    let (enabled, call) = translated(call, SCHEDULE, true, None)?;
    let answer = renamed(jobs::create(call.clone()).await)?;
    let row = call.jobs().get(named(&answer).as_str()).await?;
    let row = if enabled == Some(false) { call.jobs().pause(row.job.definition.id, DISABLED).await?.job } else { row };
    shown(&call, StatusCode::CREATED, &row).await
}

/// PUT: what is absent is cleared, except that a pause stays until `enabled` ends it.
pub async fn replace(call: Call) -> Result<Answer, Problem> {
    changed(call, SCHEDULE, true).await
}

/// PATCH: what is absent stays, and `null` clears.
pub async fn patch(call: Call) -> Result<Answer, Problem> {
    changed(call, PATCH, false).await
}

async fn changed(mut call: Call, fields: &'static [Field], whole: bool) -> Result<Answer, Problem> {
    let row = current(&call).await?;
    let id = row.job.definition.id.to_string();
    call.path.iter_mut().filter(|(name, _)| name == "jobId").for_each(|(_, value)| value.clone_from(&id));
    let (enabled, call) = translated(call, fields, whole, Some(&row))?;
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
    shown(&call, StatusCode::OK, &row).await
}

/// A schedule, with the revision of its job as the `ETag`.
async fn shown(call: &Call, status: StatusCode, row: &JobRow) -> Result<Answer, Problem> {
    Ok(Answer::json(status, &ScheduleDocument::read(call, row).await?)?.header("etag", jobs::etag(row)))
}

/// The faults of a body that its fields cannot tell.
pub(crate) fn faults_of(body: &Value, whole: bool, row: Option<&JobRow>) -> Vec<Fault> {
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let mut faults = Vec::new();
    match (text("cron_expression"), text("cron_spec")) {
        (Some(one), Some(other)) if one != other => {
            faults.push(Fault::new("/cron_spec", "invalid", "differs from `cron_expression`: send one of them"));
        }
        (None, None) if whole && body.get("cron_expression").is_none_or(Value::is_null) => {
            faults.push(Fault::new("/cron_expression", "required", "is required: when it fires"));
        }
        _ => {}
    }
    let Some(row) = row else { return faults };
    for (name, own) in [("name", row.job.definition.key.as_str()), ("kind", kind(row))] {
        if text(name).is_some_and(|sent| sent != own) {
            faults.push(Fault::new(format!("/{name}"), "invalid", format!("cannot change: it is `{own}`")));
        }
    }
    faults
}

/// The call as the API of jobs takes it, and whether the schedule shall fire, if that is said. `row` is the schedule that
/// is changed.
fn translated(
    mut call: Call,
    fields: &'static [Field],
    whole: bool,
    row: Option<&JobRow>,
) -> Result<(Option<bool>, Call), Problem> {
    let form = Form::read(&call.body, fields, Naming::Camel);
    let enabled = form.value("enabled").and_then(Value::as_bool);
    let mut faults = form.faults();
    faults.extend(faults_of(&call.body, whole, row));
    if !faults.is_empty() {
        return Err(Problem::body(faults));
    }
    if let Value::Object(members) = &mut call.body
        && let Some(spec) = members.remove("cron_spec")
    {
        members.entry("cron_expression").or_insert(spec);
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
    if row.is_some() {
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
