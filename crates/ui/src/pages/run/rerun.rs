//! Running the same again: the job as it is now, with the payload of that run.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell::{JobRow, JobStatus, RunRecord};
use everbell_core::Overlap;

use super::cancel::{Subject, same};
use super::{Found, active_beside, back};
use crate::clock::Clock;
use crate::equivalent::Equivalent;
use crate::markup::Markup;
use crate::pages::action::{Reason, Refusal, expect_operator};
use crate::pretty::pretty;
use crate::visit::{Reply, Visit};
use crate::{Frame, Section, badge};
use everbell_http::problem::{Kind, Problem};
use everbell_wire as wire;
use everbell_wire::run::RunNowOutcome;

/// How many of the runs in the way are named.
const NAMED: usize = 5;

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
    /// What will become of it beside them.
    effect: &'static str,
}

/// A run that is active.
struct Active {
    id: String,
    status: Markup,
    since: Markup,
}

pub(crate) async fn show(visit: Visit) -> Result<Reply, Problem> {
    expect_operator(&visit)?;
    let found = Found::of(&visit).await?;
    form(&visit, &found, None).await
}

async fn form(visit: &Visit, found: &Found, problem: Option<&Problem>) -> Result<Reply, Problem> {
    let (run, clock) = (&found.run, visit.clock());
    let row = match &run.job_key {
        Some(key) => Some(visit.jobs().get(key.as_str()).await?),
        None => None,
    };
    let active = active_beside(visit, run).await?;
    let is = |status| row.as_ref().is_some_and(|row| row.job.state.status == status);
    let page = RerunPage {
        frame: visit.frame(Section::Runs, format!("Run {} again", found.name())).await,
        subject: Subject::of(found, &clock),
        refusal: Refusal::of(problem, &["reason"]),
        reason: visit.sent("reason").unwrap_or_default().to_owned(),
        same: same(visit, found, "rerun")?,
        payload: pretty(run.payload.as_str()),
        versions: run.job_version.zip(row.as_ref().map(|row| row.job.definition.version)),
        paused: is(JobStatus::Paused),
        retired: is(JobStatus::Retired),
        effect: row.as_ref().map_or("", |row| effect(row, active.len())),
        active: active.iter().take(NAMED).map(|run| Active::of(run, &clock)).collect(),
    };
    Reply::refused(&page, problem.map_or(StatusCode::OK, Problem::status))
}

/// What the overlap policy does with one more run.
fn effect(row: &JobRow, active: usize) -> &'static str {
    let policies = &row.job.definition.policies;
    if active < policies.max_concurrent_runs as usize {
        return "It starts at once.";
    }
    match policies.overlap {
        Overlap::Skip => "Its overlap policy is skip: as long as they are active, this run is recorded as skipped.",
        Overlap::Queue => "Its overlap policy is queue: this run waits until they have ended.",
        Overlap::Replace => "Its overlap policy is replace: they are canceled, and this run takes their place.",
        Overlap::Allow => "Its overlap policy is allow: this run starts beside them.",
    }
}

impl Active {
    fn of(run: &RunRecord, clock: &Clock) -> Active {
        Active {
            id: run.id.to_string(),
            status: badge::run(run.status),
            since: clock.since(run.started_at.unwrap_or(run.created_at)),
        }
    }
}

pub(crate) async fn send(visit: Visit) -> Result<Reply, Problem> {
    expect_operator(&visit)?;
    let found = Found::of(&visit).await?;
    let id = found.run.id.to_string();
    let body = Reason::sent(&visit);
    match visit.perform::<wire::RunNow>(Method::POST, "/runs/{runId}/rerun", &[("runId", &id)], &body).await {
        Ok(answer) => Ok(begun(&found, &answer)),
        Err(problem) if problem.kind == Kind::OverlapSkipped => {
            let place = problem.members()?.run.map_or_else(|| found.place(), |run| place(&run));
            Ok(back(place, "Another run was still active, so it was recorded as skipped."))
        }
        Err(problem) => form(&visit, &found, Some(&problem)).await,
    }
}

fn begun(found: &Found, answer: &wire::RunNow) -> Reply {
    let place = place(&answer.run);
    match answer.outcome {
        RunNowOutcome::Queued => Reply::done(place, "It waits until the active runs have ended."),
        RunNowOutcome::Skipped => back(place, "Another run was still active, so it was recorded as skipped."),
        _ => Reply::done(place, format!("{} runs again: this is the new run.", found.name())),
    }
}

/// Where a run is shown.
fn place(run: &wire::Run) -> String {
    format!("/runs/{}", run.id)
}
