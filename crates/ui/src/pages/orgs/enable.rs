//! Disabling an org, so that no job fires for it, and enabling it again.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell::core::store::OrgJob;
use serde::Serialize;

use super::foreseen::{fires, view};
use super::{OrgSubject, refusal};
use crate::equivalent::Equivalent;
use crate::pages::action::{Moment, Refusal, expect_operator, mendable, typed};
use crate::visit::{Reply, Visit};
use crate::{Frame, Section};
use everbell_http::problem::Problem;
use everbell_wire as wire;

/// How many jobs are named.
const NAMED: usize = 10;

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

pub(crate) async fn show_disable(visit: Visit) -> Result<Reply, Problem> {
    expect_operator(&visit)?;
    form(&visit, false, None).await
}

pub(crate) async fn show_enable(visit: Visit) -> Result<Reply, Problem> {
    expect_operator(&visit)?;
    form(&visit, true, None).await
}

async fn form(visit: &Visit, enabling: bool, problem: Option<&Problem>) -> Result<Reply, Problem> {
    let subject = OrgSubject::of(visit).await?;
    let mut jobs = next_fires(visit, &subject, true).await?;
    let more = jobs.len().saturating_sub(NAMED);
    jobs.truncate(NAMED);
    let word = if enabling { "Enable" } else { "Disable" };
    let page = EnablePage {
        frame: visit.frame(Section::Orgs, format!("{word} {}", subject.called)).await,
        refusal: refusal(problem, &["reason"]),
        done: subject.org.place.enabled == enabling,
        fires: jobs,
        more,
        reason: typed(visit, "reason"),
        same: {
            let (path, flag) = (format!("/orgs/{}", subject.part), if enabling { "--enable" } else { "--disable" });
            let body = Body { enabled: enabling, reason: None };
            Equivalent::with_body(&visit.api_base(), "PATCH", &path, &body, &["orgs", "set", &subject.id, flag])?
        },
        enabling,
        subject,
    };
    Reply::refused(&page, problem.map_or(StatusCode::OK, Problem::status))
}

/// The next fire of every job that has one, if the org were enabled or not.
pub(super) async fn next_fires(
    visit: &Visit,
    subject: &OrgSubject,
    enabled: bool,
) -> Result<Vec<(String, Moment)>, Problem> {
    let clock = visit.clock();
    let first = |row: &OrgJob| {
        let mut view = view(&subject.org, row);
        view.facts.place.enabled = enabled;
        let at = fires(&view, visit.now).into_iter().next()?;
        Some((row.job.definition.key.to_string(), subject.moment(&clock, at)))
    };
    Ok(visit.orgs().jobs_of(&subject.org.id).await?.iter().filter_map(first).collect())
}

pub(crate) async fn disable(visit: Visit) -> Result<Reply, Problem> {
    send(visit, false).await
}

pub(crate) async fn enable(visit: Visit) -> Result<Reply, Problem> {
    send(visit, true).await
}

/// The body of the request.
#[derive(Serialize)]
struct Body<'a> {
    enabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

async fn send(visit: Visit, enabling: bool) -> Result<Reply, Problem> {
    expect_operator(&visit)?;
    let subject = OrgSubject::of(&visit).await?;
    let body = Body { enabled: enabling, reason: visit.sent("reason") };
    match visit.perform::<wire::Org>(Method::PATCH, "/orgs/{orgId}", &[("orgId", &subject.id)], &body).await {
        Ok(_) if enabling => Ok(Reply::done(subject.place(), format!("{} is enabled: jobs fire for it.", subject.id))),
        Ok(_) => Ok(Reply::done(subject.place(), format!("{} is disabled: no job fires for it.", subject.id))),
        Err(problem) => form(&visit, enabling, Some(&mendable(problem)?)).await,
    }
}
