//! Disabling an org, so that no job fires for it, and enabling it again.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell::core::store::OrgJob;
use serde::Serialize;

use super::forecast::{fires, view};
use super::{OrgSubject, refusal};
use crate::equivalent::Equivalent;
use crate::pages::action::{Moment, Refusal, correctable, expect_operator, typed};
use crate::request::{UiRequest, UiResponse};
use crate::{Frame, Section};
use everbell_http::problem::Problem;
use everbell_wire as wire;

/// How many jobs are named.
const MAX_LISTED_FIRES: usize = 10;

#[derive(Template)]
#[template(path = "orgs/enable.html")]
struct EnablePage {
    frame: Frame,
    subject: OrgSubject,
    refusal: Refusal,
    enabling: bool,
    /// Whether it is like that already.
    done: bool,
    /// The next fires that will not happen any more, or will again.
    fires: Vec<(String, Moment)>,
    more: usize,
    reason: String,
    same: Equivalent,
}

pub(crate) async fn show_disable(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    form(&request, false, None).await
}

pub(crate) async fn show_enable(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    form(&request, true, None).await
}

async fn form(request: &UiRequest, enabling: bool, problem: Option<&Problem>) -> Result<UiResponse, Problem> {
    let subject = OrgSubject::load(request).await?;
    let mut jobs = next_fires(request, &subject, true).await?;
    let more = jobs.len().saturating_sub(MAX_LISTED_FIRES);
    jobs.truncate(MAX_LISTED_FIRES);
    let word = if enabling { "Enable" } else { "Disable" };
    let page = EnablePage {
        frame: request.frame(Section::Orgs, format!("{word} {}", subject.called)).await,
        refusal: refusal(problem, &["reason"]),
        done: subject.org.place.enabled == enabling,
        fires: jobs,
        more,
        reason: typed(request, "reason"),
        same: {
            let (path, flag) = (format!("/orgs/{}", subject.part), if enabling { "--enable" } else { "--disable" });
            let body = Body { enabled: enabling, reason: None };
            Equivalent::with_body(&request.api_base(), "PATCH", &path, &body, &["orgs", "set", &subject.id, flag])?
        },
        enabling,
        subject,
    };
    UiResponse::with_status(&page, problem.map_or(StatusCode::OK, Problem::status))
}

/// The next fire of every job that has one, if the org were enabled or not.
pub(super) async fn next_fires(
    request: &UiRequest,
    subject: &OrgSubject,
    enabled: bool,
) -> Result<Vec<(String, Moment)>, Problem> {
    let (clock, freezes) = (request.clock(), request.app.bell.freezes().list().await?);
    let first = |row: &OrgJob| {
        let mut view = view(&subject.org, row);
        view.facts.place.enabled = enabled;
        let at = fires(&view, &freezes, request.now).into_iter().next()?;
        Some((row.job.definition.key.to_string(), subject.moment(&clock, at)))
    };
    Ok(request.orgs().jobs_of(&subject.org.id).await?.iter().filter_map(first).collect())
}

pub(crate) async fn disable(request: UiRequest) -> Result<UiResponse, Problem> {
    send(request, false).await
}

pub(crate) async fn enable(request: UiRequest) -> Result<UiResponse, Problem> {
    send(request, true).await
}

/// The body of the request.
#[derive(Serialize)]
struct Body<'a> {
    enabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

async fn send(request: UiRequest, enabling: bool) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    let subject = OrgSubject::load(&request).await?;
    let body = Body { enabled: enabling, reason: request.sent("reason") };
    match request.perform::<wire::Org>(Method::PATCH, "/orgs/{orgId}", &[("orgId", &subject.id)], &body).await {
        Ok(_) if enabling => Ok(UiResponse::done(subject.path(), format!("{} enabled. Jobs fire for it.", subject.id))),
        Ok(_) => Ok(UiResponse::done(subject.path(), format!("{} disabled. No job fires for it.", subject.id))),
        Err(problem) => form(&request, enabling, Some(&correctable(problem)?)).await,
    }
}
