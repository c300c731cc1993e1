//! [`Error`]: why a call has no document.

use std::fmt;
use std::time::Duration;

use everbell_wire as wire;
use everbell_wire::printable;
use reqwest::header::{HeaderMap, LOCATION};
use serde_json::Value;

/// Why a call has no document.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The server refused the request.
    Refused(Box<Refusal>),
    /// There was no connection to the server, or it broke.
    Unreachable {
        /// The address of the server.
        server: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server did not respond in time.
    Timeout {
        /// The address of the server.
        server: String,
        /// How long the client waited.
        timeout: Duration,
    },
    /// The response is not JSON: the address may be that of a proxy, or of another program.
    NotJson {
        /// The address of the server.
        server: String,
        /// Method and path.
        call: String,
    },
    /// The response is JSON, but not the document that this release expects.
    UnexpectedDocument {
        /// The address of the server.
        server: String,
        /// Method and path.
        call: String,
        /// The name of the expected document.
        expected: String,
        /// The difference.
        source: serde_json::Error,
    },
    /// An argument cannot be sent: an address, a token, a path or a body.
    Invalid(String),
    /// TLS could not be set up.
    Tls(Box<dyn std::error::Error + Send + Sync>),
}

/// A request that the server did not carry out.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Refusal {
    /// Method and path, such as `POST /api/v1/jobs`.
    pub call: String,
    /// The HTTP status.
    pub status: u16,
    /// The problem document; empty if the response was none.
    pub problem: wire::Problem,
    /// The problem document as it came; `null` if the response was none.
    pub json: Value,
    /// The address to which a redirect pointed, which is not followed.
    pub location: Option<String>,
}

impl Error {
    /// The code of the problem if the server refused the request, such as `NotFound`.
    pub fn code(&self) -> Option<&wire::ProblemCode> {
        match self {
            Error::Refused(refusal) => Some(&refusal.problem.code),
            _ => None,
        }
    }
}

impl Refusal {
    pub(crate) fn new(call: String, status: u16, headers: &HeaderMap, text: &str) -> Refusal {
        let problem = serde_json::from_str(text).unwrap_or_default();
        let json = serde_json::from_str(text).unwrap_or_default();
        let location = headers.get(LOCATION).and_then(|to| to.to_str().ok()).map(str::to_owned);
        Refusal { call, status, problem, json, location }
    }

    /// Whether the server explained the refusal. A proxy in front of it may not.
    pub fn is_explained(&self) -> bool {
        self.explanation().is_some()
    }

    fn explanation(&self) -> Option<&str> {
        [&self.problem.detail, &self.problem.title].into_iter().find(|text| !text.is_empty()).map(String::as_str)
    }

    /// The reason, as a part of a sentence.
    pub fn detail(&self) -> String {
        match (self.explanation(), &self.location) {
            (Some(text), _) => within_sentence(text),
            (None, Some(to)) => format!("the server redirects to {to}, and redirects are not followed"),
            (None, None) => format!("the server answered {} without a reason", self.status),
        }
    }
}

/// Removes the capital letter and the period of a sentence.
fn within_sentence(text: &str) -> String {
    let mut letters = text.chars();
    let (first, second) = (letters.next(), letters.clone().next());
    let lowered = match first {
        Some(first) if second.is_some_and(|second| second.is_lowercase() || second == ' ') => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => text.to_owned(),
    };
    lowered.strip_suffix('.').map_or(lowered.clone(), str::to_owned)
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        Error::Refused(Box::new(refusal))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Unreachable { source, .. } | Error::Tls(source) => Some(source.as_ref()),
            Error::UnexpectedDocument { source, .. } => Some(source),
            Error::Refused(_) | Error::Timeout { .. } | Error::NotJson { .. } | Error::Invalid(_) => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Refused(refusal) => refusal.fmt(f),
            Error::Unreachable { server, source } => {
                write!(f, "cannot reach the server at {server}: {}", root_cause(source.as_ref()))
            }
            Error::Timeout { server, timeout } if timeout.as_secs() == 0 => {
                write!(f, "{server} did not answer within {}ms", timeout.as_millis())
            }
            Error::Timeout { server, timeout } => {
                let waited = everbell_wire::elapsed::wait(timeout.as_secs() as i64);
                write!(f, "{server} did not answer within {waited}")
            }
            Error::NotJson { server, call } => write!(f, "{server} answered {call} with something that is not JSON"),
            Error::UnexpectedDocument { server, call, expected, source } => {
                write!(f, "{server} answered {call} with something other than `{expected}`: {source}")
            }
            Error::Invalid(reason) => f.write_str(reason),
            Error::Tls(error) => write!(f, "cannot set up TLS: {error}"),
        }
    }
}

fn root_cause<'a>(mut error: &'a (dyn std::error::Error + 'static)) -> &'a (dyn std::error::Error + 'static) {
    while let Some(source) = error.source() {
        error = source;
    }
    error
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}", printable(&self.call))?;
        if self.problem.errors.is_empty() {
            return write!(f, ": {}", printable(&self.detail()));
        }
        for fault in &self.problem.errors {
            write!(f, "\n  {}: {}", printable(fault.location()), printable(&fault.detail))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(status: u16, problem: &Value) -> Refusal {
        Refusal::new("POST /api/v1/jobs".to_owned(), status, &HeaderMap::new(), &problem.to_string())
    }

    #[test]
    fn refusal_ends_its_sentence_with_the_detail() {
        let message = refusal(404, &json!({"detail": "There is no job `A.b`."})).to_string();
        assert_eq!(message, "cannot POST /api/v1/jobs: there is no job `A.b`");
        assert_eq!(within_sentence("URL is bad"), "URL is bad");
        assert_eq!(within_sentence("A job."), "a job");
        assert_eq!(within_sentence(""), "");
    }

    #[test]
    fn refusal_lists_every_fault() {
        let errors =
            json!([{"pointer": "#/timezone", "detail": "is unknown"}, {"parameter": "limit", "detail": "is\u{7} 0"}]);
        let message = refusal(400, &json!({"detail": "2 members.", "errors": errors})).to_string();
        assert_eq!(message, "cannot POST /api/v1/jobs\n  #/timezone: is unknown\n  limit: is\\u{7} 0");
    }

    #[test]
    fn refusal_of_another_program_has_no_explanation() {
        let refusal = Refusal::new("GET /jobs".to_owned(), 502, &HeaderMap::new(), "<html>");
        assert!(!refusal.is_explained());
        assert_eq!(refusal.to_string(), "cannot GET /jobs: the server answered 502 without a reason");
    }
}
