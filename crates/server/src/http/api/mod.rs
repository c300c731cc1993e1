//! One file for each kind of resource: parse, one call of the client, render.

pub(crate) mod actions;
pub(crate) mod audit;
pub(crate) mod backfills;
pub(crate) mod bulk;
pub(crate) mod compat;
pub(crate) mod cron;
pub(crate) mod edits;
pub(crate) mod events;
pub(crate) mod instances;
pub(crate) mod jobs;
pub(crate) mod org_jobs;
pub(crate) mod orgs;
pub(crate) mod probes;
pub(crate) mod questions;
pub(crate) mod runs;
pub(crate) mod sessions;
pub(crate) mod sweeps;
pub(crate) mod targets;
pub(crate) mod tokens;
