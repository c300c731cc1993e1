//! Statistics as operators see them: a real server, with jobs that succeed, fail and are slow.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::collections::BTreeMap;

use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::server::{Server, eventually, quiet};
use crate::ui::visitor::Visitor;

const TARGETS: &str = r#"
[[target]]
label = "good"
type = "command"
argv = ["true"]
[[target]]
label = "bad"
type = "command"
argv = ["sh", "-c", "exit 3"]
[[target]]
label = "slow"
type = "command"
argv = ["sleep", "1.2"]
"#;

/// Runs `everbell`, and returns its output.
fn everbell(server: &Server, args: &[&str]) -> String {
    let mut command = quiet(server.folder.path());
    command.args(args).args(["--server", &format!("http://{}", server.address)]).env("EVERBELL_TOKEN", &server.token);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a job by hand so many times, and waits for each end.
fn run(server: &Server, key: &str, times: usize) {
    for _ in 0..times {
        let body = json!({});
        let run = server.post(&format!("/jobs/key:{key}/run-now"), &body).expect(202);
        let path = format!("/runs/{}", run["run"]["id"].as_str().unwrap());
        server.until(&path, |run| run["finishedAt"].is_string());
    }
}

/// Runs, failures and time spent of each job, from the list of runs.
fn listed(server: &Server) -> BTreeMap<String, (u64, u64, i64)> {
    let runs = server.get("/runs?limit=200").expect(200);
    let mut counted: BTreeMap<String, (u64, u64, i64)> = BTreeMap::new();
    for run in runs["items"].as_array().unwrap().iter().filter(|run| run["finishedAt"].is_string()) {
        let (runs, failures, time) = counted.entry(run["jobKey"].as_str().unwrap().to_owned()).or_default();
        *runs += 1;
        *failures += u64::from(run["status"] == "failed");
        *time += run["durationMs"].as_i64().unwrap();
    }
    counted
}

fn keys(top: &Value) -> Vec<&str> {
    top["items"].as_array().unwrap().iter().map(|item| item["jobKey"].as_str().unwrap_or("one-time")).collect()
}

fn top_agrees_with_the_list_of_runs(server: &Server) {
    for key in ["good", "bad", "slow"] {
        let body = json!({"jobKey": key, "target": key, "cronExpression": "0 0 1 1 *", "labels": {"is": key}});
        server.post("/jobs", &body).expect(201);
    }
    run(server, "good", 4);
    run(server, "bad", 2);
    run(server, "slow", 1);
    let top: Value = serde_json::from_str(&everbell(server, &["top", "--by", "runs", "--json"])).unwrap();
    assert_eq!(keys(&top), ["good", "bad", "slow"], "{top}");
    assert_eq!((&top["complete"], &top["by"]), (&json!(true), &json!("runs")));
    for filter in [&["--target", "bad", "--target", "none"][..], &["--failing"]] {
        let args = [&["top", "--json"][..], filter].concat();
        let top: Value = serde_json::from_str(&everbell(server, &args)).unwrap();
        assert_eq!(keys(&top), ["bad"], "{filter:?}");
    }
    let page = Visitor::admin(server).page("/top?target=bad&failing=true");
    assert!(page.contains("clear-target") && page.contains("clear-failing"), "{page}");
    assert!(page.contains("data-row=\"bad\"") && !page.contains("data-row=\"good\""), "{page}");
    let listed = listed(server);
    for item in top["items"].as_array().unwrap() {
        let (runs, failures, time) = listed[item["jobKey"].as_str().unwrap()];
        assert_eq!((&item["runs"], &item["failed"]), (&json!(runs), &json!(failures)), "{item}");
        // Each duration is rounded down to a millisecond before it is listed.
        let spent = item["timeSpentMs"].as_i64().unwrap();
        assert!((time..=time + runs as i64).contains(&spent), "{item}: {time}");
        assert_eq!(item["meanDelayMs"], Value::Null, "runs by hand are never late");
    }
    for (by, expected) in [("time", "slow"), ("p95", "slow"), ("failures", "bad")] {
        let top = server.get(&format!("/top?by={by}&window=7d&limit=1")).expect(200);
        assert_eq!(keys(&top), [expected], "{by}: {top}");
    }
    assert_eq!(keys(&server.get("/top?by=failures").expect(200)), ["bad"], "zeros are left out");
    assert_eq!(keys(&server.get("/top?label=is%3Dgood&window=30d").expect(200)), ["good"]);
    let item = &server.get("/top?label=is%3Dbad").expect(200)["items"][0];
    assert_eq!((&item["failureRate"], &item["succeeded"]), (&json!(1.0), &json!(0)));
    let slow = &server.get("/top?by=p95").expect(200)["items"][0];
    assert!(slow["p95Ms"].as_i64().unwrap() >= 1_200 && slow["p95Ms"] == slow["longestMs"], "{slow}");

    // One-time jobs have a key each, and are counted by their target.
    let soon = (everbell_cli::clock::wall() + SignedDuration::from_secs(2)).to_string();
    let body = json!({"jobKey": "once", "target": "good", "runAt": soon});
    server.post("/jobs", &body).expect(201);
    server.until("/top?by=runs", |top| keys(top).contains(&"one-time"));
    let shown = everbell(server, &["top", "--window", "7d"]);
    assert!(shown.contains("slow") && shown.contains("good"), "{shown}");
    assert_eq!(everbell(server, &["top", "--by", "failures", "-o", "name"]), "bad\n");
    assert_eq!(server.get("/top?by=luck&window=1y&limit=0").faults(), ["by", "limit", "window"]);

    // A purged job is gone from the counters too.
    server.post("/jobs/key:bad/purge", &json!({})).expect(200);
    server.until("/top?by=runs", |top| !keys(top).contains(&"bad"));
}

#[test]
fn top_agrees_with_the_list_of_runs_on_sqlite() {
    top_agrees_with_the_list_of_runs(&Server::with(TARGETS).registered());
}

#[test]
fn top_agrees_with_the_list_of_runs_on_postgres() {
    top_agrees_with_the_list_of_runs(&Server::postgres(TARGETS).registered());
}

#[test]
fn pages_show_the_jobs_that_fail_and_cost_most() {
    let server = Server::with(TARGETS).registered();
    let visitor = Visitor::admin(&server);
    let empty = visitor.page("/top");
    assert!(empty.contains("Nothing to show"), "{empty}");
    assert!(!visitor.page("/").contains("top-jobs"), "no card without runs");
    for key in ["good", "bad"] {
        server.post("/jobs", &json!({"jobKey": key, "target": key, "cronExpression": "0 0 1 1 *"})).expect(201);
    }
    // Counters that took long to read are shown again for a while.
    let shows = |path: &str, parts: &[&str]| {
        let found = eventually(|| {
            let page = visitor.page(path);
            parts.iter().all(|part| page.contains(part)).then_some(page)
        });
        found.unwrap_or_else(|| panic!("{path} lacks {parts:?}: {}", visitor.page(path)))
    };
    run(&server, "good", 2);
    shows("/", &["Most time spent in 24 hours", "href=\"/top\""]);
    run(&server, "bad", 1);
    shows("/", &["Most failures in 24 hours"]);
    let page = shows("/top?by=failures&window=7d", &["href=\"/jobs/bad\"", "aria-sort=\"descending\"", "100.0%"]);
    assert!(!page.contains("href=\"/jobs/good\""), "{page}");
    shows("/jobs/good", &["100% of 2 runs succeeded in 7 days"]);
}
