//! The answers of a store.

use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use super::error::{StoreError, StoreResult};
use crate::frozen_span::FrozenSpan;
use crate::ids::{JobId, OrgId, RunId, Target};
use crate::job::{Definition, Job, JobStatus, Timer};
use crate::org::{self, OrgFacts};
use crate::plan::{self, Plan, PlanContext};
use crate::rearm;
use crate::run::{ActiveRun, Gap, Run, RunStatus};
use crate::spec::Spec;

/// The state of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreStatus {
    /// Such as `sqlite 3.50` or `postgres 15.18`.
    pub product: String,
    /// The number of the last migration.
    pub schema_version: u32,
    /// Bytes on disk, if known.
    pub size_bytes: Option<u64>,
    /// The beginning of the oldest open transaction elsewhere, which keeps dead rows alive.
    pub oldest_transaction_at: Option<Timestamp>,
    /// Notes on reduced service, such as a pooler that swallows notifications.
    pub notes: Vec<String>,
    /// Why the last write failed for a reason that an operator has to remove, such as a full disk; until one succeeds.
    pub write_failure: Option<String>,
}

/// Counts for gauges. Each number is right by itself; they need not be of the same moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Jobs by status and kind; combinations with no job are left out.
    pub jobs: Vec<JobCount>,
    /// Current jobs that cannot fire.
    pub errored_jobs: u64,
    /// Pending and running runs by target and status; combinations with no run are left out.
    pub active_runs: Vec<ActiveCount>,
    /// Timers that are due but not planned.
    pub due_timers: u64,
    /// When the oldest of them became due.
    pub oldest_due_at: Option<Timestamp>,
}

/// The number of jobs with the same status and kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobCount {
    /// Their status.
    pub status: JobStatus,
    /// Whether they fire once, rather than repeatedly.
    pub one_time: bool,
    /// The number of jobs.
    pub jobs: u64,
}

/// The number of active runs with the same target and status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveCount {
    /// Their target.
    pub target: Target,
    /// Pending or running.
    pub status: RunStatus,
    /// The number of runs.
    pub runs: u64,
}

/// The number of current jobs with the same target and status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetCount {
    /// Their target.
    pub target: Target,
    /// Active or paused.
    pub status: JobStatus,
    /// The number of jobs.
    pub jobs: u64,
}

/// A job as lists and pages show it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobRow {
    /// Definition and state.
    pub job: Job,
    /// Its timer; `None` for a job with one for each org.
    pub timer: Option<Timer>,
    /// The most recently scheduled run.
    pub last_run: Option<Run>,
    /// The earliest fire of an active job with a timer for each org, and the org that it is for.
    pub next_for_org: Option<(Timestamp, OrgId)>,
}

impl JobRow {
    /// A job with no timer and no run.
    pub fn new(job: Job) -> JobRow {
        JobRow { job, timer: None, last_run: None, next_for_org: None }
    }
}

/// The result of a change of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changed {
    /// The job afterwards.
    pub job: JobRow,
    /// The version that took over.
    pub successor: Option<JobRow>,
    /// The runs that were inserted, also skipped ones.
    pub runs: Vec<Run>,
    /// The gaps that were written.
    pub gaps: Vec<Gap>,
    /// How many runs that had not begun were held, released or canceled.
    pub pending: u64,
}

impl Changed {
    /// A change that touched nothing but the job itself.
    pub fn new(job: JobRow) -> Changed {
        Changed { job, successor: None, runs: Vec::new(), gaps: Vec::new(), pending: 0 }
    }

    /// Adds the other rows that the change wrote.
    #[must_use]
    pub fn with(self, successor: Option<JobRow>, runs: Vec<Run>, gaps: Vec<Gap>, pending: u64) -> Changed {
        Changed { successor, runs, gaps, pending, ..self }
    }
}

/// A timer that is due, with everything that its plan needs.
#[derive(Clone, Debug)]
pub struct Due {
    /// Its job.
    pub job: Arc<Definition>,
    /// The timer.
    pub timer: Timer,
    /// The facts about its org that decide whether it fires.
    pub org: Option<OrgFacts>,
    /// The pending and running runs of its job and org, oldest first.
    pub active: Vec<ActiveRun>,
    /// When the job that it depends on last succeeded.
    pub upstream_succeeded_at: Option<Timestamp>,
    /// The times in which freezes keep the job from firing, in order.
    pub frozen: Vec<FrozenSpan>,
}

impl Due {
    /// The first of the two decisions, with everything that was read for it.
    pub fn plan(&self, now: Timestamp) -> Plan {
        let seen = PlanContext {
            active: &self.active,
            upstream_succeeded_at: self.upstream_succeeded_at,
            org_spec: None,
            frozen: &self.frozen,
        };
        match (&self.org, &self.timer.org) {
            (Some(facts), _) => org::plan(&self.job, &self.timer, &seen, facts, now),
            (None, None) => plan::plan(&self.job, &self.timer, &seen, now),
            // Without the facts of the org there is no zone, and so no next fire.
            (None, Some(org)) => Plan {
                org_error: Some(format!("org `{org}` cannot be read")),
                ..Plan::nothing(&plan::disarm(&self.timer))
            },
        }
    }

    /// The schedule that decides: that of the org for the timer of an org. `None` if it cannot be read.
    fn spec(&self) -> Option<Spec> {
        match (&self.org, &self.timer.org) {
            (Some(facts), _) => org::spec_for(&self.job, facts).ok(),
            (None, None) => self.job.spec.as_ref().ok().cloned(),
            (None, Some(_)) => None,
        }
    }

    /// The timer as it is to be after a clock that was ahead: see [`crate::rearm::rearm`].
    pub fn rearm(&self, now: Timestamp) -> Timer {
        rearm::rearm(&self.job, &self.timer, self.spec().as_ref(), now)
    }

    /// Returns the rest of a gap that was written while the clock was ahead: see [`crate::rearm::cut_gap`].
    pub fn cut_gap(&self, gap: &Gap, now: Timestamp) -> Option<Gap> {
        rearm::cut_gap(gap, self.spec().as_ref(), now)
    }
}

/// The repairs made after a clock that was ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rearmed {
    /// Timers that are armed from the present again. As many as the limit: there may be more.
    pub timers: u32,
    /// Gaps that were deleted or shortened.
    pub gaps: u32,
    /// Leases that ended too late.
    pub leases: u32,
}

impl fmt::Display for Rearmed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rearmed { timers, gaps, leases } = self;
        write!(f, "{timers} timers armed again, {gaps} gaps cut, {leases} leases shortened")
    }
}

/// The times that a database remembers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockTrace {
    /// The last time that was trusted: see [`ClusterStore::write_trusted_time`](super::ClusterStore::write_trusted_time).
    pub trusted_at: Option<Timestamp>,
    /// When the newest run, job or audit entry was written.
    pub newest_at: Option<Timestamp>,
}

/// The result of a round of planning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Planned {
    /// How many timers were advanced. As many as the limit: there may be more.
    pub timers: u32,
    /// Whether timers were advanced, and a current job of the targets has a priority: then the limit was
    /// [`PlanDue::limit_by_priority`](super::PlanDue::limit_by_priority).
    pub by_priority: bool,
    /// The runs that were inserted.
    pub runs: Vec<PlannedRun>,
    /// Those of them that started at once, in the order in which they start.
    pub claims: Vec<Claim>,
    /// The gaps that were written, with their jobs.
    pub gaps: Vec<(JobId, Gap)>,
    /// Jobs that turned out to be unschedulable.
    pub errored: Vec<(JobId, String)>,
    /// Orgs for which a job cannot fire: zone or override cannot be read.
    pub org_errors: Vec<(JobId, OrgId, String)>,
    /// The earliest fire that is not due yet, among the targets asked for. Where very many of other targets come first, a
    /// time before it, at which to look again.
    pub next_due_at: Option<Timestamp>,
}

impl Planned {
    /// Whether there are runs, and none of them waits for its start.
    pub fn all_started(&self) -> bool {
        let waiting = self.runs.iter().filter(|run| run.skipped.is_none()).count();
        waiting > 0 && waiting == self.claims.len()
    }
}

/// A run that a plan inserted, as far as events and metrics care.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedRun {
    /// Its id.
    pub id: RunId,
    /// The job.
    pub job: Arc<Definition>,
    /// The slot.
    pub slot_at: Option<Timestamp>,
    /// Why it is skipped, if it is.
    pub skipped: Option<&'static str>,
}

/// A run that an instance may execute: the right to do so ends at `lease_until` unless it is extended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The run, `running`, with its attempt as the fence.
    pub run: Run,
    /// Its job; `None` for a trial of a target.
    pub job: Option<Arc<Definition>>,
    /// When the lease ends.
    pub lease_until: Timestamp,
}

impl Claim {
    /// Sorts claims in the order in which they start: by priority, then by time.
    pub fn start_order(&self) -> (Reverse<i32>, Timestamp, RunId) {
        let priority = self.job.as_ref().map_or(0, |job| job.policies.priority);
        (Reverse(priority), self.run.scheduled_at, self.run.id)
    }
}

/// A run that an instance still holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseReport {
    /// The run.
    pub run: RunId,
    /// The attempt that is leased.
    pub attempt: u32,
    /// The actor who asked for its cancellation, if any.
    pub cancel_by: Option<String>,
}

/// The result of recording a transition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// It was written.
    Applied {
        /// The failed runs of its job since the last success, to ask
        /// [`Policies::pause_reason`](crate::Policies::pause_reason) about.
        consecutive_failures: u32,
    },
    /// The run was asked to stop meanwhile, so it is canceled instead of retried.
    Canceled {
        /// The actor who asked.
        by: String,
    },
    /// The run has another attempt or status by now; nothing was written.
    LeaseLost,
}

/// The result of a request to cancel a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canceled {
    /// It was pending and is canceled.
    AtOnce,
    /// It is running; its executor will stop it.
    Requested,
    /// It had ended before, so.
    TooLate(RunStatus),
}

/// The outcome of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotOutcome {
    /// A run.
    Run(Box<Run>),
    /// No run.
    Gap(Gap),
}

/// A token, without its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The name, which is unique.
    pub name: String,
    /// `viewer`, `operator` or `admin`.
    pub role: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it expires, if ever.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
}

impl Token {
    /// Whether it lets an admin in at this time.
    pub fn is_valid_admin(&self, now: Timestamp) -> bool {
        self.role == "admin" && self.revoked_at.is_none() && self.expires_at.is_none_or(|at| at > now)
    }

    /// Refuses to revoke a token that is the last valid one of an admin. `tokens` are those of all admins.
    pub fn expect_another_admin(tokens: &[Token], name: &str, now: Timestamp) -> StoreResult<()> {
        let mut valid = tokens.iter().filter(|token| token.is_valid_admin(now));
        let is_admin = tokens.iter().any(|token| token.name == name && token.is_valid_admin(now));
        if !is_admin || valid.any(|token| token.name != name) {
            return Ok(());
        }
        Err(StoreError::Conflict { what: format!("token `{name}` is the last valid one of an admin") })
    }
}
