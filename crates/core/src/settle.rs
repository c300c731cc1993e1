//! [`settle`]: the next state of a run after its handler has ended. The second of the two decisions.
//!
//! ```text
//!              Succeeded ─────────────────────────────► succeeded
//!   running ─┬ Failed, TimedOut, Panicked ─┬ tries left ► pending, after the backoff or what the handler asked for
//!            │                             └ none left ─► failed
//!            ├ Lost, Silent ┬ onLost: retry, tries left ─► pending, after the backoff
//!            │              └ else ────────────────────► failed (how far it came is unknown)
//!            ├ ShutDown ┬ onLost: retry ───────────────► pending, at once; uses up no attempt, 20 times at the most
//!            │          └ else ────────────────────────► like Failed
//!            └ Canceled ───────────────────────────────► canceled
//!   pending ── Canceled ───────────────────────────────► canceled
//!   terminal ─ anything ───────────────────────────────► stays
//! ```
//!
//! The number of an attempt is the fence of every write, so it always grows. The attempts that are used up are counted
//! apart: they are the attempts without those that do not count.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::failure::{EarlierAttempt, Failure, FailureCode};
use crate::ids::RunId;
use crate::json::Json;
use crate::output::end_of_output;
use crate::policy::{Backoff, OnLost, Policies};
use crate::run::RunStatus;

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
    /// How it is settled if its instance is lost.
    pub on_lost: OnLost,
    /// Its attempts before this one.
    pub earlier: Vec<EarlierAttempt>,
}

impl Settling {
    /// Describes a run in this attempt, of a job with these policies. `None` for a run without a job, or whose job
    /// cannot be read: it has one attempt.
    pub fn new(id: RunId, status: RunStatus, attempt: u32, policies: Option<&Policies>) -> Settling {
        let usual = Policies::default();
        let policies = policies.unwrap_or(&usual);
        Settling {
            id,
            attempt,
            status,
            max_attempts: policies.max_attempts,
            backoff: policies.backoff,
            on_lost: policies.on_lost,
            earlier: Vec::new(),
        }
    }

    /// With the attempts before this one.
    #[must_use]
    pub fn after(self, earlier: Vec<EarlierAttempt>) -> Settling {
        Settling { earlier, ..self }
    }

    /// How many attempts are used up, this one included.
    fn used(&self) -> u32 {
        EarlierAttempt::used(self.attempt, &self.earlier)
    }
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
    /// It was stopped because its instance shut down and its grace period was over, with this message.
    ShutDown(String),
    /// Its lease ran out. What is known of the lease becomes the details of the failure.
    Lost(Option<Json>),
    /// Its remote side sent no heartbeat for the time of its lease.
    Silent {
        /// That time.
        lease: Duration,
        /// When it last sent one.
        last_heard_at: Timestamp,
    },
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

/// How many stops by a shutdown use up no attempt of a run. Further stops count, so a run that is longer than the time
/// between two deploys comes to an end.
pub const MAX_UNCOUNTED_STOPS: u32 = 20;

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
    /// The run ends.
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
        /// The last attempt, to be remembered; `None` if it never started.
        ended: Option<EarlierAttempt>,
    },
}

impl Transition {
    /// With the end of what the handler printed, made fit to be stored.
    #[must_use]
    pub fn with_output(self, output: &str) -> Transition {
        Transition { output: end_of_output(output), ..self }
    }

    /// Whether it takes the run from an instance that may still be at work on it, which has to notice.
    pub fn is_lost(&self) -> bool {
        match &self.to {
            Next::Finish { failure, .. } => failure.as_ref().is_some_and(|failure| failure.code == FailureCode::LOST),
            // A claim that never started is given back by its own instance.
            Next::Retry { failure, ended, .. } => failure.code == FailureCode::LOST && ended.is_some(),
        }
    }

    /// With another time at which the attempt ended. The time of the next attempt stays.
    #[must_use]
    pub fn finished_at(mut self, at: Timestamp) -> Transition {
        match &mut self.to {
            Next::Finish { finished_at, .. } => *finished_at = at,
            Next::Retry { ended, .. } => ended.iter_mut().for_each(|ended| ended.ended_at = at),
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
            let message = "the instance that ran it was lost before it ended";
            let failure = Failure::new(FailureCode::LOST, message);
            failed(run, Failure { details, ..failure }, &after_loss(run), now)
        }
        (RunStatus::Running, Outcome::Silent { lease, last_heard_at }) => {
            let message = format!("its remote side sent no heartbeat for {} s", lease.as_secs_f64());
            let details = format!("{{\"lastHeardAt\":\"{last_heard_at}\",\"leaseMs\":{}}}", lease.as_millis());
            let details = Json::parse("details", &details).ok();
            failed(run, Failure { details, ..Failure::new(FailureCode::LOST, &message) }, &after_loss(run), now)
        }
        (RunStatus::Running, Outcome::ShutDown(message)) => {
            shut_down(run, Failure::new(FailureCode::SHUTDOWN, &message), now)
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
            | Outcome::ShutDown(_)
            | Outcome::Lost(_)
            | Outcome::Silent { .. },
        )
        | (RunStatus::Succeeded | RunStatus::Failed | RunStatus::Canceled | RunStatus::Skipped, _) => return None,
    };
    Some(Transition { run_id: run.id, attempt: run.attempt, from: run.status, to, output: None })
}

/// Decides about a run that would wait for another attempt although its cancellation was asked for: it is canceled, at the
/// time at which its attempt ended; `now` is for an attempt that never began. The transition is from the pending status
/// that the retry has left it in. `None` for a transition that ends the run.
pub fn cancel_retry(retry: &Transition, by: &str, now: Timestamp) -> Option<Transition> {
    let Next::Retry { ended, .. } = &retry.to else { return None };
    let waiting = Settling::new(retry.run_id, RunStatus::Pending, retry.attempt, None);
    let ended_at = ended.as_ref().map_or(now, |ended| ended.ended_at);
    settle(&waiting, Outcome::Canceled { by: by.to_owned() }, ended_at)
}

/// How to proceed with a run that is lost. It is tried again after the backoff: a run that takes its process down must not
/// take down the next one at once.
fn after_loss(run: &Settling) -> Then {
    match run.on_lost {
        OnLost::Fail => Then::GiveUp,
        OnLost::Retry => Then::RETRY,
    }
}

/// A run that was stopped although nothing was wrong with it. Where the job allows it, others take it over at once, and
/// the attempt does not count.
fn shut_down(run: &Settling, failure: Failure, now: Timestamp) -> Next {
    let stops = EarlierAttempt::uncounted(&run.earlier);
    if run.on_lost == OnLost::Retry && stops < MAX_UNCOUNTED_STOPS {
        return retry(run, failure, now, now, false);
    }
    failed(run, failure, &Then::RETRY, now)
}

fn retry(run: &Settling, failure: Failure, not_before: Timestamp, now: Timestamp, counts: bool) -> Next {
    let ended = EarlierAttempt { attempt: run.attempt, code: failure.code.clone(), ended_at: now, counts };
    Next::Retry { not_before, failure, ended: Some(ended) }
}

fn failed(run: &Settling, failure: Failure, then: &Then, now: Timestamp) -> Next {
    let wait = match then {
        Then::Retry { after } if run.used() < run.max_attempts => {
            Some(run.backoff.after(run.used()).max(*after.min(&MAX_RETRY_AFTER)))
        }
        Then::Retry { .. } | Then::GiveUp | Then::Pause(_) => None,
    };
    let wait = wait.and_then(|wait| SignedDuration::try_from(wait).ok());
    match wait.and_then(|wait| now.checked_add(wait).ok()) {
        Some(not_before) => retry(run, failure, not_before, now, true),
        None => Next::Finish { status: RunStatus::Failed, finished_at: now, failure: Some(failure), result: None },
    }
}

#[cfg(test)]
mod tests;
