//! Turning a job off or on for an org, and removing its override.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell::core::org::Override;
use everbell::core::store::OrgJob;
use serde::Serialize;

use super::forecast::{fires, view};
use super::{OrgSubject, refusal};
use crate::equivalent::Equivalent;
use crate::markup::url_part;
use crate::pages::action::{Moment, Reason, Refusal, correctable, expect_operator, typed};
use crate::request::{UiRequest, UiResponse};
use crate::{Frame, Section};
use everbell_http::internal_call::InternalCall;
use everbell_http::problem::Problem;
use everbell_wire as wire;

pub(super) const ROUTE: &str = "/orgs/{orgId}/jobs/{jobKey}";

/// A change of an override.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Off,
    On,
    /// Removes the override.
    Clear,
}

#[derive(Template)]
#[template(path = "orgs/job_override.html")]
struct OverridePage {
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
    /// Returns the override after the change.
    fn to_override(self, row: &OrgJob, by: &str, now: jiff::Timestamp) -> Option<Override> {
        let expression = row.override_.as_ref().and_then(|own| own.expression.clone());
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
            (Act::Off, override_) => override_.as_ref().is_some_and(|own| !own.enabled),
            (Act::On, override_) => override_.as_ref().is_none_or(|own| own.enabled),
            (Act::Clear, override_) => override_.is_none(),
        }
    }

    fn title(self, key: &str, called: &str) -> String {
        match self {
            Act::Off => format!("Turn off {key} for {called}"),
            Act::On => format!("Turn on {key} for {called}"),
            Act::Clear => format!("Remove the override of {key} for {called}"),
        }
    }
}

pub(crate) async fn show_off(request: UiRequest) -> Result<UiResponse, Problem> {
    show(&request, Act::Off).await
}

pub(crate) async fn show_on(request: UiRequest) -> Result<UiResponse, Problem> {
    show(&request, Act::On).await
}

pub(crate) async fn show_clear(request: UiRequest) -> Result<UiResponse, Problem> {
    show(&request, Act::Clear).await
}

async fn show(request: &UiRequest, act: Act) -> Result<UiResponse, Problem> {
    expect_operator(request)?;
    form(request, act, None).await
}

async fn form(request: &UiRequest, act: Act, problem: Option<&Problem>) -> Result<UiResponse, Problem> {
    let subject = OrgSubject::load(request).await?;
    let row = subject.job(request).await?;
    let (key, override_) =
        (row.job.definition.key.to_string(), act.to_override(&row, &request.actor.name, request.now));
    let (before, after) = around(request, &subject, &row, override_.clone()).await?;
    let page = OverridePage {
        frame: request.frame(Section::Orgs, act.title(&key, &subject.called)).await,
        refusal: refusal(problem, &["reason"]),
        expression: row.override_.as_ref().and_then(|own| own.expression.clone()),
        done: act.is_done(&row),
        reason: typed(request, "reason"),
        same: same(request, &subject, &key, override_.as_ref())?,
        act,
        key,
        before,
        after,
        subject,
    };
    UiResponse::with_status(&page, problem.map_or(StatusCode::OK, Problem::status))
}

/// Returns the next runs now and with this override.
pub(super) async fn around(
    request: &UiRequest,
    subject: &OrgSubject,
    row: &OrgJob,
    override_: Option<Override>,
) -> Result<(Vec<Moment>, Vec<Moment>), Problem> {
    let (clock, freezes) = (request.clock(), request.app.bell.freezes().list().await?);
    let mut view = view(&subject.org, row);
    let shown = |times: Vec<jiff::Timestamp>| times.into_iter().map(|at| subject.moment(&clock, at)).collect();
    let before = shown(fires(&view, &freezes, request.now));
    view.facts.override_ = override_;
    Ok((before, shown(fires(&view, &freezes, request.now))))
}

fn same(
    request: &UiRequest,
    subject: &OrgSubject,
    key: &str,
    override_: Option<&Override>,
) -> Result<Equivalent, Problem> {
    let path = format!("/orgs/{}/jobs/{}", subject.part, url_part(key));
    let base = request.api_base();
    match override_ {
        None => Ok(Equivalent::new(&base, "DELETE", &path, &["orgs", "override", &subject.id, key, "--clear"])),
        Some(override_) => {
            let words = ["orgs", "override", &subject.id, key, if override_.enabled { "--on" } else { "--off" }];
            Equivalent::with_body(&base, "PUT", &path, &Body::from(override_), &words)
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

pub(crate) async fn switch_off(request: UiRequest) -> Result<UiResponse, Problem> {
    send(request, Act::Off).await
}

pub(crate) async fn switch_on(request: UiRequest) -> Result<UiResponse, Problem> {
    send(request, Act::On).await
}

pub(crate) async fn clear(request: UiRequest) -> Result<UiResponse, Problem> {
    send(request, Act::Clear).await
}

async fn send(request: UiRequest, act: Act) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    let subject = OrgSubject::load(&request).await?;
    let row = subject.job(&request).await?;
    let key = row.job.definition.key.to_string();
    let path = [("orgId", subject.id.as_str()), ("jobKey", &key)];
    let done = match act.to_override(&row, &request.actor.name, request.now) {
        Some(override_) => {
            let body = Body { reason: request.sent("reason"), ..Body::from(&override_) };
            request.perform(Method::PUT, ROUTE, &path, &body).await.map(|_: wire::OrgOverride| ())
        }
        None if row.override_.is_none() => Ok(()),
        None => {
            let call = InternalCall::new(Method::DELETE, ROUTE, &path).with_query(&Reason::sent(&request))?;
            request.ask(call, &()).await
        }
    };
    match done {
        Ok(()) => {
            let text = match act {
                Act::Off => format!("{key} turned off for {}.", subject.id),
                Act::On => format!("{key} turned on for {}.", subject.id),
                Act::Clear => format!("Override of {key} removed for {}.", subject.id),
            };
            Ok(UiResponse::done(subject.path(), text))
        }
        Err(problem) => form(&request, act, Some(&correctable(problem)?)).await,
    }
}
