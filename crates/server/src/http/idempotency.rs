//! The same request again gets the same answer: `Idempotency-Key`.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use axum::http::{Method, StatusCode};
use everbell_core::store::Remembered;

use super::call::{Answer, Call, Payload};
use super::pipeline::status_of;
use super::problem::{Kind, Problem};
use super::route::Route;

/// The longest key, in bytes.
const MAX_KEY: usize = 200;

/// Calls the handler, unless the answer is known already.
pub(crate) async fn once(route: &Route, path: &str, call: Call, id: &str) -> Result<Answer, Problem> {
    let Some(key) = key(route, &call)? else { return route.handler.call(call).await };
    let bell = call.app.bell.clone();
    let fingerprint = fingerprint(route, path, &call);
    match bell.store().begin_request(&key, &fingerprint, bell.now()).await? {
        Remembered::New => {}
        Remembered::InProgress => {
            let problem = Problem::new(Kind::IdempotencyInProgress, "A request with this key is being answered.");
            return Err(Problem { retry_after: Some(1), ..problem });
        }
        Remembered::Different => {
            let detail = "This key was used for another request within the last 24 hours.";
            return Err(Problem::new(Kind::IdempotencyKeyReused, detail));
        }
        Remembered::Answered(status, stored) => return replayed(status, &stored, id),
    }
    let answered = route.handler.call(call).await;
    let status = status_of(&answered);
    // What may succeed when it is tried again is not remembered.
    let kept = (!status.is_server_error()).then(|| stored(&answered));
    if let Err(error) = bell.store().end_request(&key, kept.as_deref().map(|text| (status.as_u16(), text))).await {
        tracing::warn!(%error, "the answer to a request could not be remembered; sent again it is refused for a while");
    }
    answered
}

/// The key, which belongs to who sends it.
fn key(route: &Route, call: &Call) -> Result<Option<String>, Problem> {
    let Some(header) = call.headers.get("idempotency-key").filter(|_| route.method == Method::POST && route.remembered)
    else {
        return Ok(None);
    };
    let text = header.to_str().unwrap_or("").trim();
    let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    if text.is_empty() || text.len() > MAX_KEY {
        let detail = format!("must be 1 to {MAX_KEY} printable ASCII characters");
        return Err(Problem::at("header", "Idempotency-Key", detail));
    }
    Ok(Some(format!("{} {text}", call.actor.name)))
}

fn fingerprint(route: &Route, path: &str, call: &Call) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in [route.method.as_str(), path, &call.query.to_string(), &call.text] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// An answer as text: its headers and its body, or the problem.
fn stored(answered: &Result<Answer, Problem>) -> String {
    let document = match answered {
        Ok(answer) => {
            let (media, text) = match &answer.body {
                Payload::Text(media, text) => (*media, text.as_str()),
                Payload::Nothing | Payload::Events(_) => ("", ""),
            };
            let headers: Vec<Value> = answer.headers.iter().map(|(name, value)| json!([name, value])).collect();
            json!({ "headers": headers, "media": media, "text": text })
        }
        Err(problem) => {
            let mut document = problem.document("");
            if let Value::Object(members) = &mut document {
                // It was another request.
                members.remove("instance");
            }
            json!({ "headers": [], "media": "application/problem+json", "text": document.to_string() })
        }
    };
    document.to_string()
}

/// The answer again. A problem is one of this request: its `instance` is the id.
fn replayed(status: u16, stored: &str, id: &str) -> Result<Answer, Problem> {
    let broken = || Problem::new(Kind::Internal, "The remembered answer cannot be read.");
    let document: Value = serde_json::from_str(stored).map_err(|_| broken())?;
    let text = |name: &str| document.get(name).and_then(Value::as_str).unwrap_or_default();
    let known = |name: &str| ["location", "etag"].into_iter().find(|known| *known == name);
    let headers = document["headers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|pair| Some((known(pair.get(0)?.as_str()?)?, pair.get(1)?.as_str()?.to_owned())));
    let body = match text("media") {
        "" => Payload::Nothing,
        "application/problem+json" => {
            let mut problem: Value = serde_json::from_str(text("text")).map_err(|_| broken())?;
            problem["instance"] = json!(format!("urn:request:{id}"));
            Payload::Text("application/problem+json", problem.to_string())
        }
        _ => Payload::Text("application/json", text("text").to_owned()),
    };
    let status = StatusCode::from_u16(status).map_err(|_| broken())?;
    let answer = Answer { status, headers: headers.collect(), body };
    Ok(answer.header("idempotency-replayed", "true"))
}
