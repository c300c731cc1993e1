//! Running the same again: the job as it is now, with the payload of that run.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell::{JobRow, JobStatus, RunRecord};
use everbell_core::Overlap;

use super::cancel::{Subject, same};
use super::{RunData, active_beside, back};
use crate::clock::Clock;
use crate::equivalent::Equivalent;
use crate::markup::Markup;
use crate::pages::action::{Reason, Refusal, expect_operator};
use crate::pretty::pretty;
use crate::request::{UiRequest, UiResponse};
use crate::{Frame, Section, badge};
use everbell_http::problem::{Kind, Problem};
use everbell_wire as wire;
use everbell_wire::run::RunNowOutcome;

/// How many of the runs in the way are named.
const MAX_LISTED_RUNS: usize = 5;

#[derive(Template)]
#[template(path = "run/rerun.html")]
struct RerunPage {
    frame: Frame,
    subject: Subject,
    refusal: Refusal,
    reason: String,
    same: Equivalent,
    payload: String,
    /// The version that ran, and the one that will.
    versions: Option<(u32, u32)>,
    paused: bool,
    retired: bool,
    active: Vec<Active>,
    /// The effect of the overlap policy.
    effect: &'static str,
}

/// A run that is active.
struct Active {
    id: String,
    status: Markup,
    since: Markup,
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    let found = RunData::load(&request).await?;
    form(&request, &found, None).await
}

async fn form(request: &UiRequest, found: &RunData, problem: Option<&Problem>) -> Result<UiResponse, Problem> {
    let (run, clock) = (&found.run, request.clock());
    let row = match &run.job_key {
        Some(key) => Some(request.jobs().get(key.as_str()).await?),
        None => None,
    };
    let active = active_beside(request, run).await?;
    let is = |status| row.as_ref().is_some_and(|row| row.job.state.status == status);
    let page = RerunPage {
        frame: request.frame(Section::Runs, format!("Run {} again", found.name())).await,
        subject: Subject::new(found, &clock),
        refusal: Refusal::from_problem(problem, &["reason"]),
        reason: request.sent("reason").unwrap_or_default().to_owned(),
        same: same(request, found, "rerun")?,
        payload: pretty(run.payload.as_str()),
        versions: run.job_version.zip(row.as_ref().map(|row| row.job.definition.version)),
        paused: is(JobStatus::Paused),
        retired: is(JobStatus::Retired),
        effect: row.as_ref().map_or("", |row| effect(row, active.len())),
        active: active.iter().take(MAX_LISTED_RUNS).map(|run| Active::new(run, &clock)).collect(),
    };
    UiResponse::with_status(&page, problem.map_or(StatusCode::OK, Problem::status))
}

/// Describes the effect of the overlap policy on one more run.
fn effect(row: &JobRow, active: usize) -> &'static str {
    let policies = &row.job.definition.policies;
    if active < policies.max_concurrent_runs as usize {
        return "The run starts now.";
    }
    match policies.overlap {
        Overlap::Skip => "The overlap policy is skip: while these runs are active, this run is recorded as skipped.",
        Overlap::Queue => "The overlap policy is queue: this run waits until these runs have ended.",
        Overlap::Replace => "The overlap policy is replace: these runs are canceled and replaced.",
        Overlap::Allow => "The overlap policy is allow: this run starts alongside them.",
    }
}

impl Active {
    fn new(run: &RunRecord, clock: &Clock) -> Active {
        Active {
            id: run.id.to_string(),
            status: badge::run(run.status),
            since: clock.since(run.started_at.unwrap_or(run.created_at)),
        }
    }
}

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    let found = RunData::load(&request).await?;
    let id = found.run.id.to_string();
    let body = Reason::sent(&request);
    match request.perform::<wire::RunNow>(Method::POST, "/runs/{runId}/rerun", &[("runId", &id)], &body).await {
        Ok(answer) => Ok(started(&found, &answer)),
        Err(problem) if problem.kind == Kind::OverlapSkipped => {
            let path = problem.members()?.run.map_or_else(|| found.path(), |run| run_path(&run));
            Ok(back(path, "Another run was still active, so the new run was recorded as skipped."))
        }
        Err(problem) => form(&request, &found, Some(&problem)).await,
    }
}

fn started(found: &RunData, answer: &wire::RunNow) -> UiResponse {
    let path = run_path(&answer.run);
    match answer.outcome {
        RunNowOutcome::Queued => UiResponse::done(path, "The new run waits until the active runs have ended."),
        RunNowOutcome::Skipped => back(path, "Another run was still active, so the new run was recorded as skipped."),
        _ => UiResponse::done(path, format!("{} is running again. This is the new run.", found.name())),
    }
}

/// Where a run is shown.
fn run_path(run: &wire::Run) -> String {
    format!("/runs/{}", run.id)
}
