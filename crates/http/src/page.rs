//! Pages: how many, and where to go on.
//!
//! A cursor is opaque: the place behind which the next page begins, bound to the question that it belongs to. One that was
//! made for other filters, or was tampered with, is refused.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use everbell_core::store::{self, Cursor, PageRequest};
use everbell_wire as wire;
use percent_encoding::AsciiSet;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::problem::Problem;
use super::request::{ApiRequest, ApiResponse};
use everbell_wire::form::{Field, Kind, optional};
use everbell_wire::percent;

pub(crate) const LIMIT: Field =
    optional("limit", Kind::Integer { min: 1, max: 200 }, "The maximum number of items per page. Default: 50.");
/// The query parameter that names where a page begins.
pub const CURSOR: Field = optional(
    "cursor",
    Kind::Text { min: 1, max: 2_000 },
    "The `nextCursor` of the previous page. Send the same filters with it.",
);

const DEFAULT_LIMIT: u32 = 50;
const CHECKSUM_BYTES: usize = 9;

/// Reads the limit and the cursor of a query.
pub fn from_query(request: &ApiRequest) -> Result<PageRequest, Problem> {
    let limit = request.query.get("limit").and_then(Value::as_u64).and_then(|limit| u32::try_from(limit).ok());
    let text = request.query.get("cursor").and_then(Value::as_str);
    let after = text.map(|text| decode_cursor(text, &bound_query(&request.query))).transpose()?;
    Ok(PageRequest { limit: limit.unwrap_or(DEFAULT_LIMIT), after })
}

/// The cursor behind a page of this call.
pub fn next(request: &ApiRequest, cursor: Option<&Cursor>) -> Option<String> {
    cursor.map(|cursor| encode_cursor(cursor, &bound_query(&request.query)))
}

/// A page as it is answered: these items, made of the rows.
pub fn document<R, T>(request: &ApiRequest, page: &store::Page<R>, items: Vec<T>) -> wire::Page<T> {
    wire::Page { items, next_cursor: next(request, page.next.as_ref()), unreadable: page.unreadable.clone() }
}

/// With a `Link` to the next page.
pub fn linked(request: &ApiRequest, path: &str, cursor: Option<&str>, response: ApiResponse) -> ApiResponse {
    let Some(cursor) = cursor else { return response };
    let mut query = String::new();
    if let Value::Object(members) = &request.query {
        for (name, value) in members.iter().filter(|(name, _)| *name != "cursor") {
            query.extend([format!("{name}={}&", encoded(&plain(value)))]);
        }
    }
    response.header("link", format!("<{}{path}?{query}cursor={cursor}>; rel=\"next\"", request.mount))
}

/// A value as it stands in a query.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// A text as a part of a path or a query.
pub fn encoded(text: &str) -> String {
    const ENCODED: &AsciiSet = &percent::reserved_except(b",:");
    percent::encode(text, ENCODED)
}

/// Everything that a cursor is bound to: the query without the page itself.
fn bound_query(query: &Value) -> String {
    let mut query = query.clone();
    if let Value::Object(members) = &mut query {
        members.remove("cursor");
        members.remove("limit");
    }
    query.to_string()
}

fn encode_cursor(cursor: &Cursor, bound_query: &str) -> String {
    let position = json!([cursor.value, cursor.id]).to_string();
    let mut bytes = checksum(&position, bound_query).to_vec();
    bytes.extend(position.as_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

fn decode_cursor(text: &str, bound_query: &str) -> Result<Cursor, Problem> {
    let read = || -> Option<Cursor> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (sum, position) = bytes.split_at_checked(CHECKSUM_BYTES)?;
        let position = std::str::from_utf8(position).ok()?;
        if sum != checksum(position, bound_query) {
            return None;
        }
        let (value, id): (String, Uuid) = serde_json::from_str(position).ok()?;
        Some(Cursor { value, id })
    };
    read().ok_or_else(|| {
        Problem::at("parameter", "cursor", "does not belong to this list and these filters; start again without it")
    })
}

fn checksum(position: &str, bound_query: &str) -> [u8; CHECKSUM_BYTES] {
    let mut hash = Sha256::new();
    hash.update((position.len() as u64).to_be_bytes());
    hash.update(position);
    hash.update(bound_query);
    let mut sum = [0; CHECKSUM_BYTES];
    sum.copy_from_slice(&hash.finalize()[..CHECKSUM_BYTES]);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_belongs_to_its_question() {
        let cursor = Cursor { value: "2026-11-15T12:00:00Z".to_owned(), id: Uuid::from_u128(7) };
        let own = bound_query(&json!({"status": ["failed"], "limit": 5, "cursor": "x"}));
        assert_eq!(own, bound_query(&json!({"status": ["failed"], "limit": 50})));
        let sealed = encode_cursor(&cursor, &own);
        assert_eq!(decode_cursor(&sealed, &own).unwrap(), cursor);
        assert!(decode_cursor(&sealed, &bound_query(&json!({"status": ["succeeded"]}))).is_err());
        for n in 0..sealed.len() {
            let mut other = sealed.clone().into_bytes();
            other[n] = if other[n] == b'A' { b'B' } else { b'A' };
            assert!(decode_cursor(std::str::from_utf8(&other).unwrap(), &own).is_err(), "character {n}");
        }
        for bad in ["", "x", "äö", "AAAA"] {
            assert!(decode_cursor(bad, &own).is_err(), "{bad}");
        }
    }
}
