//! The request to a target: an event in the format of `CloudEvents`, signed as a Standard Webhook.
//!
//! Every value that comes from people is percent-encoded in headers as `CloudEvents` asks for, so nothing can break out
//! of one, whatever a job is called.

use everbell::core::{JobKey, OrgId};
use everbell::{FailureCode, Run, RunError, RunRecord, Timestamp};
use percent_encoding::{AsciiSet, CONTROLS};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Body, Method, Request};
use serde::Serialize;
use serde_json::value::RawValue;

use super::checked::Checked;
use super::signature::sign;
use crate::targets::trace::trace_of;
use everbell_wire::percent;

/// The body.
#[derive(Serialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    timestamp: String,
    data: Data<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    run_id: String,
    job_key: Option<&'a str>,
    version: Option<u32>,
    attempt: u32,
    slot_at: Option<String>,
    slot_at_local: Option<String>,
    scheduled_at: String,
    catch_up: bool,
    folded: u64,
    org_id: Option<&'a str>,
    local_date: Option<String>,
    /// The run whose end started this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<Upstream<'a>>,
    /// All runs that the job waited for, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    upstreams: Vec<Upstream<'a>>,
    payload: &'a RawValue,
}

/// A run of another job, which has ended.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Upstream<'a> {
    run_id: String,
    job_key: Option<&'a str>,
    status: &'static str,
    finished_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_message: Option<&'a str>,
    result: Option<&'a RawValue>,
}

/// The call for a run.
pub(super) fn request(checked: &Checked, run: &Run) -> Result<Request, RunError> {
    let body = if has_body(&checked.method) { body(run)? } else { Vec::new() };
    let mut request = Request::new(checked.method.clone(), checked.url.clone());
    let mut headers = checked.headers.clone();
    headers.extend(about(run));
    if let Some(token) = run.token() {
        let token = HeaderValue::try_from(token).ok().map(|mut token| {
            token.set_sensitive(true);
            token
        });
        headers.extend(token.map(|token| (HeaderName::from_static("everbell-run-token"), token)));
        if let Some(api) = &checked.api_url {
            put(&mut headers, "everbell-run-url", &format!("{api}/runs/{}", run.id()));
        }
    }
    // Its attempt began just now.
    let (id, timestamp) = (run.id().to_string(), run.started_at().as_second());
    put(&mut headers, "webhook-id", &id);
    put(&mut headers, "webhook-timestamp", &timestamp.to_string());
    if let Some(signature) = sign(&checked.keys, &id, timestamp, &body) {
        put(&mut headers, "webhook-signature", &signature);
    }
    if has_body(&checked.method) {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        *request.body_mut() = Some(Body::from(body));
    }
    *request.headers_mut() = headers;
    Ok(request)
}

/// The call for a message that is about no run.
pub(super) fn message(
    checked: &Checked,
    id: &str,
    timestamp: i64,
    about: &[(&'static str, String)],
    body: Vec<u8>,
) -> Request {
    let mut request = Request::new(checked.method.clone(), checked.url.clone());
    let mut headers = checked.headers.clone();
    for (name, value) in about {
        put(&mut headers, name, value);
    }
    put(&mut headers, "webhook-id", id);
    put(&mut headers, "webhook-timestamp", &timestamp.to_string());
    if let Some(signature) = sign(&checked.keys, id, timestamp, &body) {
        put(&mut headers, "webhook-signature", &signature);
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    *request.body_mut() = Some(Body::from(body));
    *request.headers_mut() = headers;
    request
}

/// Servers and proxies refuse, drop or misread the body of any other method.
fn has_body(method: &Method) -> bool {
    [Method::POST, Method::PUT, Method::PATCH].contains(method)
}

fn body(run: &Run) -> Result<Vec<u8>, RunError> {
    let unfit = |error: serde_json::Error| {
        let message = format!("the payload cannot be sent: {error}");
        RunError::fail(FailureCode::INVALID_PAYLOAD.as_str(), message).fatal()
    };
    let payload: &RawValue = serde_json::from_str(run.payload().as_str()).map_err(unfit)?;
    let data = Data {
        run_id: run.id().to_string(),
        job_key: run.job_key().map(JobKey::as_str),
        version: run.job_version(),
        attempt: run.attempt(),
        slot_at: run.slot_utc().map(|slot| slot.to_string()),
        slot_at_local: run.slot().map(|slot| slot.to_string()),
        scheduled_at: run.scheduled_at().to_string(),
        catch_up: run.is_catch_up(),
        folded: run.folded(),
        org_id: run.org().map(OrgId::as_str),
        local_date: run.local_date().map(|date| date.to_string()),
        upstream: run.upstream().map(upstream).transpose().map_err(unfit)?,
        upstreams: match run.upstreams() {
            [] | [_] => Vec::new(),
            several => several.iter().map(upstream).collect::<Result<_, _>>().map_err(unfit)?,
        },
        payload,
    };
    let event = Event { kind: "run.fire", timestamp: time(run).to_string(), data };
    serde_json::to_vec(&event).map_err(unfit)
}

/// The run whose end started this one.
fn upstream(before: &RunRecord) -> Result<Upstream<'_>, serde_json::Error> {
    Ok(Upstream {
        run_id: before.id.to_string(),
        job_key: before.job_key.as_ref().map(JobKey::as_str),
        status: before.status.as_str(),
        finished_at: before.finished_at.map(|at| at.to_string()),
        failure_code: before.failure.as_ref().map(|failure| failure.code.as_str()),
        failure_message: before.failure.as_ref().map(|failure| failure.message.as_str()),
        result: before.result.as_ref().map(|result| serde_json::from_str(result.as_str())).transpose()?,
    })
}

/// The slot, or when it was meant to start.
fn time(run: &Run) -> Timestamp {
    run.slot_utc().unwrap_or_else(|| run.scheduled_at())
}

/// The headers of the event, and those that keep calls apart and together.
fn about(run: &Run) -> HeaderMap {
    let mut headers = HeaderMap::new();
    put(&mut headers, "ce-specversion", "1.0");
    put(&mut headers, "ce-id", &run.id().to_string());
    put(&mut headers, "ce-type", "dev.everbell.run.fire");
    put(&mut headers, "ce-time", &time(run).to_string());
    if let Some(key) = run.job_key() {
        put(&mut headers, "ce-source", &format!("/everbell/jobs/{}", segment(key.as_str())));
        put(&mut headers, "ce-subject", &text(key.as_str()));
    } else {
        put(&mut headers, "ce-source", &format!("/everbell/targets/{}", segment(run.target().as_str())));
    }
    if let Some(org) = run.org() {
        put(&mut headers, "ce-orgid", &text(org.as_str()));
    }
    if let Some(date) = run.local_date() {
        put(&mut headers, "ce-localdate", &date.to_string());
    }
    if let Some(before) = run.upstream() {
        put(&mut headers, "ce-upstreamrunid", &before.id.to_string());
        put(&mut headers, "ce-upstreamstatus", before.status.as_str());
    }
    put(&mut headers, "idempotency-key", &format!("\"{}\"", text(&run.idempotency_key())));
    let (parent, state) = trace_of(run);
    put(&mut headers, "traceparent", &parent);
    if let Some(state) = state {
        put(&mut headers, "tracestate", &state);
    }
    headers
}

/// Adds a header whose value is known to be printable ASCII.
fn put(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(HeaderName::from_static(name), value);
    }
}

/// A text for a header: printable ASCII stays, but for quotes, `\` and `%`.
fn text(text: &str) -> String {
    const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'%').add(b'\\');
    percent::encode(text, ENCODED)
}

/// A text as one segment of a path.
fn segment(text: &str) -> String {
    const ENCODED: &AsciiSet = &percent::reserved_except(b"!$&'()*+,;=:@");
    percent::encode(text, ENCODED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_breaks_out_of_a_header() {
        for (plain, in_header, in_path) in [
            ("daily-briefing", "daily-briefing", "daily-briefing"),
            ("a b/c?d#e", "a%20b/c?d#e", "a%20b%2Fc%3Fd%23e"),
            ("<script>'\"", "<script>'%22", "%3Cscript%3E'%22"),
            ("100%\\", "100%25%5C", "100%25%5C"),
            ("café ⏰", "caf%C3%A9%20%E2%8F%B0", "caf%C3%A9%20%E2%8F%B0"),
            ("a\r\nx: y\0\u{7f}", "a%0D%0Ax:%20y%00%7F", "a%0D%0Ax:%20y%00%7F"),
        ] {
            assert_eq!((text(plain).as_str(), segment(plain).as_str()), (in_header, in_path), "{plain:?}");
            assert!(HeaderValue::from_str(in_header).is_ok_and(|value| value.to_str().is_ok()));
        }
    }

    #[test]
    fn only_some_methods_have_a_body() {
        assert!([Method::POST, Method::PUT, Method::PATCH].iter().all(has_body));
        assert!(![Method::GET, Method::HEAD, Method::DELETE].iter().any(has_body));
    }
}
