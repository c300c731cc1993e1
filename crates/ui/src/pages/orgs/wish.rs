//! Switching a job off for an org, and on again; and letting it fire as for all.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell::core::org::Override;
use everbell::core::store::OrgJob;
use serde::Serialize;

use super::foreseen::{fires, view};
use super::{OrgSubject, refusal};
use crate::equivalent::Equivalent;
use crate::markup::url_part;
use crate::pages::action::{Moment, Reason, Refusal, expect_operator, mendable, typed};
use crate::visit::{Reply, Visit};
use crate::{Frame, Section};
use everbell_http::internal_call::InternalCall;
use everbell_http::problem::Problem;
use everbell_wire as wire;

pub(super) const ROUTE: &str = "/orgs/{orgId}/jobs/{jobKey}";

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Off,
    On,
    /// The org wants what all want.
    Clear,
}

#[derive(Template)]
#[template(path = "orgs/wish.html")]
struct WishPage {
    frame: Frame,
    subject: OrgSubject,
    refusal: Refusal,
    act: Act,
    key: String,
    /// The local time of its own that it has.
    expression: Option<String>,
    /// Whether it is like that already.
    done: bool,
    before: Vec<Moment>,
    after: Vec<Moment>,
    reason: String,
    same: Equivalent,
}

impl Act {
    /// What the org wants then.
    fn wish(self, row: &OrgJob, by: &str, now: jiff::Timestamp) -> Option<Override> {
        let expression = row.override_.as_ref().and_then(|wish| wish.expression.clone());
        let (enabled, keeps) = match self {
            Act::Off => (false, true),
            Act::On => (true, expression.is_some()),
            Act::Clear => (true, false),
        };
        let (job_key, updated_by) = (row.job.definition.key.clone(), by.to_owned());
        keeps.then_some(Override { job_key, enabled, expression, updated_by, updated_at: now })
    }

    fn is_done(self, row: &OrgJob) -> bool {
        match (self, &row.override_) {
            (Act::Off, wish) => wish.as_ref().is_some_and(|wish| !wish.enabled),
            (Act::On, wish) => wish.as_ref().is_none_or(|wish| wish.enabled),
            (Act::Clear, wish) => wish.is_none(),
        }
    }

    fn title(self, key: &str, called: &str) -> String {
        match self {
            Act::Off => format!("Switch {key} off for {called}"),
            Act::On => format!("Switch {key} on for {called}"),
            Act::Clear => format!("Clear what {called} overrides of {key}"),
        }
    }
}

pub(crate) async fn show_off(visit: Visit) -> Result<Reply, Problem> {
    show(&visit, Act::Off).await
}

pub(crate) async fn show_on(visit: Visit) -> Result<Reply, Problem> {
    show(&visit, Act::On).await
}

pub(crate) async fn show_clear(visit: Visit) -> Result<Reply, Problem> {
    show(&visit, Act::Clear).await
}

async fn show(visit: &Visit, act: Act) -> Result<Reply, Problem> {
    expect_operator(visit)?;
    form(visit, act, None).await
}

async fn form(visit: &Visit, act: Act, problem: Option<&Problem>) -> Result<Reply, Problem> {
    let subject = OrgSubject::of(visit).await?;
    let row = subject.job(visit).await?;
    let (key, wish) = (row.job.definition.key.to_string(), act.wish(&row, &visit.actor.name, visit.now));
    let (before, after) = around(visit, &subject, &row, wish.clone());
    let page = WishPage {
        frame: visit.frame(Section::Orgs, act.title(&key, &subject.called)).await,
        refusal: refusal(problem, &["reason"]),
        expression: row.override_.as_ref().and_then(|wish| wish.expression.clone()),
        done: act.is_done(&row),
        reason: typed(visit, "reason"),
        same: same(visit, &subject, &key, wish.as_ref())?,
        act,
        key,
        before,
        after,
        subject,
    };
    Reply::refused(&page, problem.map_or(StatusCode::OK, Problem::status))
}

/// The next fires as things are, and if the org wanted that.
pub(super) fn around(
    visit: &Visit,
    subject: &OrgSubject,
    row: &OrgJob,
    wish: Option<Override>,
) -> (Vec<Moment>, Vec<Moment>) {
    let clock = visit.clock();
    let mut view = view(&subject.org, row);
    let shown = |times: Vec<jiff::Timestamp>| times.into_iter().map(|at| subject.moment(&clock, at)).collect();
    let before = shown(fires(&view, visit.now));
    view.facts.override_ = wish;
    (before, shown(fires(&view, visit.now)))
}

fn same(visit: &Visit, subject: &OrgSubject, key: &str, wish: Option<&Override>) -> Result<Equivalent, Problem> {
    let path = format!("/orgs/{}/jobs/{}", subject.part, url_part(key));
    let base = visit.api_base();
    match wish {
        None => Ok(Equivalent::new(&base, "DELETE", &path, &["orgs", "override", &subject.id, key, "--clear"])),
        Some(wish) => {
            let words = ["orgs", "override", &subject.id, key, if wish.enabled { "--on" } else { "--off" }];
            Equivalent::with_body(&base, "PUT", &path, &Body::from(wish), &words)
        }
    }
}

/// The body of a request that overrides a job for an org.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cron_expression: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) enabled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) local_time: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<&'a str>,
}

impl<'a> From<&'a Override> for Body<'a> {
    fn from(own: &'a Override) -> Body<'a> {
        Body { cron_expression: own.expression.as_deref(), enabled: Some(own.enabled), ..Body::default() }
    }
}

pub(crate) async fn switch_off(visit: Visit) -> Result<Reply, Problem> {
    send(visit, Act::Off).await
}

pub(crate) async fn switch_on(visit: Visit) -> Result<Reply, Problem> {
    send(visit, Act::On).await
}

pub(crate) async fn clear(visit: Visit) -> Result<Reply, Problem> {
    send(visit, Act::Clear).await
}

async fn send(visit: Visit, act: Act) -> Result<Reply, Problem> {
    expect_operator(&visit)?;
    let subject = OrgSubject::of(&visit).await?;
    let row = subject.job(&visit).await?;
    let key = row.job.definition.key.to_string();
    let path = [("orgId", subject.id.as_str()), ("jobKey", &key)];
    let done = match act.wish(&row, &visit.actor.name, visit.now) {
        Some(wish) => {
            let body = Body { reason: visit.sent("reason"), ..Body::from(&wish) };
            visit.perform(Method::PUT, ROUTE, &path, &body).await.map(|_: wire::OrgOverride| ())
        }
        None if row.override_.is_none() => Ok(()),
        None => {
            let call = InternalCall::new(Method::DELETE, ROUTE, &path).with_query(&Reason::sent(&visit))?;
            visit.ask(call, &()).await
        }
    };
    match done {
        Ok(()) => {
            let text = match act {
                Act::Off => format!("{key} is off for {}.", subject.id),
                Act::On => format!("{key} is on for {}.", subject.id),
                Act::Clear => format!("{key} fires for {} as for all.", subject.id),
            };
            Ok(Reply::done(subject.place(), text))
        }
        Err(problem) => form(&visit, act, Some(&mendable(problem)?)).await,
    }
}
