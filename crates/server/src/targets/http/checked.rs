//! Checks settings and turns them into a call that can be made; reports all problems at once.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Certificate, Method, Url};

use super::guard::Guard;
use super::signature::Key;
use crate::targets::{HttpSettings, Problem};
use everbell_wire::secret::Secret;

/// The methods that a target may be called with.
const METHODS: [Method; 6] = [Method::POST, Method::PUT, Method::PATCH, Method::GET, Method::HEAD, Method::DELETE];

/// Headers that belong to the connection, and those that describe the run.
const RESERVED: [&str; 17] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "proxy-authorization",
    "content-type",
    "user-agent",
    "idempotency-key",
    "traceparent",
    "tracestate",
    "everbell-run-token",
    "everbell-run-url",
];

/// Prefixes of headers that describe the run.
const RESERVED_PREFIXES: [&str; 2] = ["ce-", "webhook-"];

/// A call that can be made.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) url: Url,
    /// The URL as messages show it: paths and queries may hold secrets.
    pub(super) origin: String,
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) keys: Vec<Key>,
    pub(super) timeout: Duration,
    pub(super) success: Vec<RangeInclusive<u16>>,
    pub(super) certificates: Vec<Certificate>,
    pub(super) guard: Guard,
    pub(super) api_url: Option<String>,
}

pub(super) fn check(settings: &HttpSettings) -> Result<Checked, Vec<Problem>> {
    let guard = Guard { allow_private: settings.allow_private, allow_link_local: settings.allow_link_local };
    let mut problems = Vec::new();
    let url = note(&mut problems, "url", url(&settings.url, guard));
    let method = note(&mut problems, "method", method(&settings.method));
    let headers = headers(settings, &mut problems);
    let keys: Vec<Key> =
        settings.signing_keys.iter().filter_map(|key| note(&mut problems, "signing_keys", Key::read(key))).collect();
    if settings.timeout.is_zero() {
        problems.push(("timeout", "must be more than 0".to_owned()));
    }
    note(&mut problems, "success", statuses(&settings.success));
    let certificates = settings.ca_file.as_deref().map(certificates);
    let certificates = certificates.and_then(|read| note(&mut problems, "ca_file", read)).unwrap_or_default();
    match (url, method) {
        (Some(url), Some(method)) if problems.is_empty() => Ok(Checked {
            origin: url.origin().ascii_serialization(),
            url,
            method,
            headers,
            keys,
            timeout: settings.timeout,
            success: settings.success.clone(),
            certificates,
            guard,
            api_url: settings.api_url.clone(),
        }),
        _ => Err(problems),
    }
}

fn note<T>(problems: &mut Vec<Problem>, field: &'static str, read: Result<T, String>) -> Option<T> {
    read.map_err(|problem| problems.push((field, problem))).ok()
}

/// The refusals do not repeat the URL, which may hold secrets.
fn url(text: &str, guard: Guard) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("is not a valid URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("must begin with `http://` or `https://`, not with `{}:`", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not contain a user or a password: give an `authorization` header instead".to_owned());
    }
    if url.port() == Some(0) {
        return Err("must not have the port 0".to_owned());
    }
    // Every way to write an address has become the usual one by now.
    let address = url.host_str().map(|host| host.trim_matches(['[', ']']).parse::<IpAddr>());
    if let Some(Ok(address)) = address {
        guard.check(address)?;
    }
    Ok(url)
}

fn method(text: &str) -> Result<Method, String> {
    METHODS.into_iter().find(|method| method.as_str() == text).ok_or_else(|| {
        let known = METHODS.map(|method| method.to_string()).join(", ");
        format!("must be one of {known}, in capital letters")
    })
}

fn headers(settings: &HttpSettings, problems: &mut Vec<Problem>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in &settings.headers {
        if let Some((name, value)) = note(problems, "headers", header(name, value))
            && headers.insert(&name, value).is_some()
        {
            problems.push(("headers", format!("`{name}` is given twice")));
        }
    }
    headers
}

fn header(name: &str, value: &Secret) -> Result<(HeaderName, HeaderValue), String> {
    let read = HeaderName::from_bytes(name.as_bytes());
    let read = read.map_err(|_| format!("`{}` is not a valid header name", name.escape_debug()))?;
    let reserved = RESERVED.contains(&read.as_str());
    if reserved || RESERVED_PREFIXES.iter().any(|prefix| read.as_str().starts_with(prefix)) {
        return Err(format!("`{read}` is reserved: it belongs to the call"));
    }
    let text = Some(value.reveal()).filter(|text| text.is_ascii());
    let mut value = text
        .and_then(|text| HeaderValue::from_str(text).ok())
        .ok_or_else(|| format!("the value of `{read}` must be printable ASCII without line breaks"))?;
    value.set_sensitive(true);
    Ok((read, value))
}

fn statuses(success: &[RangeInclusive<u16>]) -> Result<(), String> {
    let fits =
        |range: &RangeInclusive<u16>| 100 <= *range.start() && range.start() <= range.end() && *range.end() <= 599;
    if success.is_empty() {
        return Err("must name at least one status, such as 200 to 299".to_owned());
    }
    match success.iter().find(|range| !fits(range)) {
        Some(range) => {
            Err(format!("must be between 100 and 599, the lower one first, not {} to {}", range.start(), range.end()))
        }
        None => Ok(()),
    }
}

fn certificates(path: &Path) -> Result<Vec<Certificate>, String> {
    let shown = path.display();
    let pem = std::fs::read(path).map_err(|error| format!("cannot read {shown}: {error}"))?;
    let certificates = Certificate::from_pem_bundle(&pem);
    let certificates =
        certificates.map_err(|error| format!("{shown} is not in PEM: {}", super::failure::innermost(&error)))?;
    if certificates.is_empty() {
        return Err(format!("{shown} has no certificate in PEM"));
    }
    Ok(certificates)
}
