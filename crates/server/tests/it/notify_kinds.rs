//! Problems of time and of instances, and many at once, as the receiver of a webhook sees them.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::cli::data;
use crate::notify::{Got, Receiver};
use crate::server::{Folder, Server, eventually};

/// A channel, and a target with one place that is busy as long as the file `go` is missing.
fn config(port: u16, more: &str) -> String {
    format!(
        r#"
[[target]]
label = "busy"
type = "command"
argv = ["sh", "-c", "until test -e go; do sleep 0.05; done"]
concurrency = 1
[[target]]
label = "fragile"
type = "command"
argv = ["sh", "-c", "exit 1"]
[[notify]]
name = "hook"
type = "webhook"
url = "http://127.0.0.1:{port}/everbell"
summarize = 3
{more}
"#
    )
}

/// A time that is over before anybody looks, and not so long ago that the slot is missed.
fn soon() -> String {
    #[allow(clippy::disallowed_methods, reason = "the server has the time of this machine")]
    let now = jiff::Timestamp::now();
    (now + jiff::SignedDuration::from_secs(2)).to_string()
}

/// Waits for a message about a change of a kind.
fn until(receiver: &Receiver, change: &str, kind: &str) -> Value {
    let is_it =
        |got: &Got| got.body["type"] == format!("problem.{change}") && got.body["data"]["problem"]["kind"] == kind;
    let found = eventually(|| receiver.accepted().into_iter().find(is_it));
    found.unwrap_or_else(|| panic!("{change} {kind} never came, only {:?}", receiver.accepted())).body["data"].clone()
}

#[test]
fn skipped_late_and_long_runs_are_told_while_they_last() {
    let receiver = Receiver::start(&[]);
    let rule = r#"
[[rule]]
when = ["skipped", "late_start", "too_long", "recovered"]
jobs = { all = true }
starts_within = "1s"
takes_at_most = "1s"
to = ["hook"]
"#;
    let server = Server::with(&config(receiver.port, rule)).registered();
    server.job("long", &json!({ "target": "busy", "policies": { "timeout": "1h" } }));
    server.job("first", &json!({ "target": "fragile" }));
    let after = json!({ "job": "first", "on": "any", "manual": true });
    server.post("/jobs", &json!({ "jobKey": "second", "target": "busy", "after": after })).expect(201);
    server.post("/jobs/key:long/run-now", &json!({})).expect(202);
    let long = until(&receiver, "opened", "too_long");
    assert_eq!((&long["problem"]["jobKey"], &long["title"]), (&json!("long"), &json!("long takes too long")));
    assert_eq!(long["run"]["slotAt"], Value::Null, "the run that is at work");
    // The only place is taken, so this one waits.
    let soon = json!({ "jobKey": "late", "runAt": soon(), "target": "busy" });
    server.post("/jobs", &soon).expect(201);
    // So does this one, and the next of its slots is skipped.
    server.post("/jobs/key:first/run-now", &json!({})).expect(202);
    server.until("/runs?jobKey=second", |list| list["items"].as_array().is_some_and(|runs| runs.len() == 1));
    server.post("/jobs/key:first/run-now", &json!({})).expect(202);
    let late = until(&receiver, "opened", "late_start");
    assert_eq!(late["problem"]["jobKey"], "late");
    let skipped = until(&receiver, "opened", "skipped");
    assert_eq!(skipped["problem"]["jobKey"], "second");
    assert!(skipped["problem"]["reason"].as_str().unwrap().ends_with(" was still active"), "{skipped}");
    fs::write(server.folder.path().join("go"), "").unwrap();
    let over = until(&receiver, "recovered", "too_long");
    assert_eq!(over["problem"]["closedBecause"], "the run ended");
    until(&receiver, "recovered", "late_start");
    let opened = |kind: &str| {
        let is_it = |got: &&Got| got.body["type"] == "problem.opened" && got.body["data"]["problem"]["kind"] == kind;
        receiver.accepted().iter().filter(is_it).count()
    };
    assert_eq!(["too_long", "late_start", "skipped"].map(opened), [1, 1, 1], "{:?}", receiver.accepted());
}

#[test]
fn many_problems_at_once_are_one_message() {
    let receiver = Receiver::start(&[]);
    let server = Server::with(&config(receiver.port, "")).registered();
    for number in 0..5 {
        server.job(&format!("job-{number}"), &json!({ "target": "fragile" }));
        let started = server.post(&format!("/jobs/key:job-{number}/run-now"), &json!({})).expect(202);
        let path = format!("/runs/{}", started["run"]["id"].as_str().unwrap());
        server.until(&path, |run| run["status"] == "failed");
    }
    // From now on somebody asks.
    let rule = "[[rule]]\nwhen = [\"failed\", \"recovered\"]\njobs = { all = true }\nto = [\"hook\"]\n";
    fs::write(server.folder.path().join("everbell.toml"), config(receiver.port, rule)).unwrap();
    data(&server, &["reload"]);
    let told = receiver.until(1);
    let summary = &told[0].body["data"];
    assert_eq!((&summary["count"], &summary["problem"]), (&json!(5), &Value::Null), "{summary}");
    assert!(summary["title"].as_str().unwrap().starts_with("5 jobs are failing since "), "{summary}");
    let open = server.get("/problems?open=true").expect(200);
    assert_eq!(open["items"].as_array().unwrap().len(), 5);
    let deliveries = server.get("/notify/deliveries").expect(200);
    assert_eq!(deliveries["items"].as_array().unwrap().len(), 1, "{deliveries}");
}

#[test]
fn a_killed_instance_is_lost_and_its_successor_takes_its_place() {
    let receiver = Receiver::start(&[]);
    let rules = "[engine]\nlease = \"5s\"\n[[rule]]\nwhen = [\"instance_lost\", \"recovered\"]\nto = [\"hook\"]\n\
                 [[rule]]\nwhen = [\"failed\"]\njobs = { all = true }\nto = [\"hook\"]\n";
    let config = config(receiver.port, rules);
    let server = Server::postgres(&config).registered();
    let folder = Folder::new();
    fs::write(folder.path().join("everbell.toml"), &config).unwrap();
    let url = server.database_url();
    let mut other = Server::in_folder(folder, &[], &[("EVERBELL_DATABASE_URL", &url)]);
    let pid = other.pid();
    let is_other = |one: &&Value| one["pid"] == pid;
    let known = server.until("/instances", |list| list["items"].as_array().unwrap().iter().any(|one| is_other(&one)));
    let own = known["items"].as_array().unwrap().iter().find(is_other).unwrap()["id"].clone();
    // What happened before the first look is no news.
    server.job("nightly", &json!({ "target": "fragile" }));
    server.post("/jobs/key:nightly/run-now", &json!({})).expect(202);
    until(&receiver, "opened", "failed");
    assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
    other.ended();
    let about = |change: &str| {
        let is_it = |got: &Got| {
            got.body["type"] == format!("problem.{change}") && got.body["data"]["problem"]["instance"]["id"] == own
        };
        let found = eventually(|| receiver.accepted().into_iter().find(is_it));
        found.unwrap_or_else(|| panic!("{change} never came, only {:?}", receiver.accepted())).body["data"].clone()
    };
    let lost = about("opened");
    assert_eq!((&lost["problem"]["kind"], &lost["problem"]["jobKey"]), (&json!("instance_lost"), &Value::Null));
    let next = Server::in_folder(other.take_folder(), &[], &[("EVERBELL_DATABASE_URL", &url)]);
    assert_eq!(about("recovered")["problem"]["closedBecause"], "another instance took its place");
    drop(next);
}
