//! The body of a request: read within bounds, and checked against the fields of its route.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use http_body_util::BodyExt;
use serde_json::{Map, Value};

use super::excerpt::excerpt;
use super::problem::{Kind, Problem};
use super::route::{Route, Shape};
use everbell_wire::FaultCode;
use everbell_wire::JSON_LINES;
use everbell_wire::form::{Fault, Form, Naming, find_duplicate};

/// The most bytes of a body.
pub const MAX_BODY: usize = 1 << 20;
/// The most bytes of a body of many lines.
pub const MAX_LINES: usize = 16 << 20;
/// A body that does not arrive in this time is given up.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// The most bytes of a body that is too large that are read before the connection is closed.
const MAX_DISCARDED_BYTES: usize = 16 * MAX_BODY;
/// The deepest JSON of a body.
const MAX_DEPTH: usize = 64;
/// A longer body is parsed and checked on a thread that may block.
const MAX_INLINE_BYTES: usize = 64 << 10;

/// Reads the body of a request and checks it against the fields of its route.
pub(super) async fn read_body(headers: &HeaderMap, body: Body, route: &Arc<Route>) -> Result<(String, Value), Problem> {
    if route.body.is_none() {
        return Ok((String::new(), Value::Object(Map::new())));
    }
    let limit = if route.shape == Shape::Lines { MAX_LINES } else { MAX_BODY };
    let text = read_text_of(body, limit).await?;
    if !text.trim().is_empty() {
        expect_media(headers, if route.shape == Shape::Lines { &[JSON_LINES] } else { JSON })?;
    }
    checked_off_workers(text, route).await
}

/// Checks a text against the fields of its route.
pub(super) async fn checked_off_workers(text: String, route: &Arc<Route>) -> Result<(String, Value), Problem> {
    let route = Arc::clone(route);
    off_workers(text.len(), move || checked(&text, &route).map(|value| (text, value))).await
}

/// Does work whose cost grows with the length of a body. A large one is handled on a thread that may block, so that it
/// delays neither the scheduler nor other requests.
pub async fn off_workers<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    if bytes <= MAX_INLINE_BYTES {
        return work();
    }
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        tracing::error!(%error, "a body could not be read");
        Err(Problem::new(Kind::Internal, "An internal error occurred. See the server log for details."))
    })
}

/// A body as a value that fits the fields of its route.
fn checked(text: &str, route: &Route) -> Result<Value, Problem> {
    let value =
        if text.trim().is_empty() || route.shape == Shape::Lines { Value::Object(Map::new()) } else { parse(text)? };
    if let (Some(fields), Shape::Checked) = (route.body, route.shape) {
        let faults = Form::read(&value, fields, Naming::Camel).faults();
        if !faults.is_empty() {
            return Err(Problem::body(faults));
        }
    }
    Ok(value)
}

/// The text of a body, if it arrives in time.
pub async fn read_text(body: Body) -> Result<String, Problem> {
    read_text_of(body, MAX_BODY).await
}

async fn read_text_of(body: Body, limit: usize) -> Result<String, Problem> {
    let late = |_| Problem::new(Kind::RequestTimeout, "The body did not arrive within 30 seconds.");
    let bytes = tokio::time::timeout(BODY_TIMEOUT, collected(body, limit)).await.map_err(late)??;
    String::from_utf8(bytes).map_err(|_| Problem::new(Kind::MalformedJson, "The body is not valid UTF-8."))
}

/// The whole body. One that is too large is read a while longer, and forgotten: a client that is cut off while it sends
/// may never see the answer.
async fn collected(mut body: Body, limit: usize) -> Result<Vec<u8>, Problem> {
    let (mut bytes, mut all) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| Problem::new(Kind::MalformedJson, format!("The body ended early: {error}.")))?;
        let Ok(data) = frame.into_data() else { continue };
        all += data.len();
        if all <= limit {
            bytes.extend_from_slice(&data);
        } else if all > limit.max(MAX_DISCARDED_BYTES) {
            break;
        }
    }
    if all > limit {
        return Err(Problem::new(Kind::PayloadTooLarge, format!("The body is larger than {} MiB.", limit >> 20)));
    }
    Ok(bytes)
}

const JSON: &[&str] = &["application/json", "application/merge-patch+json"];

/// Whether the body is of one of these kinds; the first is the usual one.
fn expect_media(headers: &HeaderMap, kinds: &[&str]) -> Result<(), Problem> {
    let text = |name| headers.get(name).map_or("", |value| value.to_str().unwrap_or("?")).trim();
    let refuse = |detail: String| Err(Problem::new(Kind::UnsupportedMediaType, detail));
    let encoding = text(header::CONTENT_ENCODING);
    if !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity") {
        return refuse(format!(
            "The content encoding `{}` is not supported; send the body without one.",
            excerpt(encoding)
        ));
    }
    let mut parts = text(header::CONTENT_TYPE).split(';').map(str::trim);
    let media = parts.next().unwrap_or("");
    if !kinds.iter().any(|kind| kind.eq_ignore_ascii_case(media)) {
        return refuse(format!("The content type is `{}`, but must be `{}`.", excerpt(media), kinds[0]));
    }
    let charset = parts.filter_map(|part| part.split_once('=')).find(|(name, _)| name.eq_ignore_ascii_case("charset"));
    match charset.map(|(_, value)| value.trim_matches('"')) {
        Some(charset) if !charset.eq_ignore_ascii_case("utf-8") => {
            refuse(format!("The charset is `{}`, but must be UTF-8.", excerpt(charset)))
        }
        _ => Ok(()),
    }
}

/// JSON that is not too deep and has no member twice.
pub(super) fn parse(text: &str) -> Result<Value, Problem> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let detail = format!("Line {}, column {}: {error}.", error.line(), error.column());
        Problem::new(Kind::MalformedJson, detail)
    })?;
    if depth(&value) > MAX_DEPTH {
        return Err(Problem::new(Kind::InvalidInput, format!("The body is nested more than {MAX_DEPTH} levels deep.")));
    }
    match find_duplicate(text) {
        Some(pointer) => Err(Problem::body(vec![Fault::new(pointer, FaultCode::Duplicate, "appears more than once")])),
        None => Ok(value),
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
