//! The commands that use the API, through the real binary against a real server.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

mod cluster;
mod configured_server;
mod contexts;
mod edit;
mod help;
mod history;
mod jobs;
mod orgs;
mod refusals;
mod run_ids;
mod runs;
mod simulate;
mod watch;

use std::process::Command;

use jiff::Timestamp;
use serde_json::Value;

use crate::binary::{Ran, command, ran};
use crate::server::Server;

/// The command in the folder of a server, as its first admin, in a pipe.
fn prepared(server: &Server, args: &[&str]) -> Command {
    let mut command = command(args);
    command.current_dir(server.folder.path());
    command.env("EVERBELL_SERVER", format!("http://{}", server.address)).env("EVERBELL_TOKEN", &server.token);
    command.env("LC_ALL", "C.UTF-8").stdin(std::process::Stdio::null());
    command
}

/// A server whose instance is known to the cluster, which it is a moment after it listens.
fn registered() -> Server {
    let server = Server::start();
    server.until("/instances", |list| list["items"].as_array().is_some_and(|items| !items.is_empty()));
    server
}

pub(crate) fn everbell(server: &Server, args: &[&str]) -> Ran {
    ran(prepared(server, args).output().unwrap())
}

/// Runs the command on a terminal of this width.
pub(crate) fn on_terminal(server: &Server, columns: usize, args: &[&str]) -> Ran {
    let args = [args, &["-o", "table"]].concat();
    let shown = ran(prepared(server, &args).env("COLUMNS", columns.to_string()).output().unwrap());
    for line in shown.stdout.lines() {
        assert!(line.chars().count() <= columns, "{} of {columns}: {line}", line.chars().count());
    }
    shown
}

/// A time of a document.
fn time(text: &Value) -> Timestamp {
    text.as_str().unwrap().parse().unwrap()
}

/// Waits until the clock of the server has reached this time.
fn until_reached(server: &Server, at: Timestamp) {
    server.until("/status", |status| time(&status["now"]) >= at);
}

/// The data of a command that must succeed and print nothing on standard error.
#[track_caller]
pub(crate) fn data(server: &Server, args: &[&str]) -> String {
    let found = everbell(server, args);
    assert_eq!((found.code, found.stderr.as_str()), (Some(0), ""), "{args:?}: {}", found.stdout);
    found.stdout
}

/// The error of a command that must end with this code and print no data.
#[track_caller]
fn refused(server: &Server, args: &[&str], code: i32) -> String {
    let found = everbell(server, args);
    assert_eq!((found.code, found.stdout.as_str()), (Some(code), ""), "{args:?}: {}", found.stderr);
    found.stderr
}

/// The document that `--json` prints.
#[track_caller]
pub(crate) fn json(server: &Server, args: &[&str]) -> Value {
    serde_json::from_str(&data(server, &[args, &["--json"]].concat())).unwrap()
}

/// Masks values that differ each time: ids, times of this decade, and spans.
fn masked(text: &str) -> String {
    let breaks = |c: char| c.is_whitespace() || "(),;`".contains(c);
    let mut all = String::new();
    for part in text.split_inclusive(breaks) {
        let word = part.strip_suffix(breaks).unwrap_or(part);
        all.push_str(replacement(word).unwrap_or(word));
        all.push_str(&part[word.len()..]);
    }
    all
}

fn replacement(word: &str) -> Option<&'static str> {
    let all = |chars: &str| !word.is_empty() && word.chars().all(|c| chars.contains(c));
    if word.len() == 36 && all("0123456789abcdef-") {
        return Some("ID");
    }
    if word.len() >= 19 && word.starts_with("202") && word.contains('T') && word.contains(':') {
        return Some("TIME");
    }
    if word.len() == 10 && word.starts_with("202") && all("0123456789-") {
        return Some("DATE");
    }
    if word.contains(':') && all("0123456789:.") && word.len() >= 5 {
        return Some("CLOCK");
    }
    let number = word.trim_end_matches(|c: char| "msdh".contains(c));
    let is_span =
        number.len() < word.len() && !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    is_span.then_some("SPAN")
}

/// Masked text with single spaces, for tables whose widths depend on masked values.
fn loose(text: &str) -> String {
    let line = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ").replace("SPAN SPAN", "SPAN");
    masked(text).lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_mask_hides_only_what_changes() {
    let text = "✓ run 01a1df04-9c28-8465-b8f4-53156a165b37 took 8ms (in 19h 16m)\n  2026-11-15T11:43:05.754Z v1";
    assert_eq!(masked(text), "✓ run ID took SPAN (in SPAN SPAN)\n  TIME v1");
    assert_eq!(loose(text), "✓ run ID took SPAN (in SPAN)\nTIME v1");
}
