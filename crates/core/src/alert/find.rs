//! Facts about jobs, and whether they are a problem for a rule.

use std::time::Duration;

use jiff::Timestamp;

use super::{Kind, LateStartFact, Problem, Rule, RunningFact, SkippedFact, Subject, WaitingFact};
use crate::frozen_span::FrozenSpan;
use crate::ids::{OrgId, RunId};
use crate::job::{Job, JobStatus};

/// The actor of pauses that everbell makes itself.
const EVERBELL: &str = "everbell";

/// Everything that a decision needs to know about a job, or about its runs for one org.
#[derive(Clone, Debug)]
pub struct JobFacts {
    /// Its current version, or the last one if it is retired, and its state.
    pub job: Job,
    /// The org, if these are facts about the runs for one: then the failures in a row of the state are those of the org.
    pub org: Option<OrgFact>,
    /// Its newest failed run.
    pub last_failure: Option<FailureFact>,
    /// When a run of it last succeeded. Only asked for jobs with a rule about [`Kind::NoSuccess`].
    pub last_success_at: Option<Timestamp>,
    /// Slots that were missed lately.
    pub missed: Option<MissedFact>,
    /// The freezes that concern it: no success is expected of their slots.
    pub frozen: Vec<FrozenSpan>,
    /// The time of its newest run that was not skipped by an operator: its slot, or when it was asked for.
    pub last_run_at: Option<Timestamp>,
    /// Slots that were skipped lately.
    pub skipped: Option<SkippedFact>,
    /// How many of its newest slots ran, in a row, since one was skipped.
    pub runs_since_skip: u32,
    /// The slot that waits longest for its start. Only asked for jobs with a rule about [`Kind::LateStart`].
    pub waiting: Option<WaitingFact>,
    /// A slot that started late between two evaluations.
    pub started_late: Option<LateStartFact>,
    /// The run that is at work longest. Only asked for jobs with a rule about [`Kind::TooLong`].
    pub running: Option<RunningFact>,
    /// How long 95% of its runs take at most; `None` without enough of them.
    pub usual: Option<Duration>,
}

impl JobFacts {
    /// The facts of a job that has no trouble.
    pub fn new(job: Job) -> JobFacts {
        JobFacts {
            job,
            org: None,
            last_failure: None,
            last_success_at: None,
            missed: None,
            frozen: Vec::new(),
            last_run_at: None,
            skipped: None,
            runs_since_skip: 0,
            waiting: None,
            started_late: None,
            running: None,
            usual: None,
        }
    }
}

/// An org whose runs of a job are looked at by themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrgFact {
    /// Its id.
    pub id: OrgId,
    /// Whether jobs fire for it: it is neither disabled nor deleted.
    pub fires: bool,
}

/// A run that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureFact {
    /// The run.
    pub run: RunId,
    /// When it ended.
    pub at: Timestamp,
    /// The code and the message of its failure.
    pub reason: String,
    /// Whether it ended since the last look, so that it counts even if a success followed.
    pub is_news: bool,
}

/// Slots that got no run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissedFact {
    /// The first of them.
    pub first_at: Timestamp,
    /// The last of them.
    pub last_at: Timestamp,
    /// How many.
    pub slots: u64,
    /// Whether the last of them is later than the last look, so that they count even if a run followed.
    pub is_news: bool,
}

/// The facts behind a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) since: Timestamp,
    pub(super) mark_at: Timestamp,
    pub(super) count: u64,
    pub(super) reason: String,
    pub(super) run: Option<RunId>,
}

impl JobFacts {
    /// The job, with its org if there is one.
    pub(super) fn subject(&self) -> Subject {
        let key = self.job.definition.key.clone();
        match &self.org {
            Some(org) => Subject::JobOfOrg(key, org.id.clone()),
            None => Subject::Job(key),
        }
    }

    /// Whether they say anything about this kind: of the runs for an org only how they ended is known.
    pub(super) fn tell_about(&self, kind: Kind) -> bool {
        kind.is_about_jobs() && (self.org.is_none() || kind == Kind::Failed)
    }

    fn is_for_resting_org(&self) -> bool {
        self.org.as_ref().is_some_and(|org| !org.fires)
    }

    /// Returns the problem that a rule has with the job now. `known` is the newest event of that kind which a problem
    /// covered already, and `open` the problem that is open.
    pub(super) fn find(&self, kind: Kind, rule: &Rule, open: Option<&Problem>, now: Timestamp) -> Option<Finding> {
        let state = &self.job.state;
        if state.status == JobStatus::Retired || self.is_for_resting_org() {
            return None;
        }
        match kind {
            Kind::Failed => (state.consecutive_failures >= rule.after).then(|| self.failing(now)),
            Kind::NoSuccess => self.overdue(rule, now).or_else(|| self.still_overdue(rule, open?)),
            Kind::JobError => {
                let error = state.error.as_ref().filter(|_| state.status == JobStatus::Active)?;
                Some(simple(state.updated_at, error.clone()))
            }
            Kind::AutoPaused => {
                let pause = state.pause.as_ref().filter(|pause| pause.by == EVERBELL)?;
                Some(simple(pause.at, pause.reason.clone()))
            }
            Kind::Missed => self.still_missed(open),
            Kind::Skipped => self.skipping(open),
            Kind::LateStart => self.late(rule, now),
            Kind::TooLong => self.long(rule, now),
            Kind::InstanceLost => None,
        }
    }

    fn failing(&self, now: Timestamp) -> Finding {
        let count = u64::from(self.job.state.consecutive_failures);
        match &self.last_failure {
            Some(failure) => Finding { count, ..failure.finding() },
            // Its runs were deleted by now.
            None => Finding { since: now, mark_at: now, count, reason: "the last run failed".to_owned(), run: None },
        }
    }

    fn overdue(&self, rule: &Rule, now: Timestamp) -> Option<Finding> {
        let (definition, state) = (&self.job.definition, &self.job.state);
        if state.status != JobStatus::Active || state.error.is_some() {
            return None;
        }
        let spec = definition.spec.clone().ok()?.without(&self.frozen);
        // A pause, a resumption and an edit change the state: the job is expected to succeed from then on.
        let from = definition.created_at.max(state.updated_at);
        let deadline = rule.deadline.as_ref()?.missed(&spec, from, self.last_success_at, now)?;
        let reason = match self.last_success_at {
            Some(success) => format!("the last success was at {success}, and another one was due by {deadline}"),
            None => format!("it has not succeeded yet, and a success was due by {deadline}"),
        };
        Some(Finding { run: self.last_failure.as_ref().map(|failure| failure.run), ..simple(deadline, reason) })
    }

    /// A success that is overdue stays so until there is one, also when a later deadline expects none: on a weekend, for
    /// example.
    fn still_overdue(&self, rule: &Rule, open: &Problem) -> Option<Finding> {
        let state = &self.job.state;
        let is_expected = rule.deadline.is_some() && state.status == JobStatus::Active && state.error.is_none();
        let has_changed = state.updated_at > open.since;
        (is_expected && !has_changed && !self.has_succeeded_since(open)).then(|| open.finding())
    }

    fn has_succeeded_since(&self, problem: &Problem) -> bool {
        self.last_success_at.is_some_and(|success| success > problem.since)
    }

    /// Missed slots are a problem until a later run.
    fn still_missed(&self, open: Option<&Problem>) -> Option<Finding> {
        let has_run_since = |mark: Timestamp| self.last_run_at.is_some_and(|at| at > mark);
        let known = open.map(|problem| problem.mark_at);
        match &self.missed {
            Some(missed) if known.is_none_or(|known| missed.last_at >= known) => {
                Some(missed.finding()).filter(|finding| !has_run_since(finding.mark_at))
            }
            _ => open.filter(|problem| !has_run_since(problem.mark_at)).map(Problem::finding),
        }
    }

    /// Returns trouble that began and ended since the last look, which no problem covers: its newest event is later than
    /// `known`.
    pub(super) fn blip(&self, kind: Kind, rule: &Rule, known: Option<Timestamp>) -> Option<Finding> {
        if self.job.state.status == JobStatus::Retired {
            return None;
        }
        let finding = match kind {
            // How many failed in a row is not known any more.
            Kind::Failed if rule.after == 1 => self.last_failure.as_ref().filter(|failure| failure.is_news)?.finding(),
            Kind::Missed => self.missed.as_ref().filter(|missed| missed.is_news)?.finding(),
            Kind::Skipped => self.skipped.as_ref().filter(|skipped| skipped.is_news)?.finding(),
            Kind::LateStart => self.was_late(rule)?,
            _ => return None,
        };
        Some(finding).filter(|finding| known.is_none_or(|known| finding.mark_at > known))
    }

    /// Returns the newest event of a kind, which a problem that closes covers too.
    pub(super) fn newest_event(&self, kind: Kind) -> Option<Timestamp> {
        match kind {
            Kind::Failed => self.last_failure.as_ref().map(|failure| failure.at),
            Kind::Missed => self.missed.as_ref().map(|missed| missed.last_at),
            Kind::Skipped => self.skipped.as_ref().map(|skipped| skipped.at),
            Kind::LateStart => self.started_late.as_ref().map(|late| late.due_at),
            Kind::NoSuccess | Kind::JobError | Kind::AutoPaused | Kind::TooLong | Kind::InstanceLost => None,
        }
    }

    /// Why a problem is over.
    pub(super) fn recovery(&self, problem: &Problem) -> String {
        let state = &self.job.state;
        // Only operators change that, and a resumption forgets failures.
        let has_changed = state.updated_at > problem.mark_at && self.org.is_none();
        let text = match (problem.kind, state.status) {
            (_, JobStatus::Retired) => "the job is retired",
            _ if self.is_for_resting_org() => "the org is disabled or deleted",
            (Kind::NoSuccess | Kind::JobError | Kind::LateStart, JobStatus::Paused) => "the job is paused",
            (Kind::NoSuccess | Kind::LateStart, _) if state.error.is_some() => "the job cannot fire",
            (Kind::Failed, _) if has_changed => "the job was resumed or changed",
            (Kind::NoSuccess, _) if !self.has_succeeded_since(problem) => "the job or the rule was changed",
            (Kind::Failed | Kind::NoSuccess, _) => "a run succeeded",
            (Kind::JobError, _) => "its schedule works again",
            (Kind::AutoPaused, _) => "the job was resumed",
            (Kind::Missed, _) => "the job ran again",
            (Kind::Skipped, _) => "later slots ran",
            (Kind::LateStart, _) => "no slot is waiting anymore",
            (Kind::TooLong, _) => "the run ended",
            (Kind::InstanceLost, _) => "the instance is back",
        };
        text.to_owned()
    }
}

impl Problem {
    /// The problem as it was found last.
    pub(super) fn finding(&self) -> Finding {
        let Problem { since, mark_at, count, run, .. } = *self;
        Finding { since, mark_at, count, reason: self.reason.clone(), run }
    }
}

impl FailureFact {
    fn finding(&self) -> Finding {
        Finding { since: self.at, mark_at: self.at, count: 1, reason: self.reason.clone(), run: Some(self.run) }
    }
}

impl MissedFact {
    fn finding(&self) -> Finding {
        let reason = match self.slots {
            1 => format!("the slot of {} got no run", self.first_at),
            slots => format!("{slots} slots from {} to {} got no run", self.first_at, self.last_at),
        };
        Finding { since: self.first_at, mark_at: self.last_at, count: self.slots, reason, run: None }
    }
}

pub(super) fn simple(since: Timestamp, reason: String) -> Finding {
    Finding { since, mark_at: since, count: 1, reason, run: None }
}
