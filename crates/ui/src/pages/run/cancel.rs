//! Canceling a run: at once if it waits; if it runs, its handler is asked to stop.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell::RunStatus;

use super::{RunData, back};
use crate::clock::Clock;
use crate::equivalent::Equivalent;
use crate::markup::Markup;
use crate::pages::action::{Reason, Refusal, expect_operator};
use crate::request::{UiRequest, UiResponse};
use crate::{Frame, Section};
use everbell_http::problem::{Kind, Problem};
use everbell_wire as wire;
use everbell_wire::elapsed::took;
use everbell_wire::run::CancelOutcome;

#[derive(Template)]
#[template(path = "run/cancel.html")]
struct CancelPage {
    frame: Frame,
    subject: Subject,
    refusal: Refusal,
    reason: String,
    /// How long it may take to stop, as this instance is configured.
    grace: String,
    same: Equivalent,
}

/// The run that an action applies to.
pub(super) struct Subject {
    path: String,
    pub(super) name: String,
    pub(super) running: bool,
    /// Since when it runs or waits.
    pub(super) since: Markup,
    /// Another attempt would follow.
    pub(super) tried_again: bool,
}

impl Subject {
    pub(super) fn new(found: &RunData, clock: &Clock) -> Subject {
        let run = &found.run;
        let running = run.status == RunStatus::Running;
        let most = found.row.as_ref().map_or(1, |row| row.job.definition.policies.max_attempts);
        let since = run.started_at.filter(|_| running).unwrap_or(run.created_at);
        Subject {
            path: found.path(),
            name: found.name(),
            running,
            since: clock.since(since),
            tried_again: run.attempts_used() < most,
        }
    }

    /// Where it is shown.
    pub(super) fn path(&self) -> &str {
        &self.path
    }
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    let found = RunData::load(&request).await?;
    if found.run.status.is_terminal() {
        return Ok(back(found.path(), format!("This run has already ended: it is {}.", found.run.status)));
    }
    form(&request, &found, None).await
}

async fn form(request: &UiRequest, found: &RunData, problem: Option<&Problem>) -> Result<UiResponse, Problem> {
    let page = CancelPage {
        frame: request.frame(Section::Runs, format!("Cancel a run of {}", found.name())).await,
        subject: Subject::new(found, &request.clock()),
        refusal: Refusal::from_problem(problem, &["reason"]),
        reason: request.sent("reason").unwrap_or_default().to_owned(),
        grace: took(request.app.options().cancel_grace.as_millis() as i64),
        same: same(request, found, "cancel")?,
    };
    UiResponse::with_status(&page, problem.map_or(StatusCode::OK, Problem::status))
}

/// Equivalent commands, with the reason that was typed.
pub(super) fn same(request: &UiRequest, found: &RunData, verb: &str) -> Result<Equivalent, Problem> {
    let id = found.run.id.to_string();
    let reason = request.sent("reason").unwrap_or("why");
    let cli = ["runs", verb, &id, "--reason", reason];
    let body = Reason { reason: Some(reason) };
    Equivalent::with_body(&request.api_base(), "POST", &format!("/runs/{id}/{verb}"), &body, &cli)
}

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    let found = RunData::load(&request).await?;
    let id = found.run.id.to_string();
    let body = Reason::sent(&request);
    match request.perform::<wire::Canceled>(Method::POST, "/runs/{runId}/cancel", &[("runId", &id)], &body).await {
        Ok(answer) if answer.outcome == CancelOutcome::Canceled => Ok(UiResponse::done(found.path(), "Run canceled.")),
        Ok(_) => Ok(UiResponse::done(found.path(), "The run was asked to stop.")),
        Err(problem) if problem.kind == Kind::Conflict => Ok(back(found.path(), problem.detail)),
        Err(problem) => form(&request, &found, Some(&problem)).await,
    }
}
