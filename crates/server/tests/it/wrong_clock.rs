//! A wrong clock of the machine, seen from outside. The Debian package `faketime` makes it wrong while time passes as ever.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::fs;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::server::{Folder, Server, TARGETS, time};

const SUCCEEDED: &str = "/runs?status=succeeded&limit=200";

fn library() -> PathBuf {
    let folders = fs::read_dir("/usr/lib").unwrap().flatten().map(|entry| entry.path());
    let found = folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1")).find(|path| path.is_file());
    found.expect("libfaketime is missing: install the Debian package `faketime`")
}

/// Sets the clock of servers in this folder.
fn set_clock(folder: &Path, offset: &str) {
    fs::write(folder.join("clock.new"), format!("{offset}\n")).unwrap();
    fs::rename(folder.join("clock.new"), folder.join("clock")).unwrap();
}

pub(crate) fn start(folder: Folder, offset: &str) -> Server {
    set_clock(folder.path(), offset);
    fs::write(folder.path().join("everbell.toml"), TARGETS).unwrap();
    let (library, clock) = (library(), folder.path().join("clock"));
    let env = [
        ("LD_PRELOAD", library.to_str().unwrap()),
        ("FAKETIME_TIMESTAMP_FILE", clock.to_str().unwrap()),
        ("FAKETIME_NO_CACHE", "1"),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ("NO_FAKE_STAT", "1"),
    ];
    Server::in_folder(folder, &[], &env)
}

/// Kills a server and starts another one in its folder.
pub(crate) fn restart(server: Server, offset: &str) -> Server {
    let token = server.token.clone();
    let mut server = start(server.take_folder(), offset);
    server.token = token;
    server
}

/// Waits for a run whose slot is as wanted.
fn until_run(server: &Server, wanted: impl Fn(Timestamp) -> bool) -> Value {
    let found =
        |page: &Value| page["items"].as_array().unwrap().iter().find(|run| wanted(time(&run["slotAt"]))).cloned();
    let page = server.until(SUCCEEDED, |page| found(page).is_some());
    found(&page).unwrap()
}

#[test]
fn a_clock_that_was_ahead_silences_no_schedule_and_deletes_no_history() {
    let server = start(Folder::new(), "+0");
    server.job("each-second", &json!({ "cronExpression": "* * * * * *" }));
    let first = until_run(&server, |_| true);
    let begun = time(&first["slotAt"]);
    let ahead = begun + SignedDuration::from_hours(399 * 24);

    let server = restart(server, "+400d");
    until_run(&server, |slot| slot > ahead);

    let server = restart(server, "+0");
    let last = begun.max(time(&server.get("/status").expect(200)["now"]));
    until_run(&server, |slot| slot > last && slot < ahead);
    server.get(&format!("/runs/{}", first["id"].as_str().unwrap())).expect(200);
    server.until_logged("armed again from now");
    server.until("/audit", |page| {
        page["items"].as_array().unwrap().iter().any(|entry| entry["action"] == "timers.rearmed")
    });
}

#[test]
fn a_clock_that_is_set_back_stops_neither_schedules_nor_timeouts() {
    let server = start(Folder::new(), "+0");
    server.job("each-second", &json!({ "cronExpression": "* * * * * *" }));
    let begun = time(&until_run(&server, |_| true)["slotAt"]);
    server.job("long", &json!({ "target": "sleep", "policies": { "timeout": "2s" } }));
    let long = server.post("/jobs/key:long/run-now", &json!({})).headers["location"].clone();
    server.until(&long, |run| run["status"] == "running");
    set_clock(server.folder.path(), "-3600");
    server.until(&long, |run| run["status"] == "failed");
    until_run(&server, |slot| slot < begun - SignedDuration::from_mins(50));
    let ready = server.raw("GET", "/readyz?verbose", &[], b"");
    assert_eq!(ready.status, 200, "{}", ready.text);
    assert!(ready.text.contains("it was set back by 3"), "{}", ready.text);
}
