//! The integration tests of the server crate, in one binary.

mod api;
mod binary;
mod cli;
mod client;
mod config;
mod cron;
mod db;
mod declared;
mod doctor;
mod embed;
mod halfway;
mod host;
mod import;
mod killed;
mod notify;
mod ownership;
mod readme;
mod server;
mod serving;
mod shell;
mod silent_database;
mod talk;
mod tidy;
mod traces;
mod ui;
mod wrong_clock;
