//! A run: one execution of a job, for a slot or by hand; and a gap: slots that got none.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;

use crate::failure::{EarlierAttempt, Failure};
use crate::handover::Remote;
use crate::ids::{BackfillId, InstanceId, JobId, JobKey, OrgId, RunId, Target};
use crate::json::Json;
use crate::policy::words;
use crate::trace_context::TraceContext;

pub use crate::gap::{EarlierGap, Gap, GapReason};

/// `pending -> running -> succeeded | failed | canceled`, `pending -> canceled | skipped`. The last four are terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunStatus {
    /// Waits for an executor.
    Pending,
    /// Its handler is at work, under a lease.
    Running,
    /// The handler was done.
    Succeeded,
    /// The handler failed, took too long, or was lost.
    Failed,
    /// It was canceled.
    Canceled,
    /// It was never meant to start: overlap, dependency, or an operator's request.
    Skipped,
}
words!(RunStatus {
    Pending = "pending",
    Running = "running",
    Succeeded = "succeeded",
    Failed = "failed",
    Canceled = "canceled",
    Skipped = "skipped",
});

impl RunStatus {
    /// Whether it can never change again.
    pub const fn is_terminal(self) -> bool {
        !matches!(self, RunStatus::Pending | RunStatus::Running)
    }
}

/// The kinds of triggers that the API names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TriggerType {
    /// A slot of the schedule.
    Scheduled,
    /// A person or program asked for a run of a job.
    Manual,
    /// A target was called without a job.
    AdHoc,
    /// A run of another job ended.
    After,
}
words!(TriggerType { Scheduled = "scheduled", Manual = "manual", AdHoc = "ad_hoc", After = "after" });

/// The cause of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trigger {
    /// A slot; the expression is kept as text, `once` for a one-time job.
    Schedule(String),
    /// Run-now or rerun, by this actor.
    Manual(String),
    /// A backfill of past slots.
    Backfill(BackfillId),
    /// A trial of a target, by this actor.
    AdHoc(String),
    /// The end of this run of another job.
    After(RunId),
    /// The ends of these runs of other jobs: the one that ended last comes first.
    AfterAll(Vec<RunId>),
}

impl Trigger {
    /// The kind that the API names.
    pub const fn kind(&self) -> TriggerType {
        match self {
            Trigger::Schedule(_) => TriggerType::Scheduled,
            Trigger::Manual(_) | Trigger::Backfill(_) => TriggerType::Manual,
            Trigger::AdHoc(_) => TriggerType::AdHoc,
            Trigger::After(_) | Trigger::AfterAll(_) => TriggerType::After,
        }
    }

    /// The runs whose ends started this one: the one that ended last comes first.
    pub fn upstream(&self) -> &[RunId] {
        match self {
            Trigger::After(run) => std::slice::from_ref(run),
            Trigger::AfterAll(runs) => runs,
            Trigger::Schedule(_) | Trigger::Manual(_) | Trigger::Backfill(_) | Trigger::AdHoc(_) => &[],
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trigger::Schedule(expression) => write!(f, "schedule:{expression}"),
            Trigger::Manual(actor) => write!(f, "manual:{actor}"),
            Trigger::Backfill(id) => write!(f, "backfill:{id}"),
            Trigger::AdHoc(actor) => write!(f, "ad_hoc:{actor}"),
            Trigger::After(run) => write!(f, "after:{run}"),
            Trigger::AfterAll(runs) => {
                let runs: Vec<String> = runs.iter().map(RunId::to_string).collect();
                write!(f, "after:{}", runs.join("+"))
            }
        }
    }
}

/// Why a run was recorded as skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// An earlier run is still active.
    Overlap {
        /// That run.
        blocking: RunId,
    },
    /// The job it depends on did not succeed recently enough.
    Dependency {
        /// That job.
        job_key: JobKey,
        /// How recently it should have.
        within: Duration,
    },
    /// An operator skipped this slot.
    Operator {
        /// The actor who skipped it.
        actor: String,
    },
}

impl SkipReason {
    /// A stable word for programs and metrics.
    pub const fn as_str(&self) -> &'static str {
        match self {
            SkipReason::Overlap { .. } => "overlap",
            SkipReason::Dependency { .. } => "dependency",
            SkipReason::Operator { .. } => "operator",
        }
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SkipReason::Overlap { blocking } => write!(f, "run {blocking} is still active"),
            SkipReason::Dependency { job_key, within } => {
                write!(f, "job `{job_key}` did not succeed within the last {} s", within.as_secs())
            }
            SkipReason::Operator { actor } => write!(f, "skipped by {actor}"),
        }
    }
}

/// A run to be inserted: one that will start, or a skipped one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRun {
    /// See [`RunId::for_slot`].
    pub id: RunId,
    /// The nominal instant; `None` for a run by hand. Unique per job and org.
    pub slot_at: Option<Timestamp>,
    /// When it should start: the slot, or the time that an operator moved it to.
    pub scheduled_at: Timestamp,
    /// Its cause.
    pub trigger: Trigger,
    /// Why it is skipped, if it is.
    pub skip: Option<SkipReason>,
    /// It must wait until fewer than `maxConcurrentRuns` of its job and org, and of its kind, are active.
    pub held: bool,
    /// Another bound than the job's `maxConcurrentRuns`: that of its backfill.
    pub parallel: Option<u32>,
    /// It is for a slot older than the grace.
    pub catch_up: bool,
    /// How many earlier slots were folded into it.
    pub folded: u64,
    /// The org-local date of the slot, set once.
    pub local_date: Option<Date>,
    /// Another payload than the job's.
    pub payload: Option<Json>,
    /// The trace of the request that it follows from.
    pub trace_context: Option<TraceContext>,
}

/// A run that is pending or running, as far as the overlap check cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveRun {
    /// Its id.
    pub id: RunId,
    /// Whether it waits behind others.
    pub held: bool,
    /// Whether cancellation was requested.
    pub cancel_requested: bool,
    /// Whether it belongs to a backfill: one that keeps no others from starting.
    pub backfill: bool,
}

/// The most attempts that [`Run::attempts_in_words`] names; it only counts those before them.
const MAX_ATTEMPTS_IN_WORDS: usize = 10;

/// Everything that is known about a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// The version that created it; `None` for a trial of a target.
    pub job_id: Option<JobId>,
    /// The key of the job at that time.
    pub job_key: Option<JobKey>,
    /// The job's version.
    pub job_version: Option<u32>,
    /// The org.
    pub org: Option<OrgId>,
    /// The org-local date of the slot.
    pub local_date: Option<Date>,
    /// The target that it runs.
    pub target: Target,
    /// The JSON that the handler receives.
    pub payload: Json,
    /// Its cause.
    pub trigger: Trigger,
    /// The trace of the request that created it, or that created its one-time job; `None` for slots of recurring jobs.
    pub trace_context: Option<TraceContext>,
    /// The nominal instant; `None` for a run by hand.
    pub slot_at: Option<Timestamp>,
    /// When it should start.
    pub scheduled_at: Timestamp,
    /// When it was written.
    pub created_at: Timestamp,
    /// Its current status.
    pub status: RunStatus,
    /// Why it was skipped.
    pub skip: Option<SkipReason>,
    /// It waits behind others of its job.
    pub held: bool,
    /// It is for a slot older than the grace.
    pub catch_up: bool,
    /// How many earlier slots were folded into it.
    pub folded: u64,
    /// The current or last attempt, from 1; 0 before the first. The fence of its lease.
    pub attempt: u32,
    /// The attempts before the current or last one, oldest first. An attempt that never started is not listed.
    pub earlier_attempts: Vec<EarlierAttempt>,
    /// When an executor claimed it, and which instance.
    pub claimed: Option<(Timestamp, InstanceId)>,
    /// When the last attempt started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// When its lease ends unless it is renewed.
    pub lease_until: Option<Timestamp>,
    /// The actor who asked for its cancellation, if any.
    pub cancel_by: Option<String>,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// The handler's result.
    pub result: Option<Json>,
    /// When the next attempt may start, if the run waits for one after a failure.
    pub next_attempt_at: Option<Timestamp>,
    /// Its remote side, while that holds it. Only
    /// [`RunStore::get_run`](crate::store::RunStore::get_run) returns it; lists leave it out.
    pub remote: Option<Remote>,
    /// The end of the output of its last attempt; so far, while it is at work. It may be long, so only
    /// [`RunStore::get_run`](crate::store::RunStore::get_run) returns it; lists leave it out.
    pub output: Option<String>,
}

impl Run {
    /// A run that waits for its start, with nothing else that is known about it. Stores fill in the rest.
    pub fn new(id: RunId, target: Target, trigger: Trigger, scheduled_at: Timestamp, created_at: Timestamp) -> Run {
        Run {
            id,
            job_id: None,
            job_key: None,
            job_version: None,
            org: None,
            local_date: None,
            target,
            payload: Json::empty(),
            trigger,
            trace_context: None,
            slot_at: None,
            scheduled_at,
            created_at,
            status: RunStatus::Pending,
            skip: None,
            held: false,
            catch_up: false,
            folded: 0,
            attempt: 0,
            earlier_attempts: Vec::new(),
            claimed: None,
            started_at: None,
            finished_at: None,
            lease_until: None,
            cancel_by: None,
            failure: None,
            result: None,
            next_attempt_at: None,
            remote: None,
            output: None,
        }
    }

    /// Returns a key that is the same for the same slot on every instance and for every attempt.
    pub fn idempotency_key(&self) -> String {
        idempotency_key(self.job_key.as_ref(), self.org.as_ref(), self.slot_at, self.id)
    }

    /// Returns how many of the job's `maxAttempts` are used up: all attempts but those that do not count.
    pub fn attempts_used(&self) -> u32 {
        EarlierAttempt::used(self.attempt, &self.earlier_attempts)
    }

    /// Returns what happened in each attempt, such as `attempt 1 was lost, attempt 2 succeeded`; `None` if there was
    /// only one.
    pub fn attempts_in_words(&self) -> Option<String> {
        let last = self.earlier_attempts.last()?;
        let skipped = self.earlier_attempts.len().saturating_sub(MAX_ATTEMPTS_IN_WORDS);
        let more = (skipped > 0).then(|| format!("{skipped} earlier attempts"));
        let earlier = self.earlier_attempts[skipped..].iter().map(ToString::to_string);
        let current = (self.attempt > last.attempt).then(|| match (self.status, &self.failure) {
            (RunStatus::Failed, Some(failure)) => failure.in_attempt(self.attempt),
            (RunStatus::Running, _) => format!("attempt {} is running", self.attempt),
            (RunStatus::Canceled, _) => format!("attempt {} was canceled", self.attempt),
            (status, _) => format!("attempt {} {status}", self.attempt),
        });
        Some(more.into_iter().chain(earlier).chain(current).collect::<Vec<_>>().join(", "))
    }

    /// Returns how late it started. Only scheduled runs in their first attempt have a lag.
    pub fn fire_lag(&self) -> Option<Duration> {
        fire_lag(self.trigger.kind(), self.attempt, self.scheduled_at, self.started_at)
    }

    /// How long its last attempt took, if it began and ended.
    pub fn duration(&self) -> Option<Duration> {
        duration(self.started_at, self.finished_at)
    }
}

/// See [`Run::fire_lag`].
pub(crate) fn fire_lag(
    trigger: TriggerType,
    attempt: u32,
    scheduled_at: Timestamp,
    started_at: Option<Timestamp>,
) -> Option<Duration> {
    let counts = trigger == TriggerType::Scheduled && attempt == 1;
    started_at.filter(|_| counts).map(|started| since(scheduled_at, started))
}

/// See [`Run::duration`].
pub(crate) fn duration(started_at: Option<Timestamp>, finished_at: Option<Timestamp>) -> Option<Duration> {
    Some(since(started_at?, finished_at?))
}

/// None at all when a clock went back.
fn since(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or(Duration::ZERO)
}

/// `schedule:<job key>:<unix seconds>`, with `:<org>` for an org; `run:<id>` for a run that has no slot.
pub fn idempotency_key(key: Option<&JobKey>, org: Option<&OrgId>, slot: Option<Timestamp>, id: RunId) -> String {
    match (key, slot, org) {
        (Some(key), Some(slot), None) => format!("schedule:{key}:{}", slot.as_second()),
        (Some(key), Some(slot), Some(org)) => format!("schedule:{key}:{}:{org}", slot.as_second()),
        _ => format!("run:{id}"),
    }
}
