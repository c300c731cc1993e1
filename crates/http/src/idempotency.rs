//! `Idempotency-Key`: a repeated request gets the same response.
//!
//! The key travels with the audit entry of what the handler does, and the store writes both in one transaction. So a server
//! that dies before its answer is remembered leaves a deed that is not done again: the handler reads back what it made.

use std::sync::PoisonError;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use axum::http::{Method, StatusCode};
use everbell_core::store::{Remembered, RequestKey};

use super::App;
use super::problem::{Kind, Problem};
use super::request::{ApiRequest, ApiResponse, ResponseBody};
use super::route::Route;

/// The longest key, in bytes.
const MAX_KEY_BYTES: usize = 200;
/// The longest answer that is remembered, in bytes. A longer one is made again from what was done.
const MAX_STORED_BYTES: usize = 64 << 10;

/// Calls the handler, unless the response is already stored.
pub(crate) async fn once(route: &Route, path: &str, mut request: ApiRequest, id: &str) -> Result<ApiResponse, Problem> {
    let Some(text) = key(route, &request)? else { return route.handler.call(request).await };
    let fingerprint = fingerprint(route, path, &request);
    let request_key = RequestKey { key: hashed(&[&request.actor.name, &text]), fingerprint };
    let app = request.app.clone();
    let Some(_in_progress) = InProgress::begin(&app, &request_key.key) else {
        let problem = Problem::new(Kind::IdempotencyInProgress, "A request with this key is still in progress.");
        return Err(Problem { retry_after: Some(1), ..problem });
    };
    if let Some(response) = known(&app, &request_key, id, &request.prefix).await? {
        return response;
    }
    if let Some(legacy) = legacy(&request.actor.name, &text, fingerprint)
        && let Some(response) = known(&app, &legacy, id, &request.prefix).await?
    {
        return response;
    }
    request.request_key = Some(request_key.clone());
    let mut result = route.handler.call(request.clone()).await;
    // Another server was faster with the same request: it is answered as that one did, or from what that one made.
    if status_of(&result) == StatusCode::CONFLICT {
        match app.bell.store().find_request(&request_key, app.bell.now()).await? {
            Remembered::Answered(status, stored) => return replayed(status, &stored, id, &request.prefix),
            Remembered::Done(_) => result = route.handler.call(request).await,
            Remembered::New | Remembered::Different | Remembered::InDoubt => {}
        }
    }
    let (status, text) = (status_of(&result), stored(&result));
    // Server errors may succeed on a retry, so they are not stored, and neither are long responses.
    if !status.is_server_error() && text.len() <= MAX_STORED_BYTES {
        remember(&app, &request_key, (status.as_u16(), &text)).await;
    }
    result
}

/// Returns the stored response, or a problem if the request cannot be handled. `None` means that the handler has to
/// run.
async fn known(
    app: &App,
    request_key: &RequestKey,
    id: &str,
    prefix: &str,
) -> Result<Option<Result<ApiResponse, Problem>>, Problem> {
    Ok(match app.bell.store().find_request(request_key, app.bell.now()).await? {
        Remembered::New | Remembered::Done(_) => None,
        Remembered::Different => {
            let detail = "This key was used for a different request within the last 24 hours.";
            Some(Err(Problem::new(Kind::IdempotencyKeyReused, detail)))
        }
        Remembered::Answered(status, stored) => Some(replayed(status, &stored, id, prefix)),
        Remembered::InDoubt => {
            let detail = "An earlier release was stopped while it handled this request, so its outcome is unknown. Check \
                          whether it was carried out; if not, send it again with another key.";
            Some(Err(Problem::new(Kind::Conflict, detail)))
        }
    })
}

async fn remember(app: &App, request_key: &RequestKey, response: (u16, &str)) {
    if let Err(error) = app.bell.store().remember_answer(request_key, response, app.bell.now()).await {
        tracing::warn!(%error, "the response to a request could not be stored; a repeated request is answered from its effects");
    }
}

/// The key as it was sent.
fn key(route: &Route, request: &ApiRequest) -> Result<Option<String>, Problem> {
    let Some(header) =
        request.headers.get("idempotency-key").filter(|_| route.method == Method::POST && route.remembered)
    else {
        return Ok(None);
    };
    let text = header.to_str().unwrap_or("").trim();
    let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    if text.is_empty() || text.len() > MAX_KEY_BYTES {
        let detail = format!("must be 1 to {MAX_KEY_BYTES} printable ASCII characters");
        return Err(Problem::at("header", "Idempotency-Key", detail));
    }
    Ok(Some(text.to_owned()))
}

/// Returns the key under which an earlier release stored the request. It joined actor and key with a space, so a key
/// with more spaces could belong to another actor.
fn legacy(actor: &str, text: &str, fingerprint: [u8; 32]) -> Option<RequestKey> {
    let key = format!("{actor} {text}");
    (key.matches(' ').count() == 1).then_some(RequestKey { key, fingerprint })
}

fn fingerprint(route: &Route, path: &str, request: &ApiRequest) -> [u8; 32] {
    digest(&[route.method.as_str(), path, &request.query.to_string(), &request.text])
}

/// Texts of any length, so that no two lists of them have the same.
fn digest(parts: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

fn hashed(parts: &[&str]) -> String {
    digest(parts).iter().fold(String::with_capacity(64), |text, byte| text + &format!("{byte:02x}"))
}

/// A request that is being answered here. Ends when it is dropped.
struct InProgress<'a> {
    app: &'a App,
    key: &'a str,
}

impl<'a> InProgress<'a> {
    fn begin(app: &'a App, key: &'a str) -> Option<InProgress<'a>> {
        let mut keys = app.in_progress.lock().unwrap_or_else(PoisonError::into_inner);
        keys.insert(key.to_owned()).then(|| InProgress { app, key })
    }
}

impl Drop for InProgress<'_> {
    fn drop(&mut self) {
        self.app.in_progress.lock().unwrap_or_else(PoisonError::into_inner).remove(self.key);
    }
}

/// An answer as text: its headers and its body, or the problem.
fn stored(result: &Result<ApiResponse, Problem>) -> String {
    let document = match result {
        Ok(response) => {
            let (media, text) = match &response.body {
                ResponseBody::Text(media, text) => (*media, text.as_str()),
                ResponseBody::Nothing | ResponseBody::Events(_) => ("", ""),
            };
            let headers: Vec<Value> = response.headers.iter().map(|(name, value)| json!([name, value])).collect();
            json!({ "headers": headers, "media": media, "text": text })
        }
        Err(problem) => {
            let mut document = problem.document("", "");
            if let Value::Object(members) = &mut document {
                // They are of another request.
                members.remove("instance");
            }
            json!({ "headers": [], "media": "application/problem+json", "text": document.to_string() })
        }
    };
    document.to_string()
}

/// The answer again. A problem is one of this request: its `instance` is the id, and its `type` an address below this prefix.
fn replayed(status: u16, stored: &str, id: &str, prefix: &str) -> Result<ApiResponse, Problem> {
    let broken = || Problem::new(Kind::Internal, "The stored response cannot be read.");
    let document: Value = serde_json::from_str(stored).map_err(|_| broken())?;
    let text = |name: &str| document.get(name).and_then(Value::as_str).unwrap_or_default();
    let known = |name: &str| ["location", "etag"].into_iter().find(|known| *known == name);
    let headers = document["headers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|pair| Some((known(pair.get(0)?.as_str()?)?, pair.get(1)?.as_str()?.to_owned())));
    let body = match text("media") {
        "" => ResponseBody::Nothing,
        "application/problem+json" => {
            let mut problem: Value = serde_json::from_str(text("text")).map_err(|_| broken())?;
            problem["instance"] = json!(format!("urn:request:{id}"));
            if let Some(kind) = problem["type"].as_str() {
                problem["type"] = json!(format!("{prefix}{kind}"));
            }
            ResponseBody::Text("application/problem+json", problem.to_string())
        }
        _ => ResponseBody::Text("application/json", text("text").to_owned()),
    };
    let status = StatusCode::from_u16(status).map_err(|_| broken())?;
    let response = ApiResponse { status, headers: headers.collect(), body };
    Ok(response.header("idempotency-replayed", "true"))
}

/// The status of a response or of its problem.
fn status_of(result: &Result<ApiResponse, Problem>) -> StatusCode {
    match result {
        Ok(response) => response.status,
        Err(problem) => problem.status(),
    }
}
