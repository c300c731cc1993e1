//! The contract between everbell and its databases.
//!
//! A [`Store`] reads, asks a decision of this crate, and commits, all in one short transaction. It never decides itself:
//! SQL guards (unique keys, `where status = …`), Rust decides. Three stores keep this contract, SQLite, PostgreSQL and a
//! model in memory, and one conformance suite is its meaning in code.
//!
//! Rules for every verb:
//! - **Time is an argument.** No verb but [`Store::now`] reads a clock.
//! - **All or nothing.** A verb that fails has changed nothing, or, when the answer to a commit was lost
//!   ([`StoreError::Unavailable`] with `maybe_done`), everything; asking again is always safe, because slots are unique,
//!   transitions are fenced and revisions are checked.
//! - **The deed and its memory.** A verb whose audit entry names a request ([`AuditEntry::request`]) writes down in the same
//!   transaction that this request was carried out, and what it did. If that is written already, the verb changes nothing and
//!   answers [`StoreError::Conflict`]: the caller reads back the [`Deed`].
//! - **Microseconds.** Times are kept to the microsecond; what is finer is dropped.
//! - **Bounded.** Whatever can be many has a limit, and a page that is full says how to go on.
//! - **Isolated.** A row that cannot be read is [`StoreError::Corrupt`] where it is asked for by name, and is left out and
//!   reported where it is one of many; it never hides the others.

mod answers;
mod deed;
mod error;
mod glance;
mod lags;
mod lease;
mod orgs;
mod requests;
mod sessions;
mod tally;

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use uuid::Uuid;

pub use answers::{
    ActiveCount, Canceled, Changed, Claim, ClockTrace, Counts, Due, Instance, JobCount, JobRow, LeaseReport, Page,
    Planned, PlannedRun, Pruned, Rearmed, Recorded, SlotOutcome, StoreStatus, TargetCount, Token,
};
pub use deed::{Deed, Remembered, RequestKey};
pub use error::{NeedsOperator, StoreError, StoreResult, UnavailableReason};
pub use glance::{Glance, RunGlimpse};
pub use lags::{Durations, Lags};
pub use lease::LeaseTerms;
pub use orgs::{JobOrg, JobOrgFilter, OrgCounts, OrgFilter, OrgJob, OrgWritten, Swept};
pub use requests::{
    AuditEntry, Cursor, GapFilter, JobFilter, JobRef, JobSort, LastAdmin, NewToken, Origin, PageRequest, PruneBefore,
    RunFilter, StartRuns, TargetRoom,
};
pub use sessions::{
    MAX_LISTED_SESSIONS, MAX_SESSION_AGE, MAX_SESSIONS_PER_TOKEN, NewSession, SESSION_IDLE_TIMEOUT, Session,
    SessionFilter,
};
pub use tally::{Bucket, Tally};

use crate::change::{JobChange, JobView, NewJob};
use crate::ids::{InstanceId, Invalid, JobId, JobKey, OrgId, RunId};
use crate::org::{Org, OrgWrite, Override, OverrideWrite, Sweep};
use crate::output::OutputSoFar;
use crate::plan::Plan;
use crate::run::{Gap, Run};
use crate::settle::{Settling, Transition};

/// What a store asks about each timer that is due: [`crate::plan::plan`], or a test's own idea.
pub type PlanFn<'a> = dyn Fn(&Due, Timestamp) -> Plan + Send + Sync + 'a;

/// What a store asks about a job that somebody wants changed: one of [`crate::change`].
pub type DecideFn<'a> = dyn Fn(&JobView) -> Result<JobChange, Invalid> + Send + Sync + 'a;

/// Where jobs, timers, runs and everything about them live.
#[async_trait]
pub trait Store: Send + Sync + std::fmt::Debug {
    // ---- the store itself

    /// The database's own clock, which every instance anchors itself on. For SQLite that is the host's.
    async fn now(&self) -> StoreResult<Timestamp>;

    /// Whether an instance can lose the database while others still reach it. Such an instance stops its handlers before
    /// its leases end. Where no partition exists, as with a file on one machine, nothing has to be stopped.
    fn can_partition(&self) -> bool;

    /// What it is, which schema it has, how large it is, and what may slow it down.
    async fn status(&self) -> StoreResult<StoreStatus>;

    /// Closes the database in good order: what was committed is in its file afterwards, where it has one. Calls that come
    /// later fail. A store that has nothing to close does nothing.
    async fn close(&self) -> StoreResult<()> {
        Ok(())
    }

    /// How many jobs, active runs and due timers there are. Reads no history, so it may be asked every few seconds.
    async fn counts(&self, now: Timestamp) -> StoreResult<Counts>;

    /// Resolves after somebody, here or on another instance, did something that may make a loop look again: a job armed
    /// earlier, a run inserted, a cancellation. Not after what came to nothing, so that a loop which is woken by its own
    /// doing comes to rest. Only wakes: it may resolve for nothing, and it may miss things (behind a
    /// pooler it always does), so every loop also polls. What happens after the call began is not missed in-process.
    async fn woken(&self);

    /// The last trusted time, and when the youngest entry was written.
    async fn clock_trace(&self) -> StoreResult<ClockTrace>;

    /// Remembers a time that is trusted, in the place of the one before.
    async fn write_trusted_time(&self, at: Timestamp) -> StoreResult<()>;

    /// Arms timers from `now` again that a clock which was ahead has moved into the future, at most `limit` of them, in one
    /// transaction. Such a timer has a mark more than [`FUTURE_TOLERANCE`] after `now` that comes from there: from a run or
    /// gap that was written after `now`, or from a version that was created or changed then. A mark that an operator moved
    /// at a true time stays. See [`rearm`](crate::rearm).
    ///
    /// Leases that end after `lease_until` end there, and heartbeats after `now` count as made now, so that whoever died in that
    /// future is noticed. The audit entry is written if a timer was armed, with what was done as its reason.
    async fn rearm_timers(
        &self,
        now: Timestamp,
        lease_until: Timestamp,
        limit: u32,
        audit: &AuditEntry,
    ) -> StoreResult<Rearmed>;

    // ---- jobs

    /// Inserts a job with its timer. A living job of the same key is a [`StoreError::Conflict`].
    async fn create_job(&self, job: &NewJob, audit: &AuditEntry) -> StoreResult<JobRow>;

    /// Locks the job and its timer, asks `decide`, and commits the answer with the audit entry. `expected_revision` that
    /// is not the current one is a [`StoreError::Conflict`]; a refusal is [`StoreError::Invalid`] and changes nothing.
    /// The time and the actor of the entry are those of the change: runs are inserted and canceled at that time, by them.
    async fn change_job(
        &self,
        job: &JobRef,
        expected_revision: Option<u64>,
        decide: &DecideFn<'_>,
        audit: &AuditEntry,
    ) -> StoreResult<Changed>;

    /// The job with its timer and last run.
    async fn get_job(&self, job: &JobRef) -> StoreResult<JobRow>;

    /// Jobs, a page at a time.
    async fn list_jobs(&self, filter: &JobFilter, page: &PageRequest) -> StoreResult<Page<JobRow>>;

    /// How many jobs there are like this; no more than `cap` are counted, which is 1 to 10,000.
    async fn count_jobs(&self, filter: &JobFilter, cap: u32) -> StoreResult<u32>;

    /// How many living jobs there are of each target and status, by these; none where there is none. A target that cannot
    /// be read is left out.
    async fn count_targets(&self) -> StoreResult<Vec<TargetCount>>;

    /// Paused jobs that resume by themselves, with the time at which they do; the earliest first.
    async fn pauses_ending(&self, limit: u32) -> StoreResult<Vec<(JobId, Timestamp)>>;

    // ---- the way of a run

    /// Locks up to `limit` timers with `next_run_at <= now` of these targets, oldest first, passing over those that others
    /// hold; asks `plan` about each; writes what it says. One transaction.
    ///
    /// Written are: runs (one whose slot exists already is passed over and not reported), gaps, and the timer. A run in
    /// `plan.cancel` that is pending is canceled, one that is running is asked to stop. `plan.retire` retires the job,
    /// `plan.error` makes it errored, both in the name of `everbell`. So are the entries in the audit trail: `job.errored` for
    /// a job that became so, one `org.errored` for each job with timers that have a `plan.org_error`, and one for
    /// each of the orgs that it names.
    async fn plan_due(
        &self,
        now: Timestamp,
        limit: u32,
        targets: &[crate::Target],
        plan: &PlanFn<'_>,
    ) -> StoreResult<Planned>;

    /// Takes pending runs, in the order of `scheduled_at` and id, as many as there is room for: `running`, attempt + 1,
    /// leased to the instance. A retry not before its time, and in the order of that. A held run only if it is the first
    /// held one of its job and org and fewer than `maxConcurrentRuns` others of them are active and not held; it is not
    /// held any more then. Who may start is judged before anybody does, so one call takes at most one held run of a job
    /// and org. Runs that others are taking at this moment are passed over.
    async fn start_runs(&self, request: &StartRuns<'_>) -> StoreResult<Vec<Claim>>;

    /// Extends every lease of the instance that has not run out at `now`, and tells which runs it still holds and which of
    /// them somebody wants stopped. A run that is missing from the answer is lost. No lease becomes
    /// shorter: a request that was given up may arrive late.
    async fn extend_leases(
        &self,
        instance: InstanceId,
        now: Timestamp,
        until: Timestamp,
    ) -> StoreResult<Vec<LeaseReport>>;

    /// Writes transitions, each guarded by run, attempt and status. One transaction, one answer for each in the same order.
    ///
    /// A failure adds one to the failures in a row of its job, a success sets them to none, in the order of the batch;
    /// neither is an edit, so the revision stays. The same run again in a batch is [`Recorded::LeaseLost`]. A one-time job
    /// whose slot had its run, and that run ended, is retired. A retry is pending again, not held, and keeps its attempt
    /// until it starts.
    async fn record(&self, transitions: &[Transition], now: Timestamp) -> StoreResult<Vec<Recorded>>;

    /// Keeps what runs have printed so far, each guarded by run and attempt, and tells of which it did: what is not at work
    /// any more is passed over, and so is what somebody else is writing about at this moment.
    ///
    /// It stays when the run ends or waits for another attempt without a word of its own, as one that is lost does, and is
    /// gone when the next attempt begins.
    async fn keep_outputs(&self, outputs: &[OutputSoFar]) -> StoreResult<Vec<RunId>>;

    /// Running runs whose lease ended before `now`, oldest first.
    async fn expired_leases(&self, now: Timestamp, limit: u32) -> StoreResult<Vec<Settling>>;

    /// Running runs that are leased to this instance, by id: for one that is known to be dead.
    async fn leases_of(&self, instance: InstanceId, limit: u32) -> StoreResult<Vec<Settling>>;

    // ---- runs

    /// Inserts a pending run that belongs to no job: a trial of a target.
    async fn insert_run(&self, run: &Run, audit: &AuditEntry) -> StoreResult<()>;

    /// Ends a pending run at once, or asks the executor of a running one to stop.
    async fn cancel_run(&self, run: RunId, by: &str, now: Timestamp, audit: &AuditEntry) -> StoreResult<Canceled>;

    /// One run, with its output.
    async fn get_run(&self, run: RunId) -> StoreResult<Run>;

    /// Runs, a page at a time, newest first: by id, which begins with the time of the slot or of the request.
    async fn list_runs(&self, filter: &RunFilter, page: &PageRequest) -> StoreResult<Page<Run>>;

    /// How many runs there are like this; no more than `cap` are counted, which is 1 to 10,000. They need not be of the same
    /// moment.
    async fn count_runs(&self, filter: &RunFilter, cap: u32) -> StoreResult<u32>;

    /// The newest runs of each of many jobs, in small. By job key, then newest first: by id. A run that cannot be read is
    /// left out; [`Store::list_runs`] names it.
    async fn glance(&self, glance: &Glance) -> StoreResult<Vec<RunGlimpse>>;

    /// Runs counted by time and status: a bucket for each span, also where there is nothing.
    async fn tally(&self, tally: &Tally) -> StoreResult<Vec<Bucket>>;

    /// Gaps, a page at a time, those with the latest first slot first; ties by their id ([`Gap::id`]).
    async fn list_gaps(&self, filter: &GapFilter, page: &PageRequest)
    -> StoreResult<Page<(JobId, Option<OrgId>, Gap)>>;

    /// What became of a slot, if anything is written about it.
    async fn slot_outcome(&self, job: JobId, org: Option<&OrgId>, slot: Timestamp) -> StoreResult<Option<SlotOutcome>>;

    // ---- orgs

    /// Makes and changes orgs, all of them or none: see [`written`](crate::org::written). The answers are in the same
    /// order. An `expected_revision` that is not the current one is [`StoreError::Stale`], an org that must be there
    /// and is not is [`StoreError::NotFound`], an org that is named twice is [`StoreError::Invalid`].
    async fn write_orgs(&self, writes: &[OrgWrite], audit: &AuditEntry) -> StoreResult<Vec<OrgWritten>>;

    /// Ends an org: no job fires for it any more, and it is gone as soon as its timers are. Its runs stay.
    async fn delete_org(&self, org: &OrgId, expected_revision: Option<u64>, audit: &AuditEntry) -> StoreResult<()>;

    /// One org.
    async fn get_org(&self, org: &OrgId) -> StoreResult<Org>;

    /// Orgs, a page at a time, by id.
    async fn list_orgs(&self, filter: &OrgFilter, page: &PageRequest) -> StoreResult<Page<Org>>;

    /// How many there are, and how many of them somebody should look at.
    async fn count_orgs(&self) -> StoreResult<OrgCounts>;

    /// Writes what an org wants of a job, which need not be there yet.
    async fn write_override(&self, org: &OrgId, write: &OverrideWrite, audit: &AuditEntry) -> StoreResult<Override>;

    /// The org wants of the job what all want.
    async fn delete_override(&self, org: &OrgId, job: &JobKey, audit: &AuditEntry) -> StoreResult<()>;

    /// Everything that an org overrides, by job key. What is said of a key that no job can have is left out.
    async fn list_overrides(&self, org: &OrgId) -> StoreResult<Vec<Override>>;

    /// The orgs as a job sees them, a page at a time, by id. A timer that cannot be read is none, and its error says why.
    async fn job_orgs(&self, job: JobId, filter: &JobOrgFilter, page: &PageRequest) -> StoreResult<Page<JobOrg>>;

    /// The living jobs with a timer for each org, as an org sees them, by key; at most 1,000. One that cannot be read is left
    /// out; [`Store::list_jobs`] names it.
    async fn org_jobs(&self, org: &OrgId) -> StoreResult<Vec<OrgJob>>;

    /// The same as [`Store::change_job`], for the timer of one org.
    async fn change_org_job(
        &self,
        job: &JobRef,
        org: &OrgId,
        expected_revision: Option<u64>,
        decide: &DecideFn<'_>,
        audit: &AuditEntry,
    ) -> StoreResult<Changed>;

    /// Brings the timers of orgs in line with jobs, orgs and overrides, for at most `limit` orgs: first of orgs that
    /// changed ([`reconcile`](crate::org::reconcile)), then a step of the sweep that waits longest
    /// ([`take_step`](crate::org::take_step)). One short transaction; several instances do not wait for each other. What
    /// becomes errored is told in the audit trail as by [`Store::plan_due`].
    async fn sweep_orgs(&self, now: Timestamp, limit: u32) -> StoreResult<Swept>;

    /// Sweeps that are not at their end, the oldest first; at most 1,000. One that cannot be read is left out; its job is
    /// errored when its turn comes.
    async fn list_sweeps(&self) -> StoreResult<Vec<Sweep>>;

    /// Ends a sweep that makes runs before it is at its end, and tells how far it was. The runs that it made stay. One that
    /// timers depend on is refused ([`Sweep::expect_stoppable`]).
    async fn stop_sweep(&self, sweep: Uuid, audit: &AuditEntry) -> StoreResult<Sweep>;

    // ---- instances

    /// Writes down that the instance is alive, and what it is and serves. Tells whether it is asked to drain.
    async fn heartbeat(&self, instance: &Instance) -> StoreResult<bool>;

    /// Every instance that is known, the oldest first. One that cannot be read is left out: its next heartbeat writes it
    /// anew, or it is forgotten.
    async fn list_instances(&self) -> StoreResult<Vec<Instance>>;

    /// Forgets an instance that has ended in good order.
    async fn leave(&self, instance: InstanceId) -> StoreResult<()>;

    /// Asks an instance to take no more work, or to take work again.
    async fn drain_instance(&self, instance: InstanceId, draining: bool, audit: &AuditEntry) -> StoreResult<()>;

    /// Forgets instances that were not heard of since `before`.
    async fn remove_instances(&self, before: Timestamp) -> StoreResult<u64>;

    // ---- access and memory

    /// Stores a token; only its hash is ever known here. A taken name is a [`StoreError::Conflict`].
    async fn create_token(&self, token: &NewToken, audit: &AuditEntry) -> StoreResult<Token>;

    /// The token of this hash, if it is neither revoked nor expired at `now`; remembers that it was used.
    async fn find_token(&self, hash: &[u8; 32], now: Timestamp) -> StoreResult<Option<Token>>;

    /// Every token, without its hash.
    async fn list_tokens(&self) -> StoreResult<Vec<Token>>;

    /// Ends a token and its sessions. The last admin token that is valid at `now` is a [`StoreError::Conflict`], unless
    /// `last_admin` allows that; of several that are revoked at once, one remains.
    async fn revoke_token(
        &self,
        name: &str,
        now: Timestamp,
        last_admin: LastAdmin,
        audit: &AuditEntry,
    ) -> StoreResult<()>;

    /// Stores a session; only its hash is ever known here. Of one token at most [`MAX_SESSIONS_PER_TOKEN`] stay: the oldest
    /// are deleted.
    async fn create_session(&self, session: &NewSession, audit: &AuditEntry) -> StoreResult<()>;

    /// The session of this hash, if it has not ended at `now` ([`Session::ends_at`]); remembers that it was used. Whether its
    /// token is still valid is for the caller to ask.
    async fn find_session(&self, hash: &[u8; 32], now: Timestamp) -> StoreResult<Option<Session>>;

    /// Sessions that have not ended at `now`, the newest first; at most [`MAX_LISTED_SESSIONS`].
    async fn list_sessions(&self, filter: &SessionFilter, now: Timestamp) -> StoreResult<Vec<Session>>;

    /// Deletes sessions and returns how many. The entry is written only if there was one.
    async fn end_sessions(&self, filter: &SessionFilter, audit: &AuditEntry) -> StoreResult<u64>;

    /// Writes down what somebody did, for what no other verb writes down.
    async fn append_audit(&self, audit: &AuditEntry) -> StoreResult<()>;

    /// The audit trail, a page at a time, newest first, of one object or of all.
    async fn list_audit(&self, object: Option<&str>, page: &PageRequest) -> StoreResult<Page<AuditEntry>>;

    /// Looks for an earlier request of this key that was begun at most [`REQUEST_KEPT`] before `now`.
    async fn find_request(&self, request: &RequestKey, now: Timestamp) -> StoreResult<Remembered>;

    /// Remembers the answer to a request. One that has an answer, or that was another request, keeps what it has.
    async fn remember_answer(&self, request: &RequestKey, answer: (u16, &str), now: Timestamp) -> StoreResult<()>;

    /// Deletes what is older than `before`, at most `limit` of each kind: ended runs, gaps, audit entries, requests with an
    /// idempotency key, and sessions that have ended. A run is as old as the later of its slot and its end, so one of a
    /// backfill is not deleted as soon as it ends. Gives way to the hot path: a call holds its locks only briefly, and
    /// the caller waits between calls.
    async fn prune(&self, before: PruneBefore, limit: u32) -> StoreResult<Pruned>;
}

/// An entry that is this much younger than now does not prove that a clock was ahead: instances disagree a little.
pub const FUTURE_TOLERANCE: Duration = Duration::from_secs(5);

/// How long the answer to a request with an idempotency key is remembered, from its beginning.
pub const REQUEST_KEPT: Duration = Duration::from_hours(24);
