//! Running a job at once: with its payload or another, and beside, behind or instead of runs that are active.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell::{RunFilter, RunRecord, RunStatus};
use everbell_core::plan::{self, PlanContext};
use everbell_core::store::{Instance, PageRequest};
use everbell_core::{ActiveRun, RunId};
use serde::Serialize;
use serde_json::value::RawValue;

use super::for_org::{self, OrgAction};
use super::payload::{changed_payload, indented};
use super::{Moment, Refusal, Subject, correctable, expect_operator, typed};
use crate::badge;
use crate::clock::Clock;
use crate::equivalent::Equivalent;
use crate::markup::Markup;
use crate::request::{Content, Flash, UiRequest, UiResponse};
use crate::{Frame, Section};
use everbell_http::problem::{Kind, Problem};
use everbell_wire as wire;
use everbell_wire::run::RunNowOutcome;

const FIELDS: [&str; 2] = ["payload", "note"];
const ACTION: OrgAction = OrgAction { path: "run-now", verb: "Run", for_all: Some("orgs/run-now?all=true") };
/// The statuses of active runs.
pub(super) const ACTIVE: [RunStatus; 2] = [RunStatus::Pending, RunStatus::Running];
/// The maximum number of active runs that are read.
const MAX_ACTIVE_RUNS: u32 = 100;
/// The maximum number of active runs that are listed.
const MAX_LISTED_RUNS: usize = 3;

#[derive(Template)]
#[template(path = "action/run_now.html")]
struct RunNowPage {
    frame: Frame,
    subject: Subject,
    refusal: Refusal,
    payload: String,
    note: String,
    /// How many lines the payload is given.
    lines: usize,
    /// The first runs that are active, and how many more.
    active: Vec<Active>,
    more: usize,
    effect: &'static str,
    next: Option<Moment>,
    same: Equivalent,
}

/// An active run.
pub(super) struct Active {
    pub(super) id: String,
    pub(super) status: Markup,
    /// The time since it is active.
    pub(super) since: Markup,
    pub(super) host: Option<String>,
}

impl Active {
    fn new(run: &RunRecord, clock: &Clock, instances: &[Instance]) -> Active {
        let host = run.claimed.and_then(|(_, id)| instances.iter().find(|instance| instance.id == id));
        Active {
            id: run.id.to_string(),
            status: badge::run(run.status),
            since: clock.since(run.started_at.unwrap_or(run.created_at)),
            host: host.map(|instance| instance.host.clone()),
        }
    }
}

/// Predicts the outcome of a manual run with the same decision that the API uses.
fn effect(subject: &Subject, active: &[RunRecord], served: bool, clock: &Clock) -> &'static str {
    let as_seen = |run: &RunRecord| ActiveRun {
        id: run.id,
        held: run.held,
        cancel_requested: run.cancel_by.is_some(),
        backfill: run.is_backfill(),
    };
    let active: Vec<ActiveRun> = active.iter().map(as_seen).collect();
    let seen = PlanContext { active: &active, ..PlanContext::default() };
    let request = plan::RunNow {
        id: RunId::by_hand(clock.now, [0; 10]),
        actor: "",
        payload: None,
        overlap: None,
        trace_context: None,
    };
    let plan = plan::run_now(subject.definition(), &subject.timer(), &seen, &request, clock.now);
    let run = plan.runs.first();
    if run.is_some_and(|run| run.skip.is_some()) {
        "The run would be recorded as skipped, because the overlap policy of the job is skip."
    } else if !plan.cancel.is_empty() {
        "The run replaces the active one, because the overlap policy of the job is replace."
    } else if run.is_some_and(|run| run.held) {
        "The run waits until the active one has ended, because the overlap policy of the job is queue."
    } else if !served {
        "No live instance serves the target. The run waits until one does."
    } else if active.is_empty() {
        "The run starts now."
    } else {
        "The run starts now, alongside the active one, because the overlap policy of the job is allow."
    }
}

/// The active runs of a job, the oldest first.
async fn active_runs(request: &UiRequest, subject: &Subject) -> Result<Vec<RunRecord>, Problem> {
    let key = Some(subject.definition().key.clone());
    let org = subject.org.as_ref().map(|org| org.id.clone());
    let filter = RunFilter { job_key: key, org, status: ACTIVE.to_vec(), ..RunFilter::default() };
    let mut runs = request.runs().list(&filter, &PageRequest { limit: MAX_ACTIVE_RUNS, after: None }).await?.items;
    runs.reverse();
    Ok(runs)
}

/// Those of them that are named, what runs before what waits behind it; and how many more there are.
async fn named(request: &UiRequest, runs: &[RunRecord], clock: &Clock) -> Result<(Vec<Active>, usize), Problem> {
    let instances = if runs.is_empty() { Vec::new() } else { request.app.bell.store().list_instances().await? };
    let mut shown: Vec<&RunRecord> = runs.iter().collect();
    shown.sort_by_key(|run| run.status != RunStatus::Running);
    let more = shown.len().saturating_sub(MAX_LISTED_RUNS);
    Ok((shown.into_iter().take(MAX_LISTED_RUNS).map(|run| Active::new(run, clock, &instances)).collect(), more))
}

/// Returns the active runs to list on another page; none if the role may not read runs.
pub(super) async fn named_runs(
    request: &UiRequest,
    subject: &Subject,
    clock: &Clock,
) -> Result<(Vec<Active>, usize), Problem> {
    let runs = if request.may_read_runs() { active_runs(request, subject).await? } else { Vec::new() };
    named(request, &runs, clock).await
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    match for_org::subject(&request, ACTION).await? {
        Ok(subject) => form(&request, subject, Refusal::default(), StatusCode::OK).await,
        Err(ask) => Ok(*ask),
    }
}

async fn form(
    request: &UiRequest,
    subject: Subject,
    refusal: Refusal,
    status: StatusCode,
) -> Result<UiResponse, Problem> {
    let clock = request.clock();
    let runs = active_runs(request, &subject).await?;
    let (active, more) = named(request, &runs, &clock).await?;
    let own = indented(subject.definition().payload.as_str());
    let path = format!("/jobs/{}/run-now", subject.name);
    let words = [&["jobs", "run", &subject.key][..], &subject.org_words()].concat();
    let base = request.api_base();
    let same = match subject.org_id() {
        Some(org_id) => {
            let body = Body { org_id: Some(org_id), ..Body::default() };
            Equivalent::with_body(&base, "POST", &path, &body, &words)?
        }
        None => Equivalent::new(&base, "POST", &path, &words),
    };
    let payload = request.sent("payload").map_or(own, str::to_owned);
    let page = RunNowPage {
        frame: request.frame(Section::Jobs, format!("Run {} now", subject.named())).await,
        lines: payload.lines().count().clamp(3, 16),
        note: typed(request, "note"),
        effect: effect(&subject, &runs, request.is_served(&subject.definition().target).await?, &clock),
        next: subject.next().map(|at| subject.moment(&clock, at)),
        same,
        active,
        more,
        subject,
        refusal,
        payload,
    };
    UiResponse::with_status(&page, status)
}

/// The body of the request.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    org_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    force: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Box<RawValue>>,
}

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    let subject = match for_org::subject(&request, ACTION).await? {
        Ok(subject) => subject,
        Err(ask) => return Ok(*ask),
    };
    let own = subject.definition().payload.as_str();
    let payload = match changed_payload(request.sent("payload").unwrap_or(own), own) {
        Ok(payload) => payload,
        Err(fault) => {
            return form(&request, subject, Refusal::at_field("payload", fault), StatusCode::BAD_REQUEST).await;
        }
    };
    let how = request.sent("how");
    let (force, queue) = (Some(how == Some("force")), Some(how == Some("queue")));
    let body = Body { org_id: subject.org_id(), force, queue, note: request.sent("note"), payload };
    let path = [("jobId", subject.exact.as_str())];
    match request.perform::<wire::RunNow>(Method::POST, "/jobs/{jobId}/run-now", &path, &body).await {
        Ok(answer) => Ok(ran(&subject.named(), &answer)),
        Err(problem) if problem.kind == Kind::OverlapSkipped => Ok(skipped(&subject, problem.members()?)),
        Err(problem) => {
            let problem = correctable(problem)?;
            let (refusal, status) = (Refusal::from_problem(Some(&problem), &FIELDS), problem.status());
            match for_org::subject(&request, ACTION).await? {
                Ok(subject) => form(&request, subject, refusal, status).await,
                Err(ask) => Ok(*ask),
            }
        }
    }
}

/// Redirects to the run with its outcome.
fn ran(named: &str, answer: &wire::RunNow) -> UiResponse {
    let place = format!("/runs/{}", answer.run.id);
    match answer.outcome {
        RunNowOutcome::Queued => {
            UiResponse::done(place, format!("{named} is queued. This run starts when the active one has ended."))
        }
        RunNowOutcome::Skipped => {
            not_done(place, format!("{named} was not run: another run is active, so this run was skipped."))
        }
        _ => UiResponse::done(place, format!("{named} is running. Its next scheduled run does not change.")),
    }
}

/// Redirects to the skipped run and names the blocking one.
fn skipped(subject: &Subject, problem: wire::Problem) -> UiResponse {
    let place = problem.run.map_or_else(|| subject.path(), |run| format!("/runs/{}", run.id));
    let blocking = problem.active_run.map_or_else(|| "another run".to_owned(), |run| format!("run {}", run.id));
    not_done(place, format!("{} was not run: {blocking} is still active, so this run was skipped.", subject.key))
}

fn not_done(to: String, text: String) -> UiResponse {
    UiResponse::new(Content::Redirect { to, flash: Some(Flash { good: false, text }) })
}
