//! Problems and who is notified of them: what opens a problem, what closes it, and which messages follow.
//!
//! A problem is a state, not an event: a [`Kind`] and a job, a job for one org, or an instance. It opens when the condition of a [`Rule`] holds, and closes
//! when it holds for none. A message follows each change of that state, and nothing else:
//!
//! ```text
//!              condition holds                      condition is over
//!   (nothing) ────────────────► open ─────────────────────────────────► closed
//!                 opened          │ ▲                  recovered
//!                                 └─┘ reminded, every `remind`, unless acknowledged or muted
//! ```
//!
//! [`decide`] and [`decide_instances`] are the only places that decide any of this. They are functions of the rules, the facts,
//! the problems so far and the time, so instances that see the same decide the same, with the same ids. [`summarize`] joins
//! messages when many problems change at once.
//!
//! - **Nothing is reported twice.** A problem remembers which rules reported it ([`NotifiedRule`]).
//! - **Quiet hours delay and never lose.** A message that falls into them is written at once, to be sent at their end.
//! - **Silence has an author.** A mute holds openings and reminders back. When a problem closes, every channel that
//!   reported it is notified, muted or not: else a pager would ring for ever.
//! - **Short trouble counts.** A failure that was followed by a success before anybody looked opens a problem and closes
//!   it at once.

mod decide;
mod delivery;
mod find;
mod flood;
mod instance;
mod rule;
mod subject;
mod timing;

use jiff::Timestamp;
use uuid::Uuid;

pub use decide::{Decision, Notice, decide};
pub use delivery::{
    DELIVERY_LEASE, Delivery, DeliveryEnd, DeliveryStatus, MAX_DELIVERY_AGE, NewDelivery, next_attempt_at,
    test_delivery_id,
};
pub use find::{FailureFact, JobFacts, MissedFact, OrgFact};
pub use flood::{Message, Summary, summarize};
pub use instance::{ClusterFacts, InstanceFact, decide_instances};
pub use rule::{Deadline, QuietHours, Rule, RuleScope, TimeLimit};
pub use subject::Subject;
pub use timing::{LateStartFact, RunningFact, SkippedFact, WaitingFact};

use crate::ids::{Invalid, JobKey, RunId};
use crate::policy::words;

/// The kinds of problems that a job or an instance can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Its runs fail, a number of times in a row.
    Failed,
    /// It did not succeed by a local time, or within a duration.
    NoSuccess,
    /// Its schedule cannot be used: the job is errored.
    JobError,
    /// Everbell paused it, after too many failures or because its handler asked for that.
    AutoPaused,
    /// Slots passed without a run, and nothing makes up for them.
    Missed,
    /// Slots were skipped: an earlier run was still active, or the job that it depends on had not succeeded.
    Skipped,
    /// A slot has not started within a time.
    LateStart,
    /// A run is at work for longer than it may, or than it usually is.
    TooLong,
    /// An instance sends no heartbeats and has not ended in good order.
    InstanceLost,
}

words!(Kind {
    Failed = "failed",
    NoSuccess = "no_success",
    JobError = "job_error",
    AutoPaused = "auto_paused",
    Missed = "missed",
    Skipped = "skipped",
    LateStart = "late_start",
    TooLong = "too_long",
    InstanceLost = "instance_lost",
});

impl Kind {
    /// Whether it is a problem of jobs, rather than of instances.
    pub fn is_about_jobs(self) -> bool {
        self != Kind::InstanceLost
    }

    /// The state of the job or instance in a few words, as the subject of a message.
    pub fn summary(self) -> &'static str {
        match self {
            Kind::Failed => "is failing",
            Kind::NoSuccess => "has not succeeded in time",
            Kind::JobError => "cannot fire",
            Kind::AutoPaused => "was paused automatically",
            Kind::Missed => "missed its schedule",
            Kind::Skipped => "skipped slots",
            Kind::LateStart => "has not started in time",
            Kind::TooLong => "takes too long",
            Kind::InstanceLost => "is lost",
        }
    }
}

/// The change of a problem that a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// It began.
    Opened,
    /// It goes on.
    Reminded,
    /// It is over.
    Recovered,
    /// There is none: an operator tests a channel.
    Test,
}

words!(Change { Opened = "opened", Reminded = "reminded", Recovered = "recovered", Test = "test" });

/// Something that is or was wrong with a job or an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Time-ordered, from kind, job and opening time.
    pub id: Uuid,
    /// Its kind.
    pub kind: Kind,
    /// The job, all versions of it, for all orgs or for one; or the instance.
    pub subject: Subject,
    /// When it was noticed.
    pub opened_at: Timestamp,
    /// When it closed; `None` while it is open.
    pub closed_at: Option<Timestamp>,
    /// Why it closed.
    pub closed_because: Option<String>,
    /// When the problem itself started: the first failure that was seen, the deadline, the missed slot.
    pub since: Timestamp,
    /// The newest event that it covers, such as the end of the last failed run.
    pub mark_at: Timestamp,
    /// Number of consecutive failures, or of missed or skipped slots; 1 for other kinds.
    pub count: u64,
    /// The cause, for people.
    pub reason: String,
    /// The run that failed last, was skipped, is late or takes too long.
    pub run: Option<RunId>,
    /// The rules that reported it, each with the time of its last message.
    pub told: Vec<NotifiedRule>,
    /// The operator who takes care of it: no reminders follow.
    pub acknowledged: Option<Note>,
    /// The operator who silenced it, and until when.
    pub muted: Option<Mute>,
}

/// A rule that reported a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifiedRule {
    /// The name of the rule.
    pub rule: String,
    /// The time of its last message or reminder.
    pub at: Timestamp,
}

/// The author, time and reason of an action on a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The actor.
    pub by: String,
    /// The time of the action.
    pub at: Timestamp,
    /// The reason, if one was given.
    pub reason: Option<String>,
}

/// A silence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mute {
    /// The author, time and reason.
    pub note: Note,
    /// When it ends by itself; `None` lasts as long as the problem.
    pub until: Option<Timestamp>,
}

/// An action of an operator on a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProblemChange {
    /// Takes care of it.
    Acknowledge(Note),
    /// Silences it.
    Mute(Mute),
    /// Ends the silence.
    Unmute,
}

impl Problem {
    /// The job that it is about, for all orgs or for one; `None` if it is about an instance.
    pub fn job(&self) -> Option<&JobKey> {
        self.subject.job()
    }

    /// Whether it is open.
    pub fn is_open(&self) -> bool {
        self.closed_at.is_none()
    }

    /// Whether an operator silenced it.
    pub fn is_muted(&self, now: Timestamp) -> bool {
        self.muted.as_ref().is_some_and(|mute| mute.until.is_none_or(|until| until > now))
    }

    /// Returns the problem after the action of an operator at `now`, or why the action makes no sense.
    pub fn changed(&self, change: &ProblemChange, now: Timestamp) -> Result<Problem, Invalid> {
        let mut problem = self.clone();
        if let Some(closed_at) = self.closed_at {
            return Err(Invalid::new("problem", format!("was closed at {closed_at} and can no longer be changed")));
        }
        match change {
            ProblemChange::Acknowledge(note) => problem.acknowledged = Some(note.clone()),
            ProblemChange::Mute(mute) => {
                if mute.until.is_some_and(|until| until <= now) {
                    return Err(Invalid::new("until", format!("must be after the current time, {now}")));
                }
                problem.muted = Some(mute.clone());
            }
            ProblemChange::Unmute => {
                if !self.is_muted(now) {
                    return Err(Invalid::new("problem", "is not muted"));
                }
                problem.muted = None;
            }
        }
        Ok(problem)
    }
}

/// Problems as the store knows them, for the next decision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alerts {
    /// Grows with each write. A decision names the one that it was made from.
    pub generation: u64,
    /// How far the last decision looked; `None` before the first.
    pub looked_at: Option<Timestamp>,
    /// All open problems, and those that closed lately, by id.
    pub problems: Vec<Problem>,
}

/// The result of a decision, to be written at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertWrite {
    /// How far the decision looked.
    pub looked_at: Timestamp,
    /// Problems that are new or changed.
    pub problems: Vec<Problem>,
    /// Messages for the outbox.
    pub deliveries: Vec<NewDelivery>,
}
