//! Running many runs again, optionally as a dry run.

use everbell::RunNow;
use everbell_core::store::PageRequest;
use everbell_wire as wire;
use everbell_wire::bulk::RerunOutcome as Outcome;
use everbell_wire::form::{Fault, Field, Form, Kind as Value, Naming, TEXT, optional, required};

use super::actions::REASON;
use super::runs::filter_of;
use crate::problem::Problem;
use crate::request::{ApiRequest, ApiResponse};

/// The most runs of one request.
const MAX_RERUNS: u32 = 1_000;

/// Statuses of runs that have ended.
const ENDED: Value = Value::Word(&["succeeded", "failed", "canceled", "skipped"]);

const FILTER: &[Field] = &[
    optional("jobKey", TEXT, "Only runs of the job with this key, in any version."),
    optional("label", TEXT, "Only runs of jobs with this label: `name` or `name=value`."),
    optional("status", Value::List { of: &ENDED, max: 4 }, "Only runs with one of these statuses. Default: `failed`."),
    optional("target", Value::List { of: &TEXT, max: 50 }, "Only runs of one of these targets."),
    optional("triggerType", Value::Word(&["scheduled", "manual", "ad_hoc"]), "Only runs that were triggered this way."),
    optional("orgId", TEXT, "Only runs for this org."),
    optional("failureCode", TEXT, "Only runs that failed with this code."),
    optional("from", Value::Time, "Only runs that were scheduled or requested at or after this time."),
    optional("to", Value::Time, "Only runs that were scheduled or requested before this time."),
];

pub(crate) const RERUN: &[Field] = &[
    required("filter", Value::Component("RerunFilter", FILTER), "Selects runs by their properties: at least one."),
    optional("reason", REASON, "The reason, for the audit trail."),
    optional("dryRun", Value::Flag, "Return what would be started without starting it."),
];

pub(crate) async fn many(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let form = request.body(RERUN);
    let inner = form.value("filter").cloned().unwrap_or_default();
    if inner.as_object().is_none_or(serde_json::Map::is_empty) {
        let fault = Fault::new("/filter", "required", "must have at least one member, such as `status` or `label`");
        return Err(Problem::body(vec![fault]));
    }
    let mut fields = Form::read(&inner, FILTER, Naming::Camel);
    let mut filter = filter_of(&mut fields)?;
    if filter.status.is_empty() {
        filter.status = vec![everbell::RunStatus::Failed];
    }
    let page = request.runs().list(&filter, &PageRequest { limit: MAX_RERUNS, after: None }).await?;
    if page.next.is_some() {
        let detail = format!("matches more than {MAX_RERUNS} runs; use a narrower filter");
        return Err(Problem::body(vec![Fault::new("/filter", "out_of_range", detail)]));
    }
    let (dry_run, reason) = (form.flag("dryRun"), form.text("reason"));
    let mut items = Vec::with_capacity(page.items.len());
    for run in page.items.iter().rev() {
        let item = |outcome, new: Option<String>, detail| wire::RerunItem {
            run_id: run.id.to_string(),
            job_key: run.job_key.as_ref().map(ToString::to_string),
            scheduled_at: run.scheduled_at,
            outcome,
            new_run_id: new,
            detail,
        };
        if dry_run {
            items.push(item(Outcome::WouldStart, None, None));
            continue;
        }
        // Each run is a part of the request: one that was started before is not started again.
        let part = request.request_key.as_ref().map(|key| key.part(&run.id.to_string()));
        let runs = request.runs_because(reason).once(part.as_ref());
        items.push(match runs.rerun(run.id).await {
            Ok(RunNow::Started(new)) => item(Outcome::Started, Some(new.id.to_string()), None),
            Ok(RunNow::Queued(new)) => item(Outcome::Queued, Some(new.id.to_string()), None),
            Ok(RunNow::Skipped { recorded, blocking }) => {
                let why = format!("run {blocking} of the job is active");
                item(Outcome::Skipped, Some(recorded.id.to_string()), Some(why))
            }
            Err(error) => item(Outcome::Failed, None, Some(error.to_string())),
        });
    }
    let is_started =
        |item: &&wire::RerunItem| matches!(item.outcome, Outcome::Started | Outcome::Queued | Outcome::WouldStart);
    let started = items.iter().filter(is_started).count() as u64;
    ApiResponse::ok(&wire::Reruns { dry_run, matched: items.len() as u64, started, items })
}
