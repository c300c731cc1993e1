//! Making runs for slots that have gone by: first which ones, then at once.

use askama::Template;
use axum::http::{Method, StatusCode};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use super::for_org::{self, Doing};
use super::{Moment, Refusal, Subject, body, expect_operator, mendable, typed};
use crate::http::problem::Problem;
use crate::ui::badge;
use crate::ui::clock::Clock;
use crate::ui::equivalent::Equivalent;
use crate::ui::markup::Markup;
use crate::ui::visit::{Reply, Visit};
use crate::ui::{Frame, Section};
use everbell::RunStatus;

const ROUTE: &str = "/jobs/{jobId}/backfills";
const FIELDS: [&str; 3] = ["from", "to", "reason"];
const DOING: Doing = Doing { path: "backfill", verb: "Backfill", for_all: Some("backfill?orgs=all") };
/// How many slots are shown.
const SHOWN: usize = 200;
/// How much of the past is proposed.
const PROPOSED: SignedDuration = SignedDuration::from_hours(24);

#[derive(Template)]
#[template(path = "action/backfill.html")]
struct BackfillPage {
    frame: Frame,
    subject: Subject,
    refusal: Refusal,
    from: String,
    to: String,
    reason: String,
    plan: Option<Plan>,
    same: Equivalent,
}

/// What the backfill would do.
struct Plan {
    slots: Vec<Slot>,
    /// How many are not shown.
    more: usize,
    wanted: u64,
    existing: u64,
    /// If it is for all orgs.
    orgs: Option<Counted>,
}

/// Whom it would be for.
struct Counted {
    with_slots: u64,
    looked_at: u64,
    more: bool,
}

/// A slot that has gone by.
struct Slot {
    at: Moment,
    /// The run that it has already, and how that stands.
    existing: Option<(String, Markup)>,
}

impl Plan {
    /// What the API answers to a dry run.
    fn of(answer: &Value, subject: &Subject, clock: &Clock) -> Plan {
        let all = answer["slots"].as_array().map(Vec::as_slice).unwrap_or_default();
        let slot = |slot: &Value| {
            let at: Timestamp = slot["slotAt"].as_str()?.parse().ok()?;
            let status = slot["because"].as_str().and_then(RunStatus::from_word);
            let existing = slot["runId"].as_str().zip(status).map(|(id, status)| (id.to_owned(), badge::run(status)));
            Some(Slot { at: subject.moment(clock, at), existing })
        };
        let wanted = answer["toCreate"].as_u64().unwrap_or(0);
        let orgs = Some(&answer["orgs"]).filter(|orgs| orgs.is_object()).map(|orgs| Counted {
            with_slots: orgs["withSlots"].as_u64().unwrap_or(0),
            looked_at: orgs["lookedAt"].as_u64().unwrap_or(0),
            more: orgs["more"] == Value::Bool(true),
        });
        Plan {
            slots: all.iter().take(SHOWN).filter_map(slot).collect(),
            more: all.len().saturating_sub(SHOWN),
            existing: (all.len() as u64).saturating_sub(wanted),
            wanted,
            orgs,
        }
    }
}

pub(crate) async fn show(visit: Visit) -> Result<Reply, Problem> {
    expect_operator(&visit)?;
    match for_org::subject(&visit, DOING).await? {
        Ok(subject) => form(&visit, subject, None, None).await,
        Err(ask) => Ok(*ask),
    }
}

async fn form(
    visit: &Visit,
    subject: Subject,
    plan: Option<&Value>,
    problem: Option<&Problem>,
) -> Result<Reply, Problem> {
    let (mut from, mut to) = (typed(visit, "from"), typed(visit, "to"));
    if visit.sent.is_empty() {
        let minute = |at: Timestamp| Timestamp::from_second(at.as_second().div_euclid(60) * 60).unwrap_or(at);
        from = subject.wall(minute(visit.now.checked_sub(PROPOSED).unwrap_or(visit.now)));
        to = subject.wall(minute(visit.now));
    }
    let page = BackfillPage {
        frame: visit.frame(Section::Jobs, format!("Backfill {}", subject.named())).await,
        plan: plan.map(|answer| Plan::of(answer, &subject, &visit.clock())),
        refusal: Refusal::of(problem, &FIELDS),
        same: same(visit, &subject, &from, &to),
        reason: typed(visit, "reason"),
        subject,
        from,
        to,
    };
    Reply::refused(&page, problem.map_or(StatusCode::OK, Problem::status))
}

fn same(visit: &Visit, subject: &Subject, from: &str, to: &str) -> Equivalent {
    let path = format!("/jobs/{}/backfills", subject.name);
    let (first, last) = (format!("from={from}"), format!("to={to}"));
    let mut body = Map::from_iter([("from".to_owned(), from.into()), ("to".to_owned(), to.into())]);
    put_orgs(subject, &mut body);
    let org = ["orgId", "orgs"].iter().find_map(|name| Some(format!("{name}={}", body.get(*name)?.as_str()?)));
    let mut words = vec!["api", "POST", &path, "-f", &first, "-f", &last];
    words.extend(org.iter().flat_map(|org| ["-f", org.as_str()]));
    Equivalent::new(&visit.api_base(), "POST", &path, Some(&body.into()), &words)
}

/// For which org it is, or for all, of a job that fires for each.
fn put_orgs(subject: &Subject, body: &mut Map<String, Value>) {
    subject.put_org(body);
    if subject.is_for_each() {
        body.insert("orgs".to_owned(), "all".into());
    }
}

pub(crate) async fn send(visit: Visit) -> Result<Reply, Problem> {
    expect_operator(&visit)?;
    let subject = match for_org::subject(&visit, DOING).await? {
        Ok(subject) => subject,
        Err(ask) => return Ok(*ask),
    };
    let begin = visit.sent("begin").is_some();
    let mut body: Map<String, Value> = body(&visit, &FIELDS);
    put_orgs(&subject, &mut body);
    if !begin {
        body.insert("dryRun".to_owned(), Value::Bool(true));
    }
    match visit.perform(Method::POST, ROUTE, &[("jobId", &subject.exact)], &body).await {
        Ok(_) if begin && subject.is_for_each() => {
            let text = format!("The runs of {} are being made, for each org.", subject.key);
            Ok(Reply::done(format!("{}/orgs", subject.place()), text))
        }
        Ok(answer) if begin => {
            let count = answer["toCreate"].as_u64().unwrap_or(0);
            let runs = if count == 1 { "1 run was".to_owned() } else { format!("{count} runs were") };
            Ok(Reply::done(format!("{}/backfills", subject.place()), format!("{runs} made for {}.", subject.named())))
        }
        Ok(answer) => form(&visit, subject, Some(&answer), None).await,
        Err(problem) => form(&visit, subject, None, Some(&mendable(problem)?)).await,
    }
}
