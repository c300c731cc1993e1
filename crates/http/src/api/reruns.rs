//! Running many runs again, optionally as a dry run.

use std::collections::BTreeMap;
use std::time::Duration;

use everbell::RunNow;
use everbell_core::store::{PageRequest, RequestKey, RunFilter, StoreResult};
use everbell_core::{JobKey, OrgId, Run as RunRecord, RunId};
use everbell_wire as wire;
use everbell_wire::FaultCode;
use everbell_wire::bulk::RerunOutcome as Outcome;
use everbell_wire::form::{Fault, Field, Form, Kind as Value, Naming, TEXT, optional, required};

use tokio::time::Instant;

use super::actions::REASON;
use super::runs::filter_of;
use crate::problem::Problem;
use crate::request::{ApiRequest, ApiResponse};

/// The most runs of one request.
const MAX_RERUNS: u32 = 200;

/// The time for the answer: no run is begun later than this before the deadline of the request.
const ANSWER_TIME: Duration = Duration::from_secs(1);

/// Statuses of runs that have ended.
const ENDED: Value = Value::Word(&["succeeded", "failed", "canceled", "skipped"]);

/// The properties that select runs.
pub const FILTER: &[Field] = &[
    optional("jobKey", TEXT, "Only runs of the job with this key, in any version."),
    optional("label", TEXT, "Only runs of jobs with this label: `name` or `name=value`."),
    optional("status", Value::List { of: &ENDED, max: 4 }, "Only runs with one of these statuses. Default: `failed`."),
    optional("target", Value::List { of: &TEXT, max: 50 }, "Only runs of one of these targets."),
    optional("triggerType", Value::Word(wire::run::TriggerType::WORDS), "Only runs that were triggered this way."),
    optional("orgId", TEXT, "Only runs for this org."),
    optional("failureCode", TEXT, "Only runs that failed with this code."),
    optional("from", Value::Time, "Only runs that were scheduled or requested at or after this time."),
    optional("to", Value::Time, "Only runs that were scheduled or requested before this time."),
];

pub(crate) const RERUN: &[Field] = &[
    required("filter", Value::Component("RerunFilter", FILTER), "Selects runs by their properties: at least one."),
    optional("reason", REASON, "The reason, for the audit trail."),
    optional("dryRun", Value::Flag, "Return what would be started without starting it."),
    optional(
        "again",
        Value::Flag,
        "Include runs that such a request already reran within the last 24 hours. Default: false.",
    ),
];

pub(crate) async fn many(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let form = request.body(RERUN);
    let inner = form.value("filter").cloned().unwrap_or_default();
    let mut fields = Form::read(&inner, FILTER, Naming::Camel);
    let mut filter = filter_of(&mut fields)?;
    if filter == RunFilter::default() {
        let fault =
            Fault::new("/filter", FaultCode::Required, "must have at least one member, such as `status` or `label`");
        return Err(Problem::body(vec![fault]));
    }
    if filter.status.is_empty() {
        filter.status = vec![everbell::RunStatus::Failed];
    }
    let page = request.runs().list(&filter, &PageRequest { limit: MAX_RERUNS, after: None }).await?;
    if page.next.is_some() {
        let detail = format!("matches more than {MAX_RERUNS} runs; use a narrower filter, such as `from` and `to`");
        return Err(Problem::body(vec![Fault::new("/filter", FaultCode::OutOfRange, detail)]));
    }
    let dry_run = form.flag("dryRun");
    let mut batch = Batch {
        request: &request,
        reason: form.text("reason"),
        again: form.flag("again"),
        is_late: false,
        planned: BTreeMap::new(),
    };
    let mut items = Vec::with_capacity(page.items.len());
    for run in page.items.iter().rev() {
        let (outcome, new_run_id, detail) = batch.one(run, dry_run).await;
        items.push(wire::RerunItem {
            run_id: run.id.to_string(),
            job_key: run.job_key.as_ref().map(ToString::to_string),
            scheduled_at: run.scheduled_at,
            outcome,
            new_run_id: new_run_id.map(|id| id.to_string()),
            detail,
        });
    }
    let is_started =
        |item: &&wire::RerunItem| matches!(item.outcome, Outcome::Started | Outcome::Queued | Outcome::WouldStart);
    let started = items.iter().filter(is_started).count() as u64;
    ApiResponse::ok(&wire::Reruns { dry_run, matched: items.len() as u64, started, items })
}

/// The runs of one request, one after the other.
struct Batch<'a> {
    request: &'a ApiRequest,
    reason: Option<&'a str>,
    again: bool,
    /// Whether the time of the request is up.
    is_late: bool,
    /// How many runs of each job would be started so far.
    planned: BTreeMap<(Option<JobKey>, Option<OrgId>), u32>,
}

impl Batch<'_> {
    async fn one(&mut self, run: &RunRecord, dry_run: bool) -> (Outcome, Option<RunId>, Option<String>) {
        self.is_late |= everbell::deadline().is_some_and(|deadline| Instant::now() + ANSWER_TIME >= deadline);
        if self.is_late {
            let detail = "not tried, because the request ran out of time; repeat the request";
            return (Outcome::Failed, None, Some(detail.to_owned()));
        }
        match self.rerun(run, dry_run).await {
            Ok((outcome, new, detail)) => (outcome, new, detail),
            Err(error) => {
                self.is_late |= error.is_transient();
                (Outcome::Failed, None, Some(error.to_string()))
            }
        }
    }

    async fn rerun(&mut self, run: &RunRecord, dry_run: bool) -> StoreResult<(Outcome, Option<RunId>, Option<String>)> {
        // Requests rerun a run once, no matter how many there are, unless they ask for more.
        let part = if self.again {
            self.request.request_key.as_ref().map(|key| key.part(&run.id.to_string()))
        } else {
            Some(RequestKey { key: format!("rerun/{}", run.id), fingerprint: [0; 32] })
        };
        let runs = self.request.runs_because(self.reason).once(part.as_ref());
        if let Some(before) = runs.inserted_before().await? {
            let detail = format!("run {before} was already started for it");
            return Ok((Outcome::AlreadyRerun, Some(before), Some(detail)));
        }
        if dry_run {
            let planned = self.planned.entry((run.job_key.clone(), run.org.clone())).or_default();
            runs.check_rerun(run, *planned).await?;
            *planned += 1;
            return Ok((Outcome::WouldStart, None, None));
        }
        Ok(match runs.rerun_in_turn(run.id).await? {
            RunNow::Started(new) => (Outcome::Started, Some(new.id), None),
            RunNow::Queued(new) => (Outcome::Queued, Some(new.id), None),
            RunNow::Skipped { recorded, blocking } => {
                (Outcome::Skipped, Some(recorded.id), Some(format!("run {blocking} of the job is active")))
            }
            other => (Outcome::Other(other.run().status.to_string()), Some(other.run().id), None),
        })
    }
}
