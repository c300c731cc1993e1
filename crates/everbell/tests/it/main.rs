//! One binary for all integration tests of the library.
#![allow(clippy::unwrap_used, reason = "what cannot be unwrapped fails the test")]

mod backfills;
mod bell_in_handlers;
mod building;
mod chains;
mod chaos;
mod clocks;
mod compile_errors;
#[cfg(target_os = "linux")]
mod crashes;
mod create_or_replace;
mod edits;
mod examples;
mod failures;
mod given;
mod given_pool;
mod handlers;
mod idle;
mod inbox;
mod inbox_choices;
mod job_actions;
mod job_reads;
mod late_answers;
mod layers;
mod observing;
mod org_actions;
mod orgs;
mod orgs_year;
mod ownership;
mod payloads;
mod priorities;
mod public_types;
mod queue;
mod run_actions;
mod running;
mod spans;
mod sync;
mod sync_again;
mod test_bell;
mod test_bell_life;
mod trace_contexts;
mod transaction_connections;
mod transaction_dropped;
mod transaction_queue;
mod transactions;
mod whole;
