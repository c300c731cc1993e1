//! The SQLite store: one file, for one host.
//!
//! A transaction that writes begins with `begin immediate`, so there is one at a time, in this process (the connection
//! that writes stands behind a mutex) and among all processes on the file (SQLite's lock). Reading is locking therefore,
//! and each verb is read, decide, commit. Readers have their own connections and see the last commit (write-ahead log).
//!
//! Batches go in as one JSON array each. Wake-ups reach the loops of this process only; others poll.

mod access;
mod alerts;
mod audit;
mod awaited_commits;
mod backfills;
#[cfg(feature = "upkeep")]
pub(crate) mod backup;
mod batch;
mod calendars;
mod chains;
mod cluster;
mod connect;
#[cfg(feature = "upkeep")]
pub(crate) mod copy;
mod counters;
mod create_jobs;
mod errors;
#[cfg_attr(not(feature = "conformance"), path = "fault_injection_off.rs")]
mod fault_injection;
mod files;
mod in_transaction;
mod inbox;
mod job_changes;
mod jobs;
mod marker;
mod migrate;
mod moved;
mod old_layout;
mod org_timers;
mod orgs;
mod outcomes;
mod purge;
mod rearm;
mod releases;
mod remote;
mod reports;
mod run_lists;
mod run_statistics;
mod runs;
mod targets;
mod timers;
mod transaction;
#[cfg(feature = "upkeep")]
pub(crate) mod upkeep;

use std::path::PathBuf;
use std::sync::Arc;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{SqliteConnection, SqlitePool};
use tokio::sync::{Mutex, Notify};

#[cfg(feature = "conformance")]
pub use fault_injection::Fault;

use crate::rows::Definitions;

/// The statements that create the schema, for tests of it.
#[cfg(test)]
pub(crate) fn migrations() -> &'static [&'static str] {
    migrate::MIGRATIONS
}

/// A store in an SQLite database. See [`SqliteStore::open`].
#[derive(Debug)]
pub struct SqliteStore {
    /// How the connection that writes is opened.
    options: SqliteConnectOptions,
    writer: Mutex<Option<SqliteConnection>>,
    /// `None` for a database in memory, which only the writer can see.
    readers: Option<SqlitePool>,
    path: Option<PathBuf>,
    /// `None` for a database in memory.
    files: Option<Arc<files::Files>>,
    known: Definitions,
    wake: Arc<Notify>,
    /// Writes in transactions of the application.
    awaited: Arc<awaited_commits::AwaitedCommits>,
    faults: fault_injection::Faults,
}

#[cfg(feature = "conformance")]
impl SqliteStore {
    /// Makes one call to the database fail, the one after `calls` others. Calls are the begin, each statement and the
    /// commit of a transaction.
    pub fn fail_after(&self, calls: u32, fault: Fault) {
        self.faults.set(calls, fault);
    }

    /// Whether the fault that was asked for has not happened yet.
    pub fn is_fault_pending(&self) -> bool {
        self.faults.is_pending()
    }
}
