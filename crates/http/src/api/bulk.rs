//! Actions on many jobs, optionally as a dry run: pause, resume, run now, skip the next runs, retire, edit.

use everbell::client::Change;
use everbell::core::store::PageRequest;
use everbell::{JobRow, JobStatus, Jobs, RunNow, StoreError};
use everbell_core::{JobId, Zone};
use everbell_wire as wire;
use everbell_wire::FaultCode;
use everbell_wire::bulk::BulkAction;
use everbell_wire::bulk::BulkOutcome as Outcome;
use jiff::Timestamp;
use serde_json::Value as Json;

use super::actions::REASON;
use super::edits;
use super::jobs::{BULK_FILTER, filter};
use crate::access::{Role, expect_role};
use crate::problem::Problem;
use crate::request::{ApiRequest, ApiResponse};
use everbell_wire::body::job::{BULK_EDIT, time};
use everbell_wire::form::{Fault, Field, Form, Kind as Value, Naming, TEXT, optional, required};

/// The most jobs of one request.
const MAX_BULK_JOBS: u32 = 1_000;

/// The body of an action on several jobs.
pub const BULK: &[Field] = &[
    required("action", Value::Word(BulkAction::WORDS), "The action. `retire` and `edit` require the role `admin`."),
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
    optional("count", Value::Integer { min: 1, max: 100 }, "How many runs `skip_next` skips. Default: 1."),
    optional(
        "edit",
        Value::Component("BulkEdit", BULK_EDIT),
        "The changes of `edit`, as a merge patch. A job that differs gets a new version.",
    ),
    optional("dryRun", Value::Flag, "Return what would change without changing it."),
];

/// An action on each job.
enum Action {
    Pause { reason: String, until: Option<Timestamp> },
    Resume { once: bool },
    RunNow,
    SkipNext { count: u32 },
    Retire,
    Edit { patch: Json },
}

/// A bulk action.
struct BulkRequest {
    action: Action,
    reason: Option<String>,
    dry_run: bool,
}

pub(crate) async fn change(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let mut form = request.body(BULK);
    let pausing = form.text("action") == Some("pause");
    if pausing && !form.has("reason") {
        form.fault("reason", FaultCode::Required, "is required to pause: 3 to 500 characters");
    }
    if form.has("jobKeys") == form.has("filter") {
        form.note(Fault::new("/jobKeys", FaultCode::Required, "exactly one of `jobKeys` and `filter` is required"));
    }
    let until = time(&mut form, "until", &Zone::utc());
    let reason = form.text("reason").map(str::to_owned);
    let word = BulkAction::from_word(form.text("action").unwrap_or_default());
    let action = match word {
        BulkAction::Pause => Action::Pause { reason: reason.clone().unwrap_or_default(), until },
        BulkAction::RunNow => Action::RunNow,
        BulkAction::SkipNext => Action::SkipNext { count: form.count("count").unwrap_or(1) },
        BulkAction::Retire => Action::Retire,
        BulkAction::Edit => Action::Edit { patch: form.value("edit").cloned().unwrap_or_default() },
        _ => Action::Resume { once: form.text("missed") == Some("fire_once") },
    };
    if let Action::Edit { patch } = &action
        && patch.as_object().is_none_or(serde_json::Map::is_empty)
    {
        form.fault("edit", FaultCode::Required, "is required to edit: `target`, `labels` or `policies`");
    }
    if matches!(action, Action::Retire | Action::Edit { .. }) {
        expect_role(&request.actor, Role::Admin)?;
    }
    let bulk = BulkRequest { action, reason, dry_run: form.flag("dryRun") };
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
    ApiResponse::ok(&wire::Bulk { dry_run: bulk.dry_run, action: word, changed, items })
}

async fn named(request: &ApiRequest, form: &Form<'_>) -> Result<Vec<JobRow>, Problem> {
    let mut rows = Vec::new();
    let mut faults = Vec::new();
    for (n, key) in form.list("jobKeys").into_iter().enumerate() {
        match request.jobs().get(key).await {
            Ok(row) => rows.push(row),
            Err(error @ StoreError::NotFound { .. }) => {
                faults.push(Fault::new(format!("/jobKeys/{n}"), FaultCode::NotFound, error.to_string()));
            }
            Err(StoreError::Invalid(invalid)) => {
                faults.push(Fault::new(format!("/jobKeys/{n}"), FaultCode::Invalid, invalid.reason));
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
        return Err(Problem::body(vec![Fault::new("/filter", FaultCode::OutOfRange, detail)]));
    }
    Ok(page.items)
}

/// Changes one job. A failure does not affect the others.
async fn one(request: &ApiRequest, row: &JobRow, bulk: &BulkRequest) -> wire::BulkItem {
    let definition = &row.job.definition;
    let next = next_run(request, row, &bulk.action);
    let item = |outcome, detail| wire::BulkItem {
        id: definition.id.to_string(),
        job_key: definition.key.to_string(),
        // A job that was just paused or retired has no next fire any more.
        next_run_at: next.filter(|_| !bulk.action.stops() || outcome != Outcome::Changed),
        run_id: None,
        outcome,
        detail,
        changes: Vec::new(),
    };
    // Each job is a part of the request: what was done for it before is not done again.
    let part = request.request_key.as_ref().map(|key| key.part(&definition.id.to_string()));
    let jobs = request.jobs().once(part.as_ref());
    let done = match jobs.was_done().await {
        Ok(done) => done,
        Err(error) => return item(Outcome::Failed, Some(error.to_string())),
    };
    let status = row.job.state.status;
    if !bulk.action.concerns(status) && !done {
        return item(Outcome::Unchanged, Some(format!("it is {status}")));
    }
    let jobs = match (&bulk.reason, &bulk.action) {
        (Some(reason), Action::RunNow | Action::SkipNext { .. } | Action::Retire | Action::Edit { .. }) => {
            jobs.because(reason)
        }
        _ => jobs,
    };
    if let Action::Edit { patch } = &bulk.action
        && !done
    {
        let (outcome, changes, detail) = match edited(request, row, &jobs, patch, bulk.dry_run).await {
            Ok((outcome, changes)) => (outcome, changes, None),
            Err(problem) => (Outcome::Failed, Vec::new(), Some(problem.in_words())),
        };
        let detail = detail.or_else(|| (outcome == Outcome::Unchanged).then(|| "nothing differs".to_owned()));
        return wire::BulkItem { changes, ..item(outcome, detail) };
    }
    if bulk.dry_run {
        return item(Outcome::WouldChange, None);
    }
    match carry_out(&jobs, definition.id, &bulk.action).await {
        Ok(Some(RunNow::Skipped { blocking, .. })) => {
            item(Outcome::Unchanged, Some(format!("run {blocking} is active, so the new run was skipped")))
        }
        Ok(ran) => {
            let run_id = ran.map(|ran| ran.run().id.to_string());
            wire::BulkItem { run_id, ..item(Outcome::Changed, None) }
        }
        Err(error) => item(Outcome::Failed, Some(error.to_string())),
    }
}

/// The next run of a job: before the action if that stops the job, or after a pause.
fn next_run(request: &ApiRequest, row: &JobRow, action: &Action) -> Option<Timestamp> {
    let timer = row.timer.as_ref();
    if !matches!(action, Action::Resume { .. }) {
        return timer.and_then(|timer| timer.next_run_at);
    }
    let after = timer.map_or(Timestamp::MIN, |timer| timer.last_slot_at).max(request.app.bell.now());
    row.job.definition.spec.as_ref().ok().and_then(|spec| spec.next_after(after))
}

/// Edits a job, unless nothing differs or nothing shall change. Returns what differs.
async fn edited(
    request: &ApiRequest,
    row: &JobRow,
    jobs: &Jobs,
    patch: &Json,
    dry_run: bool,
) -> Result<(Outcome, Vec<wire::ChangedField>), Problem> {
    let changes = edits::planned(request, row, patch).await?;
    if changes.is_empty() {
        return Ok((Outcome::Unchanged, changes));
    }
    if dry_run {
        return Ok((Outcome::WouldChange, changes));
    }
    edits::apply_to(request, jobs, row.job.definition.id, patch).await?;
    Ok((Outcome::Changed, changes))
}

async fn carry_out(jobs: &Jobs, job: JobId, action: &Action) -> Result<Option<RunNow>, StoreError> {
    match action {
        Action::Pause { reason, until } => {
            until.iter().copied().fold(jobs.pause(job, reason.clone()), Change::until).await?;
        }
        Action::Resume { once: true } => drop(jobs.resume(job).run_missed_once().await?),
        Action::Resume { once: false } => drop(jobs.resume(job).await?),
        Action::SkipNext { count } => drop(jobs.skip_next(job, *count).await?),
        Action::Retire => drop(jobs.retire(job).await?),
        // It was done before, by a request of the same key.
        Action::Edit { .. } => {}
        Action::RunNow => return jobs.run_now(job).await.map(Some),
    }
    Ok(None)
}

impl Action {
    /// Whether the job does not fire afterwards.
    fn stops(&self) -> bool {
        matches!(self, Action::Pause { .. } | Action::Retire)
    }

    /// Whether it changes a job of this status.
    fn concerns(&self, status: JobStatus) -> bool {
        match self {
            Action::Pause { .. } | Action::SkipNext { .. } => status == JobStatus::Active,
            Action::Resume { .. } => status == JobStatus::Paused,
            Action::RunNow | Action::Retire | Action::Edit { .. } => status != JobStatus::Retired,
        }
    }
}
