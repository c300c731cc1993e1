//! The integration tests of the server crate, in one binary.

mod api;
mod cron;
mod server;
mod tidy;
