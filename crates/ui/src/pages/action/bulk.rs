//! Pausing or resuming jobs: the selected ones, or all that match a filter. A dry run shows the effect first.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell_core::Zone;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::{Value, json};

use super::subject::read;
use super::{Moment, Refusal, correctable, expect_operator, typed};
use crate::clock::Clock;
use crate::clock::Face;
use crate::equivalent::Equivalent;
use crate::markup::url_part;
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
const FIELDS: [&str; 3] = ["reason", "until", "missed"];
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
    pausing: bool,
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

    /// Returns the label of the outcome, before or after the action.
    fn word(self, pausing: bool, done: bool) -> &'static str {
        match (self, pausing, done) {
            (Outcome::Changes, true, false) => "Will be paused",
            (Outcome::Changes, true, true) => "Paused",
            (Outcome::Changes, false, false) => "Will be resumed",
            (Outcome::Changes, false, true) => "Resumed",
            (Outcome::Stays, ..) => "Unchanged",
            (Outcome::Failed, ..) => "Failed",
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
    fn new(item: &wire::BulkItem, zone: Option<&Zone>, clock: &Clock, pausing: bool, done: bool) -> Row {
        let outcome = Outcome::from(&item.outcome);
        Row {
            part: url_part(&item.job_key),
            key: item.job_key.clone(),
            outcome,
            class: outcome.class(),
            word: outcome.word(pausing, done),
            detail: item.detail.clone(),
            next: item.next_run_at.map(|at| (clock.at(at, zone), clock.away(at))),
            soon: item.next_run_at.is_some_and(|at| at.duration_since(clock.now) <= SOON_WINDOW),
        }
    }
}

/// Summarizes the outcomes, before or after the action.
fn impact(rows: &[Row], pausing: bool, done: bool) -> String {
    let count = |wanted| rows.iter().filter(|row| row.outcome == wanted).count();
    let (changes, stays, failed) = (count(Outcome::Changes), count(Outcome::Stays), count(Outcome::Failed));
    let jobs = |count: usize, kind: &str| format!("{count} {kind}{}", if count == 1 { "job" } else { "jobs" });
    let soon = rows.iter().filter(|row| row.soon && row.outcome == Outcome::Changes).count();
    let soon = match soon {
        0 => "none of them runs".to_owned(),
        1 => "1 of them runs".to_owned(),
        many => format!("{many} of them run"),
    };
    let mut parts = vec![match (pausing, done) {
        _ if changes == 0 && !done => "Nothing would change.".to_owned(),
        (true, false) => format!("This pauses {}; {soon} within the next hour.", jobs(changes, "active ")),
        (false, false) => format!("This resumes {}; {soon} within the next hour.", jobs(changes, "paused ")),
        (true, true) => format!("{} paused.", jobs(changes, "")),
        (false, true) => format!("{} resumed.", jobs(changes, "")),
    }];
    if stays > 0 {
        let stay = if stays == 1 { "is unchanged" } else { "are unchanged" };
        parts.push(format!("{} {stay}.", jobs(stays, "")));
    }
    if failed > 0 {
        parts.push(format!("{} failed.", jobs(failed, "")));
    }
    parts.join(" ")
}

pub(crate) async fn pause(request: UiRequest) -> Result<UiResponse, Problem> {
    show(&request, true).await
}

pub(crate) async fn resume(request: UiRequest) -> Result<UiResponse, Problem> {
    show(&request, false).await
}

async fn show(request: &UiRequest, pausing: bool) -> Result<UiResponse, Problem> {
    expect_operator(request)?;
    let text = request.here.split_once('?').map_or("", |(_, query)| query);
    // A key may hold a comma, at which the query is cut into a list.
    let keys = pairs(text).unwrap_or_default().into_iter().filter(|(name, value)| name == "key" && !value.is_empty());
    let keys: Vec<String> = keys.map(|(_, value)| value).collect();
    let mut filter = request.query.as_object().cloned().unwrap_or_default();
    filter.retain(|name, _| !["key", "all", "back"].contains(&name.as_str()));
    let filter = Value::Object(filter);
    let query = request.query(QUERY);
    let back = query.text("back").map_or_else(|| Links::new("/jobs", &filter).here(), str::to_owned);
    let body = if query.flag("all") {
        Body { filter: Some(&filter), ..Body::new(pausing) }
    } else {
        Body { job_keys: Some(keys.iter().map(String::as_str).collect()), ..Body::new(pausing) }
    };
    let answer = planned(request, pausing, body).await?;
    form(request, pausing, &answer, &back, Refusal::default(), StatusCode::OK).await
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
    dry_run: Option<bool>,
}

impl Body<'_> {
    /// A change of no job yet.
    fn new(pausing: bool) -> Body<'static> {
        let action = if pausing { BulkAction::Pause } else { BulkAction::Resume };
        Body { action, filter: None, job_keys: None, reason: None, until: None, missed: None, dry_run: None }
    }
}

/// Asks the API what the request would do.
async fn planned(request: &UiRequest, pausing: bool, body: Body<'_>) -> Result<wire::Bulk, Problem> {
    if body.job_keys.as_ref().is_some_and(Vec::is_empty) {
        return Ok(wire::Bulk { dry_run: true, action: body.action.clone(), changed: 0, items: Vec::new() });
    }
    let body = Body { reason: pausing.then_some("dry run"), dry_run: Some(true), ..body };
    request.ask(InternalCall::new(Method::POST, ROUTE, &[]), &body).await
}

async fn form(
    request: &UiRequest,
    pausing: bool,
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
        rows.push(Row::new(item, zone.as_ref(), &clock, pausing, done));
    }
    let keys: Vec<&str> =
        rows.iter().filter(|row| row.outcome == Outcome::Changes).map(|row| row.key.as_str()).collect();
    let title = if pausing { "Pause jobs" } else { "Resume jobs" };
    let page = BulkPage {
        frame: request.frame(Section::Jobs, title).await,
        impact: impact(&rows, pausing, done),
        keys: keys.join("\n"),
        changing: keys.len(),
        same: same(request, pausing, &keys)?,
        reason: typed(request, "reason"),
        until: typed(request, "until"),
        zone: request.choices.mine.name(),
        once: request.sent("missed") == Some("fire_once"),
        back: safe_return_path(back).to_owned(),
        rows,
        refusal,
        pausing,
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

fn same(request: &UiRequest, pausing: bool, keys: &[&str]) -> Result<Equivalent, Problem> {
    let reason = pausing.then_some("why");
    let body = Body { job_keys: Some(keys.to_vec()), reason, ..Body::new(pausing) };
    let mut fields = vec![format!("action={}", body.action), format!("jobKeys={}", json!(keys))];
    fields.extend(reason.map(|reason| format!("reason={reason}")));
    let mut words = vec!["api", "POST", ROUTE];
    words.extend(fields.iter().flat_map(|field| ["-f", field.as_str()]));
    Equivalent::with_body(&request.api_base(), "POST", ROUTE, &body, &words)
}

pub(crate) async fn send_pause(request: UiRequest) -> Result<UiResponse, Problem> {
    send(&request, true).await
}

pub(crate) async fn send_resume(request: UiRequest) -> Result<UiResponse, Problem> {
    send(&request, false).await
}

async fn send(request: &UiRequest, pausing: bool) -> Result<UiResponse, Problem> {
    expect_operator(request)?;
    let keys: Vec<&str> = request.sent("keys").unwrap_or_default().lines().filter(|line| !line.is_empty()).collect();
    let back = typed(request, "back");
    let again = async |refusal: Refusal, status: StatusCode| {
        let body = Body { job_keys: Some(keys.clone()), ..Body::new(pausing) };
        let answer = planned(request, pausing, body).await?;
        form(request, pausing, &answer, &back, refusal, status).await
    };
    let until = request.sent("until").filter(|_| pausing).map(|text| read(text, &request.choices.mine));
    let until = match until.transpose() {
        Ok(until) => until,
        Err(fault) => return again(Refusal::at_field("until", fault), StatusCode::BAD_REQUEST).await,
    };
    let body = Body {
        job_keys: Some(keys.clone()),
        reason: request.sent("reason").filter(|_| pausing),
        until,
        missed: request.sent("missed").filter(|_| !pausing),
        ..Body::new(pausing)
    };
    match request.perform::<wire::Bulk>(Method::POST, ROUTE, &[], &body).await {
        Ok(answer) if answer.changed == keys.len() as u64 => {
            let count = if keys.len() == 1 { "1 job".to_owned() } else { format!("{} jobs", keys.len()) };
            let text = format!("{count} {}.", if pausing { "paused" } else { "resumed" });
            Ok(UiResponse::done(safe_return_path(&back), text))
        }
        Ok(answer) => form(request, pausing, &answer, &back, Refusal::default(), StatusCode::OK).await,
        Err(problem) => {
            let problem = correctable(problem)?;
            again(Refusal::from_problem(Some(&problem), &FIELDS), problem.status()).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everbell_http::api::bulk::BULK;

    fn rows(outcomes: &[(&str, bool)]) -> Vec<Row> {
        let row = |(word, soon): &(&str, bool)| Row {
            key: "a".to_owned(),
            part: "a".to_owned(),
            outcome: Outcome::from(&BulkOutcome::from_word(word)),
            class: "",
            word: "",
            detail: None,
            next: None,
            soon: *soon,
        };
        outcomes.iter().map(row).collect()
    }

    /// A filter that is unknown here would be ignored, and more jobs changed than listed.
    #[test]
    fn every_filter_of_the_list_is_known() {
        let no_filters = ["sort", "limit", "cursor", "jobKey"];
        for field in everbell_http::api::jobs::LIST.iter().filter(|field| !no_filters.contains(&field.name)) {
            assert!(QUERY.iter().any(|own| own.name == field.name), "{}", field.name);
            let known = |own: &&Field| own.name == "filter";
            let Some(Kind::Component(_, fields)) = BULK.iter().find(known).map(|own| &own.kind) else {
                panic!("no filter")
            };
            assert!(fields.iter().any(|own| own.name == field.name), "{} of the API", field.name);
        }
    }

    #[test]
    fn the_whole_effect_is_one_sentence() {
        let impact_of = |outcomes: &[(&str, bool)], pausing| impact(&rows(outcomes), pausing, false);
        let (soon, late) = (("would_change", true), ("would_change", false));
        assert_eq!(
            impact_of(&[soon, late, late], true),
            "This pauses 3 active jobs; 1 of them runs within the next hour."
        );
        assert_eq!(impact_of(&[late], false), "This resumes 1 paused job; none of them runs within the next hour.");
        assert_eq!(
            impact_of(&[soon, soon, ("unchanged", true)], true),
            "This pauses 2 active jobs; 2 of them run within the next hour. 1 job is unchanged."
        );
        assert_eq!(impact_of(&[("unchanged", false); 2], true), "Nothing would change. 2 jobs are unchanged.");
        assert_eq!(impact(&rows(&[("changed", false), ("failed", false)]), true, true), "1 job paused. 1 job failed.");
    }
}
