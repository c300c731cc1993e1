//! Moving the next fire of a job, and only that.

use askama::Template;
use axum::http::{Method, StatusCode};
use jiff::Timestamp;
use serde::Serialize;

use super::for_org::{self, OrgAction};
use super::quick::quick;
use super::{Moment, Refusal, Subject, correctable, expect_operator, typed};
use crate::clock::Clock;
use crate::equivalent::Equivalent;
use crate::request::{UiRequest, UiResponse};
use crate::{Frame, Section};
use everbell_http::problem::Problem;
use everbell_wire as wire;

const FIELDS: [&str; 2] = ["nextRunAt", "reason"];
const ACTION: OrgAction = OrgAction { path: "reschedule", verb: "Reschedule the next run of", for_all: None };

#[derive(Template)]
#[template(path = "action/reschedule.html")]
struct ReschedulePage {
    frame: Frame,
    subject: Subject,
    refusal: Refusal,
    to: String,
    reason: String,
    /// Nothing if there is no fire to move.
    effect: Option<Effect>,
    same: Equivalent,
}

/// The effect of moving a run.
struct Effect {
    from: Moment,
    /// Where the schedule has it, if it was moved before.
    slot: Option<Moment>,
    /// Where to, if that is another time.
    to: Option<Moment>,
    /// Whether the new time is in the past.
    gone: bool,
    /// How many later fires it is moved behind: they become one with it.
    folded: u64,
    /// The fire after it, as the schedule has it.
    then: Option<Moment>,
}

impl Effect {
    fn new(subject: &Subject, clock: &Clock, to: Option<Timestamp>) -> Option<Effect> {
        let (spec, timer) = (subject.spec()?, subject.row.timer.as_ref()?);
        let from = timer.next_run_at?;
        let slot = timer.rescheduled_from.or_else(|| spec.next_after(timer.last_slot_at))?;
        let to = to.filter(|to| *to != from);
        let behind = to.unwrap_or(from).max(slot);
        let moment = |at| subject.moment(clock, at);
        Some(Effect {
            from: moment(from),
            slot: timer.rescheduled_from.map(moment),
            gone: to.is_some_and(|to| to < clock.now),
            to: to.map(moment),
            folded: spec.count_between(slot, behind),
            then: spec.next_after(behind).map(moment),
        })
    }
}

/// Shows the form. Also serves its live preview.
pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    form(&request, None).await
}

async fn form(request: &UiRequest, problem: Option<&Problem>) -> Result<UiResponse, Problem> {
    let subject = match for_org::subject(request, ACTION).await? {
        Ok(subject) => subject,
        Err(ask) => return Ok(*ask),
    };
    let mut to = typed(request, "nextRunAt");
    let next = subject.next();
    if request.sent.is_empty() {
        to = next.map(|at| subject.wall(at)).unwrap_or_default();
    }
    if let Some(word) = request.sent("set")
        && let Some(at) = subject.read(&to).or(next).and_then(|from| quick(word, from, &subject.zone))
    {
        to = subject.wall(at);
    }
    let page = ReschedulePage {
        frame: request.frame(Section::Jobs, format!("Reschedule the next run of {}", subject.named())).await,
        effect: Effect::new(&subject, &request.clock(), subject.read(&to)),
        refusal: Refusal::from_problem(problem, &FIELDS),
        same: same(request, &subject, &to)?,
        reason: typed(request, "reason"),
        subject,
        to,
    };
    UiResponse::with_status(&page, problem.map_or(StatusCode::OK, Problem::status))
}

/// The body of the request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    next_run_at: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    org_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

fn same(request: &UiRequest, subject: &Subject, to: &str) -> Result<Equivalent, Problem> {
    let path = format!("/jobs/{}/reschedule", subject.name);
    let body = Body { next_run_at: Some(to), org_id: subject.org_id(), reason: None };
    let words = [&["jobs", "reschedule", &subject.key, "--to", to][..], &subject.org_words()].concat();
    Equivalent::with_body(&request.api_base(), "POST", &path, &body, &words)
}

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    if request.sent("set").is_some() {
        return form(&request, None).await;
    }
    let subject = match for_org::subject(&request, ACTION).await? {
        Ok(subject) => subject,
        Err(ask) => return Ok(*ask),
    };
    let path = [("jobId", subject.exact.as_str())];
    let (next_run_at, reason) = (request.sent("nextRunAt"), request.sent("reason"));
    let body = Body { next_run_at, org_id: subject.org_id(), reason };
    match request.perform::<wire::Job>(Method::POST, "/jobs/{jobId}/reschedule", &path, &body).await {
        Ok(_) => {
            let to = typed(&request, "nextRunAt").replace('T', " ");
            let zone = subject.zone.name();
            Ok(UiResponse::done(subject.back(), format!("The next run of {} is at {to} in {zone}.", subject.named())))
        }
        Err(problem) => form(&request, Some(&correctable(problem)?)).await,
    }
}
