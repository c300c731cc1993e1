//! The audit trail.

use crate::call::{Answer, Call};
use crate::page::{self, CURSOR, LIMIT};
use crate::problem::Problem;
use everbell_wire as wire;
use everbell_wire::form::{Field, Kind, optional};

/// A kind, a colon, and a name of up to 200 signs.
const OBJECT: Kind = Kind::Text { min: 1, max: 220 };

/// The query of the list of audit entries.
pub const LIST: &[Field] =
    &[optional("object", OBJECT, "Only entries about this object, such as `job:daily-briefing`."), LIMIT, CURSOR];

pub(crate) async fn list(call: Call) -> Result<Answer, Problem> {
    let form = call.query(LIST);
    let page = call.app.bell.store().list_audit(form.text("object"), &page::request(&call)?).await?;
    let document = page::document(&call, &page, page.items.iter().map(wire::AuditEntry::from).collect());
    Ok(page::linked(&call, "/audit", document.next_cursor.as_deref(), Answer::ok(&document)?))
}
