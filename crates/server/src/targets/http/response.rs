//! Evaluation of the response to a call.

use std::ops::RangeInclusive;
use std::time::Duration;

use everbell::core::storable_text;
use everbell::{FailureCode, RunError, Timestamp};
use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::targets::redact::Redactor;
use crate::targets::result;

/// The most that is read of an answer, and kept as the output of the run.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// How much of an answer the failure shows.
const MAX_SHOWN_BYTES: usize = 1024;

/// The answers that mean "not now".
const THROTTLES: [StatusCode; 4] = [
    StatusCode::TOO_MANY_REQUESTS,
    StatusCode::BAD_GATEWAY,
    StatusCode::SERVICE_UNAVAILABLE,
    StatusCode::GATEWAY_TIMEOUT,
];

/// An answer, read as far as it is wanted.
#[derive(Debug)]
pub(super) struct BoundedResponse {
    pub(super) status: StatusCode,
    headers: HeaderMap,
    /// The start of it.
    pub(super) body: Vec<u8>,
    /// Whether that is all of it.
    whole: bool,
}

/// The result of a run.
#[derive(Debug, Serialize)]
pub(super) struct Success {
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Box<RawValue>>,
}

/// The details of a failure.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    status: u16,
    /// In seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    body: String,
}

impl BoundedResponse {
    /// Reads the start of the body. The rest is never asked for; the connection is closed then.
    pub(super) async fn read(mut response: Response) -> Result<BoundedResponse, reqwest::Error> {
        let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
        let (mut body, mut whole) = (Vec::new(), true);
        while let Some(chunk) = response.chunk().await? {
            let room = MAX_BODY_BYTES - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if chunk.len() > room {
                whole = false;
                break;
            }
        }
        Ok(BoundedResponse { status, headers, body, whole })
    }

    /// Hides the secrets of the call, which the target may have sent back.
    pub(super) fn redacted(mut self, redactor: &Redactor) -> BoundedResponse {
        self.body = redactor.redact(&self.body, self.whole);
        let location = self.header(&LOCATION).map(|place| HeaderValue::try_from(redactor.redact_text(place)));
        if let Some(Ok(location)) = location {
            self.headers.insert(LOCATION, location);
        }
        self
    }

    /// Success or failure. `now` is about when it came.
    pub(super) fn judge(
        &self,
        success: &[RangeInclusive<u16>],
        origin: &str,
        now: Timestamp,
    ) -> Result<Success, RunError> {
        let status = self.status.as_u16();
        if success.iter().any(|range| range.contains(&status)) {
            return Ok(Success { status, body: self.json() });
        }
        let wait = self.header(&RETRY_AFTER).and_then(|value| retry_after(value, self.header(&DATE), now));
        let more = match wait {
            _ if self.status.is_redirection() => {
                let location = self.header(&LOCATION).map_or_else(|| "nowhere".to_owned(), shown_location);
                format!(" and pointed to {location}: redirects are not followed")
            }
            Some(wait) => format!(" and asked to wait for {} s", wait.as_secs()),
            None => String::new(),
        };
        let message = format!("{origin} answered {}{more}", self.status);
        let body = storable_text(&String::from_utf8_lossy(&self.body), MAX_SHOWN_BYTES);
        let details = Details { status, retry_after: wait.map(|wait| wait.as_secs()), body };
        let error = RunError::fail(FailureCode::HTTP_STATUS.as_str(), message).details(details);
        Err(match wait {
            _ if self.status == StatusCode::GONE => error.pausing("target answered 410 Gone"),
            Some(wait) if THROTTLES.contains(&self.status) => error.retry_after(wait),
            _ => error,
        })
    }

    fn header(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body, if it says that it is JSON, is not too long and every store can keep it.
    fn json(&self) -> Option<Box<RawValue>> {
        let kind = self.header(&CONTENT_TYPE)?.split(';').next()?.trim().to_ascii_lowercase();
        let is_json = kind == "application/json" || kind.ends_with("+json");
        let text = std::str::from_utf8(&self.body).ok().filter(|_| is_json && self.whole)?;
        result::json(text)
    }
}

/// Returns the destination of a redirect, without the query: it may hold a secret.
fn shown_location(location: &str) -> String {
    let end = location.find(['?', '#']).unwrap_or(location.len());
    storable_text(&location[..end], 200)
}

/// Seconds, or a date: how long after the answer's own date, if it has one.
fn retry_after(value: &str, date: Option<&str>, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More seconds than a number can hold are as long as it can be.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)).min(MAX_RETRY_AFTER));
    }
    let then = http_date(value)?;
    let from = date.and_then(http_date).unwrap_or(now);
    Some(Duration::try_from(then.duration_since(from)).unwrap_or_default().min(MAX_RETRY_AFTER))
}

const MAX_RETRY_AFTER: Duration = everbell::core::settle::MAX_RETRY_AFTER;

/// Parses `Sun, 06 Nov 1994 08:49:37 GMT`. The two obsolete forms are not accepted.
fn http_date(text: &str) -> Option<Timestamp> {
    DateTimeParser::new().parse_timestamp(text.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, headers: &[(&'static str, &str)], body: &str) -> BoundedResponse {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(HeaderName::from_static(name), value.parse().unwrap());
        }
        let status = StatusCode::from_u16(status).unwrap();
        BoundedResponse { status, headers: map, body: body.as_bytes().to_vec(), whole: true }
    }

    fn judged(answer: &BoundedResponse) -> Result<String, RunError> {
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let success = answer.judge(&[200..=299, 404..=404], "https://a.example", now)?;
        Ok(serde_json::to_string(&success).unwrap())
    }

    #[test]
    fn a_success_has_its_status_and_what_was_answered_in_json() {
        let json = [("content-type", "application/json; charset=utf-8")];
        assert_eq!(judged(&answer(200, &json, r#" {"id": 7} "#)).unwrap(), r#"{"status":200,"body":{"id": 7}}"#);
        assert_eq!(
            judged(&answer(404, &[("content-type", "application/hal+json")], "1")).unwrap(),
            r#"{"status":404,"body":1}"#
        );
        for (headers, body) in [
            (&json[..], "{"),
            (&json, "\"\\u0000\""),
            (&json, "1e999"),
            (&json, ""),
            (&[], "{}"),
            (&[("content-type", "text/html")], "{}"),
        ] {
            assert_eq!(judged(&answer(204, headers, body)).unwrap(), r#"{"status":204}"#, "{body}");
        }
        let long = format!("\"{}\"", "x".repeat(result::MAX_BYTES));
        assert_eq!(judged(&answer(200, &json, &long)).unwrap(), r#"{"status":200}"#);
        let part = BoundedResponse { whole: false, ..answer(200, &json, "1") };
        assert_eq!(judged(&part).unwrap(), r#"{"status":200}"#);
    }

    #[test]
    fn a_failure_tells_what_the_answer_was() {
        for (status, headers, message) in [
            (500, &[][..], "https://a.example answered 500 Internal Server Error"),
            (
                503,
                &[("retry-after", "120")],
                "https://a.example answered 503 Service Unavailable and asked to wait for 120 s",
            ),
            (
                302,
                &[("location", "/login?token=x")],
                "https://a.example answered 302 Found and pointed to /login: redirects are not followed",
            ),
            (
                304,
                &[],
                "https://a.example answered 304 Not Modified and pointed to nowhere: redirects are not followed",
            ),
        ] {
            let error = judged(&answer(status, headers, "no\0")).unwrap_err();
            assert_eq!((error.code().as_str(), error.message()), ("http_status", message));
            assert!(error.is_retryable());
        }
    }

    #[test]
    fn gone_pauses_and_nothing_else_does() {
        let gone = judged(&answer(410, &[("retry-after", "1")], "")).unwrap_err();
        assert_eq!((gone.pause_reason(), gone.is_retryable()), (Some("target answered 410 Gone"), false));
        assert_eq!(judged(&answer(404 + 1, &[], "")).unwrap_err().pause_reason(), None);
    }

    #[test]
    fn a_wait_is_seconds_or_a_date() {
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let wait = |value, date| retry_after(value, date, now).map(|wait| wait.as_secs());
        assert_eq!(wait("120", None), Some(120));
        assert_eq!(wait(" 0 ", None), Some(0));
        assert_eq!(wait("99999999999999999999999", None), Some(86_400));
        assert_eq!(wait("Sun, 15 Nov 2026 12:05:00 GMT", None), Some(300));
        assert_eq!(wait("Sun, 15 Nov 2026 11:00:00 GMT", None), Some(0), "it is over");
        assert_eq!(wait("Sun, 15 Nov 2026 12:05:00 GMT", Some("Sun, 15 Nov 2026 12:04:00 GMT")), Some(60));
        for bad in ["", "soon", "-5", "1.5"] {
            assert_eq!(wait(bad, None), None, "{bad}");
        }
    }
}
