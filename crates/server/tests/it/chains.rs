//! Chains, as the targets see them.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::server::{Server, eventually};

/// Each run writes a line; that of the second job names the run before it. The jobs are declared in the wrong order.
const CONFIG: &str = r#"
[[target]]
label = "extract"
type = "command"
argv = ["sh", "-c", "echo $EVERBELL_RUN_ID >> extracted"]
[[target]]
label = "load"
type = "command"
argv = ["sh", "-c", "echo $EVERBELL_UPSTREAM_JOB_KEY $EVERBELL_UPSTREAM_STATUS $EVERBELL_UPSTREAM_RUN_ID >> loaded"]
[[job]]
job_key = "load"
target = "load"
after = { job = "extract" }
policies.overlap = "allow"
[[job]]
job_key = "extract"
target = "extract"
cron_expression = "* * * * * *"
policies.overlap = "allow"
"#;

fn items(page: &Value) -> &Vec<Value> {
    page["items"].as_array().unwrap()
}

#[test]
fn each_run_starts_the_next_job_once_although_the_server_is_killed() {
    for server in [Server::with(CONFIG), Server::postgres(CONFIG)] {
        let loaded = |server: &Server| fs::read_to_string(server.folder.path().join("loaded")).unwrap_or_default();
        let at_least = |server: &Server, lines: usize| {
            eventually(|| (loaded(server).lines().count() >= lines).then_some(())).expect("the chain does not go on");
        };
        at_least(&server, 2);
        let server = server.restarted(|_| {});
        let before = loaded(&server).lines().count();
        at_least(&server, before + 2);
        server.patch("/jobs/key:extract/pause", &json!({ "reason": "enough was seen" })).expect(200);
        for status in ["running", "pending"] {
            server.until(&format!("/runs?status={status}"), |page| items(page).is_empty());
        }
        let loads = server.get("/runs?jobKey=load&limit=200").expect(200);
        let causes: Vec<&str> = items(&loads).iter().map(|run| run["upstreamRunId"].as_str().unwrap()).collect();
        let different: BTreeSet<&str> = causes.iter().copied().collect();
        assert_eq!(different.len(), causes.len(), "a run started two");
        let ended = server.get("/runs?jobKey=extract&status=succeeded&limit=200").expect(200);
        let succeeded: BTreeSet<&str> = items(&ended).iter().map(|run| run["id"].as_str().unwrap()).collect();
        assert_eq!(different, succeeded, "each success started a run");
        let log = loaded(&server);
        let lines: BTreeSet<&str> = log.lines().collect();
        assert_eq!(lines.len(), log.lines().count(), "the target was called twice for a run: {log}");
        for run in items(&loads).iter().filter(|run| run["status"] == "succeeded") {
            let line = format!("extract succeeded {}", run["upstreamRunId"].as_str().unwrap());
            assert!(lines.contains(line.as_str()), "{line}: {log}");
        }
        let cause = causes[0];
        let run = server.get(&format!("/runs/{cause}")).expect(200);
        assert_eq!(run["startedRuns"][0]["jobKey"], "load", "{run}");
        assert_eq!(items(&loads)[0]["triggerType"], "after");
    }
}

#[test]
fn a_chain_is_created_edited_and_refused_by_the_api() {
    let server = Server::start();
    server.job("extract", &json!({}));
    let post = |body: &Value| server.post("/jobs", body);
    let load =
        json!({ "jobKey": "load", "target": "print", "after": { "job": "extract", "on": "any", "manual": true } });
    let created = post(&load).expect(201);
    assert_eq!(created["after"], load["after"], "{created}");
    assert_eq!((&created["scheduleType"], &created["cronExpression"]), (&json!("after"), &Value::Null));
    assert_eq!(created["scheduleText"], "After each run of extract, also one by hand");
    assert_eq!(created["nextRunAt"], Value::Null);

    let with = |more: &Value| {
        let mut body = json!({ "jobKey": "other", "target": "print", "after": { "job": "extract" } });
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        post(&body).problem(400, "InvalidInput")["errors"].to_string()
    };
    for (more, expected) in [
        (json!({ "cronExpression": "@daily" }), "/cronExpression"),
        (json!({ "runAt": "2099-01-01T00:00:00Z" }), "/runAt"),
        (json!({ "scheduleType": "recurring" }), "/scheduleType"),
        (json!({ "startAt": "2099-01-01T00:00:00Z" }), "/startAt"),
        (json!({ "scope": "per_org" }), "/scope"),
        (json!({ "policies": { "jitter": "5s" } }), "/policies/jitter"),
        (json!({ "after": { "job": "other" } }), "cannot start after itself"),
        (json!({ "after": { "job": "nobody" } }), "there is no current job `nobody`"),
        (json!({ "after": { "job": "extract", "on": "sometimes" } }), "/after/on"),
        (json!({ "after": [{ "job": "extract" }] }), "/after"),
    ] {
        let errors = with(&more);
        assert!(errors.contains(expected), "{more}: {errors}");
    }
    let closing = server.patch("/jobs/key:extract", &json!({ "after": { "job": "load" } }));
    let errors = closing.problem(400, "InvalidInput")["errors"].to_string();
    assert!(errors.contains("would close a circle: `extract` starts after `load` starts after `extract`"), "{errors}");

    let edited = server
        .patch("/jobs/key:load", &json!({ "after": { "job": "extract", "on": "failure", "manual": null } }))
        .expect(200);
    assert_eq!(edited["after"], json!({ "job": "extract", "on": "failure", "manual": false }), "{edited}");
    let clock = server.patch("/jobs/key:load", &json!({ "cronExpression": "@daily" })).expect(200);
    assert_eq!((&clock["after"], &clock["scheduleType"]), (&Value::Null, &json!("recurring")));
}

#[test]
fn a_job_without_a_clock_is_explained_by_the_run_that_started_it() {
    let server = Server::start();
    server.job("extract", &json!({}));
    let load = json!({ "jobKey": "load", "target": "print", "after": { "job": "extract", "manual": true } });
    server.post("/jobs", &load).expect(201);
    let explain = || server.get("/jobs/key:load/explain?at=2099-01-01T00:00:00Z").expect(200);
    let waiting = explain();
    assert_eq!((&waiting["outcome"], &waiting["run"]), (&json!("following"), &Value::Null), "{waiting}");
    let detail = waiting["detail"].as_str().unwrap();
    assert!(detail.contains("it starts after each successful run of extract, also one by hand"), "{detail}");
    assert!(detail.contains("nothing had started it. extract had no run."), "{detail}");

    let started = server.post("/jobs/key:extract/run-now", &json!({})).expect(202);
    let cause = started["run"]["id"].as_str().unwrap();
    server.until("/runs?jobKey=load&status=succeeded", |page| items(page).len() == 1);
    let explained = explain();
    assert_eq!(explained["run"]["upstreamRunId"], cause, "{explained}");
    let detail = explained["detail"].as_str().unwrap();
    assert!(detail.contains(&format!("which run {cause} started at ")), "{detail}");
    assert!(detail.contains(&format!("The last run of extract was {cause}; its status is succeeded.")), "{detail}");
    let before = server.get("/jobs/key:load/explain?at=2020-01-01T00:00:00Z").expect(200);
    assert_eq!(before["outcome"], "before_creation", "{before}");
}
