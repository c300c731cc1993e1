//! The audit trail.

use crate::form::{Field, Kind, optional};
use crate::http::call::{Answer, Call};
use crate::http::model::AuditDocument;
use crate::http::page::{self, CURSOR, LIMIT};
use crate::http::problem::Problem;

/// A kind, a colon, and a name of up to 200 signs.
const OBJECT: Kind = Kind::Text { min: 1, max: 220 };

pub(crate) const LIST: &[Field] =
    &[optional("object", OBJECT, "Entries about this, such as `job:daily-briefing`."), LIMIT, CURSOR];

pub(crate) async fn list(call: Call) -> Result<Answer, Problem> {
    let form = call.query(LIST);
    let page = call.app.bell.store().list_audit(form.text("object"), &page::request(&call)?).await?;
    let document = page::document(&call, &page, page.items.iter().map(AuditDocument::from).collect());
    Ok(page::linked(&call, "/audit", document.next_cursor.as_deref(), Answer::ok(&document)?))
}
