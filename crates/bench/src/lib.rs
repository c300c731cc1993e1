//! Fault experiments, herds and soaks on real `everbell serve` processes, for the command line and for tests.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the tables are what this program is for")]

pub mod chaos;
pub mod herd;
pub mod soak;
mod usage;
