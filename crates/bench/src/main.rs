//! Measurements that anyone can repeat: `cargo run -p everbell-bench --release -- cron`.
//!
//! Never part of the tests: a number that depends on the machine proves nothing there.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the tables are what this program is for")]

mod cron;
mod measure;
mod rivals;
mod table;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo run -p everbell-bench --release -- WHAT

  cron    times to find the next slot, to parse and to count, against the crates cron, croner and cronexpr";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["cron"] => cron::run(),
        ["help" | "--help" | "-h"] => println!("{USAGE}"),
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
