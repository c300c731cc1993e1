//! The list of runs.

pub(crate) mod export;
pub(crate) mod matching;
pub(crate) mod period;
pub(crate) mod row;
mod search;
pub(crate) mod selection;

use std::collections::BTreeSet;

use askama::Template;
use axum::http::StatusCode;
use everbell::{RunFilter, RunStatus};
use everbell_core::TriggerType;
use everbell_core::store::{Instance, PageRequest};

use super::action::Refusal;
use crate::badge::run_words;
use crate::markup::Markup;
use crate::{Frame, Links, Section, UiRequest, UiResponse};
use everbell_http::access::Role;
use everbell_http::api::runs::{self, filter};
use everbell_http::page;
use everbell_http::problem::{Kind, Problem};
use everbell_wire::form::Field;
use row::{Hosts, Row};

/// The query parameters, which are those of the API.
pub(crate) const QUERY: &[Field] = runs::LIST;

/// The filters that are shown as such, and what they are called.
const FILTERS: [(&str, &str); 11] = [
    ("status", "Status"),
    ("target", "Target"),
    ("jobKey", "Job"),
    ("label", "Label"),
    ("jobId", "Version"),
    ("triggerType", "Trigger"),
    ("instanceId", "Instance"),
    ("failureCode", "Failure code"),
    ("orgId", "Org"),
    ("from", "From"),
    ("to", "To"),
];

#[derive(Template)]
#[template(path = "runs.html")]
struct RunsPage {
    frame: Frame,
    links: Links,
    exports: Links,
    /// In which the period is typed and shown.
    zone: String,
    from: String,
    to: String,
    /// The active filters: name, label, value, and the address without it.
    set: Vec<(&'static str, &'static str, String, String)>,
    /// The statuses to choose from, with labels.
    statuses: Vec<(&'static str, &'static str)>,
    triggers: Vec<(&'static str, &'static str)>,
    hosts: Hosts,
    targets: BTreeSet<String>,
    rows: Vec<Row>,
    /// Whether some of them are for an org, or only such are looked for.
    orgs: bool,
    empty: Empty,
    next: Option<String>,
    /// The oldest time that was searched.
    back_to: Option<Markup>,
    first: Option<String>,
    refusal: Refusal,
    /// The reason why the actor may not act.
    no_act: Option<String>,
    /// Where all that match are run again, and the words before the link.
    matching: Option<(String, &'static str)>,
}

/// Why a list is empty, and what there is instead.
#[derive(Default)]
struct Empty {
    title: String,
    /// The time and the id of the newest run.
    last: Option<(Markup, String)>,
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    let zone = request.clock().zone(None);
    if let Some(settled) = period::settled(&request.query, &zone) {
        return Ok(UiResponse::redirect(Links::new("/runs", &settled).here()));
    }
    let api_request = request.to_api_request();
    let read = match filter(&api_request) {
        Ok(filter) => Ok((page::from_query(&api_request)?, filter)),
        Err(problem) if problem.kind == Kind::InvalidInput => Err(problem),
        Err(problem) => return Err(problem),
    };
    let instances = request.app.bell.instances().await?;
    let links = Links::new("/runs", &request.query);
    let typed = |name: &str| period::typed(&links.value(name), &zone);
    let mut shown = RunsPage {
        frame: request.frame(Section::Runs, "Runs").await,
        exports: Links::new("/runs/export", &request.query),
        zone: zone.name().to_owned(),
        from: typed("from"),
        to: typed("to"),
        set: Vec::new(),
        statuses: RunStatus::ALL.iter().map(|status| (status.as_str(), run_words(*status).1)).collect(),
        triggers: TriggerType::ALL.iter().map(|trigger| (trigger.as_str(), row::trigger_label(*trigger))).collect(),
        targets: targets(&instances),
        hosts: Hosts::new(&instances),
        rows: Vec::new(),
        orgs: !links.value("orgId").is_empty(),
        empty: Empty::default(),
        next: None,
        back_to: None,
        first: request.query.get("cursor").map(|_| links.here()),
        refusal: Refusal::default(),
        no_act: request.barred(Role::Operator),
        matching: matching::offer(&request.query, &request.here),
        links,
    };
    shown.set = set(&shown);
    match read {
        Ok((page_request, filter)) => fill(&request, &mut shown, &page_request, &filter).await?,
        Err(problem) => {
            shown.refusal = Refusal::from_problem(Some(&problem), &FILTERS.map(|(name, _)| name));
            return UiResponse::with_status(&shown, StatusCode::BAD_REQUEST);
        }
    }
    UiResponse::page(&shown)
}

async fn fill(
    request: &UiRequest,
    shown: &mut RunsPage,
    page_request: &PageRequest,
    filter: &RunFilter,
) -> Result<(), Problem> {
    let page = search::search(&request.app.bell, filter, page_request).await?;
    let clock = request.clock();
    shown.back_to = page.back_to.map(|at| clock.at(at, None));
    let mut zones = Vec::with_capacity(page.items.len());
    for run in &page.items {
        zones.push(request.app.zone_of(run).await?);
    }
    // A column with times of several zones would not look sorted, so runs of several zones are shown in one.
    let zone = zones.first().filter(|first| zones.iter().all(|zone| zone == *first)).cloned().flatten();
    for run in &page.items {
        shown.rows.push(Row::new(run, &clock, zone.as_ref(), &shown.hosts));
    }
    shown.orgs |= shown.rows.iter().any(|row| row.org.is_some());
    let cursor = page::next(&request.to_api_request(), page.next.as_ref());
    shown.next = cursor.map(|cursor| shown.links.with("cursor", &cursor));
    if shown.rows.is_empty() {
        shown.empty = empty(request, filter).await?;
    }
    Ok(())
}

/// Returns the message for an empty list. Only the newest run of all or of a job is looked up, because an index has
/// it.
async fn empty(request: &UiRequest, filter: &RunFilter) -> Result<Empty, Problem> {
    let what = match filter.status.as_slice() {
        [status] => format!("No {status} runs"),
        _ => "No runs".to_owned(),
    };
    let title = match (filter.from.is_some() || filter.to.is_some(), filter == &RunFilter::default()) {
        (true, _) => format!("{what} in this period"),
        (_, true) => "No runs yet".to_owned(),
        _ => what,
    };
    let wider = RunFilter { job_id: filter.job_id, job_key: filter.job_key.clone(), ..RunFilter::default() };
    let newest = request.runs().list(&wider, &PageRequest { limit: 1, after: None }).await?;
    let last = newest.items.first().map(|run| (request.clock().away(run.scheduled_at), run.id.to_string()));
    Ok(Empty { title, last })
}

/// The targets that are served now, to choose from.
fn targets(instances: &[Instance]) -> BTreeSet<String> {
    instances.iter().flat_map(|instance| &instance.targets).map(ToString::to_string).collect()
}

/// The filters that are set, as people read them.
fn set(page: &RunsPage) -> Vec<(&'static str, &'static str, String, String)> {
    let shown = |name: &str, value: String| match name {
        "from" => format!("{} {}", page.from.replace('T', " "), page.zone),
        "to" => format!("{} {}", page.to.replace('T', " "), page.zone),
        "instanceId" => page.hosts.name(&value),
        "triggerType" => TriggerType::from_word(&value).map_or(value, |trigger| row::trigger_label(trigger).to_owned()),
        _ => value,
    };
    FILTERS
        .into_iter()
        .filter(|(name, _)| !page.links.value(name).is_empty())
        .map(|(name, label)| (name, label, shown(name, page.links.value(name)), page.links.without(name)))
        .collect()
}
