//! Backfilling past slots: a preview first, then the runs.

use askama::Template;
use axum::http::{Method, StatusCode};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::Value;

use super::for_org::{self, OrgAction};
use super::{Moment, Refusal, Subject, correctable, expect_operator, typed};
use crate::badge;
use crate::clock::Clock;
use crate::equivalent::Equivalent;
use crate::markup::Markup;
use crate::request::{UiRequest, UiResponse};
use crate::{Frame, Section};
use everbell::RunStatus;
use everbell_http::problem::Problem;
use everbell_wire as wire;
use everbell_wire::form::{Field, Kind, optional};

/// The org, and the range that the form begins with.
pub(crate) const QUERY: &[Field] = &[
    for_org::QUERY[0],
    for_org::QUERY[1],
    optional("from", Kind::Time, "The start of the range; with `to`, the form begins with it."),
    optional("to", Kind::Time, "The end of the range."),
];

const ROUTE: &str = "/jobs/{jobId}/backfills";
const FIELDS: [&str; 7] = ["from", "to", "parallel", "rate", "order", "pausedOk", "reason"];
const ACTION: OrgAction = OrgAction { path: "backfill", verb: "Backfill", for_all: Some("backfill?orgs=all") };
/// How many slots are shown.
const MAX_LISTED_SLOTS: usize = 200;
/// How much of the past is proposed.
const DEFAULT_RANGE: SignedDuration = SignedDuration::from_hours(24);

#[derive(Template)]
#[template(path = "action/backfill.html")]
struct BackfillPage {
    frame: Frame,
    subject: Subject,
    refusal: Refusal,
    from: String,
    to: String,
    parallel: String,
    rate: String,
    newest: bool,
    paused_ok: bool,
    reason: String,
    plan: Option<Plan>,
    same: Equivalent,
}

/// The result of a dry run.
struct Plan {
    slots: Vec<Slot>,
    /// How many are not shown.
    more: u64,
    wanted: u64,
    existing: u64,
    /// Whether every slot of the range was checked.
    exact: bool,
    /// If it is for all orgs.
    orgs: Option<wire::BackfillOrgs>,
}

/// A past slot.
struct Slot {
    at: Moment,
    /// The run that it has already, and how that stands.
    existing: Option<(String, Markup)>,
}

impl Plan {
    /// The plan that the API answers to a dry run.
    fn new(answer: &wire::Backfill, subject: &Subject, clock: &Clock) -> Plan {
        let all = &answer.slots;
        let slot = |slot: &wire::BackfillSlot| {
            let status = slot.because.as_ref().and_then(|status| RunStatus::from_word(status.as_str()));
            let existing = slot.run_id.clone().zip(status).map(|(id, status)| (id, badge::run(status)));
            Slot { at: subject.moment(clock, slot.slot_at), existing }
        };
        let wanted = answer.to_create.unwrap_or(0);
        let total = answer.total.unwrap_or(all.len() as u64);
        Plan {
            slots: all.iter().take(MAX_LISTED_SLOTS).map(slot).collect(),
            more: total.saturating_sub(all.len().min(MAX_LISTED_SLOTS) as u64),
            existing: total.saturating_sub(wanted),
            exact: answer.exact,
            wanted,
            orgs: answer.orgs.clone(),
        }
    }
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    match for_org::subject(&request, ACTION).await? {
        Ok(subject) => form(&request, subject, None, None).await,
        Err(ask) => Ok(*ask),
    }
}

async fn form(
    request: &UiRequest,
    subject: Subject,
    plan: Option<&wire::Backfill>,
    problem: Option<&Problem>,
) -> Result<UiResponse, Problem> {
    let (mut from, mut to) = (typed(request, "from"), typed(request, "to"));
    if request.sent.is_empty() && request.query.get("from").is_some() {
        // Linked to with a range, such as that of an outage.
        let linked = |name: &str| request.query.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let wall = |text: String| subject.read(&text).map_or(text, |at| subject.wall(at));
        (from, to) = (wall(linked("from")), wall(linked("to")));
    } else if request.sent.is_empty() {
        let minute = |at: Timestamp| Timestamp::from_second(at.as_second().div_euclid(60) * 60).unwrap_or(at);
        from = subject.wall(minute(request.now.checked_sub(DEFAULT_RANGE).unwrap_or(request.now)));
        to = subject.wall(minute(request.now));
    }
    let page = BackfillPage {
        frame: request.frame(Section::Jobs, format!("Backfill {}", subject.named())).await,
        plan: plan.map(|answer| Plan::new(answer, &subject, &request.clock())),
        refusal: Refusal::from_problem(problem, &FIELDS),
        same: same(request, &subject, &from, &to)?,
        reason: typed(request, "reason"),
        parallel: typed(request, "parallel"),
        rate: typed(request, "rate"),
        newest: request.sent("order") == Some("newest"),
        paused_ok: request.sent("pausedOk").is_some(),
        subject,
        from,
        to,
    };
    UiResponse::with_status(&page, problem.map_or(StatusCode::OK, Problem::status))
}

/// The body of the request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    org_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    orgs: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paused_ok: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dry_run: Option<bool>,
}

impl<'a> Body<'a> {
    /// A backfill of this range: for the org of the subject, or for all of a job that fires for each.
    fn new(subject: &'a Subject, from: Option<&'a str>, to: Option<&'a str>) -> Body<'a> {
        let (org_id, orgs) = (subject.org_id(), subject.is_for_each().then_some("all"));
        Body {
            from,
            org_id,
            orgs,
            to,
            parallel: None,
            rate: None,
            order: None,
            paused_ok: None,
            reason: None,
            dry_run: None,
        }
    }
}

fn same(request: &UiRequest, subject: &Subject, from: &str, to: &str) -> Result<Equivalent, Problem> {
    let path = format!("/jobs/{}/backfills", subject.name);
    let (first, last) = (format!("from={from}"), format!("to={to}"));
    let body = Body::new(subject, Some(from), Some(to));
    let org = body.org_id.map(|id| format!("orgId={id}")).or_else(|| body.orgs.map(|orgs| format!("orgs={orgs}")));
    let mut words = vec!["api", "POST", &path, "-f", &first, "-f", &last];
    words.extend(org.iter().flat_map(|org| ["-f", org.as_str()]));
    Equivalent::with_body(&request.api_base(), "POST", &path, &body, &words)
}

/// A number as it was typed. The API says what is wrong with anything else.
pub(super) fn number(text: &str) -> serde_json::Value {
    text.trim().parse::<u64>().map_or_else(|_| text.into(), Into::into)
}

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    let subject = match for_org::subject(&request, ACTION).await? {
        Ok(subject) => subject,
        Err(ask) => return Ok(*ask),
    };
    let begin = request.sent("begin").is_some();
    let body = Body {
        parallel: request.sent("parallel").map(number),
        rate: request.sent("rate"),
        order: request.sent("order").filter(|order| *order != "oldest"),
        paused_ok: request.sent("pausedOk").map(|_| true),
        reason: request.sent("reason"),
        dry_run: (!begin).then_some(true),
        ..Body::new(&subject, request.sent("from"), request.sent("to"))
    };
    match request.perform::<wire::Backfill>(Method::POST, ROUTE, &[("jobId", &subject.exact)], &body).await {
        Ok(_) if begin && subject.is_for_each() => {
            let text = format!("Runs of {} are being created for each org.", subject.key);
            Ok(UiResponse::done(format!("{}/orgs", subject.path()), text))
        }
        Ok(answer) if begin => {
            let count = answer.to_create.unwrap_or(0);
            let runs = if count == 1 { "1 slot".to_owned() } else { format!("{count} slots") };
            let most = if answer.exact { "" } else { "at most " };
            Ok(UiResponse::done(
                format!("{}/backfills", subject.path()),
                format!("Started the backfill of {}: {most}{runs} to run.", subject.named()),
            ))
        }
        Ok(answer) => form(&request, subject, Some(&answer), None).await,
        Err(problem) => form(&request, subject, None, Some(&correctable(problem)?)).await,
    }
}
