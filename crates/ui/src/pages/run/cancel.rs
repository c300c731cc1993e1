//! Canceling a run: at once if it waits; if it runs, its handler is asked to stop.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell::RunStatus;

use super::{Found, back};
use crate::clock::Clock;
use crate::equivalent::Equivalent;
use crate::markup::Markup;
use crate::pages::action::{Reason, Refusal, expect_operator};
use crate::visit::{Reply, Visit};
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

/// A run that something is about to be done to.
pub(super) struct Subject {
    place: String,
    pub(super) name: String,
    pub(super) running: bool,
    /// Since when it runs or waits.
    pub(super) since: Markup,
    /// Another attempt would follow.
    pub(super) tried_again: bool,
}

impl Subject {
    pub(super) fn of(found: &Found, clock: &Clock) -> Subject {
        let run = &found.run;
        let running = run.status == RunStatus::Running;
        let most = found.row.as_ref().map_or(1, |row| row.job.definition.policies.max_attempts);
        let since = run.started_at.filter(|_| running).unwrap_or(run.created_at);
        Subject {
            place: found.place(),
            name: found.name(),
            running,
            since: clock.since(since),
            tried_again: run.attempt < most,
        }
    }

    /// Where it is shown.
    pub(super) fn place(&self) -> &str {
        &self.place
    }
}

pub(crate) async fn show(visit: Visit) -> Result<Reply, Problem> {
    expect_operator(&visit)?;
    let found = Found::of(&visit).await?;
    if found.run.status.is_terminal() {
        return Ok(back(found.place(), format!("It has ended: it is {}.", found.run.status)));
    }
    form(&visit, &found, None).await
}

async fn form(visit: &Visit, found: &Found, problem: Option<&Problem>) -> Result<Reply, Problem> {
    let page = CancelPage {
        frame: visit.frame(Section::Runs, format!("Cancel a run of {}", found.name())).await,
        subject: Subject::of(found, &visit.clock()),
        refusal: Refusal::of(problem, &["reason"]),
        reason: visit.sent("reason").unwrap_or_default().to_owned(),
        grace: took(visit.app.options.cancel_grace.as_millis() as i64),
        same: same(visit, found, "cancel")?,
    };
    Reply::refused(&page, problem.map_or(StatusCode::OK, Problem::status))
}

/// The same from a shell, with the reason that was typed.
pub(super) fn same(visit: &Visit, found: &Found, verb: &str) -> Result<Equivalent, Problem> {
    let id = found.run.id.to_string();
    let reason = visit.sent("reason").unwrap_or("why");
    let cli = ["runs", verb, &id, "--reason", reason];
    let body = Reason { reason: Some(reason) };
    Equivalent::with_body(&visit.api_base(), "POST", &format!("/runs/{id}/{verb}"), &body, &cli)
}

pub(crate) async fn send(visit: Visit) -> Result<Reply, Problem> {
    expect_operator(&visit)?;
    let found = Found::of(&visit).await?;
    let id = found.run.id.to_string();
    let body = Reason::sent(&visit);
    match visit.perform::<wire::Canceled>(Method::POST, "/runs/{runId}/cancel", &[("runId", &id)], &body).await {
        Ok(answer) if answer.outcome == CancelOutcome::Canceled => Ok(Reply::done(found.place(), "It is canceled.")),
        Ok(_) => Ok(Reply::done(found.place(), "It was asked to stop.")),
        Err(problem) if problem.kind == Kind::Conflict => Ok(back(found.place(), problem.detail)),
        Err(problem) => form(&visit, &found, Some(&problem)).await,
    }
}
