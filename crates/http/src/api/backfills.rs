//! Backfills: runs for past slots.

use axum::http::StatusCode;
use everbell::{Invalid, JobRow, JobStatus, Scope};
use everbell_core::plan::MAX_PARALLEL;
use everbell_core::{BackfillId, Zone};
use everbell_wire as wire;

use super::actions::{ORG, REASON, org_of};
use super::job_history::zone_for;
use crate::convert;
use crate::problem::Problem;
use crate::request::{ApiRequest, ApiResponse, shown};
use everbell_wire::form::job::time;
use everbell_wire::form::{Fault, Field, Kind as Value, optional, required};

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
        "How many of its runs may be at work at once. Default: what `maxConcurrentRuns` and `overlap` of the job allow. Not for \
         all orgs.",
    ),
    optional("reason", REASON, "The reason, for the audit trail."),
    optional(
        "dryRun",
        Value::Flag,
        "Return the plan without creating runs: the slots that would get a run or, for all orgs, their number.",
    ),
];

pub(crate) async fn create(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let mut form = request.body(CREATE);
    let job = request.job()?;
    let row = request.jobs().get(&job).await?;
    let org = org_of(&form)?;
    let zone = zone_for(&request, &row, org.as_ref()).await?.unwrap_or_else(Zone::utc);
    let for_all = form.has("orgs");
    if for_all && org.is_some() {
        form.fault("orgs", "invalid", "cannot be combined with `orgId`");
    }
    if for_all && form.has("parallel") {
        form.fault("parallel", "invalid", "cannot be set for all orgs");
    }
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
    let items = reports.iter().map(|report| convert::backfill_report(job.key(), report)).collect::<Vec<_>>();
    ApiResponse::ok(&wire::Items { items })
}

pub(crate) async fn stop(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let name = request.part("backfillId");
    let missing = || Problem::not_found("backfill", &shown(name));
    let id: BackfillId = name.parse().map_err(|_| missing())?;
    let canceled = request.jobs().stop_backfill(request.job()?, id).await?;
    ApiResponse::ok(&wire::StoppedBackfill { id: id.to_string(), canceled })
}
