//! Runs in the hands of a remote side: a target that answered "I work on it" and ends the run later, by calls of its own.
//!
//! ```text
//!   running on an instance ── hand over ──► running, held by its remote side ─┬ it completes or fails ──► as if a handler did
//!                                            ▲                │               ├ no heartbeat for its lease ► lost, by onLost
//!                                            └── heartbeat ───┘               └ past its deadline ────────► timed out
//! ```
//!
//! Such a run belongs to no instance, so it goes on while instances stop, crash and start. Its attempt is the fence: who
//! works under an earlier one is refused. The answer to each heartbeat reports a cancellation; from then on heartbeats
//! extend nothing, so the run is canceled at the latest when its lease ends.

use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::failure::{Failure, FailureCode};
use crate::handover::Remote;
use crate::ids::InstanceId;
use crate::json::Json;
use crate::run::{Run, RunStatus};
use crate::settle::{Outcome, Settling, Then};

/// Why a call of a remote side changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The run is in another attempt by now.
    Superseded {
        /// The attempt of the call.
        attempt: u32,
        /// The current one.
        current: u32,
    },
    /// The attempt has ended, and the run waits for the next one.
    Waiting {
        /// The attempt that ended.
        attempt: u32,
    },
    /// The run has ended.
    Ended(RunStatus),
    /// An instance executes the run, and has not handed it over.
    NotHandedOver,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Superseded { attempt, current } => {
                write!(f, "attempt {attempt} is over: the run is in attempt {current}")
            }
            Refusal::Waiting { attempt } => write!(f, "attempt {attempt} is over: the run waits for the next one"),
            Refusal::Ended(status) => write!(f, "the run has already ended: it is {status}"),
            Refusal::NotHandedOver => {
                f.write_str("an instance executes the run, and its target has not responded with 202")
            }
        }
    }
}

/// Checks that this attempt of a run is at work.
pub fn expect_at_work(run: &Run, attempt: u32) -> Result<(), Refusal> {
    match run.status {
        status if status.is_terminal() => Err(Refusal::Ended(status)),
        _ if run.attempt != attempt => Err(Refusal::Superseded { attempt, current: run.attempt }),
        RunStatus::Running => Ok(()),
        _ => Err(Refusal::Waiting { attempt }),
    }
}

/// The end of the lease that a sign of life at `now` grants to a run; `None` if it extends nothing, because the run is to
/// be canceled.
pub fn renewed(run: &Run, remote: &Remote, now: Timestamp) -> Option<Timestamp> {
    run.cancel_by.is_none().then(|| remote.lease_until(now))
}

/// Whether this attempt ended as the same report of a success would end it.
pub fn has_succeeded(run: &Run, attempt: u32, result: Option<&Json>) -> bool {
    run.status == RunStatus::Succeeded && run.attempt == attempt && run.result.as_ref() == result
}

/// Whether this attempt ended as the same report of a failure would end it.
pub fn has_failed(run: &Run, attempt: u32, code: &FailureCode) -> bool {
    let is_current = run.attempt == attempt && run.status != RunStatus::Running;
    let is_this = |failure: &Failure| failure.code == *code || failure.code == FailureCode::CANCELED;
    (is_current && run.failure.as_ref().is_some_and(is_this))
        || run.earlier_attempts.iter().any(|earlier| earlier.attempt == attempt && earlier.code == *code)
}

/// The outcome of a failure that the remote side reports. A run that was asked to stop is canceled: its end is the answer
/// to that.
pub fn failed(run: &Run, failure: Failure, then: Then) -> Outcome {
    match &run.cancel_by {
        Some(by) => Outcome::Canceled { by: by.clone() },
        None => Outcome::Failed { failure, then },
    }
}

/// A run that its remote side holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldRun {
    /// The facts that `settle` needs.
    pub settling: Settling,
    /// When its lease ends.
    pub lease_until: Timestamp,
    /// How long its remote side may be silent.
    pub lease: Duration,
    /// When it times out.
    pub deadline: Timestamp,
    /// When its attempt started.
    pub started_at: Option<Timestamp>,
    /// The actor who asked for its cancellation.
    pub cancel_by: Option<String>,
}

impl HeldRun {
    /// When there may be something to do for it next.
    pub fn due_at(&self) -> Timestamp {
        self.lease_until.min(self.deadline)
    }

    /// The outcome of the run, if it is over: its remote side was silent for too long, or it took too long.
    ///
    /// A remote side cannot be heard while no instance answers. So its silence counts only if the caller could have heard
    /// it for a whole lease: `heard_for` is since when the clock runs steadily and the database answers.
    pub fn expire(&self, now: Timestamp, heard_for: Duration) -> Option<Outcome> {
        let is_late = now >= self.deadline;
        let is_silent = now > self.lease_until && heard_for >= self.lease;
        match &self.cancel_by {
            _ if !is_late && !is_silent => None,
            Some(by) => Some(Outcome::Canceled { by: by.clone() }),
            None if is_late => {
                let started_at = self.started_at.unwrap_or(self.deadline);
                Some(Outcome::TimedOut(self.deadline.duration_since(started_at).unsigned_abs()))
            }
            None => Some(Outcome::Silent { lease: self.lease, last_heard_at: self.last_heard_at() }),
        }
    }

    /// How long its silence cannot be judged yet.
    pub fn patience(&self, heard_for: Duration) -> Duration {
        self.lease.saturating_sub(heard_for)
    }

    /// When it last gave a sign of life, unless its deadline cut the lease.
    fn last_heard_at(&self) -> Timestamp {
        let lease = SignedDuration::try_from(self.lease).unwrap_or(SignedDuration::MAX);
        self.lease_until.checked_sub(lease).unwrap_or(self.lease_until)
    }
}

impl Run {
    /// Whether its remote side holds it, or held it when it ended.
    pub fn is_handed_over(&self) -> bool {
        self.claimed.is_some_and(|(_, holder)| holder == InstanceId::REMOTE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{RunId, Target};
    use crate::run::Trigger;
    use crate::settle::{Next, settle};

    fn at(text: &str) -> Timestamp {
        format!("2026-11-19T{text}Z").parse().unwrap()
    }

    fn run(status: RunStatus, attempt: u32) -> Run {
        let id = RunId::by_hand(at("01:00:00"), [7; 10]);
        let trigger = Trigger::Manual("ana".to_owned());
        let mut run = Run::new(id, Target::new("render").unwrap(), trigger, at("01:00:00"), at("01:00:00"));
        (run.status, run.attempt) = (status, attempt);
        run
    }

    fn held(cancel_by: Option<&str>) -> HeldRun {
        let run = run(RunStatus::Running, 1);
        HeldRun {
            settling: Settling::new(run.id, run.status, 1, None),
            lease_until: at("01:02:00"),
            lease: Duration::from_mins(1),
            deadline: at("01:15:00"),
            started_at: Some(at("01:00:00")),
            cancel_by: cancel_by.map(str::to_owned),
        }
    }

    #[test]
    fn the_attempt_is_the_fence() {
        let running = run(RunStatus::Running, 2);
        assert_eq!(expect_at_work(&running, 2), Ok(()));
        assert_eq!(expect_at_work(&running, 1), Err(Refusal::Superseded { attempt: 1, current: 2 }));
        assert_eq!(expect_at_work(&run(RunStatus::Pending, 2), 2), Err(Refusal::Waiting { attempt: 2 }));
        let ended = RunStatus::Canceled;
        assert_eq!(expect_at_work(&run(ended, 2), 2), Err(Refusal::Ended(ended)));
    }

    #[test]
    fn a_heartbeat_grants_a_lease_up_to_the_deadline_unless_the_run_is_to_stop() {
        let remote = Remote { lease: Duration::from_mins(1), deadline: at("01:15:00"), progress: None };
        let mut running = run(RunStatus::Running, 1);
        assert_eq!(renewed(&running, &remote, at("01:03:00")), Some(at("01:04:00")));
        assert_eq!(renewed(&running, &remote, at("01:14:30")), Some(at("01:15:00")));
        running.cancel_by = Some("ana".to_owned());
        assert_eq!(renewed(&running, &remote, at("01:03:00")), None);
    }

    #[test]
    fn silence_counts_only_while_it_could_have_been_heard() {
        let (short, long) = (Duration::from_secs(59), Duration::from_mins(1));
        assert_eq!(held(None).expire(at("01:02:00"), long), None, "it holds until its last moment");
        assert_eq!(held(None).expire(at("01:02:01"), short), None, "this instance has just started");
        let lost = held(None).expire(at("01:02:01"), long).unwrap();
        let transition = settle(&held(None).settling, lost, at("01:02:01")).unwrap();
        let Next::Finish { failure: Some(failure), .. } = transition.to else { panic!("{transition:?}") };
        assert_eq!(
            (failure.code, failure.message.as_str()),
            (FailureCode::LOST, "its remote side sent no heartbeat for 60 s")
        );
        assert_eq!(held(Some("ana")).expire(at("01:02:01"), long), Some(Outcome::Canceled { by: "ana".to_owned() }));
    }

    #[test]
    fn the_timeout_ends_it_however_well_it_is_heard() {
        let late = HeldRun { lease_until: at("01:15:00"), ..held(None) };
        assert_eq!(late.expire(at("01:14:59"), Duration::ZERO), None);
        let timed_out = Outcome::TimedOut(Duration::from_mins(15));
        assert_eq!(late.expire(at("01:15:00"), Duration::ZERO), Some(timed_out));
    }

    #[test]
    fn the_same_report_again_is_known_and_another_one_is_not() {
        let result = Json::parse("result", "{\"rows\":3}").unwrap();
        let mut done = run(RunStatus::Succeeded, 1);
        done.result = Some(result.clone());
        assert!(has_succeeded(&done, 1, Some(&result)));
        assert!(!has_succeeded(&done, 1, None) && !has_succeeded(&done, 2, Some(&result)));
        let code = FailureCode::new("no_disk").unwrap();
        assert!(!has_failed(&done, 1, &code));
        let mut failed = run(RunStatus::Failed, 1);
        failed.failure = Some(Failure::new(code.clone(), "no disk"));
        assert!(has_failed(&failed, 1, &code) && !has_failed(&failed, 1, &FailureCode::TIMEOUT));
        let mut again = run(RunStatus::Running, 2);
        again.earlier_attempts = vec![crate::EarlierAttempt::new(1, code.clone(), at("01:00:00"), true)];
        assert!(has_failed(&again, 1, &code) && !has_failed(&again, 2, &code));
    }
}
