//! [`RunError`]: why a handler failed, and whether another attempt makes sense.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use everbell_core::settle::{Outcome, Then};
use everbell_core::{Failure, FailureCode, Json, storable_text};
use serde::Serialize;

/// The failure of a run.
///
/// Every standard error becomes one by `?`, with the failure code `handler_error` and all of its sources in the
/// message. For errors that do not implement [`Error`], such as boxed ones or those of the `anyhow` crate, use
/// [`RunError::new`]. To make that possible it does not implement [`Error`] itself.
///
/// ```
/// use everbell::RunError;
///
/// async fn read() -> Result<u64, RunError> {
///     let text = "12 mails";
///     let count = text.split(' ').next().ok_or(RunError::fail("no_count", "the first word is missing").fatal())?;
///     Ok(count.parse()?)
/// }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct RunError {
    failure: Failure,
    then: Then,
}

impl RunError {
    /// Converts anything that can be an error: a boxed one, an `anyhow::Error`, a text.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> RunError {
        RunError::from_error(&*error.into())
    }

    /// A failure with its own code, 1 to 64 of `a-z`, `0-9` and `_`, for programs that distinguish failures.
    ///
    /// An invalid code becomes `handler_error`, and the message mentions it. So do `lost`, `shutdown` and `fenced`, which
    /// say that everbell ended an attempt.
    pub fn fail(code: &str, message: impl fmt::Display) -> RunError {
        let message = message.to_string();
        let impossible = |_| {
            let shown = storable_text(&code.escape_debug().to_string(), 80);
            let why = if FailureCode::new(code).is_ok() { "reserved" } else { "impossible" };
            let message = format!("{message} (with the {why} failure code `{shown}`)");
            Failure::new(FailureCode::HANDLER_ERROR, &message)
        };
        let failure = FailureCode::from_handler(code).map_or_else(impossible, |code| Failure::new(code, &message));
        RunError { failure, then: Then::RETRY }
    }

    /// Forbids a retry, whatever the job's policy says: another attempt would fail the same way.
    #[must_use]
    pub fn fatal(self) -> RunError {
        RunError { then: Then::GiveUp, ..self }
    }

    /// Delays the next attempt by at least this time, at most a day, for instance because a server asked for it. The
    /// job's own backoff and number of attempts still apply. A fatal failure stays fatal.
    #[must_use]
    pub fn retry_after(self, wait: Duration) -> RunError {
        if self.is_retryable() { RunError { then: Then::Retry { after: wait }, ..self } } else { self }
    }

    /// Forbids a retry and pauses the job with this reason: every run of it would fail the same way until someone fixes
    /// the cause. A run without a job just fails.
    #[must_use]
    pub fn pausing(self, reason: impl Into<String>) -> RunError {
        RunError { then: Then::Pause(reason.into()), ..self }
    }

    /// Adds details, for programs and people. Details that cannot be stored are left out, and the message says so.
    #[must_use]
    pub fn details(mut self, details: impl Serialize) -> RunError {
        match storable("failureDetails", &details) {
            Ok(details) => self.failure.details = details,
            Err(reason) => {
                let message = format!("{} (its details cannot be stored: {reason})", self.failure.message);
                self.failure = Failure::new(self.failure.code, &message);
            }
        }
        self
    }

    /// Returns the failure code.
    pub fn code(&self) -> &FailureCode {
        &self.failure.code
    }

    /// Returns the message, for people.
    pub fn message(&self) -> &str {
        &self.failure.message
    }

    /// Whether it may be retried.
    pub fn is_retryable(&self) -> bool {
        matches!(self.then, Then::Retry { .. })
    }

    /// Returns the reason to pause the job, if there is one.
    pub fn pause_reason(&self) -> Option<&str> {
        match &self.then {
            Then::Pause(reason) => Some(reason),
            Then::Retry { .. } | Then::GiveUp => None,
        }
    }

    pub(crate) fn with_code(code: FailureCode, message: &str) -> RunError {
        RunError { failure: Failure::new(code, message), then: Then::RETRY }
    }

    pub(crate) fn from_parts(failure: Failure, then: Then) -> RunError {
        RunError { failure, then }
    }

    pub(crate) fn into_outcome(self) -> Outcome {
        Outcome::Failed { failure: self.failure, then: self.then }
    }

    fn from_error(error: &(dyn Error + 'static)) -> RunError {
        RunError::with_code(FailureCode::HANDLER_ERROR, &chain(error))
    }
}

impl<E: Error + 'static> From<E> for RunError {
    fn from(error: E) -> Self {
        RunError::from_error(&error)
    }
}

impl fmt::Debug for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunError")
            .field("code", &self.failure.code.as_str())
            .field("message", &self.failure.message)
            .field("details", &self.failure.details.as_ref().map(Json::as_str))
            .field("then", &self.then)
            .finish()
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.failure.code.as_str(), self.failure.message)
    }
}

/// A handler's error type: a [`RunError`], every standard error, a boxed one, an `anyhow::Error`, a text.
pub trait IntoRunError {
    /// Returns the failure of the run.
    fn into_run_error(self) -> RunError;
}

impl<E: Into<Box<dyn Error + Send + Sync>>> IntoRunError for E {
    fn into_run_error(self) -> RunError {
        RunError::new(self)
    }
}

impl IntoRunError for RunError {
    fn into_run_error(self) -> RunError {
        self
    }
}

/// Joins an error and its sources, the outermost first. A source that the text already ends with is not repeated.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        next = error.source();
        let source = error.to_string();
        if !text.ends_with(&source) {
            text.push_str(": ");
            text.push_str(&source);
        }
    }
    text
}

/// Converts a value to JSON that every store accepts; `null` becomes `None`. Or returns why that is impossible.
pub(crate) fn storable(field: &'static str, value: &impl Serialize) -> Result<Option<Json>, String> {
    Ok(Some(crate::storable::json(field, value)?).filter(|json| json.as_str() != "null"))
}
