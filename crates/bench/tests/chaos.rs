//! The main fault experiments, briefly, on the binary of this build.
//!
//! An experiment judges by what the targets of real servers logged. It waits for events, and its bounds grow with the load of
//! the machine.

use std::path::{Path, PathBuf};

use everbell_bench::chaos::database::Engine::{self, Postgres, Sqlite};
use everbell_bench::chaos::{Options, run_one};

/// The server beside the program that belongs to these tests.
fn binary() -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_everbell-bench")).with_file_name("everbell");
    assert!(binary.is_file(), "{} is missing: run `cargo build -p everbell-server`", binary.display());
    binary
}

fn holds(name: &str, database: Engine) {
    match run_one(name, &Options::brief(database, binary())) {
        Ok(verdict) => assert!(verdict.is_ok(), "{verdict}"),
        Err(reason) => panic!("{reason}"),
    }
}

#[test]
fn a_claim_whose_answer_is_late_starts_nothing() {
    holds("late_claim", Postgres);
}

#[test]
fn an_instance_that_falls_silent_with_locks_stops_nobody_else() {
    holds("lock_starve_silent", Postgres);
}

#[test]
fn a_paused_job_does_not_start_at_the_moment_of_a_fire() {
    holds("pause_race", Postgres);
}

#[test]
fn nothing_runs_twice_when_a_server_on_sqlite_dies_and_comes_back() {
    holds("kill_and_restart", Sqlite);
}
