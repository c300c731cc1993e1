//! Pausing and resuming many jobs, optionally as a dry run.

use everbell::client::Change;
use everbell::core::store::PageRequest;
use everbell::{JobRow, JobStatus, StoreError};
use everbell_core::Zone;
use everbell_wire as wire;
use everbell_wire::bulk::BulkOutcome as Outcome;
use jiff::Timestamp;

use super::actions::REASON;
use super::jobs::{BULK_FILTER, filter};
use crate::problem::Problem;
use crate::request::{ApiRequest, ApiResponse};
use everbell_wire::form::job::time;
use everbell_wire::form::{Fault, Field, Form, Kind as Value, Naming, TEXT, optional, required};

/// The most jobs of one request.
const MAX_BULK_JOBS: u32 = 1_000;

/// The body of an action on several jobs.
pub const BULK: &[Field] = &[
    required("action", Value::Word(&["pause", "resume"]), "The action."),
    optional("jobKeys", Value::List { of: &TEXT, max: MAX_BULK_JOBS as usize }, "The keys of the jobs."),
    optional(
        "filter",
        Value::Component("JobFilter", BULK_FILTER),
        "Selects jobs by their properties. Retired jobs are never selected.",
    ),
    optional("reason", REASON, "The reason, for the audit trail. Required to pause."),
    optional("until", Value::Time, "When the jobs resume automatically."),
    optional(
        "missed",
        Value::Word(&["skip", "fire_once"]),
        "How the slots of the pause are handled: `skip` runs none of them, `fire_once` runs the latest.",
    ),
    optional("dryRun", Value::Flag, "Return what would change without changing it."),
];

/// A bulk action.
struct BulkRequest {
    pause: Option<String>,
    until: Option<jiff::Timestamp>,
    once: bool,
    dry_run: bool,
}

pub(crate) async fn change(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let mut form = request.body(BULK);
    let pausing = form.text("action") == Some("pause");
    if pausing && !form.has("reason") {
        form.fault("reason", "required", "is required to pause: 3 to 500 characters");
    }
    if form.has("jobKeys") == form.has("filter") {
        form.note(Fault::new("/jobKeys", "required", "exactly one of `jobKeys` and `filter` is required"));
    }
    let until = time(&mut form, "until", &Zone::utc());
    let bulk = BulkRequest {
        pause: form.text("reason").filter(|_| pausing).map(str::to_owned),
        until,
        once: form.text("missed") == Some("fire_once"),
        dry_run: form.flag("dryRun"),
    };
    let faults = std::mem::take(form.faults_mut());
    if !faults.is_empty() {
        return Err(Problem::body(faults));
    }
    let rows = if form.has("filter") { matching(&request, &form).await? } else { named(&request, &form).await? };
    let mut items = Vec::with_capacity(rows.len());
    for row in &rows {
        items.push(one(&request, row, &bulk).await);
    }
    let changed =
        items.iter().filter(|item| matches!(item.outcome, Outcome::Changed | Outcome::WouldChange)).count() as u64;
    let action = if pausing { "pause" } else { "resume" }.to_owned();
    ApiResponse::ok(&wire::Bulk { dry_run: bulk.dry_run, action, changed, items })
}

async fn named(request: &ApiRequest, form: &Form<'_>) -> Result<Vec<JobRow>, Problem> {
    let mut rows = Vec::new();
    let mut faults = Vec::new();
    for (n, key) in form.list("jobKeys").into_iter().enumerate() {
        match request.jobs().get(key).await {
            Ok(row) => rows.push(row),
            Err(error @ StoreError::NotFound { .. }) => {
                faults.push(Fault::new(format!("/jobKeys/{n}"), "not_found", error.to_string()));
            }
            Err(StoreError::Invalid(invalid)) => {
                faults.push(Fault::new(format!("/jobKeys/{n}"), "invalid", invalid.reason));
            }
            Err(error) => return Err(error.into()),
        }
    }
    if faults.is_empty() { Ok(rows) } else { Err(Problem::body(faults)) }
}

async fn matching(request: &ApiRequest, form: &Form<'_>) -> Result<Vec<JobRow>, Problem> {
    let inner = form.value("filter").cloned().unwrap_or_default();
    let filter = filter(request, &Form::read(&inner, BULK_FILTER, Naming::Camel))?;
    let page = request.jobs().list(&filter, &PageRequest { limit: MAX_BULK_JOBS, after: None }).await?;
    if page.next.is_some() {
        let detail = format!("matches more than {MAX_BULK_JOBS} jobs; use a narrower filter");
        return Err(Problem::body(vec![Fault::new("/filter", "out_of_range", detail)]));
    }
    Ok(page.items)
}

/// Changes one job. A failure does not affect the others.
async fn one(request: &ApiRequest, row: &JobRow, bulk: &BulkRequest) -> wire::BulkItem {
    let definition = &row.job.definition;
    let timer = row.timer.as_ref();
    let next = if bulk.pause.is_some() {
        timer.and_then(|timer| timer.next_run_at)
    } else {
        let after = timer.map_or(Timestamp::MIN, |timer| timer.last_slot_at).max(request.app.bell.now());
        definition.spec.as_ref().ok().and_then(|spec| spec.next_after(after))
    };
    let item = |outcome, detail| wire::BulkItem {
        id: definition.id.to_string(),
        job_key: definition.key.to_string(),
        // A job that was just paused has no next fire any more.
        next_run_at: next.filter(|_| bulk.pause.is_none() || outcome != Outcome::Changed),
        outcome,
        detail,
    };
    let status = row.job.state.status;
    let wanted = if bulk.pause.is_some() { JobStatus::Active } else { JobStatus::Paused };
    // Each job is a part of the request: what was done for it before is not done again.
    let part = request.request_key.as_ref().map(|key| key.part(&definition.id.to_string()));
    let jobs = request.jobs().once(part.as_ref());
    let done = match jobs.was_done().await {
        Ok(done) => done,
        Err(error) => return item(Outcome::Failed, Some(error.to_string())),
    };
    if status != wanted && !done {
        return item(Outcome::Unchanged, Some(format!("it is {status}")));
    }
    if bulk.dry_run {
        return item(Outcome::WouldChange, None);
    }
    let changed = if let Some(reason) = &bulk.pause {
        let change = jobs.pause(definition.id, reason.clone());
        bulk.until.into_iter().fold(change, Change::until).await
    } else {
        let change = jobs.resume(definition.id);
        if bulk.once { change.run_missed_once().await } else { change.await }
    };
    match changed {
        Ok(_) => item(Outcome::Changed, None),
        Err(error) => item(Outcome::Failed, Some(error.to_string())),
    }
}
