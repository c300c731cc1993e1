//! [`settle`]: the next state of a run after its handler has ended. The second of the two decisions.
//!
//! ```text
//!              Succeeded ─────────────────────────────► succeeded
//!   running ─┬ Failed, TimedOut, Panicked ─┬ tries left ► pending, after the backoff or what the handler asked for
//!            │                             └ none left ─► failed
//!            ├ Lost ───────────────────────────────────► failed (`lost`; never tried again: it may still be at work)
//!            └ Canceled ───────────────────────────────► canceled
//!   pending ── Canceled ───────────────────────────────► canceled
//!   terminal ─ anything ───────────────────────────────► stays
//! ```

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::ids::RunId;
use crate::json::Json;
use crate::output::end_of_output;
use crate::policy::Backoff;
use crate::run::{Failure, FailureCode, RunStatus};

/// The facts about a run that `settle` needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settling {
    /// Its id.
    pub id: RunId,
    /// The attempt that the outcome belongs to: the fence of its lease.
    pub attempt: u32,
    /// Its current status.
    pub status: RunStatus,
    /// How often it may be tried.
    pub max_attempts: u32,
    /// The waits between.
    pub backoff: Backoff,
}

/// The outcome of an attempt, as a handler, a timer or an operator reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The handler returned.
    Succeeded {
        /// Its result.
        result: Option<Json>,
    },
    /// The handler failed.
    Failed {
        /// The failure.
        failure: Failure,
        /// How to proceed.
        then: Then,
    },
    /// The handler panicked, with this message.
    Panicked(String),
    /// It was stopped after this time.
    TimedOut(Duration),
    /// Its lease ran out. What is known of the lease becomes the details of the failure.
    Lost(Option<Json>),
    /// It was canceled.
    Canceled {
        /// The actor who canceled it.
        by: String,
    },
}

/// How to proceed after a failure, as its handler sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Then {
    /// Another attempt, if the job allows one.
    Retry {
        /// The shortest wait before it, at most [`MAX_RETRY_AFTER`]; the job's backoff may be longer.
        after: Duration,
    },
    /// Nothing: another attempt would fail the same way.
    GiveUp,
    /// No other attempt, and the job is paused with this reason: each of its runs would fail the same way.
    Pause(String),
}

impl Then {
    /// Another attempt after the job's backoff.
    pub const RETRY: Then = Then::Retry { after: Duration::ZERO };
}

/// The longest time that a handler can put off the next attempt.
pub const MAX_RETRY_AFTER: Duration = Duration::from_hours(24);

/// A transition of a run, to be written under the guard of its id, attempt and status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The run.
    pub run_id: RunId,
    /// The attempt that must still be the current one.
    pub attempt: u32,
    /// The status that it must still have.
    pub from: RunStatus,
    /// Its next state.
    pub to: Next,
    /// The end of the handler's output; `None` leaves what was saved while it was at work.
    pub output: Option<String>,
}

/// The next state of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Terminal.
    Finish {
        /// Succeeded, failed or canceled.
        status: RunStatus,
        /// When it ended.
        finished_at: Timestamp,
        /// The failure, unless it succeeded.
        failure: Option<Failure>,
        /// The handler's result.
        result: Option<Json>,
    },
    /// Pending again.
    Retry {
        /// Not before this.
        not_before: Timestamp,
        /// Why the last attempt failed.
        failure: Failure,
    },
}

impl Transition {
    /// With the end of what the handler printed, made fit to be stored.
    #[must_use]
    pub fn with_output(self, output: &str) -> Transition {
        Transition { output: end_of_output(output), ..self }
    }

    /// With another time at which the run finished. The time of a retry stays.
    #[must_use]
    pub fn finished_at(mut self, at: Timestamp) -> Transition {
        if let Next::Finish { finished_at, .. } = &mut self.to {
            *finished_at = at;
        }
        self
    }
}

/// Decides the next state of a run. `None`: no change, because the run is terminal or its status does not allow the
/// outcome.
pub fn settle(run: &Settling, outcome: Outcome, now: Timestamp) -> Option<Transition> {
    let to = match (run.status, outcome) {
        (RunStatus::Running, Outcome::Succeeded { result }) => {
            Next::Finish { status: RunStatus::Succeeded, finished_at: now, failure: None, result }
        }
        (RunStatus::Running, Outcome::Failed { failure, then }) => failed(run, failure, &then, now),
        (RunStatus::Running, Outcome::Panicked(message)) => {
            failed(run, Failure::new(FailureCode::PANIC, &message), &Then::RETRY, now)
        }
        (RunStatus::Running, Outcome::TimedOut(after)) => {
            let message = format!("stopped after {} s", after.as_secs_f64());
            let failure = Failure::new(FailureCode::TIMEOUT, &message);
            let details = Json::parse("details", &format!("{{\"timeoutMs\":{}}}", after.as_millis())).ok();
            failed(run, Failure { details, ..failure }, &Then::RETRY, now)
        }
        (RunStatus::Running, Outcome::Lost(details)) => {
            let message = "its executor was not heard of until the lease ran out";
            let failure = Failure::new(FailureCode::LOST, message);
            failed(run, Failure { details, ..failure }, &Then::GiveUp, now)
        }
        (RunStatus::Running | RunStatus::Pending, Outcome::Canceled { by }) => Next::Finish {
            status: RunStatus::Canceled,
            finished_at: now,
            failure: Some(Failure::canceled(&by)),
            result: None,
        },
        (
            RunStatus::Pending,
            Outcome::Succeeded { .. }
            | Outcome::Failed { .. }
            | Outcome::Panicked(_)
            | Outcome::TimedOut(_)
            | Outcome::Lost(_),
        )
        | (RunStatus::Succeeded | RunStatus::Failed | RunStatus::Canceled | RunStatus::Skipped, _) => return None,
    };
    Some(Transition { run_id: run.id, attempt: run.attempt, from: run.status, to, output: None })
}

fn failed(run: &Settling, failure: Failure, then: &Then, now: Timestamp) -> Next {
    let wait = match then {
        Then::Retry { after } if run.attempt < run.max_attempts => {
            Some(run.backoff.after(run.attempt).max(*after.min(&MAX_RETRY_AFTER)))
        }
        Then::Retry { .. } | Then::GiveUp | Then::Pause(_) => None,
    };
    let wait = wait.and_then(|wait| SignedDuration::try_from(wait).ok());
    match wait.and_then(|wait| now.checked_add(wait).ok()) {
        Some(not_before) => Next::Retry { not_before, failure },
        None => Next::Finish { status: RunStatus::Failed, finished_at: now, failure: Some(failure), result: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(status: RunStatus, attempt: u32, max_attempts: u32) -> Settling {
        let id = RunId::by_hand(Timestamp::UNIX_EPOCH, [1; 10]);
        Settling { id, attempt, status, max_attempts, backoff: Backoff::default() }
    }

    fn now() -> Timestamp {
        "2026-11-15T12:00:00Z".parse().unwrap()
    }

    fn outcomes() -> Vec<Outcome> {
        let failure = Failure::new(FailureCode::HANDLER_ERROR, "no");
        vec![
            Outcome::Succeeded { result: None },
            Outcome::Failed { failure: failure.clone(), then: Then::RETRY },
            Outcome::Failed { failure: failure.clone(), then: Then::Retry { after: Duration::from_mins(5) } },
            Outcome::Failed { failure: failure.clone(), then: Then::GiveUp },
            Outcome::Failed { failure, then: Then::Pause("gone".to_owned()) },
            Outcome::Panicked("boom".to_owned()),
            Outcome::TimedOut(Duration::from_mins(15)),
            Outcome::Lost(None),
            Outcome::Canceled { by: "ana".to_owned() },
        ]
    }

    /// The next state of a running run on its only, or on its first of two attempts: one line for each outcome.
    fn said(max_attempts: u32) -> Vec<String> {
        let say = |outcome| match settle(&run(RunStatus::Running, 1, max_attempts), outcome, now()).unwrap().to {
            Next::Finish { status, failure, finished_at, .. } => {
                assert_eq!(finished_at, now());
                let why = failure.map_or("-".to_owned(), |f| format!("{}: {}", f.code.as_str(), f.message));
                format!("{status} {why}")
            }
            Next::Retry { not_before, failure } => format!("retry at {not_before} {}", failure.code.as_str()),
        };
        outcomes().into_iter().map(say).collect()
    }

    #[test]
    fn a_single_attempt_ends_with_its_outcome() {
        assert_eq!(
            said(1),
            [
                "succeeded -",
                "failed handler_error: no",
                "failed handler_error: no",
                "failed handler_error: no",
                "failed handler_error: no",
                "failed panic: boom",
                "failed timeout: stopped after 900 s",
                "failed lost: its executor was not heard of until the lease ran out",
                "canceled canceled: canceled by ana",
            ]
        );
    }

    #[test]
    fn what_makes_sense_is_tried_again() {
        assert_eq!(
            said(2),
            [
                "succeeded -",
                "retry at 2026-11-15T12:00:10Z handler_error",
                "retry at 2026-11-15T12:05:00Z handler_error",
                "failed handler_error: no",
                "failed handler_error: no",
                "retry at 2026-11-15T12:00:10Z panic",
                "retry at 2026-11-15T12:00:10Z timeout",
                "failed lost: its executor was not heard of until the lease ran out",
                "canceled canceled: canceled by ana",
            ]
        );
    }

    #[test]
    fn what_a_handler_asks_for_is_bounded_and_never_shortens_the_backoff() {
        for (after, wanted) in [
            (Duration::from_secs(9), "2026-11-15T12:00:10Z"),
            (Duration::from_secs(11), "2026-11-15T12:00:11Z"),
            (Duration::MAX, "2026-11-16T12:00:00Z"),
        ] {
            let failure = Failure::new(FailureCode::HTTP_STATUS, "later");
            let outcome = Outcome::Failed { failure, then: Then::Retry { after } };
            match settle(&run(RunStatus::Running, 1, 2), outcome, now()).unwrap().to {
                Next::Retry { not_before, .. } => assert_eq!(not_before.to_string(), wanted),
                Next::Finish { .. } => panic!("there is another attempt"),
            }
        }
    }

    #[test]
    fn the_last_attempt_is_the_last() {
        let outcome = Outcome::Panicked("boom".to_owned());
        let to = settle(&run(RunStatus::Running, 2, 2), outcome, now()).unwrap().to;
        assert!(matches!(to, Next::Finish { status: RunStatus::Failed, .. }));
    }

    #[test]
    fn terminal_stays_terminal_and_pending_can_only_be_canceled() {
        for status in RunStatus::ALL.iter().copied().filter(|status| *status != RunStatus::Running) {
            for outcome in outcomes() {
                let possible = status == RunStatus::Pending && matches!(outcome, Outcome::Canceled { .. });
                assert_eq!(settle(&run(status, 1, 3), outcome, now()).is_some(), possible, "{status}");
            }
        }
    }

    #[test]
    fn every_transition_is_fenced_and_goes_where_it_may() {
        for status in RunStatus::ALL {
            for outcome in outcomes() {
                let Some(transition) = settle(&run(*status, 7, 9), outcome, now()) else { continue };
                assert_eq!((transition.attempt, transition.from), (7, *status));
                if let Next::Finish { status, .. } = transition.to {
                    assert!(status.is_terminal());
                }
            }
        }
    }
}
