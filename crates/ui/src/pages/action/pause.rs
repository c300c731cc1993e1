//! Pausing a job: with a reason, perhaps until a time. A job that is paused already may get another reason.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell_core::store::PageRequest;
use jiff::Timestamp;
use serde::Serialize;

use super::quick::quick;
use super::run_now::{Active, named_runs};
use super::{Moment, Refusal, Subject, correctable, expect_operator, typed};
use crate::clock::Clock;
use crate::equivalent::Equivalent;
use crate::request::{UiRequest, UiResponse};
use crate::{Frame, Section};
use everbell_http::problem::Problem;
use everbell_wire as wire;

const FIELDS: [&str; 2] = ["reason", "until"];
/// How many fires are named that will not happen.
const MAX_LISTED_FIRES: usize = 4;
/// How many reasons are offered, and how much of the audit trail is looked at for them.
const MAX_SUGGESTED_REASONS: usize = 8;
const MAX_READ_ENTRIES: u32 = 200;

#[derive(Template)]
#[template(path = "action/pause.html")]
struct PausePage {
    frame: Frame,
    subject: Subject,
    refusal: Refusal,
    reason: String,
    until: String,
    reasons: Vec<String>,
    current: Option<CurrentPause>,
    effect: Effect,
    /// The first runs that go on, and how many more.
    active: Vec<Active>,
    more: usize,
    same: Equivalent,
}

/// The pause that there is.
struct CurrentPause {
    by: String,
    reason: String,
    since: Moment,
    until: Option<Moment>,
}

/// The effect of a pause.
#[derive(Default)]
struct Effect {
    /// Why nothing would fire anyway.
    idle: Option<String>,
    /// The first fires that will not happen.
    fires: Vec<Moment>,
    /// How many more there are, if the pause has an end.
    more: u64,
    /// The end of the pause, and the first fire behind it.
    end: Option<(Moment, Option<Moment>)>,
}

impl Effect {
    fn new(subject: &Subject, clock: &Clock, until: Option<Timestamp>) -> Effect {
        let idle = |why: String| Effect { idle: Some(why), ..Effect::default() };
        if let Some(error) = subject.error() {
            return idle(format!("The job cannot fire: {error}."));
        }
        if subject.is_for_each() {
            return idle(
                "This job fires for each org at its local time. While it is paused, it fires for none.".to_owned(),
            );
        }
        let Some(spec) = subject.spec() else { return idle("The schedule cannot be read.".to_owned()) };
        let until = until.filter(|until| *until > clock.now);
        let before_end = |at: &Timestamp| until.is_none_or(|until| *at <= until);
        let fires: Vec<Timestamp> = subject.fires(clock.now).take_while(before_end).take(MAX_LISTED_FIRES).collect();
        if fires.is_empty() {
            let why = if until.is_some() { "the job has no run before then" } else { "the schedule has no more runs" };
            return idle(format!("Nothing would run anyway: {why}."));
        }
        let last = fires.last().copied().unwrap_or(clock.now);
        Effect {
            idle: None,
            more: until.map_or(0, |until| spec.count_between(last, until)),
            end: until.map(|until| {
                let first = spec.next_after(until).map(|at| subject.moment(clock, at));
                (subject.moment(clock, until), first)
            }),
            fires: fires.into_iter().map(|at| subject.moment(clock, at)).collect(),
        }
    }
}

/// Shows the form. Also serves its live preview.
pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    form(&request, None).await
}

async fn form(request: &UiRequest, problem: Option<&Problem>) -> Result<UiResponse, Problem> {
    let subject = Subject::living(request).await?;
    let clock = request.clock();
    let pause = subject.row.job.state.pause.as_ref();
    let mut reason = typed(request, "reason");
    let mut until = typed(request, "until");
    if let Some(pause) = pause.filter(|_| request.sent.is_empty()) {
        reason.clone_from(&pause.reason);
        until = pause.until.map(|at| subject.wall(at)).unwrap_or_default();
    }
    if let Some(word) = request.sent("set") {
        until = quick(word, request.now, &subject.zone).map(|at| subject.wall(at)).unwrap_or_default();
    }
    let current = pause.map(|pause| CurrentPause {
        by: pause.by.clone(),
        reason: pause.reason.clone(),
        since: subject.moment(&clock, pause.at),
        until: pause.until.map(|at| subject.moment(&clock, at)),
    });
    let (active, more) = named_runs(request, &subject, &clock).await?;
    let page = PausePage {
        active,
        more,
        frame: request.frame(Section::Jobs, format!("Pause {}", subject.key)).await,
        effect: Effect::new(&subject, &clock, subject.read(&until)),
        refusal: Refusal::from_problem(problem, &FIELDS),
        reasons: reasons(request).await?,
        same: same(request, &subject, &reason, &until)?,
        subject,
        reason,
        until,
        current,
    };
    UiResponse::with_status(&page, problem.map_or(StatusCode::OK, Problem::status))
}

/// The body of the request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancel_pending: Option<bool>,
}

fn same(request: &UiRequest, subject: &Subject, reason: &str, until: &str) -> Result<Equivalent, Problem> {
    let reason = if reason.is_empty() { "why" } else { reason };
    let until = Some(until).filter(|until| !until.is_empty());
    let mut words = vec!["jobs", "pause", &subject.key, "--reason", reason];
    words.extend(until.iter().flat_map(|until| ["--until", *until]));
    let body = Body { reason: Some(reason), until, cancel_pending: None };
    let path = format!("/jobs/{}/pause", subject.name);
    Equivalent::with_body(&request.api_base(), "POST", &path, &body, &words)
}

/// Why jobs were paused lately, the latest first.
async fn reasons(request: &UiRequest) -> Result<Vec<String>, Problem> {
    let page = PageRequest { limit: MAX_READ_ENTRIES, after: None };
    let entries = request.app.bell.store().list_audit(None, &page).await?.items;
    let mut all: Vec<String> = Vec::new();
    for reason in entries.into_iter().filter(|entry| entry.action == "job.pause").filter_map(|entry| entry.reason) {
        if all.len() < MAX_SUGGESTED_REASONS && !all.contains(&reason) {
            all.push(reason);
        }
    }
    Ok(all)
}

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    if request.sent("set").is_some() {
        return form(&request, None).await;
    }
    let subject = Subject::living(&request).await?;
    let path = [("jobId", subject.exact.as_str())];
    let body = Body {
        reason: request.sent("reason"),
        until: request.sent("until"),
        cancel_pending: request.sent("cancelPending").map(|_| true),
    };
    match request.perform::<wire::Paused>(Method::POST, "/jobs/{jobId}/pause", &path, &body).await {
        Ok(_) if subject.is_paused() => {
            Ok(UiResponse::done(subject.path(), format!("{} is still paused. The reason was changed.", subject.key)))
        }
        Ok(_) => Ok(UiResponse::done(subject.path(), format!("{} is paused.", subject.key))),
        Err(problem) => form(&request, Some(&correctable(problem)?)).await,
    }
}
