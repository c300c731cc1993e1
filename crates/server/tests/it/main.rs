//! The integration tests of the server crate, in one binary.

mod api;
mod binary;
mod config;
mod cron;
mod embed;
mod readme;
mod db;
mod server;
mod serving;
mod tidy;
