//! Runs: list, read, cancel, run again.

use axum::http::StatusCode;
use everbell::{Canceled, JobKey, RunFilter, RunRecord, RunStatus, Target};
use everbell_core::{InstanceId, Invalid, JobId, OrgId, TriggerType};
use everbell_wire as wire;
use everbell_wire::run::CancelOutcome;

use super::actions::{REASON, ran};
use super::job_history::moment;
use super::jobs::RUN_STATUS;
use crate::page::{self, CURSOR, LIMIT};
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResponse};
use everbell_wire::form::{Field, Kind as Value, TEXT, optional};

/// The query of the list of runs.
pub const LIST: &[Field] = &[
    optional("jobKey", TEXT, "Only runs of the job with this key, in any version."),
    optional("jobId", TEXT, "Only runs of the job version with this id."),
    optional("status", Value::List { of: &RUN_STATUS, max: 6 }, "Only runs with one of these statuses."),
    optional("target", Value::List { of: &TEXT, max: 50 }, "Only runs of one of these targets."),
    optional("triggerType", Value::Word(&["scheduled", "manual", "ad_hoc"]), "Only runs that were triggered this way."),
    optional("orgId", TEXT, "Only runs for this org."),
    optional("instanceId", TEXT, "Only runs that this instance executed."),
    optional("failureCode", TEXT, "Only runs that failed with this code."),
    optional("from", Value::Time, "Only runs that were scheduled or requested at or after this time."),
    optional("to", Value::Time, "Only runs that were scheduled or requested before this time."),
    LIMIT,
    CURSOR,
];

pub(crate) const CANCEL: &[Field] = &[optional("reason", REASON, "The reason, for the audit trail.")];

pub(crate) async fn list(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let filter = filter(&request)?;
    let page = request.runs().list(&filter, &page::from_query(&request)?).await?;
    let mut items = Vec::with_capacity(page.items.len());
    for run in &page.items {
        items.push(wire::Run::new(run, request.app.zone_of(run).await?.as_ref()));
    }
    let document = page::document(&request, &page, items);
    Ok(page::linked(&request, "/runs", document.next_cursor.as_deref(), ApiResponse::ok(&document)?))
}

/// The runs that a query asks for.
pub fn filter(request: &ApiRequest) -> Result<RunFilter, Problem> {
    fn read<T>(
        name: &'static str,
        text: Option<&str>,
        read: impl Fn(&str) -> Result<T, Invalid>,
    ) -> Result<Option<T>, Problem> {
        text.map(read).transpose().map_err(|error| Problem::at("parameter", name, error.reason))
    }
    let mut form = request.query(LIST);
    let targets: Result<_, _> = form.list("target").into_iter().map(Target::new).collect();
    Ok(RunFilter {
        job_id: read("jobId", form.text("jobId"), str::parse::<JobId>)?,
        job_key: read("jobKey", form.text("jobKey"), JobKey::new)?,
        status: form.list("status").into_iter().filter_map(RunStatus::from_word).collect(),
        target: targets.map_err(|error: Invalid| Problem::at("parameter", "target", error.reason))?,
        trigger: form.word("triggerType", TriggerType::from_word),
        org: read("orgId", form.text("orgId"), OrgId::new)?,
        instance: read("instanceId", form.text("instanceId"), str::parse::<InstanceId>)?,
        failure_code: form.text("failureCode").map(str::to_owned),
        from: moment(&mut form, "from", None)?,
        to: moment(&mut form, "to", None)?,
    })
}

pub(crate) async fn get(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let run = request.runs().get(request.run()?).await?;
    ApiResponse::ok(&whole(&request, &run).await?)
}

async fn whole(request: &ApiRequest, run: &RunRecord) -> Result<wire::Run, Problem> {
    Ok(request.visible_run(wire::Run::with_output(run, request.app.zone_of(run).await?.as_ref())))
}

pub(crate) async fn cancel(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let form = request.body(CANCEL);
    let id = request.run()?;
    let runs = request.runs_because(form.text("reason"));
    let outcome = match runs.cancel(id).await? {
        Canceled::AtOnce => CancelOutcome::Canceled,
        Canceled::Requested => CancelOutcome::Requested,
        Canceled::TooLate(status) => {
            let detail = format!("Run {id} has already ended: it is {status}.");
            return Err(Problem::new(Kind::Conflict, detail).with("runStatus", status.as_str()));
        }
    };
    let run = request.runs().get(id).await?;
    ApiResponse::json(StatusCode::ACCEPTED, &wire::Canceled { outcome, run: whole(&request, &run).await? })
}

pub(crate) async fn rerun(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let form = request.body(CANCEL);
    let runs = request.runs_because(form.text("reason"));
    let outcome = runs.rerun(request.run()?).await?;
    match outcome.run().job_id {
        Some(job) => {
            let row = request.jobs().get(job).await?;
            ran(&request, &row, outcome).await
        }
        None => tried(&request, outcome.run()),
    }
}

/// A run without a job.
pub(super) fn tried(request: &ApiRequest, run: &RunRecord) -> Result<ApiResponse, Problem> {
    let location = format!("{}/runs/{}", request.mount, run.id);
    let run = request.visible_run(wire::Run::new(run, None));
    let document = wire::RunNow { outcome: wire::run::RunNowOutcome::Started, run, next_run_at: None };
    Ok(ApiResponse::json(StatusCode::ACCEPTED, &document)?.header("location", location))
}
