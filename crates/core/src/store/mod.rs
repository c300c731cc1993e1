//! The contract between everbell and its databases.
//!
//! A [`Store`] reads, asks a decision of this crate, and commits, all in one short transaction. It never decides itself:
//! SQL guards (unique keys, `where status = …`), Rust decides. Three stores keep this contract, SQLite, PostgreSQL and a
//! model in memory, and one conformance suite is its meaning in code.
//!
//! Rules for every verb:
//! - **Time is an argument.** No verb but [`ClusterStore::now`] reads a clock.
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

mod interceptor;

mod access_store;
mod alert_store;
mod backfill_store;
mod calendar_store;
mod cluster_store;
mod counter_store;
mod job_store;
mod org_store;
mod remote_store;
mod report_store;
mod run_store;
mod target_store;

mod answers;
mod beat;
mod counters;
mod deed;
mod deleted;
mod error;
mod following;
mod inbox;
mod instance;
mod job_row;
mod lags;
mod lease;
mod orgs;
mod page;
mod recent_runs;
mod reports;
mod requests;
mod run_histogram;
mod sessions;
mod starting;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use jiff::Timestamp;

pub use access_store::AccessStore;
pub use alert_store::{AlertStore, DeliveryFilter, ProblemFilter};
pub use answers::{
    ActiveCount, Canceled, Changed, Claim, ClockTrace, Counts, Due, JobCount, JobRow, LeaseReport, Planned, PlannedRun,
    Rearmed, Recorded, SlotOutcome, StoreStatus, TargetCount, Token,
};
pub use backfill_store::{BackfillStore, MAX_BACKFILLS, MAX_LOOKED_UP};
pub use beat::{Beat, WorkSeen};
pub use calendar_store::{
    CalendarStore, FREEZE_RETENTION, MAX_CALENDAR_JOBS, MAX_FREEZES, NewCalendar, StoredCalendar,
};
pub use cluster_store::ClusterStore;
pub use counter_store::CounterStore;
pub use counters::{
    CounterGroup, CounterKey, FailureTrend, RunCounters, TimeCounts, counters_by_owner, counters_by_target,
};
pub use deed::{Deed, Remembered, RequestKey};
pub use deleted::{Pruned, PurgedJob};
pub use error::{NeedsOperator, StoreError, StoreResult, UnavailableReason};
pub use inbox::{InboxAnswer, InboxRequest, RefusedRequest, Replacement};
pub use instance::Instance;
pub use interceptor::{Call, Interceptor};
pub use job_store::JobStore;
pub use lags::{Durations, Lags};
pub use lease::LeaseTerms;
pub use org_store::OrgStore;
pub use orgs::{JobOrg, JobOrgFilter, OrgCounts, OrgFilter, OrgJob, OrgUpdateProgress, OrgWritten};
pub use page::Page;
pub use recent_runs::{RecentRuns, RunSummary};
pub use remote_store::{AddedOutput, RemoteStore, RemoteUpdate};
pub use report_store::{MAX_ABSENCES, MAX_LATE_SLOTS, MAX_ORG_FIRES, MAX_ORG_GROUPS, ReportStore};
pub use reports::{GapCount, OrgFires};
pub use requests::{
    AuditEntry, Cursor, GapFilter, JobFilter, JobRef, JobSort, LastAdmin, NewToken, Origin, PageRequest, PruneBefore,
    RunFilter,
};
pub use run_histogram::{Bucket, RunHistogram};
pub use run_store::RunStore;
pub use sessions::{
    MAX_LISTED_SESSIONS, MAX_SESSION_AGE, MAX_SESSIONS_PER_TOKEN, NewSession, SESSION_IDLE_TIMEOUT, Session,
    SessionFilter,
};
pub use starting::{PlanDue, StartRuns, TargetRoom};
pub use target_store::{MAX_NAMED_USERS, MAX_STORED_TARGETS, StoredTarget, TargetStore};

pub use crate::micros::micros;

use crate::change::{JobChange, JobView};
use crate::ids::Invalid;
use crate::plan::Plan;

/// The decision about a timer that is due, which a store calls: [`crate::plan::plan`], or a test's own.
pub type PlanFn<'a> = dyn Fn(&Due, Timestamp) -> Plan + Send + Sync + 'a;

/// The decision about a change of a job, which a store calls: one of [`crate::change`].
pub type DecideFn<'a> = dyn Fn(&JobView) -> Result<JobChange, Invalid> + Send + Sync + 'a;

/// The database of jobs, timers, runs and everything about them: all families of verbs together.
///
/// Every type that implements the families is a `Store`. Callers have an `Arc<dyn Store>` and need to import nothing
/// else.
pub trait Store:
    JobStore
    + RunStore
    + OrgStore
    + ClusterStore
    + AccessStore
    + AlertStore
    + CalendarStore
    + ReportStore
    + CounterStore
    + BackfillStore
    + RemoteStore
    + TargetStore
    + std::fmt::Debug
{
}

impl<S> Store for S where
    S: JobStore
        + RunStore
        + OrgStore
        + ClusterStore
        + AccessStore
        + AlertStore
        + CalendarStore
        + ReportStore
        + CounterStore
        + BackfillStore
        + RemoteStore
        + TargetStore
        + std::fmt::Debug
{
}

/// Resolves when a loop should look again: see [`ClusterStore::woken`].
pub type Wakeup<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// An entry that is this much younger than now does not prove that a clock was ahead: instances disagree a little.
pub const FUTURE_TOLERANCE: Duration = Duration::from_secs(5);

/// How long the answer to a request with an idempotency key is remembered, from its beginning.
pub const REQUEST_RETENTION: Duration = Duration::from_hours(24);
