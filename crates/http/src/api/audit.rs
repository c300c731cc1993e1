//! The audit trail.

use crate::page::{self, CURSOR, LIMIT};
use crate::problem::Problem;
use crate::request::{ApiRequest, ApiResponse};
use everbell_wire as wire;
use everbell_wire::form::{Field, Kind, optional};

/// A kind, a colon, and a name of up to 200 signs.
const OBJECT: Kind = Kind::Text { min: 1, max: 220 };

/// The query of the list of audit entries.
pub const LIST: &[Field] =
    &[optional("object", OBJECT, "Only entries about this object, such as `job:daily-briefing`."), LIMIT, CURSOR];

pub(crate) async fn list(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let form = request.query(LIST);
    let page = request.app.bell.store().list_audit(form.text("object"), &page::from_query(&request)?).await?;
    let document = page::document(&request, &page, page.items.iter().map(wire::AuditEntry::from).collect());
    Ok(page::linked(&request, "/audit", document.next_cursor.as_deref(), ApiResponse::ok(&document)?))
}
