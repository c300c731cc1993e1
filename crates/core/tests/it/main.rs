//! Tests of the core through its public face.
#![allow(clippy::unwrap_used, reason = "what cannot be unwrapped fails the test")]

mod alert;
mod alert_orgs;
mod alert_timing;
mod backfill;
mod calendar;
mod change;
mod counting;
mod declaration;
mod describe;
mod freezes;
mod fuzz;
mod fuzz_check;
mod given;
mod golden;
mod jitter;
mod oracle;
mod org;
mod outage;
mod parse;
mod plan;
mod plan_properties;
mod properties;
mod random;
mod repair;
mod roll;
mod simulate;
mod succession;
mod trace_context;
mod vectors;
mod warnings;
