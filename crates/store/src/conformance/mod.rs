//! The meaning of the [`Store`](everbell_core::store::Store) contract, in code: what every store does, case by case.
//!
//! A case is an `async fn(Fresh)`, named by the sentence that it proves. [`Fresh`] is an empty store, and more connections
//! to it. [`conformance_tests!`](crate::conformance_tests) turns all of them into tests of one store:
//!
//! ```
//! use std::sync::Arc;
//!
//! use everbell_store::conformance::Fresh;
//! use everbell_store::memory::MemoryStore;
//!
//! async fn fresh() -> Fresh {
//!     Fresh::new(Arc::new(MemoryStore::new()))
//! }
//! everbell_store::conformance_tests!(fresh);
//! # fn main() {}
//! ```
//!
//! Beside the cases there are [`checkers`] of the invariants, a [`faults::Faulty`] store that fails on demand, and
//! [`model`], which compares a store with [`MemoryStore`](crate::memory::MemoryStore) on random operations.
//!
//! The contract is what the cases assert. They do not look at what it leaves open, such as the order of rows with equal
//! keys.

#![allow(clippy::unwrap_used, reason = "a case that cannot go on has failed")]
#![allow(missing_docs, reason = "the name of a case is the sentence that it proves")]

pub mod dice;
mod fresh;
mod given;
mod list;
mod list_of_orgs;
mod plain;
mod world;

pub mod change;
pub mod job_lists;
pub mod jobs;

pub mod org_actions;
pub mod org_model;
pub mod org_timers;
pub mod orgs;

pub mod planned_starts;
pub mod planning;
pub mod planning_effects;

pub mod instance_leases;
pub mod leases;
pub mod lost_runs;
pub mod outputs;
pub mod pausing;
pub mod recording;
pub mod remote;
pub mod starting;

pub mod gaps;
pub mod recent_runs;
pub mod run_histogram;
pub mod run_lists;
pub mod runs;

pub mod audit;
pub mod backfills;
pub mod calendars;
pub mod chains;
pub mod clock;
pub mod counters;
pub mod counts;
pub mod declarations;
pub mod fan_in;
pub mod freezes;
pub mod inbox;
pub mod instances;
pub mod problems;
pub mod prune;
pub mod purge;
pub mod queue;
pub mod reports;
pub mod requests;
pub mod sessions;
pub mod tokens;
pub mod trace_context;

pub mod targets;
pub mod text;
pub mod time;
pub mod versions;
pub mod waking;

pub mod checkers;
pub mod concurrency;
pub mod faults;
pub mod model;
pub mod races;

pub use fresh::{Case, CaseFn, Database, Fresh, run};
pub use list::cases;
