//! The REST API, through the real binary and a real socket: one file for each kind of resource.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

mod access;
mod actions;
mod backfills;
mod bulk;
mod cluster;
mod compat;
mod cron;
mod denials;
mod edits;
mod entrance;
pub(crate) mod events;
mod feed;
mod flows;
mod hostile;
mod idempotency;
mod jobs;
mod limits;
mod once;
mod openapi;
mod org_jobs;
mod org_runs;
mod org_updates;
pub(crate) mod orgs;
mod probes;
mod refusals;
mod run_history;
mod runs;
mod sessions;
mod stream_access;
