//! A private PostgreSQL for tests and benches, and an empty database on it for each of them.
//!
//! ```text
//! test process ──┐ holds users.lock (shared) while it lives
//! test process ──┼──► folder of this build and user ◄── watchdog.sh: stops the server and removes the folder
//! test process ──┘    users.lock  start.lock  watchdog.lock       a few seconds after the last process let go
//!                     server/{data, log, .s.PGSQL.5432}
//! ```
//!
//! A test runner may start a process for each test, so none of them owns the server. The first one starts it (behind
//! `start.lock`), and the kernel releases the locks of a killed process, too. Set `EVERBELL_TEST_POSTGRES_URL` to use a
//! server that is already running.

mod database;
mod folder;
mod programs;
mod server;

pub use database::{TestDatabase, execute};
pub use server::{Durability, OwnServer, OwnSetup};

use std::path::Path;
use std::sync::OnceLock;

use server::Server;

/// Names the server to use instead of a private one: `postgres://user:password@host/database`, by a role that may create
/// databases.
pub const POSTGRES_URL_VARIABLE: &str = "EVERBELL_TEST_POSTGRES_URL";

/// The text of a statement's file with its placeholders filled in, as the stores send it.
pub fn fill_placeholders(sql: &str) -> String {
    crate::rows::placeholders::fill(sql)
}

/// The server for tests, which is started when it does not run yet. It forgets everything in a crash of the machine.
///
/// Blocks for about a second when it is the first, and panics with the reason when there is no server to be had.
pub fn postgres_url() -> String {
    postgres_url_with(Durability::Fast)
}

/// [`postgres_url`] with a choice: benches want to pay for what a real server does.
pub fn postgres_url_with(durability: Durability) -> String {
    static FAST: OnceLock<Server> = OnceLock::new();
    static DURABLE: OnceLock<Server> = OnceLock::new();
    if let Some(given) = given_url() {
        return given;
    }
    let server = match durability {
        Durability::Fast => &FAST,
        Durability::Durable => &DURABLE,
    };
    let started = server.get_or_init(|| Server::join(durability).unwrap_or_else(|reason| panic!("{reason}")));
    started.url().to_owned()
}

/// The log of the private server behind this URL, for a test that failed and wants to know why.
pub fn postgres_log(url: &str) -> Option<String> {
    let (_, folder) = url.split_once("?host=")?;
    std::fs::read_to_string(Path::new(folder).join("log")).ok()
}

fn given_url() -> Option<String> {
    std::env::var(POSTGRES_URL_VARIABLE).ok().filter(|url| !url.is_empty())
}
