//! Actions on a job: pause, resume, run now, reschedule, skip, retire, purge.

use axum::http::StatusCode;
use everbell::client::{Change, OrgRunNow, Rescheduling, RunNowRequest, Skipping};
use everbell::{JobRow, JobStatus, OrgId, RunNow, RunRecord, StoreError};
use everbell_core::store::{Changed, RunFilter};
use everbell_core::{RunStatus, Zone};
use everbell_wire as wire;
use everbell_wire::FaultCode;
use everbell_wire::job::ResumeAction;
use everbell_wire::run::RunNowOutcome as Outcome;

use super::job_history::zone_for;
use super::jobs::{etag, job_response, with_next_freeze};
use crate::convert::begun_org_update;
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResponse};
use crate::unavailable::unavailable;
use everbell_wire::body::job::time;
use everbell_wire::form::{Fault, Field, Form, Kind as Value, TEXT, optional, required};

/// The most runs that are counted.
const MAX_COUNTED_RUNS: u32 = 10_000;

pub(super) const REASON: Value = Value::Text { min: 3, max: 500 };

pub(crate) const PAUSE: &[Field] = &[
    optional("reason", REASON, "The reason, which is shown with the job. Required, here or as `pauseReason`."),
    optional("pauseReason", REASON, "Same as `reason`."),
    optional(
        "until",
        Value::Time,
        "When the job resumes automatically. A time without an offset is in the job's time zone.",
    ),
    optional(
        "cancelPending",
        Value::Flag,
        "Cancel the runs that have not started. Otherwise they wait until the job is resumed.",
    ),
];

pub(crate) const RESUME: &[Field] = &[
    optional(
        "missed",
        Value::Word(&["skip", "fire_once"]),
        "How the slots of the pause are handled: `skip` runs none of them, `fire_once` runs the latest.",
    ),
    optional("reason", REASON, "The reason, for the audit trail."),
];

/// The org whose timer is meant, of a job that fires for each.
pub(super) const ORG: Field = optional("orgId", TEXT, "The org, for a job with scope `per_org`.");

pub(crate) const RUN_NOW: &[Field] = &[
    ORG,
    optional(
        "orgs",
        Value::ListOr { word: "all", of: &TEXT, max: 100 },
        "One run for each of these orgs, or for `all` orgs that the job fires for, for a job with scope `per_org`.",
    ),
    optional("payload", Value::Json, "The payload of this run. Default: the payload of the job."),
    optional("force", Value::Flag, "Start even if other runs of the job are active."),
    optional("queue", Value::Flag, "Wait for active runs of the job to end instead of being skipped."),
    optional("note", REASON, "The reason, for the audit trail."),
];

pub(crate) const RESCHEDULE: &[Field] = &[
    ORG,
    required(
        "nextRunAt",
        Value::Time,
        "The new time of the next run. A time without an offset is in the time zone of the job or the org.",
    ),
    optional("reason", REASON, "The reason, for the audit trail."),
];

pub(crate) const SKIP_NEXT: &[Field] = &[
    ORG,
    optional("count", Value::Integer { min: 1, max: 100 }, "How many slots to skip. Default: 1."),
    optional("reason", REASON, "The reason, for the audit trail."),
];

pub(crate) const RETIRE: &[Field] = &[optional("reason", REASON, "The reason, for the audit trail.")];

pub(crate) const PURGE: &[Field] = &[optional("reason", REASON, "The reason, for the audit trail.")];

pub(crate) async fn pause(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let mut form = request.body(PAUSE);
    let job = request.job()?;
    let Some(reason) = form.text("reason").or_else(|| form.text("pauseReason")).map(str::to_owned) else {
        let fault = Fault::new("/reason", FaultCode::Required, "is required to pause a job: 3 to 500 characters");
        return Err(Problem::body(vec![fault]));
    };
    let row = request.jobs().get(&job).await?;
    let until = zoned_time(&request, &mut form, "until", (&row, None)).await?;
    let same = row.job.state.pause.as_ref().is_some_and(|pause| pause.reason == reason && pause.until == until);
    let cancel = form.flag("cancelPending");
    if same && !cancel && request.if_match.is_none() {
        let key = row.job.definition.key.clone();
        let pending = RunFilter { job_key: Some(key), status: vec![RunStatus::Pending], ..RunFilter::default() };
        let held = request.runs().count(&pending, MAX_COUNTED_RUNS).await?;
        return paused(&request, &row, (u64::from(held), 0));
    }
    let change = request.jobs().pause(&job, reason);
    let change = until.into_iter().fold(change, Change::until);
    let change = if cancel { change.cancel_pending() } else { change };
    let change = request.if_match.into_iter().fold(change, Change::if_revision);
    let changed = change.await?;
    paused(&request, &changed.job, if cancel { (0, changed.pending) } else { (changed.pending, 0) })
}

fn paused(request: &ApiRequest, row: &JobRow, (held_runs, canceled_runs): (u64, u64)) -> Result<ApiResponse, Problem> {
    let job = wire::Job::with_warnings(row, request.app.bell.now());
    Ok(ApiResponse::ok(&wire::Paused { job, held_runs, canceled_runs })?.header("etag", etag(row)))
}

pub(crate) async fn resume(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let form = request.body(RESUME);
    let once = form.text("missed") == Some("fire_once");
    let job = request.job()?;
    let row = request.jobs().get(&job).await?;
    let active = row.job.state.status == JobStatus::Active && row.job.state.error.is_none();
    if active && request.if_match.is_none() && !request.jobs().was_done().await? {
        let changed = Changed::new(row);
        return resumed(&request, once, &changed).await;
    }
    let jobs = request.jobs_because(form.text("reason"));
    let change = jobs.resume(&job);
    let change = if once { change.run_missed_once() } else { change };
    let change = request.if_match.into_iter().fold(change, Change::if_revision);
    resumed(&request, once, &change.await?).await
}

async fn resumed(request: &ApiRequest, once: bool, changed: &Changed) -> Result<ApiResponse, Problem> {
    let folded: u64 = changed.runs.iter().map(|run| run.folded + 1).sum();
    let document = wire::Resumed {
        job: with_next_freeze(request, &changed.job).await,
        resumed: wire::Resumption {
            missed_slots: changed.gaps.iter().map(|gap| gap.slots).sum::<u64>().max(folded),
            action: if once { ResumeAction::FireOnce } else { ResumeAction::Skip },
            run_ids: changed.runs.iter().map(|run| run.id.to_string()).collect(),
            released_runs: changed.pending,
        },
    };
    Ok(ApiResponse::ok(&document)?.header("etag", etag(&changed.job)))
}

pub(crate) async fn run_now(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let form = request.body(RUN_NOW);
    if form.flag("force") && form.flag("queue") {
        let fault = Fault::new("/queue", FaultCode::Invalid, "cannot be combined with `force`");
        return Err(Problem::body(vec![fault]));
    }
    if form.has("orgId") && form.has("orgs") {
        let fault = Fault::new("/orgs", FaultCode::Invalid, "cannot be combined with `orgId`");
        return Err(Problem::body(vec![fault]));
    }
    let job = request.job()?;
    let org = org_of(&form)?;
    let jobs = request.jobs_because(form.text("note"));
    let mut run_request = jobs.run_now(&job);
    if let Some(payload) = request.raw("payload") {
        let row = request.jobs().get(&job).await?;
        request.expect_payload_allowed(row.job.definition.target.as_str())?;
        run_request = run_request.payload(payload);
    }
    if form.flag("force") {
        run_request = run_request.force();
    } else if form.flag("queue") {
        run_request = run_request.queue();
    }
    let run_request = request.if_match.into_iter().fold(run_request, RunNowRequest::if_revision);
    if form.has("orgs") {
        return ran_for_orgs(&request, &form, run_request).await;
    }
    let outcome = org.iter().fold(run_request, RunNowRequest::for_org).await?;
    let row = request.jobs().get(&job).await?;
    ran(&request, &row, outcome).await
}

/// Runs for the orgs that are named, or for all.
async fn ran_for_orgs(
    request: &ApiRequest,
    form: &Form<'_>,
    run_request: RunNowRequest,
) -> Result<ApiResponse, Problem> {
    if form.text("orgs").is_some() {
        let begun = run_request.for_all_orgs().await?;
        let document = wire::RunNowOrgs { items: Vec::new(), org_update: Some(begun_org_update(&begun)) };
        return ApiResponse::json(StatusCode::ACCEPTED, &document);
    }
    let mut orgs = Vec::new();
    for (n, name) in form.list("orgs").into_iter().enumerate() {
        let refused = |invalid: everbell::Invalid| {
            Problem::body(vec![Fault::new(format!("/orgs/{n}"), FaultCode::Invalid, invalid.reason)])
        };
        orgs.push(OrgId::new(name).map_err(refused)?);
    }
    let mut items = Vec::with_capacity(orgs.len());
    for OrgRunNow { org, outcome, .. } in run_request.for_orgs(&orgs).await? {
        let (outcome, run, detail) = match &outcome {
            Ok(outcome) => {
                let (word, run) = outcome_and_run(outcome);
                (word, Some(request.visible_run(wire::Run::new(run, None))), None)
            }
            Err(error @ StoreError::Unavailable { reason, maybe_done, .. }) => {
                tracing::warn!(%error, %org, "a manual run could not be created for an org");
                (Outcome::Refused, None, Some(unavailable(*reason, *maybe_done)))
            }
            Err(error) => (Outcome::Refused, None, Some(error.to_string())),
        };
        items.push(wire::OrgRun { org_id: org.to_string(), outcome, run, detail });
    }
    ApiResponse::json(StatusCode::ACCEPTED, &wire::RunNowOrgs { items, org_update: None })
}

/// The org of a body.
pub(super) fn org_of(form: &Form<'_>) -> Result<Option<OrgId>, Problem> {
    let org = form.text("orgId").map(OrgId::new).transpose();
    org.map_err(|invalid| Problem::body(vec![Fault::new("/orgId", FaultCode::Invalid, invalid.reason)]))
}

fn outcome_and_run(outcome: &RunNow) -> (Outcome, &RunRecord) {
    match outcome {
        RunNow::Started(run) => (Outcome::Started, run),
        RunNow::Queued(run) => (Outcome::Queued, run),
        RunNow::Skipped { recorded, .. } => (Outcome::Skipped, recorded),
        other => (Outcome::Other(other.run().status.to_string()), other.run()),
    }
}

/// Responds with the outcome of a manual run.
pub(super) async fn ran(request: &ApiRequest, row: &JobRow, outcome: RunNow) -> Result<ApiResponse, Problem> {
    let zone = row.job.definition.spec.as_ref().ok().map(|spec| spec.zone().clone());
    let (word, run) = outcome_and_run(&outcome);
    let next_run_at = match &run.org {
        Some(org) => request.jobs().next_fires_for(row.job.definition.id, org, 1).await?.pop().map(|at| at.timestamp()),
        None => row.timer.as_ref().and_then(|timer| timer.next_run_at),
    };
    let location = format!("{}/runs/{}", request.mount, run.id);
    let run = request.visible_run(wire::Run::new(run, zone.as_ref()));
    let document = wire::RunNow { outcome: word, run, next_run_at };
    let RunNow::Skipped { blocking, .. } = outcome else {
        return Ok(ApiResponse::json(StatusCode::ACCEPTED, &document)?.header("location", location));
    };
    if request.app.options().settings.run_now_overlap_status == 200 {
        return Ok(ApiResponse::ok(&document)?.header("location", location));
    }
    let active = match request.runs().get(blocking).await {
        Ok(_) if !request.may_read_runs() => None,
        Ok(active) => Some(wire::Run::new(&active, zone.as_ref())),
        Err(StoreError::NotFound { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let detail = format!("Run {blocking} is still active, so this run was recorded as skipped.");
    let json = |document: &wire::Run| serde_json::to_value(document).unwrap_or_default();
    let problem = Problem::new(Kind::OverlapSkipped, detail).with("run", json(&document.run));
    Err(active.iter().fold(problem, |problem, active| problem.with("activeRun", json(active))))
}

pub(crate) async fn reschedule(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let mut form = request.body(RESCHEDULE);
    let job = request.job()?;
    let row = request.jobs().get(&job).await?;
    let org = org_of(&form)?;
    let Some(to) = zoned_time(&request, &mut form, "nextRunAt", (&row, org.as_ref())).await? else {
        return Err(Problem::body(vec![Fault::new("/nextRunAt", FaultCode::Required, "is required")]));
    };
    let jobs = request.jobs_because(form.text("reason"));
    let change = jobs.reschedule(&job, to);
    let change = org.iter().fold(change, Change::<Rescheduling>::for_org);
    let change = request.if_match.into_iter().fold(change, Change::if_revision);
    job_response(&request, StatusCode::OK, &change.await?.job).await
}

pub(crate) async fn skip_next(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let form = request.body(SKIP_NEXT);
    let jobs = request.jobs_because(form.text("reason"));
    let change = jobs.skip_next(request.job()?, form.count("count").unwrap_or(1));
    let change = org_of(&form)?.iter().fold(change, Change::<Skipping>::for_org);
    let change = request.if_match.into_iter().fold(change, Change::if_revision);
    job_response(&request, StatusCode::OK, &change.await?.job).await
}

pub(crate) async fn retire(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let form = request.query(RETIRE);
    let jobs = request.jobs_because(form.text("reason"));
    let change = jobs.retire(request.job()?);
    let change = request.if_match.into_iter().fold(change, Change::if_revision);
    job_response(&request, StatusCode::OK, &change.await?.job).await
}

pub(crate) async fn purge(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let form = request.body(PURGE);
    let job = request.job()?;
    let jobs = request.jobs_because(form.text("reason"));
    // Not read before: a request that is sent again finds no job, and is answered from what it did.
    let (job_key, everbell::PurgedJob { versions, runs, gaps, .. }) = jobs.purge_by_key(job).await?;
    ApiResponse::ok(&wire::PurgedJob { job_key: job_key.to_string(), versions, runs, gaps })
}

/// A time of the body, read in the zone of the job, or of the org that is meant.
async fn zoned_time(
    request: &ApiRequest,
    form: &mut Form<'_>,
    name: &str,
    (row, org): (&JobRow, Option<&OrgId>),
) -> Result<Option<jiff::Timestamp>, Problem> {
    let zone = zone_for(request, row, org).await?.unwrap_or_else(Zone::utc);
    let read = time(form, name, &zone);
    match read {
        None if form.has(name) => {
            let faults = std::mem::take(form.faults_mut());
            Err(Problem::body(faults))
        }
        read => Ok(read),
    }
}
