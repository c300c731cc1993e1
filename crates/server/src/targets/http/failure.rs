//! Failures of a call before there was a response.
//!
//! Messages name the scheme, host and port of the target and nothing else of its URL: the rest may hold secrets.

use std::error::Error;
use std::io;
use std::time::Duration;

use everbell::{FailureCode, RunError};
use serde_json::json;

use super::guard::Unresolved;

/// The whole call took too long.
pub(super) fn timed_out(origin: &str, timeout: Duration) -> RunError {
    let message = format!("{origin} did not answer within {} s", timeout.as_secs_f64());
    let details = json!({ "origin": origin, "timeoutMs": u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX) });
    RunError::fail(FailureCode::TIMEOUT.as_str(), message).details(&details)
}

/// There is no connection, or it broke.
pub(super) fn unreachable(origin: &str, error: &reqwest::Error) -> RunError {
    let cause = innermost(error);
    let (kind, message) = if chain(error).any(<dyn Error>::is::<rustls::Error>) {
        ("tls", format!("{origin} cannot be trusted: TLS failed: {cause}"))
    } else if chain(error).any(<dyn Error>::is::<Unresolved>) {
        ("resolve", format!("{origin} cannot be reached: {cause}"))
    } else if error.is_connect() {
        ("connect", format!("{origin} cannot be reached: the connection failed: {cause}"))
    } else {
        ("answer", format!("{origin} sent an incomplete response: {cause}"))
    };
    let details = json!({ "origin": origin, "kind": kind, "cause": cause });
    RunError::fail(FailureCode::HTTP_CONNECT.as_str(), message).details(&details)
}

/// Returns the innermost cause of an error, which says more than the layers around it, and never a URL.
pub(super) fn innermost(error: &reqwest::Error) -> String {
    match chain(error).last() {
        Some(cause) if !cause.is::<reqwest::Error>() => cause.to_string(),
        // There is nothing behind it, and its own text would show the URL.
        _ if error.is_timeout() => "it took too long".to_owned(),
        _ if error.is_body() => "the response was cut off".to_owned(),
        _ => "the call could not be made".to_owned(),
    }
}

fn chain(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(Some(error as &(dyn Error + 'static)), |&error| behind(error))
}

/// An I/O error does not report the error it wraps as its source, and TLS errors are inside of those.
fn behind<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}
