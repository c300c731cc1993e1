//! An action on many jobs: the selected ones, or all that match a filter. A dry run shows the effect first.

mod act;

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell_core::Zone;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::{Value, json};

use self::act::Act;
use super::subject::read;
use super::{Moment, Refusal, correctable, expect_operator, typed};
use crate::clock::Clock;
use crate::clock::Face;
use crate::equivalent::Equivalent;
use crate::markup::url_part;
use crate::pages::job_form::expect_admin;
use crate::request::{UiRequest, UiResponse, safe_return_path};
use crate::{Frame, Links, Section};
use everbell_http::api::jobs::BULK_FILTER;
use everbell_http::internal_call::InternalCall;
use everbell_http::problem::Problem;
use everbell_wire as wire;
use everbell_wire::bulk::BulkAction;
use everbell_wire::bulk::BulkOutcome;
use everbell_wire::form::{Field, Kind, TEXT, joined, optional, pairs};

const ROUTE: &str = "/jobs/bulk";
const FIELDS: [&str; 5] = ["reason", "until", "missed", "count", "confirm"];
/// The longest way back that is carried along.
pub(crate) const MAX_RETURN_PATH_CHARS: usize = 2_000;
const SOON_WINDOW: SignedDuration = SignedDuration::from_hours(1);

/// The filters of the list, and what was picked of it.
pub(crate) const QUERY: &[Field] = &joined::<{ BULK_FILTER.len() + 3 }>(
    BULK_FILTER,
    &[
        optional("key", Kind::List { of: &TEXT, max: 1_000 }, "The keys of the selected jobs."),
        optional(
            "back",
            Kind::Text { min: 1, max: MAX_RETURN_PATH_CHARS },
            "The list as it was, with its order and its page.",
        ),
        optional("all", Kind::Flag, "All matching jobs instead of the selected ones."),
    ],
);

#[derive(Template)]
#[template(path = "action/bulk.html")]
struct BulkPage {
    frame: Frame,
    refusal: Refusal,
    act: Act,
    /// Whether the action is done, so that the rows show results.
    done: bool,
    impact: String,
    /// The jobs that would change, a line each.
    keys: String,
    changing: usize,
    rows: Vec<Row>,
    reason: String,
    until: String,
    /// In which zone `until` is read.
    zone: &'static str,
    once: bool,
    /// How many runs of each job are skipped.
    count: String,
    back: String,
    same: Equivalent,
}

/// The planned or actual outcome for a job.
struct Row {
    key: String,
    part: String,
    outcome: Outcome,
    class: &'static str,
    word: &'static str,
    detail: Option<String>,
    next: Option<Moment>,
    soon: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Changes,
    Stays,
    Failed,
}

impl Outcome {
    fn class(self) -> &'static str {
        match self {
            Outcome::Changes => "ok",
            Outcome::Stays => "wait",
            Outcome::Failed => "bad",
        }
    }
}

impl From<&BulkOutcome> for Outcome {
    fn from(outcome: &BulkOutcome) -> Outcome {
        match outcome {
            BulkOutcome::WouldChange | BulkOutcome::Changed => Outcome::Changes,
            BulkOutcome::Failed => Outcome::Failed,
            BulkOutcome::Unchanged | BulkOutcome::Other(_) => Outcome::Stays,
        }
    }
}

impl Row {
    /// `zone` is that of its schedule.
    fn new(item: &wire::BulkItem, zone: Option<&Zone>, clock: &Clock, act: Act, done: bool) -> Row {
        let outcome = Outcome::from(&item.outcome);
        Row {
            part: url_part(&item.job_key),
            key: item.job_key.clone(),
            outcome,
            class: outcome.class(),
            word: act.outcome(outcome, done),
            detail: item.detail.clone(),
            next: item.next_run_at.map(|at| (clock.at(at, zone), clock.away(at))),
            soon: item.next_run_at.is_some_and(|at| at.duration_since(clock.now) <= SOON_WINDOW),
        }
    }
}

/// Summarizes the outcomes, before or after the action.
fn impact(rows: &[Row], act: Act, done: bool) -> String {
    let count = |wanted| rows.iter().filter(|row| row.outcome == wanted).count();
    let (changes, stays, failed) = (count(Outcome::Changes), count(Outcome::Stays), count(Outcome::Failed));
    let jobs = |count: usize| format!("{count} {}", if count == 1 { "job" } else { "jobs" });
    let soon = rows.iter().filter(|row| row.soon && row.outcome == Outcome::Changes).count();
    let mut parts = vec![match done {
        false if changes == 0 => "Nothing would change.".to_owned(),
        false => act.effect(changes, soon),
        true => act.done(changes),
    }];
    if stays > 0 {
        let stay = if stays == 1 { "is unchanged" } else { "are unchanged" };
        parts.push(format!("{} {stay}.", jobs(stays)));
    }
    if failed > 0 {
        parts.push(format!("{} failed.", jobs(failed)));
    }
    parts.join(" ")
}

pub(crate) async fn pause(request: UiRequest) -> Result<UiResponse, Problem> {
    show(&request, Act::Pause).await
}

pub(crate) async fn resume(request: UiRequest) -> Result<UiResponse, Problem> {
    show(&request, Act::Resume).await
}

pub(crate) async fn run_now(request: UiRequest) -> Result<UiResponse, Problem> {
    show(&request, Act::RunNow).await
}

pub(crate) async fn skip_next(request: UiRequest) -> Result<UiResponse, Problem> {
    show(&request, Act::SkipNext).await
}

pub(crate) async fn retire(request: UiRequest) -> Result<UiResponse, Problem> {
    show(&request, Act::Retire).await
}

/// Fails early if the actor may not do this.
fn expect_role_for(request: &UiRequest, act: Act) -> Result<(), Problem> {
    if act == Act::Retire { expect_admin(request) } else { expect_operator(request) }
}

async fn show(request: &UiRequest, act: Act) -> Result<UiResponse, Problem> {
    expect_role_for(request, act)?;
    let keys = selected_keys(request);
    let mut filter = request.query.as_object().cloned().unwrap_or_default();
    filter.retain(|name, _| !["key", "all", "back"].contains(&name.as_str()));
    let filter = Value::Object(filter);
    let query = request.query(QUERY);
    let back = query.text("back").map_or_else(|| Links::new("/jobs", &filter).here(), str::to_owned);
    let body = if query.flag("all") {
        Body { filter: Some(&filter), ..Body::new(act) }
    } else {
        Body { job_keys: Some(keys.iter().map(String::as_str).collect()), ..Body::new(act) }
    };
    let answer = planned(request, act, body).await?;
    form(request, act, &answer, &back, Refusal::default(), StatusCode::OK).await
}

/// The keys of the selected jobs.
pub(super) fn selected_keys(request: &UiRequest) -> Vec<String> {
    let text = request.here.split_once('?').map_or("", |(_, query)| query);
    // A key may hold a comma, at which the query is cut into a list.
    let keys = pairs(text).unwrap_or_default().into_iter().filter(|(name, value)| name == "key" && !value.is_empty());
    keys.map(|(_, value)| value).collect()
}

/// The body of the request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    action: BulkAction,
    /// The filters of the list, as its query has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job_keys: Option<Vec<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missed: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dry_run: Option<bool>,
}

impl Body<'_> {
    /// A change of no job yet.
    fn new(act: Act) -> Body<'static> {
        Body {
            action: act.word(),
            filter: None,
            job_keys: None,
            reason: None,
            until: None,
            missed: None,
            count: None,
            dry_run: None,
        }
    }
}

/// Asks the API what the request would do.
async fn planned(request: &UiRequest, act: Act, body: Body<'_>) -> Result<wire::Bulk, Problem> {
    if body.job_keys.as_ref().is_some_and(Vec::is_empty) {
        return Ok(wire::Bulk { dry_run: true, action: body.action.clone(), changed: 0, items: Vec::new() });
    }
    let body = Body { reason: (act == Act::Pause).then_some("dry run"), dry_run: Some(true), ..body };
    request.ask(InternalCall::new(Method::POST, ROUTE, &[]), &body).await
}

async fn form(
    request: &UiRequest,
    act: Act,
    answer: &wire::Bulk,
    back: &str,
    refusal: Refusal,
    status: StatusCode,
) -> Result<UiResponse, Problem> {
    let clock = request.clock();
    let done = !answer.dry_run;
    let mut rows = Vec::with_capacity(answer.items.len());
    for item in &answer.items {
        let zone = zone_of(request, item).await;
        rows.push(Row::new(item, zone.as_ref(), &clock, act, done));
    }
    let keys: Vec<&str> =
        rows.iter().filter(|row| row.outcome == Outcome::Changes).map(|row| row.key.as_str()).collect();
    let page = BulkPage {
        frame: request.frame(Section::Jobs, act.title()).await,
        impact: impact(&rows, act, done),
        keys: keys.join("\n"),
        changing: keys.len(),
        same: same(request, act, &keys)?,
        reason: typed(request, "reason"),
        until: typed(request, "until"),
        zone: request.choices.mine.name(),
        once: request.sent("missed") == Some("fire_once"),
        count: request.sent("count").unwrap_or("1").to_owned(),
        back: safe_return_path(back).to_owned(),
        rows,
        refusal,
        act,
        done,
    };
    UiResponse::with_status(&page, status)
}

/// Returns the time zone of a job's schedule, if times are shown in it. The bulk response has no zones.
async fn zone_of(request: &UiRequest, item: &wire::BulkItem) -> Option<Zone> {
    if item.next_run_at.is_none() || request.choices.face != Face::Schedule {
        return None;
    }
    let row = request.jobs().get(item.job_key.as_str()).await.ok()?;
    row.job.definition.spec.as_ref().ok().map(|spec| spec.zone().clone())
}

fn same(request: &UiRequest, act: Act, keys: &[&str]) -> Result<Equivalent, Problem> {
    let reason = (act == Act::Pause).then_some("why");
    let body = Body { job_keys: Some(keys.to_vec()), reason, ..Body::new(act) };
    let mut fields = vec![format!("action={}", body.action), format!("jobKeys={}", json!(keys))];
    fields.extend(reason.map(|reason| format!("reason={reason}")));
    let mut words = vec!["api", "POST", ROUTE];
    words.extend(fields.iter().flat_map(|field| ["-f", field.as_str()]));
    Equivalent::with_body(&request.api_base(), "POST", ROUTE, &body, &words)
}

pub(crate) async fn send_pause(request: UiRequest) -> Result<UiResponse, Problem> {
    send(&request, Act::Pause).await
}

pub(crate) async fn send_resume(request: UiRequest) -> Result<UiResponse, Problem> {
    send(&request, Act::Resume).await
}

pub(crate) async fn send_run_now(request: UiRequest) -> Result<UiResponse, Problem> {
    send(&request, Act::RunNow).await
}

pub(crate) async fn send_skip_next(request: UiRequest) -> Result<UiResponse, Problem> {
    send(&request, Act::SkipNext).await
}

pub(crate) async fn send_retire(request: UiRequest) -> Result<UiResponse, Problem> {
    send(&request, Act::Retire).await
}

async fn send(request: &UiRequest, act: Act) -> Result<UiResponse, Problem> {
    expect_role_for(request, act)?;
    let keys: Vec<&str> = request.sent("keys").unwrap_or_default().lines().filter(|line| !line.is_empty()).collect();
    let back = typed(request, "back");
    let again = async |refusal: Refusal, status: StatusCode| {
        let body = Body { job_keys: Some(keys.clone()), ..Body::new(act) };
        let answer = planned(request, act, body).await?;
        form(request, act, &answer, &back, refusal, status).await
    };
    let until = request.sent("until").filter(|_| act == Act::Pause).map(|text| read(text, &request.choices.mine));
    let until = match until.transpose() {
        Ok(until) => until,
        Err(fault) => return again(Refusal::at_field("until", fault), StatusCode::BAD_REQUEST).await,
    };
    let count = request.sent("count").filter(|_| act == Act::SkipNext).map(str::parse::<u32>).transpose();
    let Ok(count) = count else {
        return again(Refusal::at_field("count", "must be a number from 1 to 100"), StatusCode::BAD_REQUEST).await;
    };
    if act == Act::Retire && request.sent("confirm") != Some("yes") {
        return again(
            Refusal::at_field("confirm", "confirm that these jobs never fire again"),
            StatusCode::BAD_REQUEST,
        )
        .await;
    }
    let body = Body {
        job_keys: Some(keys.clone()),
        reason: request.sent("reason").filter(|_| act != Act::Resume),
        until,
        missed: request.sent("missed").filter(|_| act == Act::Resume),
        count,
        ..Body::new(act)
    };
    match request.perform::<wire::Bulk>(Method::POST, ROUTE, &[], &body).await {
        Ok(answer) if answer.changed == keys.len() as u64 => {
            Ok(UiResponse::done(safe_return_path(&back), act.done(keys.len())))
        }
        Ok(answer) => form(request, act, &answer, &back, Refusal::default(), StatusCode::OK).await,
        Err(problem) => {
            let problem = correctable(problem)?;
            again(Refusal::from_problem(Some(&problem), &FIELDS), problem.status()).await
        }
    }
}

#[cfg(test)]
mod tests;
