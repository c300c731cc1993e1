//! The audit trail.

use askama::Template;

use crate::audit_line::AuditLine;
use crate::{Frame, Links, Section, UiRequest, UiResponse};
use everbell_http::api::audit;
use everbell_http::page;
use everbell_http::problem::Problem;
use everbell_wire::form::Field;

/// The kinds of objects.
const KINDS: [&str; 9] = ["job", "run", "org", "token", "instance", "session", "route", "problem", "channel"];

/// The query parameters, which are those of the API.
pub(crate) const QUERY: &[Field] = audit::LIST;

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage {
    frame: Frame,
    links: Links,
    lines: Vec<AuditLine>,
    next: Option<String>,
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    let api_request = request.to_api_request();
    let form = request.query(QUERY);
    let object = form.text("object").map(named);
    let page = request.app.bell.store().list_audit(object.as_deref(), &page::from_query(&api_request)?).await?;
    let (clock, links) = (request.clock(), Links::new("/audit", &request.query));
    let next = page::next(&api_request, page.next.as_ref()).map(|cursor| links.with("cursor", &cursor));
    let template = AuditPage {
        frame: request.frame(Section::Audit, "Audit").await,
        lines: page.items.iter().map(|entry| AuditLine::new(entry, &clock)).collect(),
        links,
        next,
    };
    UiResponse::page(&template)
}

/// A name without its kind is the key of a job.
fn named(object: &str) -> String {
    let is_whole = object.split_once(':').is_some_and(|(kind, _)| KINDS.contains(&kind));
    if is_whole { object.to_owned() } else { format!("job:{object}") }
}
