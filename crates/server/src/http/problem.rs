//! [`Problem`]: what every error answer looks like (RFC 9457), and the one place that turns errors into statuses.

use axum::http::StatusCode;
use everbell::{StoreError, UnavailableReason};
use serde_json::{Map, Value, json};

use super::unavailable::unavailable;
use crate::form::{Fault, MAX_LISTED_FAULTS};

/// What can go wrong, for programs: stable words, each with a page of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    InvalidInput,
    MalformedJson,
    Unauthenticated,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    RequestTimeout,
    Conflict,
    JobKeyExists,
    OverlapSkipped,
    JobRetired,
    TooManyPendingRuns,
    IdempotencyInProgress,
    RevisionMismatch,
    PayloadTooLarge,
    UnsupportedMediaType,
    Misdirected,
    IdempotencyKeyReused,
    PreconditionRequired,
    RateLimited,
    Internal,
    NotReady,
}

/// What the documentation says about a kind.
pub(crate) struct About {
    pub(crate) kind: Kind,
    /// The last part of its `type`.
    pub(crate) slug: &'static str,
    pub(crate) status: u16,
    pub(crate) code: &'static str,
    pub(crate) title: &'static str,
    pub(crate) help: &'static str,
}

const fn row(
    kind: Kind,
    status: u16,
    [slug, code]: [&'static str; 2],
    title: &'static str,
    help: &'static str,
) -> About {
    About { kind, slug, status, code, title, help }
}

/// Every kind, in the order of their statuses.
pub(crate) const CATALOG: [About; 22] = [
    row(
        Kind::InvalidInput,
        400,
        ["invalid-input", "InvalidInput"],
        "The request is not valid",
        "`errors` names every member or parameter at fault and what is allowed. Nothing was changed.",
    ),
    row(
        Kind::MalformedJson,
        400,
        ["malformed-json", "MalformedJson"],
        "The body is not JSON",
        "`detail` says where the body stops being JSON. Nothing was changed.",
    ),
    row(
        Kind::Unauthenticated,
        401,
        ["unauthenticated", "Unauthenticated"],
        "A valid token is needed",
        "Send `Authorization: Bearer evb_…`. The first start of a server writes an admin token into its data folder.",
    ),
    row(
        Kind::Forbidden,
        403,
        ["forbidden", "Forbidden"],
        "This token may not do that",
        "`detail` names the role that is needed; an admin makes tokens of that role.",
    ),
    row(
        Kind::NotFound,
        404,
        ["not-found", "NotFound"],
        "There is no such thing",
        "Jobs are named by their id, by `key:NAME` or by `key:NAME@VERSION`.",
    ),
    row(
        Kind::MethodNotAllowed,
        405,
        ["method-not-allowed", "MethodNotAllowed"],
        "This path does not take this method",
        "The `Allow` header names the methods that it takes.",
    ),
    row(
        Kind::RequestTimeout,
        408,
        ["request-timeout", "RequestTimeout"],
        "The body did not arrive in time",
        "Send the whole body within 30 seconds. Nothing was changed.",
    ),
    row(
        Kind::Conflict,
        409,
        ["conflict", "Conflict"],
        "The state of the job or run does not allow that",
        "Read it again and decide anew.",
    ),
    row(
        Kind::JobKeyExists,
        409,
        ["job-key-exists", "JobKeyExists"],
        "A living job has this key",
        "Make its next version, or retire it first. `jobId` is the living version.",
    ),
    row(
        Kind::OverlapSkipped,
        409,
        ["overlap-skipped", "OverlapSkipped"],
        "A run of this job is already active",
        "`run` is the skipped run that was recorded, `activeRun` the one in the way. `queue` waits for it, `force` does not mind it.",
    ),
    row(
        Kind::JobRetired,
        409,
        ["job-retired", "JobRetired"],
        "The job is retired",
        "Retired is final. Make a new job with the same key: it goes on with the next version.",
    ),
    row(
        Kind::TooManyPendingRuns,
        409,
        ["too-many-pending-runs", "TooManyPendingRuns"],
        "The job has too many runs that have not ended",
        "`detail` names how many there are and how many are allowed. Nothing was changed: wait until some have ended, or cancel them.",
    ),
    row(
        Kind::IdempotencyInProgress,
        409,
        ["idempotency-in-progress", "IdempotencyInProgress"],
        "A request with this key is being answered",
        "Wait and send the same again: the answer will be that of the first.",
    ),
    row(
        Kind::RevisionMismatch,
        412,
        ["revision-mismatch", "RevisionMismatch"],
        "The job has changed since it was read",
        "Read it again; its `ETag` is the revision to send as `If-Match`.",
    ),
    row(
        Kind::PayloadTooLarge,
        413,
        ["payload-too-large", "PayloadTooLarge"],
        "The body is too large",
        "A body may have 1 MiB.",
    ),
    row(
        Kind::UnsupportedMediaType,
        415,
        ["unsupported-media-type", "UnsupportedMediaType"],
        "The body must be JSON",
        "Send `Content-Type: application/json`.",
    ),
    row(
        Kind::Misdirected,
        421,
        ["misdirected", "Misdirected"],
        "This server does not answer for that host",
        "Ask for `localhost` or a loopback address, or configure a token for metrics.",
    ),
    row(
        Kind::IdempotencyKeyReused,
        422,
        ["idempotency-key-reused", "IdempotencyKeyReused"],
        "The key belongs to another request",
        "An `Idempotency-Key` names one request with one body. Take another key.",
    ),
    row(
        Kind::PreconditionRequired,
        428,
        ["precondition-required", "PreconditionRequired"],
        "If-Match is needed",
        "This server changes jobs only for who says which revision they have read.",
    ),
    row(
        Kind::RateLimited,
        429,
        ["rate-limited", "RateLimited"],
        "Too many requests",
        "`Retry-After` says how many seconds to wait; `RateLimit` says how much a token may write.",
    ),
    row(
        Kind::Internal,
        500,
        ["internal", "Internal"],
        "Something is broken here",
        "The log of the server has the details under the request id.",
    ),
    row(
        Kind::NotReady,
        503,
        ["not-ready", "NotReady"],
        "The server cannot answer now",
        "The database is away, locked, read-only or full, or the server is starting or stopping; `detail` says which. \
         `Retry-After` says when to try again.",
    ),
];

impl Kind {
    pub(crate) fn about(self) -> &'static About {
        // A test sees that every kind is there.
        CATALOG.iter().find(|about| about.kind == self).unwrap_or(&CATALOG[19])
    }
}

/// One fault of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// `pointer` into the body, `parameter` of the query or path, or `header`.
    place: (&'static str, String),
    code: &'static str,
    detail: String,
}

/// An error answer.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) kind: Kind,
    pub(crate) detail: String,
    pub(crate) errors: Vec<Item>,
    /// Further members.
    pub(crate) more: Map<String, Value>,
    /// Seconds.
    pub(crate) retry_after: Option<u64>,
}

impl Problem {
    pub(crate) fn new(kind: Kind, detail: impl Into<String>) -> Problem {
        Problem { kind, detail: detail.into(), errors: Vec::new(), more: Map::new(), retry_after: None }
    }

    /// Faults of the body.
    pub(crate) fn body(faults: Vec<Fault>) -> Problem {
        Problem::invalid(faults, |pointer| ("pointer", format!("#{pointer}")))
    }

    /// Faults of the query.
    pub(crate) fn query(faults: Vec<Fault>) -> Problem {
        Problem::invalid(faults, |pointer| ("parameter", pointer.trim_start_matches('/').replace('/', ".")))
    }

    /// A fault of one parameter or header.
    pub(crate) fn at(place: &'static str, name: &str, detail: impl Into<String>) -> Problem {
        let fault = Fault::new(name, "invalid", detail);
        Problem::invalid(vec![fault], |name| (place, name))
    }

    fn invalid(faults: Vec<Fault>, place: impl Fn(String) -> (&'static str, String)) -> Problem {
        let item = |fault: Fault| Item { place: place(fault.pointer), code: fault.code, detail: fault.detail };
        let all = faults.len();
        let errors: Vec<Item> = faults.into_iter().take(MAX_LISTED_FAULTS).map(item).collect();
        let detail = match errors.as_slice() {
            [one] => format!("{}: {}", one.place.1, one.detail),
            listed if listed.len() < all => {
                format!("{all} members or parameters are not valid; the first {} are listed.", listed.len())
            }
            _ => format!("{all} members or parameters are not valid."),
        };
        Problem { errors, ..Problem::new(Kind::InvalidInput, detail) }
    }

    /// Where and what, for people.
    pub(crate) fn faults(&self) -> Vec<(String, String)> {
        self.errors.iter().map(|item| (item.place.1.clone(), item.detail.clone())).collect()
    }

    /// With a further member.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Problem {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// With other names for places.
    pub(crate) fn renamed(mut self, names: &[(&str, &str)]) -> Problem {
        for item in &mut self.errors {
            if let Some((_, name)) = names.iter().find(|(own, _)| *own == item.place.1) {
                item.place.1 = (*name).to_owned();
            }
        }
        for (own, name) in names {
            self.detail = self.detail.replace(own, name);
        }
        self
    }

    /// The problem of a document that was told before.
    pub(crate) fn told(document: &Value) -> Option<Problem> {
        let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let code = text(document, "code")?;
        let about = CATALOG.iter().find(|about| about.code == code)?;
        let item = |item: &Value| {
            let mut places = ["pointer", "parameter", "header"].into_iter();
            let place = places.find_map(|kind| Some((kind, text(item, kind)?)))?;
            Some(Item { place, code: "invalid", detail: text(item, "detail")? })
        };
        let errors = document.get("errors").and_then(Value::as_array).into_iter().flatten().filter_map(item);
        Some(Problem { errors: errors.collect(), ..Problem::new(about.kind, text(document, "detail")?) })
    }

    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.kind.about().status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The document, for the request of this id.
    pub(crate) fn document(&self, request_id: &str) -> Value {
        let About { slug, status, code, title, .. } = *self.kind.about();
        let mut document = json!({
            "type": format!("/docs/problems/{slug}"),
            "title": title,
            "status": status,
            "code": code,
            "detail": self.detail,
            "instance": format!("urn:request:{request_id}"),
        });
        if !self.errors.is_empty() {
            let item = |Item { place: (kind, place), code, detail }: &Item| json!({ (*kind): place, "code": code, "detail": detail });
            document["errors"] = self.errors.iter().map(item).collect();
        }
        for (name, value) in &self.more {
            document[name] = value.clone();
        }
        document
    }
}

/// What a store says. What is wrong with a body was told before, so what is refused here is about a path or a state.
impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        match error {
            StoreError::NotFound { what } => Problem::new(Kind::NotFound, format!("There is no {what}.")),
            StoreError::Stale { .. } => Problem::new(Kind::RevisionMismatch, error.to_string()),
            StoreError::Conflict { what } => Problem::new(Kind::Conflict, what),
            StoreError::Invalid(invalid) if invalid.is_retired() => Problem::new(Kind::JobRetired, invalid.reason),
            StoreError::Invalid(invalid) if invalid.is_too_many_pending() => {
                Problem::new(Kind::TooManyPendingRuns, invalid.reason)
            }
            StoreError::Invalid(invalid) if invalid.field == "status" => Problem::new(Kind::Conflict, invalid.reason),
            StoreError::Invalid(invalid) => {
                let code = if invalid.field == "target" { "unknown_target" } else { "invalid" };
                Problem::body(vec![Fault::new(format!("/{}", invalid.field.replace('.', "/")), code, invalid.reason)])
            }
            StoreError::Unavailable { reason, maybe_done, .. } => {
                tracing::warn!(error = %error, "a request could not be answered");
                let retry_after = Some(if reason == UnavailableReason::Locked { 1 } else { 5 });
                let detail = match error.needs_operator() {
                    Some(cause) if !maybe_done => format!("The database cannot be used: {cause}."),
                    _ => unavailable(reason, maybe_done),
                };
                Problem { retry_after, ..Problem::new(Kind::NotReady, detail) }
            }
            StoreError::Corrupt { .. } => {
                tracing::error!(error = %error, "stored data cannot be read");
                Problem::new(Kind::Internal, "Stored data cannot be read; the log of the server says which.")
            }
        }
    }
}

/// What core refuses before a store is asked.
impl From<everbell::Invalid> for Problem {
    fn from(invalid: everbell::Invalid) -> Problem {
        StoreError::from(invalid).into()
    }
}

#[cfg(test)]
mod tests;
