//! Problems of jobs: what is wrong, who takes care of it, and who was notified.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell_core::store::{DeliveryFilter, PageRequest, ProblemFilter};
use jiff::SignedDuration;
use serde::Serialize;
use uuid::Uuid;

use crate::clock::Clock;
use crate::equivalent::Equivalent;
use crate::markup::{Markup, url_part};
use crate::pages::action::{Refusal, correctable, expect_operator, typed};
use crate::{Frame, Section, UiRequest, UiResponse};
use everbell_http::access::Role;
use everbell_http::api::notify::described;
use everbell_http::problem::{Kind, Problem};
use everbell_wire as wire;
use everbell_wire::notify::{ChannelType, DeliveryStatus, MessageChange};

/// The most problems of each table, and the most messages.
const MAX_OPEN: u32 = 200;
const MAX_CLOSED: u32 = 20;
const MAX_MESSAGES: u32 = 20;

/// How long a silence may last: hours and words. The last one ends with the problem.
const SILENCES: [(&str, &str); 5] =
    [("1", "1 hour"), ("4", "4 hours"), ("24", "1 day"), ("168", "1 week"), ("", "until it is over")];

#[derive(Template)]
#[template(path = "problems.html")]
struct ProblemsPage {
    frame: Frame,
    open: Vec<Row>,
    closed: Vec<Row>,
    channels: Vec<ChannelRow>,
    messages: Vec<Message>,
    /// The reason why the actor may not act.
    no_act: Option<String>,
}

struct Row {
    id: String,
    /// The job or the instance, and where to read about it.
    key: String,
    href: String,
    /// The kind of the problem, in words.
    kind: &'static str,
    count: u64,
    reason: String,
    run: Option<String>,
    since: Markup,
    since_away: Markup,
    closed: Option<(Markup, String)>,
    acknowledged: Option<String>,
    muted: Option<String>,
    told: String,
}

struct ChannelRow {
    name: String,
    part: String,
    kind: ChannelType,
    rules: usize,
    last: Option<(Markup, DeliveryStatus)>,
    pending: u64,
    dead: u64,
}

struct Message {
    at: Markup,
    channel: String,
    change: MessageChange,
    title: String,
    status: DeliveryStatus,
    attempts: u32,
    error: Option<String>,
}

impl Row {
    fn new(problem: &everbell_core::alert::Problem, clock: &Clock, now: jiff::Timestamp) -> Row {
        let note = |note: &wire::ProblemNote| match &note.reason {
            Some(reason) => format!("by {}: {reason}", note.by),
            None => format!("by {}", note.by),
        };
        let shown = wire::JobProblem::new(problem, now);
        Row {
            id: shown.id.clone(),
            key: problem
                .subject
                .instance()
                .map_or_else(|| problem.subject.to_string(), |(_, host)| format!("instance on {host}")),
            href: problem
                .job()
                .map_or_else(|| "/cluster".to_owned(), |job| format!("/jobs/{}", url_part(job.as_str()))),
            kind: problem.kind.summary(),
            count: shown.count,
            reason: shown.reason.clone(),
            run: shown.run_id.clone(),
            since: clock.at(problem.since, None),
            since_away: clock.away(problem.since),
            closed: problem
                .closed_at
                .map(|at| (clock.at(at, None), problem.closed_because.clone().unwrap_or_default())),
            acknowledged: shown.acknowledged.as_ref().map(note),
            muted: shown.muted.as_ref().map(note),
            told: shown.told.join("; "),
        }
    }
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    let (store, clock, now) = (request.app.bell.store(), request.clock(), request.now);
    let list = async |open: bool, limit: u32| {
        let filter = ProblemFilter { open: Some(open), ..ProblemFilter::default() };
        let page = store.list_problems(&filter, &PageRequest { limit, after: None }).await?;
        Ok::<_, Problem>(page.items.iter().map(|problem| Row::new(problem, &clock, now)).collect::<Vec<_>>())
    };
    let (open, closed) = (list(true, MAX_OPEN).await?, list(false, MAX_CLOSED).await?);
    let channel = |channel: wire::NotifyChannel| ChannelRow {
        part: url_part(&channel.name),
        last: channel.last.as_ref().map(|last| (clock.at(last.created_at, None), last.status.clone())),
        rules: channel.rules.len(),
        kind: channel.kind,
        pending: channel.pending,
        dead: channel.dead,
        name: channel.name,
    };
    let channels = described(&request.to_api_request()).await?.into_iter().map(channel).collect();
    let messages = PageRequest { limit: MAX_MESSAGES, after: None };
    let messages = store.list_deliveries(&DeliveryFilter::default(), &messages).await?;
    let message = |delivery: wire::NotifyDelivery| Message {
        at: clock.at(delivery.created_at, None),
        channel: delivery.channel,
        change: delivery.change,
        title: delivery.title,
        status: delivery.status,
        attempts: delivery.attempts,
        error: delivery.error,
    };
    let page = ProblemsPage {
        messages: messages.items.iter().map(|delivery| message(wire::NotifyDelivery::from(delivery))).collect(),
        no_act: request.barred(Role::Operator),
        frame: request.frame(Section::Problems, "Problems").await,
        open,
        closed,
        channels,
    };
    UiResponse::page(&page)
}

#[derive(Template)]
#[template(path = "problems/handle.html")]
struct HandlePage {
    frame: Frame,
    /// Whether it is muted, rather than acknowledged.
    mutes: bool,
    key: String,
    kind: &'static str,
    cause: String,
    reason: String,
    lasts: String,
    silences: [(&'static str, &'static str); 5],
    refusal: Refusal,
    same: Equivalent,
}

pub(crate) async fn acknowledge_form(request: UiRequest) -> Result<UiResponse, Problem> {
    form(&request, false, None).await
}

pub(crate) async fn mute_form(request: UiRequest) -> Result<UiResponse, Problem> {
    form(&request, true, None).await
}

async fn form(request: &UiRequest, mutes: bool, problem: Option<&Problem>) -> Result<UiResponse, Problem> {
    expect_operator(request)?;
    let id = request.part("id").to_owned();
    let about = found(request, &id).await?;
    let verb = if mutes { "mute" } else { "acknowledge" };
    let words = ["problems", verb, &id, "--reason", "…"];
    let page = HandlePage {
        mutes,
        key: about.subject.to_string(),
        kind: about.kind.summary(),
        cause: about.reason.clone(),
        reason: typed(request, "reason"),
        lasts: request.sent("lasts").unwrap_or(if request.sent.is_empty() { "4" } else { "" }).to_owned(),
        silences: SILENCES,
        refusal: Refusal::from_problem(problem, &["reason", "until"]),
        same: Equivalent::with_body(
            &request.api_base(),
            "POST",
            &format!("/problems/{id}/{verb}"),
            &Body { reason: Some("…"), until: None },
            &words,
        )?,
        frame: request.frame(Section::Problems, if mutes { "Mute problem" } else { "Acknowledge problem" }).await,
    };
    UiResponse::with_status(&page, problem.map_or(StatusCode::OK, Problem::status))
}

async fn found(request: &UiRequest, id: &str) -> Result<everbell_core::alert::Problem, Problem> {
    let missing = || Problem::new(Kind::NotFound, "There is no such open problem. It may be over by now.");
    let wanted = Uuid::parse_str(id).map_err(|_| missing())?;
    let filter = ProblemFilter { open: Some(true), ..ProblemFilter::default() };
    let mut page = PageRequest { limit: 1_000, after: None };
    loop {
        let list = request.app.bell.store().list_problems(&filter, &page).await?;
        if let Some(problem) = list.items.into_iter().find(|problem| problem.id == wanted) {
            return Ok(problem);
        }
        page.after = Some(list.next.ok_or_else(missing)?);
    }
}

#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
}

pub(crate) async fn acknowledge(request: UiRequest) -> Result<UiResponse, Problem> {
    send(&request, false).await
}

pub(crate) async fn mute(request: UiRequest) -> Result<UiResponse, Problem> {
    send(&request, true).await
}

async fn send(request: &UiRequest, mutes: bool) -> Result<UiResponse, Problem> {
    let hours = request.sent("lasts").filter(|_| mutes).and_then(|hours| hours.parse::<i64>().ok());
    let hours = hours.filter(|hours| (1..=24 * 365).contains(hours));
    let until = hours.and_then(|hours| request.now.checked_add(SignedDuration::from_hours(hours)).ok());
    let body = Body { reason: request.sent("reason"), until: until.map(|at| at.to_string()) };
    let (route, said) = if mutes {
        ("/problems/{problemId}/mute", "The problem is muted.")
    } else {
        ("/problems/{problemId}/acknowledge", "The problem is acknowledged. No reminders follow.")
    };
    let path = [("problemId", request.part("id"))];
    match request.perform::<wire::JobProblem>(Method::POST, route, &path, &body).await {
        Ok(_) => Ok(UiResponse::done("/problems", said)),
        Err(problem) => form(request, mutes, Some(&correctable(problem)?)).await,
    }
}

pub(crate) async fn unmute(request: UiRequest) -> Result<UiResponse, Problem> {
    let path = [("problemId", request.part("id"))];
    request.perform::<wire::JobProblem>(Method::POST, "/problems/{problemId}/unmute", &path, &()).await?;
    Ok(UiResponse::done("/problems", "The problem is no longer muted."))
}

pub(crate) async fn test(request: UiRequest) -> Result<UiResponse, Problem> {
    let name = request.part("name").to_owned();
    let path = [("name", name.as_str())];
    request.perform::<wire::NotifyDelivery>(Method::POST, "/notify/channels/{name}/test", &path, &()).await?;
    Ok(UiResponse::done("/problems", format!("A test message for {name} is on its way. Reload to see how it went.")))
}
