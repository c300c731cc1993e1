//! One binary for all integration tests of the stores.
#![allow(clippy::unwrap_used, reason = "what cannot be unwrapped fails the test")]

mod broken;
mod chosen;
mod conformance;
mod copy;
mod copy_marks;
mod credentials;
mod inside;
mod list_isolation;
mod memory;
mod old_layout;
mod org_isolation;
mod own_schema;
mod postgres;
mod postgres_dead_rows;
mod postgres_deadlock;
mod postgres_failover;
mod postgres_given_pool;
mod postgres_own;
mod postgres_pooler;
mod postgres_proxy;
mod postgres_purge;
mod postgres_round_trips;
mod postgres_silence;
mod repairs;
mod rolling_deploy;
mod sqlite;
mod sqlite_faults;
mod sqlite_files;
mod sqlite_own;
mod sqlite_processes;
mod sqlite_world;
mod testing;
mod upkeep;
