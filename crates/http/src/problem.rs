//! [`Problem`]: what every error answer looks like (RFC 9457), and the one place that turns errors into statuses.

use std::time::Duration;

use axum::http::StatusCode;
use everbell::{StoreError, UnavailableReason};
use everbell_wire::{self as wire, FaultCode};
use serde_json::{Map, Value, json};

mod catalog;

pub use catalog::{About, CATALOG, Kind};

use super::unavailable::unavailable;
use everbell_wire::form::{Fault, MAX_LISTED_FAULTS};

/// One fault of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// `pointer` into the body, `parameter` of the query or path, or `header`.
    location: (&'static str, String),
    code: FaultCode,
    detail: String,
}

/// An error answer.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The kind of problem.
    pub kind: Kind,
    /// The error of this request, and the remedy.
    pub detail: String,
    pub(crate) errors: Vec<Item>,
    /// Further members.
    pub(crate) more: Map<String, Value>,
    /// The seconds to wait before a retry.
    pub retry_after: Option<u64>,
}

impl Problem {
    /// A problem with nothing but its kind and a sentence.
    pub fn new(kind: Kind, detail: impl Into<String>) -> Problem {
        Problem { kind, detail: detail.into(), errors: Vec::new(), more: Map::new(), retry_after: None }
    }

    /// Returns one sentence: the first fault with its place, or else the detail.
    pub fn in_words(&self) -> String {
        let fault = self.errors.first().map(|fault| format!("{}: {}", fault.location.1, fault.detail));
        fault.unwrap_or_else(|| self.detail.clone())
    }

    /// An object that does not exist, such as the `job` of this name.
    pub fn not_found(subject: &str, name: &str) -> Problem {
        let problem = Problem::new(Kind::NotFound, format!("There is no {subject} `{name}`."));
        problem.with("subject", subject).with("name", name)
    }

    /// Faults of the body.
    pub fn body(faults: Vec<Fault>) -> Problem {
        Problem::invalid(faults, |pointer| ("pointer", format!("#{pointer}")))
    }

    /// Faults of the query.
    pub fn query(faults: Vec<Fault>) -> Problem {
        Problem::invalid(faults, |pointer| ("parameter", pointer.trim_start_matches('/').replace('/', ".")))
    }

    /// A fault of one parameter or header.
    pub fn at(location: &'static str, name: &str, detail: impl Into<String>) -> Problem {
        let fault = Fault::new(name, FaultCode::Invalid, detail);
        Problem::invalid(vec![fault], |name| (location, name))
    }

    fn invalid(faults: Vec<Fault>, location: impl Fn(String) -> (&'static str, String)) -> Problem {
        let item = |fault: Fault| Item { location: location(fault.pointer), code: fault.code, detail: fault.detail };
        let all = faults.len();
        let errors: Vec<Item> = faults.into_iter().take(MAX_LISTED_FAULTS).map(item).collect();
        let detail = match errors.as_slice() {
            [one] => format!("{}: {}", one.location.1, one.detail),
            listed if listed.len() < all => {
                format!("{all} members or parameters are invalid; the first {} are listed.", listed.len())
            }
            _ => format!("{all} members or parameters are invalid."),
        };
        Problem { errors, ..Problem::new(Kind::InvalidInput, detail) }
    }

    /// Where and what, for people.
    pub fn faults(&self) -> Vec<(String, String)> {
        self.errors.iter().map(|item| (item.location.1.clone(), item.detail.clone())).collect()
    }

    /// With a further member.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Problem {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// With other names for places.
    #[must_use]
    pub fn renamed(mut self, names: &[(&str, &str)]) -> Problem {
        for item in &mut self.errors {
            if let Some((_, name)) = names.iter().find(|(own, _)| *own == item.location.1) {
                item.location.1 = (*name).to_owned();
            }
        }
        for (own, name) in names {
            self.detail = self.detail.replace(own, name);
        }
        self
    }

    /// The answer was not ready in time. A change that was begun goes on.
    pub fn late(limit: Duration, maybe_done: bool) -> Problem {
        let detail = unavailable(UnavailableReason::TimedOut(limit), maybe_done);
        Problem { retry_after: Some(5), ..Problem::new(Kind::NotReady, detail) }
    }

    /// Reads a problem from its document.
    pub fn from_document(document: &Value) -> Option<Problem> {
        let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let code = text(document, "code")?;
        let about = CATALOG.iter().find(|about| about.code.as_str() == code)?;
        let item = |item: &Value| {
            let mut locations = ["pointer", "parameter", "header"].into_iter();
            let location = locations.find_map(|kind| Some((kind, text(item, kind)?)))?;
            let code = FaultCode::from_word(&text(item, "code")?);
            Some(Item { location, code, detail: text(item, "detail")? })
        };
        let errors = document.get("errors").and_then(Value::as_array).into_iter().flatten().filter_map(item);
        Some(Problem { errors: errors.collect(), ..Problem::new(about.kind, text(document, "detail")?) })
    }

    /// The further members, as a client reads them.
    pub fn members(&self) -> Result<wire::Problem, Problem> {
        serde_json::from_value(Value::Object(self.more.clone())).map_err(|error| {
            tracing::error!(%error, detail = self.detail, "the members of a problem cannot be read");
            Problem::new(Kind::Internal, self.detail.clone())
        })
    }

    /// Returns the HTTP status.
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.kind.about().status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The document, for the request of this id, of routes below this prefix.
    pub fn document(&self, request_id: &str, prefix: &str) -> Value {
        let About { slug, status, code, title, .. } = self.kind.about();
        let mut document = json!({
            "type": format!("{prefix}/docs/problems/{slug}"),
            "title": title,
            "status": status,
            "code": code,
            "detail": self.detail,
            "instance": format!("urn:request:{request_id}"),
        });
        if !self.errors.is_empty() {
            let item = |Item { location: (kind, location), code, detail }: &Item| json!({ (*kind): location, "code": code, "detail": detail });
            document["errors"] = self.errors.iter().map(item).collect();
        }
        for (name, value) in &self.more {
            document[name] = value.clone();
        }
        document
    }
}

/// Converts an error of the store. Faults of the body were reported before, so errors here are about a path or a
/// state.
impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        match error {
            StoreError::NotFound { kind, name } => Problem::not_found(kind, &name),
            StoreError::Stale { .. } => Problem::new(Kind::RevisionMismatch, error.to_string()),
            StoreError::Conflict { what } => Problem::new(Kind::Conflict, what),
            StoreError::Invalid(invalid) if invalid.is_retired() => Problem::new(Kind::JobRetired, invalid.reason),
            StoreError::Invalid(invalid) if invalid.is_too_many_pending() => {
                Problem::new(Kind::TooManyPendingRuns, invalid.reason)
            }
            StoreError::Invalid(invalid) if invalid.field == "status" => Problem::new(Kind::Conflict, invalid.reason),
            StoreError::Invalid(invalid) => {
                let code = if invalid.field == "target" { FaultCode::UnknownTarget } else { FaultCode::Invalid };
                Problem::body(vec![Fault::new(format!("/{}", invalid.field.replace('.', "/")), code, invalid.reason)])
            }
            StoreError::Unavailable { reason, maybe_done, .. } => {
                tracing::warn!(error = %error, "a request failed because the database is unavailable");
                let retry_after = Some(if reason == UnavailableReason::Locked { 1 } else { 5 });
                let detail = match error.needs_operator() {
                    Some(cause) if !maybe_done => format!("The database cannot be used: {cause}."),
                    _ => unavailable(reason, maybe_done),
                };
                Problem { retry_after, ..Problem::new(Kind::NotReady, detail) }
            }
            StoreError::Corrupt { .. } => {
                tracing::error!(error = %error, "stored data cannot be read");
                Problem::new(Kind::Internal, "Stored data cannot be read. See the server log for details.")
            }
            _ => {
                tracing::error!(error = %error, "a request failed in the database");
                Problem::new(Kind::Internal, "The database failed. See the server log for details.")
            }
        }
    }
}

/// Converts an error of core.
impl From<everbell::Invalid> for Problem {
    fn from(invalid: everbell::Invalid) -> Problem {
        StoreError::from(invalid).into()
    }
}

#[cfg(test)]
mod tests;
