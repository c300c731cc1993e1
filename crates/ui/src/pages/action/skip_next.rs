//! Skipping the next runs of a job.

use askama::Template;
use axum::http::{Method, StatusCode};
use jiff::Timestamp;
use serde::Serialize;

use super::for_org::{self, OrgAction};
use super::{Moment, Refusal, Subject, correctable, expect_operator, typed};
use crate::clock::Clock;
use crate::equivalent::Equivalent;
use crate::request::{UiRequest, UiResponse};
use crate::{Frame, Section};
use everbell_http::problem::Problem;
use everbell_wire as wire;

const FIELDS: [&str; 2] = ["count", "reason"];
const ACTION: OrgAction = OrgAction { path: "skip-next", verb: "Skip the next runs of", for_all: None };
/// How many of the fires are named.
const MAX_LISTED_FIRES: usize = 8;
/// The maximum number of runs that the API skips at once.
const MAX_SKIPPED: usize = 100;

#[derive(Template)]
#[template(path = "action/skip_next.html")]
struct SkipPage {
    frame: Frame,
    subject: Subject,
    refusal: Refusal,
    count: String,
    reason: String,
    /// Nothing if there is no fire to skip.
    effect: Option<Effect>,
    same: Equivalent,
}

/// The effect of skipping runs.
struct Effect {
    /// The first skipped runs.
    passed: Vec<Moment>,
    /// How many more, and the last of them.
    more: Option<(usize, Moment)>,
    /// The first that happens.
    then: Option<Moment>,
}

impl Effect {
    fn new(subject: &Subject, clock: &Clock, count: usize) -> Option<Effect> {
        subject.next()?;
        let slots: Vec<Timestamp> = subject.spec()?.slots_after(subject.timer().last_slot_at).take(count + 1).collect();
        let (passed, then) = slots.split_at(count.min(slots.len()));
        let moment = |at: &Timestamp| subject.moment(clock, *at);
        Some(Effect {
            passed: passed.iter().take(MAX_LISTED_FIRES).map(moment).collect(),
            more: passed.get(MAX_LISTED_FIRES..).and_then(|more| Some((more.len(), moment(more.last()?)))),
            then: then.first().map(moment),
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
    let count = request.sent("count").unwrap_or("1").to_owned();
    let wanted = count.parse::<usize>().unwrap_or(1).clamp(1, MAX_SKIPPED);
    let page = SkipPage {
        frame: request.frame(Section::Jobs, format!("Skip the next runs of {}", subject.named())).await,
        effect: Effect::new(&subject, &request.clock(), wanted),
        refusal: Refusal::from_problem(problem, &FIELDS),
        same: same(request, &subject, wanted)?,
        reason: typed(request, "reason"),
        subject,
        count,
    };
    UiResponse::with_status(&page, problem.map_or(StatusCode::OK, Problem::status))
}

/// The body of the request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<Count<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    org_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

/// How many fires to skip.
#[derive(Serialize)]
#[serde(untagged)]
enum Count<'a> {
    Number(i64),
    /// A text that is no number, which the API refuses.
    Text(&'a str),
}

impl Count<'_> {
    fn parse(text: &str) -> Count<'_> {
        text.parse().map_or(Count::Text(text), Count::Number)
    }
}

fn same(request: &UiRequest, subject: &Subject, count: usize) -> Result<Equivalent, Problem> {
    let (path, text) = (format!("/jobs/{}/skip-next", subject.name), count.to_string());
    let body = Body { count: Some(Count::parse(&text)), org_id: subject.org_id(), reason: None };
    let words = [&["jobs", "skip", &subject.key, "--count", &text][..], &subject.org_words()].concat();
    Equivalent::with_body(&request.api_base(), "POST", &path, &body, &words)
}

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    let subject = match for_org::subject(&request, ACTION).await? {
        Ok(subject) => subject,
        Err(ask) => return Ok(*ask),
    };
    let path = [("jobId", subject.exact.as_str())];
    let count = request.sent("count").map(Count::parse);
    let body = Body { count, org_id: subject.org_id(), reason: request.sent("reason") };
    match request.perform::<wire::Job>(Method::POST, "/jobs/{jobId}/skip-next", &path, &body).await {
        Ok(_) => {
            let count = request.sent("count").unwrap_or("1");
            let fires = if count == "1" { "run".to_owned() } else { format!("{count} runs") };
            Ok(UiResponse::done(subject.back(), format!("Skipped the next {fires} of {}.", subject.named())))
        }
        Err(problem) => form(&request, Some(&correctable(problem)?)).await,
    }
}
