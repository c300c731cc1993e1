//! Measurements that anyone can repeat: `cargo run -p everbell-bench --release -- cron`.
//!
//! Measurements are never part of the tests: a number that depends on the machine proves nothing there. Fault experiments are
//! in the library, because tests run some of them.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the tables are what this program is for")]

mod cpu;
mod cron;
mod engine;
mod measure;
mod micros;
mod orgs;
mod pages;
mod peers;
mod population;
mod rivals;
mod store;
mod table;

use std::process::ExitCode;

/// As in the `everbell` command.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str = "\
usage: cargo run -p everbell-bench --release -- WHAT

  chaos   faults on purpose: real servers, and something goes wrong at a chosen moment; each experiment ends in one line
          with a verdict. --experiment list|all|NAME,NAME, --database postgres|sqlite, --minutes N (repeats them at
          random, by --seed N), --instances N, --binary PATH of `everbell`, --brief for short leases and few rounds
  cron    times to find the next slot, to parse and to count, against the crates cron, croner and cronexpr
  engine  the whole engine: drain (beside plain SQL), a drain by four instances, fire lag, idle cost, start with many
          timers, jobs that are enqueued; --quick for a short look, and only some of it: drain, instances, lag, idle, start,
          queue. For the drains: --postgres or --sqlite, --rounds N, --concurrency N, --jobs N, --connections N of the engine
  heartbeat  a heartbeat of an instance that holds 1 run and 10,000
  herd    jobs that are all due at once, through real servers with `log` targets: lag and rate, by what the servers log.
          --jobs N, --instances N, --rounds N, --concurrency N, --database postgres|sqlite, --binary PATH of `everbell`
  orgs    one job for up to 1,000,000 orgs: making their timers, and firing 10,000 that are due in the same second;
          --quick for fewer, only some of it: --postgres or --sqlite
  pages   what the web UI asks, with 10,000 jobs and 1,000,000 runs; --quick for less of it, --crowded with all runs in
          one day; --served for the pages themselves, from a server that is built and started for it
  peers   the same work through everbell and through graphile-worker, pg-boss, APScheduler, procrastinate, graphile_worker,
          apalis and awa, which it installs: drain, lag, herd and idle, each at its default and its best setting.
          --only PEER,PEER, --setting default|best, --measure drain,lag,herd,idle, --rounds N, --jobs N,N for the drains,
          --lag-seconds N, --limit SECONDS for one piece of work, --json FILE and --svg FILE for the results, --cache FOLDER,
          --synchronous-commit-off; continues with the FILE of a run that was stopped, except with --again
  soak    a steady load: memory, descriptors and threads every 10 s, and whether they stay flat;
          --minutes N, --rate N runs a second, --database postgres|sqlite, --binary PATH of `everbell`
  store   claims and whole lives of runs through the stores, beside the same writes as plain SQL;
          only some of it: --postgres or --sqlite, --batch N, --connections N, and --rounds N for a longer look
  waiting  claims and plans beside 0, 1,000 and 100,000 runs and timers that wait and cannot start now;
          only some of it: --postgres or --sqlite";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| ["--help", "-h"].contains(&argument.as_str())) {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["chaos", rest @ ..] => return verdict(everbell_bench::chaos::run(rest)),
        ["herd", rest @ ..] => return verdict(everbell_bench::herd::run(rest)),
        ["soak", rest @ ..] => return verdict(everbell_bench::soak::run(rest)),
        ["cron"] => cron::run(),
        ["engine", rest @ ..] => {
            if let Err(reason) = engine::run(rest) {
                eprintln!("error: {reason}");
                return ExitCode::FAILURE;
            }
        }
        ["heartbeat"] => {
            if let Err(reason) = store::heartbeat::run() {
                eprintln!("error: {reason}");
                return ExitCode::FAILURE;
            }
        }
        ["orgs", rest @ ..] => {
            if let Err(reason) = orgs::run(rest) {
                eprintln!("error: {reason}");
                return ExitCode::FAILURE;
            }
        }
        ["pages", rest @ ..] => {
            if let Err(reason) = pages::run(rest) {
                eprintln!("error: {reason}");
                return ExitCode::FAILURE;
            }
        }
        ["peers", rest @ ..] => {
            if let Err(reason) = peers::run(rest) {
                eprintln!("error: {reason}");
                return ExitCode::FAILURE;
            }
        }
        ["store", rest @ ..] => {
            if let Err(reason) = store::run(rest) {
                eprintln!("error: {reason}");
                return ExitCode::FAILURE;
            }
        }
        ["waiting", rest @ ..] => {
            if let Err(reason) = store::waiting::run(rest) {
                eprintln!("error: {reason}");
                return ExitCode::FAILURE;
            }
        }
        ["help"] => println!("{USAGE}"),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    }
    if cfg!(debug_assertions) {
        eprintln!("warning: this was not an optimised build; run it with --release");
    }
    ExitCode::SUCCESS
}

/// An exit code for a verdict, which is about the server and not about this build.
fn verdict(answer: Result<bool, String>) -> ExitCode {
    match answer {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(reason) => {
            eprintln!("error: {reason}");
            ExitCode::from(2)
        }
    }
}
