//! Facts about slots that were skipped, start late, or take too long, and whether they are a problem for a rule.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::find::{Finding, simple};
use super::rule::{earlier, later};
use super::{JobFacts, Kind, Problem, Rule};
use crate::ids::RunId;
use crate::job::JobStatus;
use crate::run::SkipReason;

/// The slots in a row that must run before skipped ones are over: with every other slot skipped, nothing is over.
pub(super) const RUNS_AFTER_SKIP: u32 = 2;

/// The shortest run that can take too long compared with others. Below, a pause of the machine is most of the time.
const MIN_UNUSUAL: Duration = Duration::from_secs(10);

/// Slots that were skipped, though not by an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedFact {
    /// The run of the last of them.
    pub run: RunId,
    /// The last of them.
    pub at: Timestamp,
    /// Its reason.
    pub reason: SkipReason,
    /// How many there were lately.
    pub slots: u64,
    /// Whether the last of them is later than the last look.
    pub is_news: bool,
}

/// A slot that is due and has not started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingFact {
    /// Its run; `None` if there is none yet.
    pub run: Option<RunId>,
    /// When it should have started.
    pub due_at: Timestamp,
}

/// A slot that started late between two evaluations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateStartFact {
    /// Its run.
    pub run: RunId,
    /// When it should have started.
    pub due_at: Timestamp,
    /// When it did.
    pub started_at: Timestamp,
}

/// A run at work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningFact {
    /// The run.
    pub run: RunId,
    /// When its current attempt started.
    pub started_at: Timestamp,
}

impl JobFacts {
    /// Skipped slots are a problem until [`RUNS_AFTER_SKIP`] later ones ran.
    pub(super) fn skipping(&self, open: Option<&Problem>) -> Option<Finding> {
        let finding = match (&self.skipped, open) {
            (Some(skipped), Some(open)) if skipped.at > open.mark_at => {
                // Some of them may be counted already, so only the last one is certainly new.
                Finding { since: open.since, count: open.count + 1, ..skipped.finding() }
            }
            (_, Some(open)) => open.finding(),
            // What is over by now is reported together with its end.
            (Some(skipped), None) => skipped.finding(),
            (None, None) => return None,
        };
        (self.runs_since_skip < RUNS_AFTER_SKIP).then_some(finding)
    }

    /// A slot is late while it waits for longer than the rule allows. The time of a pause does not count.
    pub(super) fn late(&self, rule: &Rule, now: Timestamp) -> Option<Finding> {
        let state = &self.job.state;
        let waiting = self.waiting.as_ref()?;
        if state.status != JobStatus::Active || state.error.is_some() {
            return None;
        }
        let allowed = rule.starts_within?;
        let from = waiting.due_at.max(state.updated_at);
        let deadline = later(from, allowed);
        let reason = format!("the slot of {} has not started", waiting.due_at);
        (deadline <= now).then(|| Finding { mark_at: waiting.due_at, run: waiting.run, ..simple(deadline, reason) })
    }

    /// A slot that started late, and that no evaluation saw waiting.
    pub(super) fn was_late(&self, rule: &Rule) -> Option<Finding> {
        let late = self.started_late.as_ref()?;
        let deadline = later(late.due_at, rule.starts_within?);
        let waited = late.started_at.duration_since(late.due_at);
        let reason = format!("the slot of {} started at {}, {} late", late.due_at, late.started_at, in_words(waited));
        (deadline < late.started_at).then(|| Finding {
            mark_at: late.due_at,
            run: Some(late.run),
            ..simple(deadline, reason)
        })
    }

    /// A run takes too long while it is at work for longer than the limits of the rule.
    pub(super) fn long(&self, rule: &Rule, now: Timestamp) -> Option<Finding> {
        let running = self.running.as_ref()?;
        let limits = rule.takes_at_most.iter().filter_map(|limit| limit.resolve(self.usual));
        let (limit, usual) = limits.min_by_key(|(limit, _)| *limit)?;
        let reached = later(running.started_at, limit);
        let compared = match usual {
            Some(usual) => format!("of 100 runs, 95 take at most {}", in_words_of(usual)),
            None => format!("the limit is {}", in_words_of(limit)),
        };
        let reason = format!("a run has been running since {}; {compared}", running.started_at);
        (reached <= now).then(|| Finding {
            mark_at: running.started_at,
            run: Some(running.run),
            ..simple(reached, reason)
        })
    }
}

impl SkippedFact {
    pub(super) fn finding(&self) -> Finding {
        let why = match &self.reason {
            SkipReason::Overlap { blocking } => format!("run {blocking} was still active"),
            SkipReason::Dependency { job_key, within } => {
                format!("{job_key} had not succeeded within {}", in_words_of(*within))
            }
            SkipReason::Operator { actor } => format!("{actor} asked for that"),
        };
        let reason = format!("the slot of {} was skipped: {why}", self.at);
        Finding { run: Some(self.run), count: self.slots.max(1), ..simple(self.at, reason) }
    }
}

/// The longest that a run may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeLimit {
    /// This long.
    Fixed(Duration),
    /// This many times as long as 95% of the runs of the job.
    TimesUsual(u32),
}

impl TimeLimit {
    /// The limit, with the usual time if it was made from that. Nothing is unusual for a job without enough history.
    fn resolve(self, usual: Option<Duration>) -> Option<(Duration, Option<Duration>)> {
        match self {
            TimeLimit::Fixed(limit) => Some((limit, None)),
            TimeLimit::TimesUsual(times) => {
                let usual = usual?;
                Some((usual.saturating_mul(times).max(MIN_UNUSUAL), Some(usual)))
            }
        }
    }

    /// The shortest run that it may be reached by, whatever is usual.
    pub fn least(self) -> Duration {
        match self {
            TimeLimit::Fixed(limit) => limit,
            TimeLimit::TimesUsual(_) => MIN_UNUSUAL,
        }
    }
}

impl Rule {
    /// The runs that started before this time may take too long.
    pub fn long_since(&self, now: Timestamp) -> Option<Timestamp> {
        let is_asked = self.kinds.contains(&Kind::TooLong);
        let least = self.takes_at_most.iter().map(|limit| limit.least()).min().filter(|_| is_asked)?;
        Some(earlier(now, least))
    }

    /// The slots that were due before this time may be late.
    pub fn late_since(&self, now: Timestamp) -> Option<Timestamp> {
        let allowed = self.starts_within.filter(|_| self.kinds.contains(&Kind::LateStart))?;
        Some(earlier(now, allowed))
    }
}

fn in_words_of(time: Duration) -> String {
    in_words(SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX))
}

/// `2h 5m`, `90ms`.
fn in_words(time: SignedDuration) -> String {
    let coarse = if time.as_secs() > 0 { SignedDuration::from_secs(time.as_secs()) } else { time };
    format!("{coarse:#}")
}
