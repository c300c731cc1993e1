//! What people and programs did.

use askama::Template;

use crate::form::Field;
use crate::http::api::audit;
use crate::http::page;
use crate::http::problem::Problem;
use crate::ui::audit_line::AuditLine;
use crate::ui::{Frame, Links, Reply, Section, Visit};

/// The same as the API's.
pub(crate) const QUERY: &[Field] = audit::LIST;

#[derive(Template)]
#[template(path = "house/audit.html")]
struct AuditPage {
    frame: Frame,
    links: Links,
    lines: Vec<AuditLine>,
    next: Option<String>,
}

pub(crate) async fn show(visit: Visit) -> Result<Reply, Problem> {
    let call = visit.call();
    let form = visit.query(QUERY);
    let page = visit.app.bell.store().list_audit(form.text("object"), &page::request(&call)?).await?;
    let (clock, links) = (visit.clock(), Links::new("/audit", &visit.query));
    let next = page::next(&call, page.next.as_ref()).map(|cursor| links.with("cursor", &cursor));
    let template = AuditPage {
        frame: visit.frame(Section::Audit, "Audit").await,
        lines: page.items.iter().map(|entry| AuditLine::of(entry, &clock)).collect(),
        links,
        next,
    };
    Reply::page(&template)
}
