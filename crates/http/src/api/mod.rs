//! One file for each kind of resource: parse, one call of the client, render.

pub mod actions;
pub mod audit;
pub mod backfills;
pub mod bulk;
pub mod calendars;
pub mod compat;
pub mod cron;
pub mod edits;
pub mod events;
#[cfg(test)]
mod example_tests;
pub mod feed;
pub mod freezes;
pub mod instances;
pub mod job_history;
pub mod jobs;
pub mod notify;
pub mod org_jobs;
pub mod org_updates;
pub mod orgs;
pub mod probes;
pub mod remote;
pub mod reports;
pub mod reruns;
pub mod runs;
pub mod sessions;
pub mod target_edits;
pub mod targets;
pub mod tokens;
pub mod top;
