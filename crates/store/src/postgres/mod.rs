//! The PostgreSQL store: one database for many instances.
//!
//! The hot path is a handful of batched statements on few connections: arrays go in through `unnest`, a claim is one
//! short transaction. Locks are taken in one order everywhere, `timers`, `active_runs`, `jobs`, so that no two verbs
//! can wait for each other. Nothing depends on a session: no advisory locks, no temporary tables; `LISTEN` has its own
//! connection and only wakes, so a pooler in transaction mode costs wake-ups and some speed, and nothing else. For the same
//! reason the connections can be borrowed from a pool of the application.

mod access;
mod alerts;
mod audit;
mod backfills;
mod calendars;
mod chains;
mod cluster;
mod connect;
#[cfg(feature = "upkeep")]
pub(crate) mod copy;
mod counters;
mod create_jobs;
mod credentials;
mod errors;
mod floors;
mod given_pool;
pub(crate) mod hosts;
mod in_transaction;
mod inbox;
mod job_changes;
mod jobs;
mod listen;
pub(crate) mod migrate;
mod moved;
mod old_layout;
mod org_timers;
mod orgs;
mod outcomes;
#[cfg(test)]
mod plans;
mod pool;
mod pooler;
mod purge;
mod rearm;
mod releases;
mod remote;
mod reports;
mod run_lists;
mod run_statistics;
mod runs;
pub(crate) mod schema;
mod started;
mod statement;
mod targets;
mod timers;
#[cfg(feature = "upkeep")]
pub(crate) mod upkeep;

pub(crate) use credentials::differ_in_credentials_only;
#[doc(no_inline)]
pub use sqlx::PgPool;
use tokio::sync::Notify;

use crate::rows::Definitions;

/// A store in a PostgreSQL database. See [`PostgresStore::connect`].
///
/// Everything that it creates is in a schema of its own, `everbell` unless the options or the address name another one.
#[derive(Debug)]
pub struct PostgresStore {
    /// For what people ask.
    pool: pooler::Pool,
    /// Connections for the loops, so that a list of a million runs does not make them wait.
    loops: pooler::Pool,
    known: Definitions,
    started: started::Started,
    /// The floors of looks for pending runs, by target; and for due timers.
    run_floors: std::sync::Arc<floors::Floors>,
    timer_floors: std::sync::Arc<floors::Floors>,
    wake: std::sync::Arc<Notify>,
    /// None behind a pooler, where nothing would arrive.
    listener: Option<listen::Listener>,
    hosts: std::sync::Arc<hosts::Hosts>,
    /// Of this instance, all pools together.
    max_connections: usize,
}
