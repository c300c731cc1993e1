//! Resuming a job that is paused or cannot fire, and what about the slots that went by.

use askama::Template;
use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Moment, Refusal, Subject, body, expect_operator, mendable, typed};
use crate::http::problem::Problem;
use crate::ui::clock::Clock;
use crate::ui::equivalent::Equivalent;
use crate::ui::visit::{Reply, Visit};
use crate::ui::{Frame, Section};

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

/// What went by, and what comes.
struct Effect {
    pause: Option<(String, String, Moment)>,
    missed: u64,
    latest: Option<Moment>,
    next: Option<Moment>,
}

impl Effect {
    fn of(subject: &Subject, clock: &Clock) -> Effect {
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

pub(crate) async fn show(visit: Visit) -> Result<Reply, Problem> {
    expect_operator(&visit)?;
    form(&visit, None).await
}

async fn form(visit: &Visit, problem: Option<&Problem>) -> Result<Reply, Problem> {
    let subject = Subject::living(visit).await?;
    let once = visit.sent("missed") == Some("fire_once");
    let resumable = subject.is_paused() || subject.error().is_some();
    let page = ResumePage {
        frame: visit.frame(Section::Jobs, format!("Resume {}", subject.key)).await,
        refusal: Refusal::of(problem, &FIELDS),
        effect: Effect::of(&subject, &visit.clock()),
        idle: (!resumable).then_some("It is active, so there is nothing to resume."),
        same: same(visit, &subject, once),
        reason: typed(visit, "reason"),
        once,
        subject,
    };
    Reply::refused(&page, problem.map_or(StatusCode::OK, Problem::status))
}

fn same(visit: &Visit, subject: &Subject, once: bool) -> Equivalent {
    let mut words = vec!["jobs", "resume", &subject.key];
    if once {
        words.push("--run-missed");
    }
    let body = json!({ "missed": if once { "fire_once" } else { "skip" } });
    let path = format!("/jobs/{}/resume", subject.name);
    Equivalent::new(&visit.api_base(), "POST", &path, Some(&body), &words)
}

pub(crate) async fn send(visit: Visit) -> Result<Reply, Problem> {
    expect_operator(&visit)?;
    let subject = Subject::living(&visit).await?;
    let (path, body) = ([("jobId", subject.exact.as_str())], body(&visit, &FIELDS));
    match visit.perform(Method::POST, "/jobs/{jobId}/resume", &path, &body).await {
        Ok(answer) => Ok(Reply::done(subject.place(), told(&subject.key, &answer["resumed"]))),
        Err(problem) => form(&visit, Some(&mendable(problem)?)).await,
    }
}

/// What became of the slots that went by.
fn told(key: &str, resumed: &Value) -> String {
    let missed = resumed["missedSlots"].as_u64().unwrap_or(0);
    let slots = if missed == 1 { "1 slot".to_owned() } else { format!("{missed} slots") };
    let ran = resumed["runIds"].as_array().is_some_and(|runs| !runs.is_empty());
    match (missed, ran) {
        (_, true) => format!("{key} is active again; one run was made for the {slots} that went by."),
        (0, false) => format!("{key} is active again."),
        (_, false) => format!("{key} is active again; {slots} went by without a run."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_what_became_of_missed_slots() {
        let said = |missed: u64, runs: Value| told("a", &json!({ "missedSlots": missed, "runIds": runs }));
        assert_eq!(said(0, json!([])), "a is active again.");
        assert_eq!(said(1, json!([])), "a is active again; 1 slot went by without a run.");
        assert_eq!(said(11, json!(["x"])), "a is active again; one run was made for the 11 slots that went by.");
    }
}
