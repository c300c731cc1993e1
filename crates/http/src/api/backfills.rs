//! Backfills: runs for past slots.

use axum::http::StatusCode;
use everbell::client::BackfillEdit;
use everbell::{Invalid, JobRow, JobStatus, Scope};
use everbell_core::backfill::{BackfillOrder, MAX_PARALLEL, Rate};
use everbell_core::{BackfillId, Zone};
use everbell_wire as wire;

use super::actions::{ORG, REASON, org_of};
use super::job_history::zone_for;
use super::org_updates::WHY;
use crate::convert;
use crate::excerpt::excerpt;
use crate::problem::Problem;
use crate::request::{ApiRequest, ApiResponse};
use everbell_wire::FaultCode;
use everbell_wire::body::job::time;
use everbell_wire::form::{Fault, Field, Form, Kind as Value, optional, required};

pub(crate) const CREATE: &[Field] = &[
    ORG,
    optional("orgs", Value::Word(&["all"]), "Every org, for a job with scope `per_org`."),
    required(
        "from",
        Value::Time,
        "The start of the range, inclusive. A time without an offset is in the time zone of the job or the org.",
    ),
    required("to", Value::Time, "The end of the range, inclusive. Slots in the future are left out."),
    optional(
        "parallel",
        Value::Integer { min: 1, max: MAX_PARALLEL as i64 },
        "How many of its runs may be pending or running at once. Default: what `maxConcurrentRuns` and `overlap` of the job allow, \
         shared with the other backfills of the job. Not for all orgs.",
    ),
    optional(
        "rate",
        RATE,
        "The rate at which it creates runs, evenly spread: a number of runs and `s`, `m`, `h` or `d`, as in `10/m`. Default: no \
         limit. Not for all orgs.",
    ),
    optional(
        "order",
        Value::Word(wire::backfill::BackfillOrder::WORDS),
        "Which slots run first. Default: `oldest`. Not for all orgs.",
    ),
    optional(
        "pausedOk",
        Value::Flag,
        "Whether it continues while the job is paused. Default: only if the job is paused when the backfill is requested. Not for all orgs.",
    ),
    optional("reason", REASON, "The reason, for the audit trail."),
    optional(
        "dryRun",
        Value::Flag,
        "Return the plan without creating runs: how many slots would get a run, and which ones. The range may be of any length.",
    ),
];

/// The settings that may change while it runs.
pub(crate) const SET: &[Field] = &[
    optional(
        "parallel",
        Value::Integer { min: 0, max: MAX_PARALLEL as i64 },
        "The maximum number of its pending and running runs; 0 returns to the job's limit.",
    ),
    optional("rate", RATE, "The rate at which it creates runs, such as `10/m`; `off` removes the limit."),
    optional("pausedOk", Value::Flag, "Whether it continues while the job is paused."),
    optional("reason", REASON, "The reason, for the audit trail."),
];

const RATE: Value = Value::Text { min: 3, max: 20 };

pub(crate) async fn create(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let mut form = request.body(CREATE);
    let job = request.job()?;
    let row = request.jobs().get(&job).await?;
    let org = org_of(&form)?;
    let zone = zone_for(&request, &row, org.as_ref()).await?.unwrap_or_else(Zone::utc);
    let for_all = form.has("orgs");
    if for_all && org.is_some() {
        form.fault("orgs", FaultCode::Invalid, "cannot be combined with `orgId`");
    }
    for name in ["parallel", "rate", "order", "pausedOk"] {
        if for_all && form.has(name) {
            form.fault(name, FaultCode::Invalid, "cannot be set for all orgs");
        }
    }
    let rate = rate(&mut form);
    let (from, to) = (time(&mut form, "from", &zone), time(&mut form, "to", &zone));
    let faults: Vec<Fault> = std::mem::take(form.faults_mut());
    let Some((from, to)) = from.zip(to).filter(|_| faults.is_empty()) else { return Err(Problem::body(faults)) };
    if form.flag("dryRun") {
        expect_possible(&row, for_all || org.is_some())?;
    }
    let mut jobs = request.jobs_because(form.text("reason"));
    if let Some(parallel) = form.count("parallel") {
        jobs = jobs.parallel(parallel);
    }
    if let Some(rate) = rate.flatten() {
        jobs = jobs.rate(rate);
    }
    if form.text("order") == Some(BackfillOrder::Newest.as_str()) {
        jobs = jobs.order(BackfillOrder::Newest);
    }
    if form.has("pausedOk") {
        jobs = jobs.paused_ok(form.flag("pausedOk"));
    }
    if for_all && form.flag("dryRun") {
        let size = jobs.plan_backfill_for_all(&job, from, to).await?;
        return ApiResponse::ok(&convert::backfill_size(size, from, to));
    }
    if for_all {
        let begun = jobs.backfill_for_all(&job, from, to).await?;
        return ApiResponse::json(StatusCode::ACCEPTED, &convert::begun_backfill_of_all(&begun, from, to));
    }
    if form.flag("dryRun") {
        let plan = match &org {
            Some(org) => jobs.plan_backfill_for(&job, org, from, to).await?,
            None => jobs.plan_backfill(&job, from, to).await?,
        };
        return ApiResponse::ok(&convert::backfill_plan(&plan, from, to));
    }
    let begun = match &org {
        Some(org) => jobs.backfill_for(&job, org, from, to).await?,
        None => jobs.backfill(&job, from, to).await?,
    };
    ApiResponse::json(StatusCode::ACCEPTED, &convert::begun_backfill(&begun, from, to))
}

/// A plan is no plan if the runs would be refused.
fn expect_possible(row: &JobRow, names_orgs: bool) -> Result<(), Problem> {
    if row.job.state.status == JobStatus::Retired {
        return Err(Invalid::retired().into());
    }
    if row.job.definition.scope == Scope::PerOrg && !names_orgs {
        return Err(Invalid::for_whom().into());
    }
    Ok(())
}

pub(crate) async fn list(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let job = request.jobs().get(request.job()?).await?;
    let reports = request.jobs().backfills(job.id()).await?;
    let items = reports.iter().map(convert::backfill_report).collect::<Vec<_>>();
    ApiResponse::ok(&wire::Items { items })
}

/// Reads the rate, if there is one; `off` is no limit.
#[allow(clippy::option_option, reason = "absent, none and some are three answers, as in the settings")]
fn rate(form: &mut Form<'_>) -> Option<Option<Rate>> {
    let text = form.text("rate")?.to_owned();
    if text == "off" {
        return Some(None);
    }
    match text.parse() {
        Ok(rate) => Some(Some(rate)),
        Err(refused) => {
            let refused: Invalid = refused;
            form.fault("rate", FaultCode::Invalid, refused.reason);
            None
        }
    }
}

/// The id of the backfill in the path.
fn id_of(request: &ApiRequest) -> Result<BackfillId, Problem> {
    let name = request.part("backfillId");
    name.parse().map_err(|_| Problem::not_found("backfill", &excerpt(name)))
}

pub(crate) async fn show(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let report = request.jobs().backfill_report(request.job()?, id_of(&request)?).await?;
    ApiResponse::ok(&convert::backfill_report(&report))
}

pub(crate) async fn pause(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let id = id_of(&request)?;
    let jobs = request.jobs_because(request.body(WHY).text("reason"));
    let report = jobs.pause_backfill(request.job()?, id).await?;
    ApiResponse::ok(&convert::backfill_report(&report))
}

pub(crate) async fn resume(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let id = id_of(&request)?;
    let jobs = request.jobs_because(request.body(WHY).text("reason"));
    let report = jobs.resume_backfill(request.job()?, id).await?;
    ApiResponse::ok(&convert::backfill_report(&report))
}

pub(crate) async fn set(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let id = id_of(&request)?;
    let mut form = request.body(SET);
    let rate = rate(&mut form);
    let edit = BackfillEdit {
        parallel: form.count("parallel").map(|parallel| (parallel > 0).then_some(parallel)),
        rate,
        paused_ok: form.has("pausedOk").then(|| form.flag("pausedOk")),
    };
    if form.faults_mut().is_empty() && edit == BackfillEdit::default() {
        form.fault("", FaultCode::Required, "needs `parallel`, `rate` or `pausedOk`");
    }
    let faults: Vec<Fault> = std::mem::take(form.faults_mut());
    if !faults.is_empty() {
        return Err(Problem::body(faults));
    }
    let jobs = request.jobs_because(form.text("reason"));
    let report = jobs.set_backfill(request.job()?, id, edit).await?;
    ApiResponse::ok(&convert::backfill_report(&report))
}

pub(crate) async fn stop(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let id = id_of(&request)?;
    let canceled = request.jobs().stop_backfill(request.job()?, id).await?;
    ApiResponse::ok(&wire::StoppedBackfill { id: id.to_string(), canceled })
}
