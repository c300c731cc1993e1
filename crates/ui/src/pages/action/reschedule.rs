//! Moving the next fire of a job, and only that.

use askama::Template;
use axum::http::{Method, StatusCode};
use jiff::Timestamp;
use serde::Serialize;

use super::for_org::{self, Doing};
use super::quick::quick;
use super::{Moment, Refusal, Subject, expect_operator, mendable, typed};
use crate::clock::Clock;
use crate::equivalent::Equivalent;
use crate::visit::{Reply, Visit};
use crate::{Frame, Section};
use everbell_http::problem::Problem;
use everbell_wire as wire;

const FIELDS: [&str; 2] = ["nextRunAt", "reason"];
const DOING: Doing = Doing { path: "reschedule", verb: "Reschedule the next fire of", for_all: None };

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

/// What moving does.
struct Effect {
    from: Moment,
    /// Where the schedule has it, if it was moved before.
    slot: Option<Moment>,
    /// Where to, if that is another time.
    to: Option<Moment>,
    /// Whether that has gone by already, so that it is refused.
    gone: bool,
    /// How many later fires it is moved behind: they become one with it.
    folded: u64,
    /// The fire after it, as the schedule has it.
    then: Option<Moment>,
}

impl Effect {
    fn of(subject: &Subject, clock: &Clock, to: Option<Timestamp>) -> Option<Effect> {
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

/// Also of what is typed, before it is sent.
pub(crate) async fn show(visit: Visit) -> Result<Reply, Problem> {
    expect_operator(&visit)?;
    form(&visit, None).await
}

async fn form(visit: &Visit, problem: Option<&Problem>) -> Result<Reply, Problem> {
    let subject = match for_org::subject(visit, DOING).await? {
        Ok(subject) => subject,
        Err(ask) => return Ok(*ask),
    };
    let mut to = typed(visit, "nextRunAt");
    let next = subject.next();
    if visit.sent.is_empty() {
        to = next.map(|at| subject.wall(at)).unwrap_or_default();
    }
    if let Some(word) = visit.sent("set")
        && let Some(at) = subject.read(&to).or(next).and_then(|from| quick(word, from, &subject.zone))
    {
        to = subject.wall(at);
    }
    let page = ReschedulePage {
        frame: visit.frame(Section::Jobs, format!("Reschedule the next fire of {}", subject.named())).await,
        effect: Effect::of(&subject, &visit.clock(), subject.read(&to)),
        refusal: Refusal::of(problem, &FIELDS),
        same: same(visit, &subject, &to)?,
        reason: typed(visit, "reason"),
        subject,
        to,
    };
    Reply::refused(&page, problem.map_or(StatusCode::OK, Problem::status))
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

fn same(visit: &Visit, subject: &Subject, to: &str) -> Result<Equivalent, Problem> {
    let path = format!("/jobs/{}/reschedule", subject.name);
    let body = Body { next_run_at: Some(to), org_id: subject.org_id(), reason: None };
    let words = [&["jobs", "reschedule", &subject.key, "--to", to][..], &subject.org_words()].concat();
    Equivalent::with_body(&visit.api_base(), "POST", &path, &body, &words)
}

pub(crate) async fn send(visit: Visit) -> Result<Reply, Problem> {
    expect_operator(&visit)?;
    if visit.sent("set").is_some() {
        return form(&visit, None).await;
    }
    let subject = match for_org::subject(&visit, DOING).await? {
        Ok(subject) => subject,
        Err(ask) => return Ok(*ask),
    };
    let path = [("jobId", subject.exact.as_str())];
    let (next_run_at, reason) = (visit.sent("nextRunAt"), visit.sent("reason"));
    let body = Body { next_run_at, org_id: subject.org_id(), reason };
    match visit.perform::<wire::Job>(Method::POST, "/jobs/{jobId}/reschedule", &path, &body).await {
        Ok(_) => {
            let to = typed(&visit, "nextRunAt").replace('T', " ");
            let zone = subject.zone.name();
            Ok(Reply::done(subject.back(), format!("The next fire of {} is at {to} in {zone}.", subject.named())))
        }
        Err(problem) => form(&visit, Some(&mendable(problem)?)).await,
    }
}
