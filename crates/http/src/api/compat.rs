//! A compatibility API for programs that know schedules instead of jobs. A schedule is the current version of a job.

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
use crate::page;
use crate::problem::{Kind as ProblemKind, Problem};
use crate::request::{ApiRequest, ApiResponse, ResponseBody};
use everbell_wire::FaultCode;
use everbell_wire::form::{Fault, Field, Form, Kind, Naming, TEXT, optional, required};

const READ_ONLY_ID: Kind = Kind::Ignored(&TEXT);
const READ_ONLY_TIME: Kind = Kind::Ignored(&Kind::Time);
const IGNORED: &str = "Read-only. Ignored, so a response can be sent back as a request.";

macro_rules! schedule_fields {
    ($need:ident) => {
        &[
            $need("name", TEXT, "The name of the schedule, which is the key of its job."),
            optional("cron_expression", EXPRESSION, "The cron expression. A new schedule needs it, or `cron_spec`."),
            optional("cron_spec", EXPRESSION, "Same as `cron_expression`."),
            optional("timezone", Kind::Text { min: 1, max: 100 }, "The IANA time zone. Default: UTC."),
            optional("enabled", Kind::Flag, "Whether it fires. Default: true for a new schedule, otherwise unchanged."),
            $need("target", TEXT, "The target of the schedule."),
            optional("payload", Kind::Json, "The input of the target."),
            optional("kind", TEXT, "Read-only: the label `kind` of the job."),
            optional("id", READ_ONLY_ID, IGNORED),
            optional("next_run_at", READ_ONLY_TIME, IGNORED),
            optional("last_run_at", READ_ONLY_TIME, IGNORED),
            optional("last_enqueued_at", READ_ONLY_TIME, IGNORED),
            optional("last_run_id", READ_ONLY_ID, IGNORED),
            optional("created_at", READ_ONLY_TIME, IGNORED),
            optional("updated_at", READ_ONLY_TIME, IGNORED),
        ]
    };
}

const EXPRESSION: Kind = Kind::Text { min: 1, max: 1_000 };

/// A whole schedule.
pub const SCHEDULE: &[Field] = schedule_fields!(required);
/// The changes of a schedule.
pub const PATCH: &[Field] = schedule_fields!(optional);

/// The query of a list.
pub const LIST: &[Field] = &[
    optional("limit", Kind::Integer { min: 1, max: 1_000 }, "The maximum number of schedules per page. Default: 1000."),
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
    fn new(request: &ApiRequest, row: &JobRow, id: JobId) -> ScheduleDocument {
        let job = request.visible(row.into());
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
    async fn read(request: &ApiRequest, row: &JobRow) -> Result<ScheduleDocument, Problem> {
        let definition = &row.job.definition;
        let first = match definition.version {
            1 => definition.id,
            _ => request.jobs().get(JobRef::Version(definition.key.clone(), 1)).await?.job.definition.id,
        };
        Ok(ScheduleDocument::new(request, row, first))
    }
}

fn kind(row: &JobRow) -> &str {
    row.job.definition.labels.get("kind").map_or("task", String::as_str)
}

/// The current version of the schedule that the path names, by its key or by the id of any version.
async fn current(request: &ApiRequest) -> Result<JobRow, Problem> {
    let row = request.jobs().get(request.job()?).await?;
    match row.job.state.status {
        JobStatus::Retired => Ok(request.jobs().get(&row.job.definition.key).await?),
        JobStatus::Active | JobStatus::Paused => Ok(row),
    }
}

/// A list is a bare array, so the `Link` header names the next page.
pub async fn list(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let filter =
        JobFilter { status: vec![JobStatus::Active, JobStatus::Paused], one_time: Some(false), ..JobFilter::default() };
    let limit = request.query(LIST).count("limit").unwrap_or(MAX_LIMIT);
    let page_request = PageRequest { limit, ..page::from_query(&request)? };
    let rows = request.jobs().list(&filter, &page_request).await?;
    let mut documents = Vec::with_capacity(rows.items.len());
    for row in &rows.items {
        documents.push(ScheduleDocument::read(&request, row).await?);
    }
    let next = page::next(&request, rows.next.as_ref());
    Ok(page::linked(&request, "/api/v1/schedules", next.as_deref(), ApiResponse::ok(&documents)?))
}

pub(crate) async fn get(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let row = current(&request).await?;
    schedule_response(&request, StatusCode::OK, &row).await
}

pub(crate) async fn create(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let (enabled, request) = translated(request, SCHEDULE, true, None)?;
    let response = renamed(jobs::create(request.clone()).await)?;
    let row = request.jobs().get(named(&response).as_str()).await?;
    let row =
        if enabled == Some(false) { request.jobs().pause(row.job.definition.id, DISABLED).await?.job } else { row };
    schedule_response(&request, StatusCode::CREATED, &row).await
}

/// Replaces a schedule. Absent members are cleared, except that a pause stays until `enabled` ends it.
pub async fn replace(request: ApiRequest) -> Result<ApiResponse, Problem> {
    changed(request, SCHEDULE, true).await
}

/// Updates a schedule. Absent members keep their values, `null` clears.
pub async fn patch(request: ApiRequest) -> Result<ApiResponse, Problem> {
    changed(request, PATCH, false).await
}

async fn changed(mut request: ApiRequest, fields: &'static [Field], whole: bool) -> Result<ApiResponse, Problem> {
    let row = current(&request).await?;
    let id = row.job.definition.id.to_string();
    request.path.iter_mut().filter(|(name, _)| name == "jobId").for_each(|(_, value)| value.clone_from(&id));
    let (enabled, request) = translated(request, fields, whole, Some(&row))?;
    let patched = renamed(edits::patch(request.clone()).await)?;
    let row = request.jobs().get(&row.job.definition.key).await?;
    if request.if_match.is_some() && !patched.headers.contains(&("etag", jobs::etag(&row))) {
        return Err(Problem::new(ProblemKind::RevisionMismatch, "The schedule has changed since it was read."));
    }
    let id = row.job.definition.id;
    let guard = request.if_match.map(|_| row.job.state.revision).into_iter();
    let row = match (enabled, row.job.state.status) {
        (Some(false), JobStatus::Active) => {
            guard.fold(request.jobs().pause(id, DISABLED), Change::if_revision).await?.job
        }
        (Some(true), JobStatus::Paused) => guard.fold(request.jobs().resume(id), Change::if_revision).await?.job,
        _ => row,
    };
    schedule_response(&request, StatusCode::OK, &row).await
}

/// A schedule, with the revision of its job as the `ETag`.
async fn schedule_response(request: &ApiRequest, status: StatusCode, row: &JobRow) -> Result<ApiResponse, Problem> {
    Ok(ApiResponse::json(status, &ScheduleDocument::read(request, row).await?)?.header("etag", jobs::etag(row)))
}

/// Returns the faults of a body that its fields cannot detect.
pub(crate) fn faults_of(body: &Value, whole: bool, row: Option<&JobRow>) -> Vec<Fault> {
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let mut faults = Vec::new();
    match (text("cron_expression"), text("cron_spec")) {
        (Some(one), Some(other)) if one != other => {
            faults.push(Fault::new(
                "/cron_spec",
                FaultCode::Invalid,
                "differs from `cron_expression`; send only one of them",
            ));
        }
        (None, None) if whole && body.get("cron_expression").is_none_or(Value::is_null) => {
            faults.push(Fault::new("/cron_expression", FaultCode::Required, "is required"));
        }
        _ => {}
    }
    let Some(row) = row else { return faults };
    for (name, own) in [("name", row.job.definition.key.as_str()), ("kind", kind(row))] {
        if text(name).is_some_and(|sent| sent != own) {
            faults.push(Fault::new(format!("/{name}"), FaultCode::Invalid, format!("cannot be changed from `{own}`")));
        }
    }
    faults
}

/// The call as the API of jobs takes it, and whether the schedule shall fire, if that is said. `row` is the schedule that
/// is changed.
fn translated(
    mut request: ApiRequest,
    fields: &'static [Field],
    whole: bool,
    row: Option<&JobRow>,
) -> Result<(Option<bool>, ApiRequest), Problem> {
    let form = Form::read(&request.body, fields, Naming::Camel);
    let enabled = form.value("enabled").and_then(Value::as_bool);
    let mut faults = form.faults();
    faults.extend(faults_of(&request.body, whole, row));
    if !faults.is_empty() {
        return Err(Problem::body(faults));
    }
    if let Value::Object(members) = &mut request.body
        && let Some(spec) = members.remove("cron_spec")
    {
        members.entry("cron_expression").or_insert(spec);
    }
    let mut body = Map::new();
    for (theirs, ours) in
        [("name", "jobKey"), ("cron_expression", "cronExpression"), ("timezone", "timezone"), ("target", "target")]
    {
        match request.body.get(theirs) {
            Some(value) => drop(body.insert(ours.to_owned(), value.clone())),
            None if whole => drop(body.insert(ours.to_owned(), Value::Null)),
            None => {}
        }
    }
    if row.is_some() {
        body.remove("jobKey");
    }
    if whole || request.body.get("payload").is_some() {
        body.insert("payload".to_owned(), request.body.get("payload").cloned().unwrap_or(Value::Null));
    }
    request.body = Value::Object(body);
    Ok((enabled, request))
}

fn named(response: &ApiResponse) -> String {
    let text = match &response.body {
        ResponseBody::Text(_, text) => text.as_str(),
        _ => "",
    };
    let document: Value = serde_json::from_str(text).unwrap_or_else(|_| json!({}));
    document["jobKey"].as_str().unwrap_or_default().to_owned()
}

/// Problems name the members as this facade spells them.
fn renamed(response: Result<ApiResponse, Problem>) -> Result<ApiResponse, Problem> {
    response.map_err(|problem| problem.renamed(&[("#/cronExpression", "#/cron_expression"), ("#/jobKey", "#/name")]))
}
