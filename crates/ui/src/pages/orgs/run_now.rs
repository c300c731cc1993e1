//! Running a job at once for many orgs: those that were picked, or all.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell_core::Scope;
use serde::Serialize;

use crate::equivalent::Equivalent;
use crate::pages::action::{Refusal, Subject, correctable, expect_operator, typed};
use crate::request::{Content, Flash, UiRequest, UiResponse};
use crate::{Frame, Section};
use everbell_http::problem::Problem;
use everbell_wire as wire;
use everbell_wire::form::{Field, Kind, TEXT, optional, pairs};
use everbell_wire::run::RunNowOutcome;

pub(crate) const QUERY: &[Field] = &[
    optional("orgId", Kind::List { of: &TEXT, max: MAX_SELECTED_ORGS }, "The selected orgs."),
    optional("all", Kind::Flag, "All orgs instead of the selected ones."),
];

/// The most orgs that are picked at once.
const MAX_SELECTED_ORGS: usize = 100;
/// No more orgs than this are counted.
const MAX_COUNTED_ORGS: u32 = 10_000;

#[derive(Template)]
#[template(path = "orgs/run_now.html")]
struct RunNowPage {
    frame: Frame,
    subject: Subject,
    refusal: Refusal,
    /// Nothing if it is for all.
    selected: Option<Vec<String>>,
    /// How many orgs there are, if it is for all; and whether there may be more.
    orgs: u32,
    uncounted: bool,
    note: String,
    same: Equivalent,
}

impl RunNowPage {
    fn none_selected(&self) -> bool {
        self.selected.as_ref().is_some_and(Vec::is_empty)
    }
}

/// The body of the request.
#[derive(Serialize)]
struct Body<'a> {
    orgs: Orgs<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
}

/// The orgs of the request: the word `all`, or their ids.
#[derive(Serialize)]
#[serde(untagged)]
enum Orgs<'a> {
    All(&'static str),
    Selected(&'a [String]),
}

impl<'a> Body<'a> {
    fn new(selected: Option<&'a [String]>, note: Option<&'a str>) -> Body<'a> {
        Body { orgs: selected.map_or(Orgs::All("all"), Orgs::Selected), note }
    }
}

/// Returns the selected orgs, or `None` for all.
fn selected(request: &UiRequest) -> Option<Vec<String>> {
    let text = request.here.split_once('?').map_or("", |(_, query)| query);
    // An id may hold a comma, at which the query is cut into a list.
    let asked = if request.sent.is_empty() { pairs(text).unwrap_or_default() } else { request.sent.clone() };
    let is_all = asked.iter().any(|(name, value)| name == "all" && value == "true");
    let ids = asked.into_iter().filter(|(name, value)| name == "orgId" && !value.is_empty()).map(|(_, id)| id);
    (!is_all).then(|| ids.collect())
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    form(&request, Refusal::default(), StatusCode::OK).await
}

async fn form(request: &UiRequest, refusal: Refusal, status: StatusCode) -> Result<UiResponse, Problem> {
    let subject = Subject::living(request).await?;
    if subject.definition().scope != Scope::PerOrg {
        return Ok(UiResponse::redirect(format!("{}/run-now", subject.path())));
    }
    let (selected, counts) = (selected(request), request.orgs().counts().await?);
    let list = selected.as_ref().map(|ids| ids.join(","));
    let which = list.as_ref().map_or(vec!["--all-orgs"], |list| vec!["--orgs", list]);
    let words = [&["jobs", "run", &subject.key][..], &which].concat();
    let path = format!("/jobs/{}/run-now", subject.name);
    let body = Body::new(selected.as_deref(), None);
    let page = RunNowPage {
        frame: request.frame(Section::Jobs, format!("Run {} now for orgs", subject.key)).await,
        same: Equivalent::with_body(&request.api_base(), "POST", &path, &body, &words)?,
        orgs: counts.orgs,
        uncounted: counts.orgs >= MAX_COUNTED_ORGS,
        note: typed(request, "note"),
        selected,
        subject,
        refusal,
    };
    UiResponse::with_status(&page, status)
}

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    let subject = Subject::living(&request).await?;
    let selected = selected(&request);
    let (path, body) = ([("jobId", subject.exact.as_str())], Body::new(selected.as_deref(), request.sent("note")));
    match request.perform::<wire::RunNowOrgs>(Method::POST, "/jobs/{jobId}/run-now", &path, &body).await {
        Ok(answer) => Ok(response(&subject, &answer)),
        Err(problem) => {
            let problem = correctable(problem)?;
            form(&request, Refusal::from_problem(Some(&problem), &["note"]), problem.status()).await
        }
    }
}

/// Redirects to the orgs with the outcome.
fn response(subject: &Subject, answer: &wire::RunNowOrgs) -> UiResponse {
    let place = format!("{}/orgs", subject.path());
    if let Some(org_update) = &answer.org_update {
        let text = if org_update.done { "now has its run" } else { "gets its run, a few orgs at a time" };
        return UiResponse::done(place, format!("Every org that {} is on for {text}.", subject.key));
    }
    let flash = summary(&subject.key, &answer.items);
    UiResponse::new(Content::Redirect { to: place, flash: Some(flash) })
}

/// How many runs began, and why others did not.
fn summary(key: &str, items: &[wire::OrgRun]) -> Flash {
    use RunNowOutcome::{Queued, Refused, Skipped, Started};
    let count = |wanted: &[RunNowOutcome]| items.iter().filter(|item| wanted.contains(&item.outcome)).count();
    let (begun, skipped, refused) = (count(&[Started, Queued]), count(&[Skipped]), count(&[Refused]));
    let orgs = if begun == 1 { "1 org".to_owned() } else { format!("{begun} orgs") };
    let mut parts = vec![format!("{key} is running for {orgs}.")];
    if skipped > 0 {
        parts.push(format!("Skipped for {skipped}: another run is active."));
    }
    if let Some(first) = items.iter().find(|item| item.outcome == Refused) {
        let why = first.detail.as_deref().unwrap_or_default();
        parts.push(format!("Refused for {refused}: {}: {why}.", first.org_id));
    }
    Flash { good: skipped + refused == 0, text: parts.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_counts_each_outcome() {
        let item = |org: &str, outcome: &str| wire::OrgRun {
            org_id: org.to_owned(),
            outcome: RunNowOutcome::from_word(outcome),
            run: None,
            detail: Some("there is no such org".to_owned()),
        };
        let said = |items: &[wire::OrgRun]| summary("daily", items);
        assert_eq!(said(&[item("a", "started")]), Flash { good: true, text: "daily is running for 1 org.".to_owned() });
        let mixed = said(&[item("a", "started"), item("b", "queued"), item("c", "skipped"), item("d", "refused")]);
        assert!(!mixed.good);
        assert_eq!(
            mixed.text,
            "daily is running for 2 orgs. Skipped for 1: another run is active. Refused for 1: d: there is no such org."
        );
    }
}
