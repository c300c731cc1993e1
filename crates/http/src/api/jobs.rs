//! Jobs: create, list, read.

use axum::http::StatusCode;
use everbell::client::{TargetStatus, freeze_at};
use everbell::{JobFilter, JobKey, JobRow, JobStatus, RunStatus, Source, StoreError, Target};
use everbell_core::freeze::Freeze;
use everbell_core::store::{JobRef, JobSort};
use everbell_wire as wire;
use everbell_wire::FaultCode;
use everbell_wire::preview::WarningCode;

use crate::access::expect_role;
use crate::page::{self, CURSOR, LIMIT};
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResponse, refuse};
use everbell_wire::body::job::{self, JobForm};
use everbell_wire::form::{Fault, Field, Form, Kind as Value, TEXT, joined, optional};

const STATUS: Value = Value::Word(wire::job::JobStatus::WORDS);
/// The statuses of a run.
pub(super) const RUN_STATUS: Value = Value::Word(wire::run::RunStatus::WORDS);

const SORT: Value = Value::Word(&["jobKey", "nextRunAt", "-createdAt", "target", "-lastRunAt"]);

/// Selects jobs by their properties: in the list, and in bulk actions.
const PROPERTIES: &[Field] = &[
    optional("target", Value::List { of: &TEXT, max: 50 }, "Only jobs with one of these targets."),
    optional("q", TEXT, "Only jobs whose key, target or description contains this text, ignoring case."),
    optional("source", Value::Word(wire::Source::WORDS), "Only jobs that are declared by this source."),
    optional(
        "lastRunStatus",
        Value::List { of: &RUN_STATUS, max: 6 },
        "Only jobs whose last run has one of these statuses.",
    ),
    optional(
        "errored",
        Value::Flag,
        "Only jobs that cannot fire because their schedule or timer cannot be read, or only the others.",
    ),
    optional("failing", Value::Flag, "Only jobs that have failed since their last success, or only the others."),
    optional("scheduleType", Value::Word(&["recurring", "one_time"]), "Only recurring or only one-time jobs."),
    optional("scheduled", Value::Flag, "Only jobs with a next run, or only the others."),
    optional("label", TEXT, "Only jobs with this label: `name` or `name=value`."),
];

/// The query of the list of jobs.
pub const LIST: &[Field] = &joined::<{ PROPERTIES.len() + 5 }>(
    PROPERTIES,
    &[
        optional(
            "status",
            Value::List { of: &STATUS, max: 3 },
            "Only jobs with one of these statuses. Default: `active` and `paused`.",
        ),
        optional("jobKey", TEXT, "All versions of the job with this key."),
        optional(
            "sort",
            SORT,
            "The order. Default: `jobKey`. With `-lastRunAt`, a job that runs between two requests moves to the front.",
        ),
        LIMIT,
        CURSOR,
    ],
);

/// The filter of bulk actions, which never select retired jobs.
pub const BULK_FILTER: &[Field] = &joined::<{ PROPERTIES.len() + 1 }>(
    PROPERTIES,
    &[optional(
        "status",
        Value::List { of: &Value::Word(&["active", "paused"]), max: 2 },
        "Only jobs with one of these statuses.",
    )],
);

pub(crate) async fn list(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let form = request.query(LIST);
    let filter = filter(&request, &form)?;
    let page = request.jobs().list(&filter, &page::from_query(&request)?).await?;
    let freezes = request.freezes().list().await?;
    let items = page.items.iter().map(|row| frozen_next(request.visible(row.into()), row, &freezes)).collect();
    let document = page::document(&request, &page, items);
    Ok(page::linked(&request, "/jobs", document.next_cursor.as_deref(), ApiResponse::ok(&document)?))
}

/// Reads the filter of a query or a bulk action.
pub fn filter(request: &ApiRequest, form: &Form<'_>) -> Result<JobFilter, Problem> {
    let asks_for_runs = form.has("lastRunStatus") || form.text("sort") == Some("-lastRunAt");
    if asks_for_runs {
        expect_role(&request.actor, request.app.options().run_history)?;
    }
    let refused = |name: &'static str| move |error: everbell::Invalid| Problem::at("parameter", name, error.reason);
    let key = form.text("jobKey").map(JobKey::new).transpose().map_err(refused("jobKey"))?;
    let mut status: Vec<JobStatus> = form.list("status").into_iter().filter_map(JobStatus::from_word).collect();
    if status.is_empty() && key.is_none() {
        status = vec![JobStatus::Active, JobStatus::Paused];
    }
    let targets: Result<_, _> = form.list("target").into_iter().map(Target::new).collect();
    Ok(JobFilter {
        status,
        target: targets.map_err(refused("target"))?,
        key,
        text: form.text("q").map(str::to_owned),
        source: form.word("source", Source::from_word),
        last_status: form.list("lastRunStatus").into_iter().filter_map(RunStatus::from_word).collect(),
        errored: form.answer("errored"),
        failing: form.answer("failing"),
        one_time: form.text("scheduleType").map(|kind| kind == "one_time"),
        scheduled: form.answer("scheduled"),
        label: form.text("label").map(label),
        latest: false,
        sort: match form.text("sort") {
            Some("nextRunAt") => JobSort::NextRunAt,
            Some("-createdAt") => JobSort::CreatedAt,
            Some("target") => JobSort::Target,
            Some("-lastRunAt") => JobSort::LastRun,
            _ => JobSort::Key,
        },
    })
}

/// `name`, or `name=value`.
pub fn label(text: &str) -> (String, Option<String>) {
    match text.split_once('=') {
        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
        None => (text.to_owned(), None),
    }
}

pub(crate) async fn create(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let payload = request.raw("payload");
    let (JobForm { draft, mut faults }, pause) = job::read_new(&request.body, payload.as_deref());
    check_target(&request, draft.target.as_deref(), &mut faults).await?;
    refuse(faults)?;
    let key = draft.key.clone();
    let created = match pause {
        Some(reason) => request.jobs().create_paused(everbell::Schedule::from(draft), &reason).await,
        None => request.jobs().create(everbell::Schedule::from(draft)).await,
    };
    match created {
        Ok(row) => {
            let location = format!("{}/jobs/{}", request.mount, row.job.definition.id);
            let document = documented(&request, &row).await;
            Ok(ApiResponse::json(StatusCode::CREATED, &document)?
                .header("etag", etag(&row))
                .header("location", location))
        }
        Err(StoreError::Conflict { .. }) => Err(exists(&request, &key).await?),
        Err(error) => Err(error.into()),
    }
}

/// Adds a fault if the target is unknown.
pub(super) async fn check_target(
    request: &ApiRequest,
    target: Option<&str>,
    faults: &mut Vec<Fault>,
) -> Result<(), Problem> {
    // A body that is no object names none either.
    let named = !faults.iter().any(|fault| ["", "/target"].contains(&fault.pointer.as_str()));
    let Some(target) = target.filter(|_| named) else { return Ok(()) };
    match request.jobs().check_target(target).await {
        Err(StoreError::Invalid(invalid)) => {
            faults.push(Fault::new("/target", FaultCode::UnknownTarget, invalid.reason));
            Ok(())
        }
        result => result.map(|_| ()).map_err(Problem::from),
    }
}

async fn exists(request: &ApiRequest, key: &str) -> Result<Problem, Problem> {
    let living = request.jobs().get(key).await?;
    let (definition, state) = (&living.job.definition, &living.job.state);
    let detail = format!("Job `{key}` already exists: it is {} at version {}.", state.status, definition.version);
    Ok(Problem::new(Kind::JobKeyExists, detail).with("jobId", definition.id.to_string()))
}

pub(crate) async fn get(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let row = request.jobs().get(request.job()?).await?;
    let (now, freezes) = (request.app.bell.now(), request.freezes().list().await?);
    let mut document = request.visible(wire::Job::with_warnings(&row, now));
    if row.job.state.status == JobStatus::Active
        && let Some(freeze) = freeze_at(&freezes, &row.job.definition, now)
    {
        document.warnings.get_or_insert_default().push(frozen(freeze));
    }
    let document = frozen_next(document, &row, &freezes);
    Ok(ApiResponse::json(StatusCode::OK, &document)?.header("etag", etag(&row)))
}

/// The job with the freeze that keeps it from firing at its next time, if there is one.
fn frozen_next(document: wire::Job, row: &JobRow, freezes: &[Freeze]) -> wire::Job {
    document.frozen_by(row.next_run_at().and_then(|at| freeze_at(freezes, &row.job.definition, at)))
}

/// Warns that a freeze keeps a job from firing.
pub fn frozen(freeze: &Freeze) -> wire::Warning {
    let detail = format!("{freeze}; its slots become gaps and are not caught up");
    wire::Warning { code: WarningCode::Frozen, detail, local_date: None, at: Some(freeze.ends_at) }
}

pub(crate) async fn versions(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let key = key_of(&request).await?;
    let versions = request.jobs().versions(key.as_str()).await?;
    ApiResponse::ok(&wire::Items { items: versions.iter().map(|row| request.visible(row.into())).collect() })
}

/// The key of the job that the path names.
pub(super) async fn key_of(request: &ApiRequest) -> Result<JobKey, Problem> {
    Ok(match request.job()? {
        JobRef::Key(key) | JobRef::Version(key, _) => key,
        id @ JobRef::Id(_) => request.jobs().get(id).await?.job.definition.key.clone(),
    })
}

/// A job, with its revision as the `ETag`.
pub(super) async fn job_response(
    request: &ApiRequest,
    status: StatusCode,
    row: &JobRow,
) -> Result<ApiResponse, Problem> {
    let document = with_next_freeze(request, row).await;
    Ok(ApiResponse::json(status, &document)?.header("etag", etag(row)))
}

/// A job that was changed, as the caller may see it, with the freeze that keeps it from firing next.
pub(super) async fn with_next_freeze(request: &ApiRequest, row: &JobRow) -> wire::Job {
    // A database error must not hide that the job was changed.
    let freezes = request.freezes().list().await.unwrap_or_default();
    frozen_next(request.visible(wire::Job::with_warnings(row, request.app.bell.now())), row, &freezes)
}

/// Returns the document of a new version, with warnings.
pub(super) async fn documented(request: &ApiRequest, row: &JobRow) -> wire::Job {
    let mut document = with_next_freeze(request, row).await;
    if let Some(depends) = &row.job.definition.policies.depends_on {
        let other = request.jobs().get(&depends.job_key).await;
        // A database error must not hide that the job was created.
        let is_missing = match &other {
            Ok(other) => other.job.state.status == JobStatus::Retired,
            Err(error) => matches!(error, StoreError::NotFound { .. }),
        };
        let warning = is_missing.then(|| missing_dependency(depends.job_key.as_str()));
        document.warnings.get_or_insert_default().extend(warning);
    }
    let target = row.job.definition.target.as_str();
    // A database error must not hide that the job was written.
    if let Ok(TargetStatus::Unserved) = request.jobs().check_target(target).await {
        document.warnings.get_or_insert_default().push(unserved_target(target));
    }
    document.warnings.get_or_insert_default().extend(declared_elsewhere(row));
    document
}

/// Warns that a job does not fire at this moment.
fn unserved_target(target: &str) -> wire::Warning {
    let detail = format!("no live instance serves target `{target}`; the job does not fire until one does");
    wire::Warning { code: WarningCode::UnservedTarget, detail, local_date: None, at: None }
}

/// Warns that a configuration file or a program declares the job, unless it is as declared.
pub fn declared_elsewhere(row: &JobRow) -> Option<wire::Warning> {
    let declared = match (row.job.definition.source, wire::JobDeclaration::from_job(&row.job)) {
        (_, Some(declaration)) if !declaration.edited => return None,
        (Source::Api, _) => return None,
        (_, Some(declaration)) => {
            let place = declaration.place();
            format!("this job is declared {place}; the change stays until its declaration changes: change it there too")
        }
        (Source::Config, None) => {
            "this job is declared in a configuration file; the next start reverts this change unless the file is changed too"
                .to_owned()
        }
        (Source::Code, None) => {
            "this job is declared by a program; its next start reverts this change unless the code is changed too".to_owned()
        }
    };
    Some(wire::Warning { code: WarningCode::DeclaredElsewhere, detail: declared, local_date: None, at: None })
}

/// Warns that a job depends on a key without a current job.
pub fn missing_dependency(key: &str) -> wire::Warning {
    let detail =
        format!("it depends on `{key}`, which is not a current job; every slot is skipped until that job succeeds");
    wire::Warning { code: WarningCode::UnknownDependency, detail, local_date: None, at: None }
}

pub(super) fn etag(row: &JobRow) -> String {
    format!("\"{}\"", row.job.state.revision)
}
