//! The integration tests of the server crate, in one binary.

mod cron;
mod tidy;
