//! Resuming a job that is paused or cannot fire, and the handling of missed slots.

use askama::Template;
use axum::http::{Method, StatusCode};
use serde::Serialize;

use super::{Moment, Refusal, Subject, correctable, expect_operator, typed};
use crate::clock::Clock;
use crate::equivalent::Equivalent;
use crate::request::{UiRequest, UiResponse};
use crate::{Frame, Section};
use everbell_http::problem::Problem;
use everbell_wire as wire;

const FIELDS: [&str; 2] = ["missed", "reason"];

#[derive(Template)]
#[template(path = "action/resume.html")]
struct ResumePage {
    frame: Frame,
    subject: Subject,
    refusal: Refusal,
    /// Whether the latest missed slot is to be run.
    once: bool,
    reason: String,
    effect: Effect,
    /// Why there is nothing to resume.
    idle: Option<&'static str>,
    same: Equivalent,
}

/// The missed slots and the next run.
struct Effect {
    pause: Option<(String, String, Moment)>,
    missed: u64,
    latest: Option<Moment>,
    next: Option<Moment>,
}

impl Effect {
    fn new(subject: &Subject, clock: &Clock) -> Effect {
        let since = subject.timer().last_slot_at;
        let spec = subject.spec();
        let pause = subject.row.job.state.pause.as_ref();
        let latest = spec.and_then(|spec| spec.prev_at_or_before(clock.now)).filter(|at| *at > since);
        let next = spec.and_then(|spec| spec.next_after(clock.now.max(since)));
        Effect {
            pause: pause.map(|pause| (pause.by.clone(), pause.reason.clone(), subject.moment(clock, pause.at))),
            missed: spec.map_or(0, |spec| spec.count_between(since, clock.now)),
            latest: latest.map(|at| subject.moment(clock, at)),
            next: next.map(|at| subject.moment(clock, at)),
        }
    }
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    form(&request, None).await
}

async fn form(request: &UiRequest, problem: Option<&Problem>) -> Result<UiResponse, Problem> {
    let subject = Subject::living(request).await?;
    let once = request.sent("missed") == Some("fire_once");
    let resumable = subject.is_paused() || subject.error().is_some();
    let page = ResumePage {
        frame: request.frame(Section::Jobs, format!("Resume {}", subject.key)).await,
        refusal: Refusal::from_problem(problem, &FIELDS),
        effect: Effect::new(&subject, &request.clock()),
        idle: (!resumable).then_some("The job is already active."),
        same: same(request, &subject, once)?,
        reason: typed(request, "reason"),
        once,
        subject,
    };
    UiResponse::with_status(&page, problem.map_or(StatusCode::OK, Problem::status))
}

/// The body of the request.
#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    missed: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

fn same(request: &UiRequest, subject: &Subject, once: bool) -> Result<Equivalent, Problem> {
    let mut words = vec!["jobs", "resume", &subject.key];
    if once {
        words.push("--run-missed");
    }
    let body = Body { missed: Some(if once { "fire_once" } else { "skip" }), reason: None };
    let path = format!("/jobs/{}/resume", subject.name);
    Equivalent::with_body(&request.api_base(), "POST", &path, &body, &words)
}

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    let subject = Subject::living(&request).await?;
    let path = [("jobId", subject.exact.as_str())];
    let body = Body { missed: request.sent("missed"), reason: request.sent("reason") };
    match request.perform::<wire::Resumed>(Method::POST, "/jobs/{jobId}/resume", &path, &body).await {
        Ok(answer) => Ok(UiResponse::done(subject.path(), outcome(&subject.key, &answer.resumed))),
        Err(problem) => form(&request, Some(&correctable(problem)?)).await,
    }
}

/// The outcome as a sentence, with the slots that passed.
fn outcome(key: &str, resumed: &wire::Resumption) -> String {
    let missed = resumed.missed_slots;
    let slots = if missed == 1 { "1 slot".to_owned() } else { format!("{missed} slots") };
    let were = if missed == 1 { "was" } else { "were" };
    match (missed, !resumed.run_ids.is_empty()) {
        (_, true) => format!("{key} is active again. One run was created for the {slots} that {were} missed."),
        (0, false) => format!("{key} is active again."),
        (_, false) => format!("{key} is active again. {slots} {were} missed."),
    }
}

#[cfg(test)]
mod tests {
    use everbell_wire::job::ResumeAction;

    use super::*;

    #[test]
    fn outcome_counts_missed_slots() {
        let said = |missed_slots: u64, runs: &[&str]| {
            let run_ids = runs.iter().map(|&id| id.to_owned()).collect();
            let action = ResumeAction::Skip;
            outcome("a", &wire::Resumption { missed_slots, action, run_ids, released_runs: 0 })
        };
        assert_eq!(said(0, &[]), "a is active again.");
        assert_eq!(said(1, &[]), "a is active again. 1 slot was missed.");
        assert_eq!(said(11, &["x"]), "a is active again. One run was created for the 11 slots that were missed.");
    }
}
