//! Why a run failed, and the attempts that were followed by another one.

use std::borrow::Cow;

use jiff::Timestamp;

use crate::ids::Invalid;
use crate::json::{Json, storable_text};

/// A stable word for why a run failed: one of the constants, or a handler's own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FailureCode(Cow<'static, str>);

impl FailureCode {
    /// The handler returned an error.
    pub const HANDLER_ERROR: FailureCode = FailureCode(Cow::Borrowed("handler_error"));
    /// The handler panicked.
    pub const PANIC: FailureCode = FailureCode(Cow::Borrowed("panic"));
    /// It took longer than its timeout.
    pub const TIMEOUT: FailureCode = FailureCode(Cow::Borrowed("timeout"));
    /// Its instance stopped renewing the lease: it crashed, or could not reach the database.
    pub const LOST: FailureCode = FailureCode(Cow::Borrowed("lost"));
    /// It was canceled.
    pub const CANCELED: FailureCode = FailureCode(Cow::Borrowed("canceled"));
    /// Its instance shut down before it was done.
    pub const SHUTDOWN: FailureCode = FailureCode(Cow::Borrowed("shutdown"));
    /// Its instance could not renew its lease, and stopped it before another run could start.
    pub const FENCED: FailureCode = FailureCode(Cow::Borrowed("fenced"));
    /// The payload is not what the handler takes.
    pub const INVALID_PAYLOAD: FailureCode = FailureCode(Cow::Borrowed("invalid_payload"));
    /// An HTTP target answered with a status that is no success.
    pub const HTTP_STATUS: FailureCode = FailureCode(Cow::Borrowed("http_status"));
    /// An HTTP target could not be reached.
    pub const HTTP_CONNECT: FailureCode = FailureCode(Cow::Borrowed("http_connect"));
    /// A command ended with another code than 0.
    pub const EXIT_CODE: FailureCode = FailureCode(Cow::Borrowed("exit_code"));
    /// A command was ended by a signal.
    pub const SIGNAL: FailureCode = FailureCode(Cow::Borrowed("signal"));

    /// A handler's own word: 1 to 64 of `a-z`, `0-9` and `_`.
    pub fn new(word: &str) -> Result<FailureCode, Invalid> {
        let fits = (1..=64).contains(&word.len());
        if fits && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_') {
            Ok(FailureCode(Cow::Owned(word.to_owned())))
        } else {
            Err(Invalid::new("failureCode", "must be 1 to 64 of a-z, 0-9 and _"))
        }
    }

    /// The words for the outcome of an attempt, which only the engine can know.
    const RESERVED: [FailureCode; 3] = [FailureCode::LOST, FailureCode::SHUTDOWN, FailureCode::FENCED];

    /// A word that a handler gives its failure, as [`FailureCode::new`] takes it. Refused are `lost`, `shutdown` and
    /// `fenced`: history would say that the instance was lost, or shut down, when only the handler failed.
    pub fn from_handler(word: &str) -> Result<FailureCode, Invalid> {
        let code = FailureCode::new(word)?;
        if FailureCode::RESERVED.contains(&code) {
            let reserved = FailureCode::RESERVED.map(|code| format!("`{}`", code.as_str())).join(", ");
            let reason = format!("`{word}` is reserved for everbell, as are all of {reserved}: use another word");
            return Err(Invalid::new("failureCode", reason));
        }
        Ok(code)
    }

    /// The word.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn in_attempt(&self, attempt: u32) -> String {
        match self.as_str() {
            "lost" => format!("attempt {attempt} was lost"),
            "shutdown" => format!("attempt {attempt} was stopped by a shutdown"),
            code => format!("attempt {attempt} failed with {code}"),
        }
    }
}

/// Why a run failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// For programs.
    pub code: FailureCode,
    /// For people.
    pub message: String,
    /// More, for both.
    pub details: Option<Json>,
}

/// The longest failure message that is kept.
pub const MAX_FAILURE_MESSAGE_BYTES: usize = 8 * 1024;

impl Failure {
    /// `attempt 2 was lost`, `attempt 2 failed with timeout`.
    pub(crate) fn in_attempt(&self, attempt: u32) -> String {
        self.code.in_attempt(attempt)
    }

    /// The failure of a canceled run.
    pub fn canceled(by: &str) -> Failure {
        Failure::new(FailureCode::CANCELED, &format!("canceled by {by}"))
    }

    /// A failure whose message can be stored, whatever the handler put into it.
    pub fn new(code: FailureCode, message: &str) -> Failure {
        Failure { code, message: storable_text(message, MAX_FAILURE_MESSAGE_BYTES), details: None }
    }
}

/// An attempt of a run that ended and was followed by another one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EarlierAttempt {
    /// Its number.
    pub attempt: u32,
    /// Why it ended: `lost`, `shutdown`, or the failure of its handler.
    pub code: FailureCode,
    /// When it ended. For a lost attempt this is when the loss was noticed.
    pub ended_at: Timestamp,
    /// Whether it used up one of the job's `maxAttempts`. A stop by a shutdown does not if the job has
    /// [`OnLost::Retry`](crate::OnLost::Retry).
    pub counts: bool,
}

impl EarlierAttempt {
    /// An attempt that ended with this code.
    pub fn new(attempt: u32, code: FailureCode, ended_at: Timestamp, counts: bool) -> EarlierAttempt {
        EarlierAttempt { attempt, code, ended_at, counts }
    }

    /// Returns how many attempts are used up by the attempt of this number and those before it.
    pub fn used(attempt: u32, earlier: &[EarlierAttempt]) -> u32 {
        attempt.saturating_sub(EarlierAttempt::uncounted(earlier))
    }

    /// Returns how many of these attempts do not count.
    pub fn uncounted(earlier: &[EarlierAttempt]) -> u32 {
        earlier.iter().filter(|attempt| !attempt.counts).count() as u32
    }
}

/// `attempt 1 was lost`, for timelines and explanations.
impl std::fmt::Display for EarlierAttempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.code.in_attempt(self.attempt))?;
        if self.counts { Ok(()) } else { f.write_str(" and does not count") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_the_engine_are_not_for_handlers() {
        for word in ["lost", "shutdown", "fenced"] {
            assert_eq!(FailureCode::new(word).unwrap().as_str(), word, "it is read back");
            let refused = FailureCode::from_handler(word).unwrap_err().to_string();
            assert!(refused.contains(&format!("`{word}` is reserved for everbell")), "{refused}");
        }
        for word in ["timeout", "lost_mail"] {
            assert_eq!(FailureCode::from_handler(word).unwrap().as_str(), word);
        }
        assert!(FailureCode::from_handler("No").unwrap_err().to_string().contains("a-z"));
    }

    #[test]
    fn attempts_that_do_not_count_are_not_used_up() {
        let earlier = |attempt, code: FailureCode, counts| EarlierAttempt {
            attempt,
            code,
            ended_at: Timestamp::UNIX_EPOCH,
            counts,
        };
        let all = [
            earlier(1, FailureCode::LOST, true),
            earlier(2, FailureCode::SHUTDOWN, false),
            earlier(3, FailureCode::TIMEOUT, true),
        ];
        assert_eq!((EarlierAttempt::used(4, &all), EarlierAttempt::used(1, &[])), (3, 1));
        let told: Vec<String> = all.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "attempt 1 was lost",
                "attempt 2 was stopped by a shutdown and does not count",
                "attempt 3 failed with timeout"
            ]
        );
    }
}
