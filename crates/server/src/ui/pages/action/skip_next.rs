//! Passing over the next fires of a job.

use askama::Template;
use axum::http::{Method, StatusCode};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::for_org::{self, Doing};
use super::{Moment, Refusal, Subject, body, expect_operator, mendable, typed};
use crate::http::problem::Problem;
use crate::ui::clock::Clock;
use crate::ui::equivalent::Equivalent;
use crate::ui::visit::{Reply, Visit};
use crate::ui::{Frame, Section};

const FIELDS: [&str; 2] = ["count", "reason"];
const DOING: Doing = Doing { path: "skip-next", verb: "Skip the next fires of", for_all: None };
/// How many of the fires are named.
const NAMED: usize = 8;
/// The most that the API passes over at once.
const MOST: usize = 100;

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

/// What skipping does.
struct Effect {
    /// The first of the fires that are passed over.
    passed: Vec<Moment>,
    /// How many more, and the last of them.
    more: Option<(usize, Moment)>,
    /// The first that happens.
    then: Option<Moment>,
}

impl Effect {
    fn of(subject: &Subject, clock: &Clock, count: usize) -> Option<Effect> {
        subject.next()?;
        let slots: Vec<Timestamp> = subject.spec()?.slots_after(subject.timer().last_slot_at).take(count + 1).collect();
        let (passed, then) = slots.split_at(count.min(slots.len()));
        let moment = |at: &Timestamp| subject.moment(clock, *at);
        Some(Effect {
            passed: passed.iter().take(NAMED).map(moment).collect(),
            more: passed.get(NAMED..).and_then(|more| Some((more.len(), moment(more.last()?)))),
            then: then.first().map(moment),
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
    let count = visit.sent("count").unwrap_or("1").to_owned();
    let wanted = count.parse::<usize>().unwrap_or(1).clamp(1, MOST);
    let page = SkipPage {
        frame: visit.frame(Section::Jobs, format!("Skip the next fires of {}", subject.named())).await,
        effect: Effect::of(&subject, &visit.clock(), wanted),
        refusal: Refusal::of(problem, &FIELDS),
        same: same(visit, &subject, wanted),
        reason: typed(visit, "reason"),
        subject,
        count,
    };
    Reply::refused(&page, problem.map_or(StatusCode::OK, Problem::status))
}

fn same(visit: &Visit, subject: &Subject, count: usize) -> Equivalent {
    let path = format!("/jobs/{}/skip-next", subject.name);
    let (mut body, text) = (Map::from_iter([("count".to_owned(), count.into())]), count.to_string());
    subject.put_org(&mut body);
    let words = [&["jobs", "skip", &subject.key, "--count", &text][..], &subject.org_words()].concat();
    Equivalent::new(&visit.api_base(), "POST", &path, Some(&body.into()), &words)
}

pub(crate) async fn send(visit: Visit) -> Result<Reply, Problem> {
    expect_operator(&visit)?;
    let subject = match for_org::subject(&visit, DOING).await? {
        Ok(subject) => subject,
        Err(ask) => return Ok(*ask),
    };
    let mut body = body(&visit, &FIELDS);
    subject.put_org(&mut body);
    if let Some(count) = visit.sent("count").and_then(|count| count.parse::<i64>().ok()) {
        body.insert("count".to_owned(), Value::from(count));
    }
    match visit.perform(Method::POST, "/jobs/{jobId}/skip-next", &[("jobId", &subject.exact)], &body).await {
        Ok(_) => {
            let count = visit.sent("count").unwrap_or("1");
            let fires = if count == "1" { "fire is".to_owned() } else { format!("{count} fires are") };
            Ok(Reply::done(subject.back(), format!("The next {fires} passed over for {}.", subject.named())))
        }
        Err(problem) => form(&visit, Some(&mendable(problem)?)).await,
    }
}
