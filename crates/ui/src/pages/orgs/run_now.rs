//! Running a job at once for many orgs: those that were picked, or all.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell_core::Scope;
use serde::Serialize;

use crate::equivalent::Equivalent;
use crate::pages::action::{Refusal, Subject, expect_operator, mendable, typed};
use crate::visit::{Content, Flash, Reply, Visit};
use crate::{Frame, Section};
use everbell_http::problem::Problem;
use everbell_wire as wire;
use everbell_wire::form::{Field, Kind, TEXT, optional, pairs};
use everbell_wire::run::RunNowOutcome;

pub(crate) const QUERY: &[Field] = &[
    optional("orgId", Kind::List { of: &TEXT, max: MOST }, "Orgs that were picked."),
    optional("all", Kind::Flag, "All orgs, instead of those that were picked."),
];

/// The most orgs that are picked at once.
const MOST: usize = 100;
/// No more orgs than this are counted.
const COUNTED: u32 = 10_000;

#[derive(Template)]
#[template(path = "orgs/run_now.html")]
struct RunNowPage {
    frame: Frame,
    subject: Subject,
    refusal: Refusal,
    /// Nothing if it is for all.
    picked: Option<Vec<String>>,
    /// How many orgs there are, if it is for all; and whether there may be more.
    orgs: u32,
    uncounted: bool,
    note: String,
    same: Equivalent,
}

impl RunNowPage {
    fn none_picked(&self) -> bool {
        self.picked.as_ref().is_some_and(Vec::is_empty)
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
    Picked(&'a [String]),
}

impl<'a> Body<'a> {
    fn new(picked: Option<&'a [String]>, note: Option<&'a str>) -> Body<'a> {
        Body { orgs: picked.map_or(Orgs::All("all"), Orgs::Picked), note }
    }
}

/// Which orgs are meant: nothing is all of them.
fn picked(visit: &Visit) -> Option<Vec<String>> {
    let text = visit.here.split_once('?').map_or("", |(_, query)| query);
    // An id may hold a comma, at which the query is cut into a list.
    let asked = if visit.sent.is_empty() { pairs(text).unwrap_or_default() } else { visit.sent.clone() };
    let is_all = asked.iter().any(|(name, value)| name == "all" && value == "true");
    let ids = asked.into_iter().filter(|(name, value)| name == "orgId" && !value.is_empty()).map(|(_, id)| id);
    (!is_all).then(|| ids.collect())
}

pub(crate) async fn show(visit: Visit) -> Result<Reply, Problem> {
    expect_operator(&visit)?;
    form(&visit, Refusal::default(), StatusCode::OK).await
}

async fn form(visit: &Visit, refusal: Refusal, status: StatusCode) -> Result<Reply, Problem> {
    let subject = Subject::living(visit).await?;
    if subject.definition().scope != Scope::PerOrg {
        return Ok(Reply::go(format!("{}/run-now", subject.place())));
    }
    let (picked, counts) = (picked(visit), visit.orgs().counts().await?);
    let list = picked.as_ref().map(|ids| ids.join(","));
    let which = list.as_ref().map_or(vec!["--all-orgs"], |list| vec!["--orgs", list]);
    let words = [&["jobs", "run", &subject.key][..], &which].concat();
    let path = format!("/jobs/{}/run-now", subject.name);
    let body = Body::new(picked.as_deref(), None);
    let page = RunNowPage {
        frame: visit.frame(Section::Jobs, format!("Run {} now for many orgs", subject.key)).await,
        same: Equivalent::with_body(&visit.api_base(), "POST", &path, &body, &words)?,
        orgs: counts.orgs,
        uncounted: counts.orgs >= COUNTED,
        note: typed(visit, "note"),
        picked,
        subject,
        refusal,
    };
    Reply::refused(&page, status)
}

pub(crate) async fn send(visit: Visit) -> Result<Reply, Problem> {
    expect_operator(&visit)?;
    let subject = Subject::living(&visit).await?;
    let picked = picked(&visit);
    let (path, body) = ([("jobId", subject.exact.as_str())], Body::new(picked.as_deref(), visit.sent("note")));
    match visit.perform::<wire::RunNowOrgs>(Method::POST, "/jobs/{jobId}/run-now", &path, &body).await {
        Ok(answer) => Ok(reply(&subject, &answer)),
        Err(problem) => {
            let problem = mendable(problem)?;
            form(&visit, Refusal::of(Some(&problem), &["note"]), problem.status()).await
        }
    }
}

/// Back to the orgs, with what became of it.
fn reply(subject: &Subject, answer: &wire::RunNowOrgs) -> Reply {
    let place = format!("{}/orgs", subject.place());
    if let Some(org_update) = &answer.org_update {
        let text = if org_update.done { "has its run now" } else { "gets its run, a few at a time" };
        return Reply::done(place, format!("Every org that {} is not off for {text}.", subject.key));
    }
    let flash = summary(&subject.key, &answer.items);
    Reply::of(Content::Go { to: place, flash: Some(flash) })
}

/// How many runs began, and why others did not.
fn summary(key: &str, items: &[wire::OrgRun]) -> Flash {
    use RunNowOutcome::{Queued, Refused, Skipped, Started};
    let count = |wanted: &[RunNowOutcome]| items.iter().filter(|item| wanted.contains(&item.outcome)).count();
    let (begun, skipped, refused) = (count(&[Started, Queued]), count(&[Skipped]), count(&[Refused]));
    let orgs = if begun == 1 { "1 org".to_owned() } else { format!("{begun} orgs") };
    let mut parts = vec![format!("{key} runs now for {orgs}.")];
    if skipped > 0 {
        parts.push(format!("For {skipped} another run is active, so it was skipped."));
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
        assert_eq!(said(&[item("a", "started")]), Flash { good: true, text: "daily runs now for 1 org.".to_owned() });
        let mixed = said(&[item("a", "started"), item("b", "queued"), item("c", "skipped"), item("d", "refused")]);
        assert!(!mixed.good);
        assert_eq!(
            mixed.text,
            "daily runs now for 2 orgs. For 1 another run is active, so it was skipped. Refused for 1: d: there is no such org."
        );
    }
}
