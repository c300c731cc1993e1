//! Running again all runs that match the filters of the list. A dry run shows which.

use askama::Template;
use axum::http::{Method, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::clock::Clock;
use crate::equivalent::Equivalent;
use crate::links::Links;
use crate::markup::{Markup, url_part};
use crate::pages::action::{Refusal, correctable, expect_operator, typed};
use crate::request::{UiRequest, UiResponse, safe_return_path};
use crate::{Frame, Section};
use everbell_http::api::reruns::FILTER;
use everbell_http::internal_call::InternalCall;
use everbell_http::problem::{Kind, Problem};
use everbell_wire as wire;
use everbell_wire::bulk::RerunOutcome;
use everbell_wire::form::{Field, Kind as Member, joined, optional};

const ROUTE: &str = "/runs/rerun";

/// The filters of the list, and the way back to it.
pub(crate) const QUERY: &[Field] = &joined::<{ FILTER.len() + 1 }>(
    FILTER,
    &[optional("back", Member::Text { min: 1, max: 4_000 }, "The address of the list to return to.")],
);

#[derive(Template)]
#[template(path = "runs/matching.html")]
struct MatchingPage {
    frame: Frame,
    refusal: Refusal,
    /// The filters as the API reads them.
    filter: String,
    back: String,
    reason: String,
    /// How many runs match, and how many of them would be or were started.
    matched: u64,
    started: u64,
    done: bool,
    rows: Vec<Row>,
    same: Equivalent,
}

/// The planned or actual outcome for a run.
struct Row {
    id: String,
    /// The key of its job, and its part of an address.
    job: Option<(String, String)>,
    at: Markup,
    class: &'static str,
    word: &'static str,
    detail: Option<String>,
    new_run: Option<String>,
}

impl Row {
    fn new(item: &wire::RerunItem, clock: &Clock) -> Row {
        let (class, word) = match item.outcome {
            RerunOutcome::WouldStart => ("wait", "Will run again"),
            RerunOutcome::Started => ("ok", "Started"),
            RerunOutcome::Queued => ("wait", "Queued"),
            RerunOutcome::AlreadyRerun => ("skip", "Has run again"),
            RerunOutcome::Skipped => ("skip", "Skipped"),
            RerunOutcome::Failed | RerunOutcome::Other(_) => ("bad", "Cannot run again"),
        };
        Row {
            id: item.run_id.clone(),
            job: item.job_key.as_ref().map(|key| (key.clone(), url_part(key))),
            at: clock.at(item.scheduled_at, None),
            class,
            word,
            detail: item.detail.clone(),
            new_run: item.new_run_id.clone(),
        }
    }
}

/// The body of the request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    filter: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dry_run: Option<bool>,
}

/// Where the runs of a list are run again, and what the link says; `None` if the list has a filter that cannot select them.
pub(super) fn offer(query: &Value, here: &str) -> Option<(String, &'static str)> {
    let mut filter = query.as_object().cloned().unwrap_or_default();
    filter.retain(|name, _| !["cursor", "limit"].contains(&name.as_str()));
    if !filter.keys().all(|name| FILTER.iter().any(|field| field.name == name)) {
        return None;
    }
    let words = match filter.get("status").map(everbell_http::page::plain).as_deref() {
        None => "All matching failed runs:",
        // What has not ended cannot run again.
        Some(status) if status.contains("pending") || status.contains("running") => return None,
        Some(_) => "All matching runs:",
    };
    filter.entry("status").or_insert_with(|| json!("failed"));
    filter.insert("back".to_owned(), here.into());
    Some((Links::new("/runs/matching", &Value::Object(filter)).here(), words))
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    let mut filter = request.query.as_object().cloned().unwrap_or_default();
    let back = filter.remove("back");
    let back = back.as_ref().and_then(Value::as_str).map_or("/runs", safe_return_path).to_owned();
    // Runs that fail later were not shown.
    filter.entry("to").or_insert_with(|| json!(request.now.to_string()));
    form(&request, filter, &back, None).await
}

/// Shows what would happen.
async fn form(
    request: &UiRequest,
    filter: Map<String, Value>,
    back: &str,
    problem: Option<&Problem>,
) -> Result<UiResponse, Problem> {
    let filter = Value::Object(filter);
    let body = Body { filter: &filter, reason: None, dry_run: Some(true) };
    let planned: Result<wire::Reruns, Problem> = request.ask(InternalCall::new(Method::POST, ROUTE, &[]), &body).await;
    match planned {
        Ok(planned) => page(request, &filter, Some(&planned), back, problem).await,
        // Such as too many runs.
        Err(refused) if refused.kind == Kind::InvalidInput => page(request, &filter, None, back, Some(&refused)).await,
        Err(other) => Err(other),
    }
}

async fn page(
    request: &UiRequest,
    filter: &Value,
    answer: Option<&wire::Reruns>,
    back: &str,
    problem: Option<&Problem>,
) -> Result<UiResponse, Problem> {
    let clock = request.clock();
    let page = MatchingPage {
        frame: request.frame(Section::Runs, "Run again").await,
        refusal: Refusal::from_problem(problem, &["reason"]),
        filter: filter.to_string(),
        back: back.to_owned(),
        reason: typed(request, "reason"),
        matched: answer.map_or(0, |answer| answer.matched),
        started: answer.map_or(0, |answer| answer.started),
        done: answer.is_some_and(|answer| !answer.dry_run),
        rows: answer.map_or_else(Vec::new, |answer| answer.items.iter().map(|item| Row::new(item, &clock)).collect()),
        same: same(request, filter)?,
    };
    UiResponse::with_status(&page, problem.map_or(StatusCode::OK, Problem::status))
}

fn same(request: &UiRequest, filter: &Value) -> Result<Equivalent, Problem> {
    let body = Body { filter, reason: None, dry_run: None };
    let field = format!("filter={filter}");
    Equivalent::with_body(&request.api_base(), "POST", ROUTE, &body, &["api", "POST", ROUTE, "-f", &field])
}

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    let read = request.sent("filter").and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok());
    let filter = read.ok_or_else(|| Problem::new(Kind::InvalidInput, "The filter of the form cannot be read."))?;
    let back = request.sent("back").map_or("/runs", safe_return_path).to_owned();
    let wanted = Value::Object(filter.clone());
    let body = Body { filter: &wanted, reason: request.sent("reason"), dry_run: None };
    match request.perform::<wire::Reruns>(Method::POST, ROUTE, &[], &body).await {
        Ok(answer) if answer.started == answer.matched => {
            let runs = if answer.started == 1 { "1 run".to_owned() } else { format!("{} runs", answer.started) };
            Ok(UiResponse::done(&back, format!("{runs} started again.")))
        }
        Ok(answer) => page(&request, &wanted, Some(&answer), &back, None).await,
        Err(problem) => form(&request, filter, &back, Some(&correctable(problem)?)).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lists_whose_filters_select_the_same_runs_can_run_again() {
        let offered = |query: Value| offer(&query, "/runs?x=1");
        let (href, words) = offered(json!({ "label": "team=data", "cursor": "x" })).unwrap();
        assert_eq!(href, "/runs/matching?back=%2Fruns%3Fx%3D1&label=team%3Ddata&status=failed");
        assert_eq!(words, "All matching failed runs:");
        assert_eq!(offered(json!({ "status": "skipped" })).unwrap().1, "All matching runs:");
        assert_eq!(offered(json!({ "status": ["failed", "running"] })), None);
        assert_eq!(offered(json!({ "instanceId": "x" })), None);
    }
}
