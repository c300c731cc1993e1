//! Chains, as the targets see them.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::cli::everbell;
use crate::server::{Server, eventually};

/// Each run writes a line; that of the second job names the run before it. The jobs are declared in the wrong order.
/// A run of the server that is killed goes on once its lease is over.
const CONFIG: &str = r#"
[engine]
lease = "12s"
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
    assert_eq!(created["scheduleText"], "After each run of extract, including manual runs");
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
        (json!({ "after": [] }), "/after"),
        (json!({ "after": [{ "job": "extract" }, { "job": "nobody" }] }), "there is no current job `nobody`"),
        (json!({ "after": [{ "job": "extract" }, { "job": "extract" }] }), "names `extract` twice"),
        (json!({ "after": [{ "job": "extract" }, { "job": "other" }] }), "cannot start after itself"),
        (json!({ "after": [{ "job": "extract" }, { "on": "any" }] }), "/after/1/job"),
        (json!({ "after": [{ "job": "extract" }, { "job": "load" }], "afterWithin": "10s" }), "/afterWithin"),
        (json!({ "afterWithin": "1h" }), "/afterWithin"),
    ] {
        let errors = with(&more);
        assert!(errors.contains(expected), "{more}: {errors}");
    }
    let closing = server.patch("/jobs/key:extract", &json!({ "after": { "job": "load" } }));
    let errors = closing.problem(400, "InvalidInput")["errors"].to_string();
    assert!(errors.contains("would create a cycle: `extract` starts after `load` starts after `extract`"), "{errors}");

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
    assert!(detail.contains("it starts after each successful run of extract, including manual runs"), "{detail}");
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

/// Two jobs of the same second, and one that waits for both and writes the jobs before it.
const FAN_IN: &str = r#"
[[target]]
label = "work"
type = "command"
argv = ["true"]
[[target]]
label = "report"
type = "command"
argv = ["sh", "-c", "echo \"$EVERBELL_UPSTREAMS\" >> reported"]
[[job]]
job_key = "report"
target = "report"
after = [{ job = "orders" }, { job = "prices", on = "any" }]
after_within = "1h"
policies.overlap = "allow"
[[job]]
job_key = "orders"
target = "work"
cron_expression = "* * * * * *"
policies.overlap = "allow"
[[job]]
job_key = "prices"
target = "work"
cron_expression = "*/2 * * * * *"
policies.overlap = "allow"
"#;

#[test]
fn a_job_waits_for_runs_of_the_same_slot_although_the_server_is_killed() {
    for server in [Server::with(FAN_IN), Server::postgres(FAN_IN)] {
        let reported = |server: &Server| fs::read_to_string(server.folder.path().join("reported")).unwrap_or_default();
        let at_least = |server: &Server, lines: usize| {
            eventually(|| (reported(server).lines().count() >= lines).then_some(())).expect("the chain does not go on");
        };
        at_least(&server, 1);
        let server = server.restarted(|_| {});
        let before = reported(&server).lines().count();
        at_least(&server, before + 2);
        for job in ["orders", "prices"] {
            server.patch(&format!("/jobs/key:{job}/pause"), &json!({ "reason": "enough was seen" })).expect(200);
        }
        for status in ["running", "pending"] {
            server.until(&format!("/runs?status={status}"), |page| items(page).is_empty());
        }
        let slot = |id: &Value| server.get(&format!("/runs/{}", id.as_str().unwrap())).expect(200)["slotAt"].clone();
        let mut slots = BTreeSet::new();
        let reports = server.get("/runs?jobKey=report&limit=200").expect(200);
        for run in items(&reports) {
            let causes: Vec<Value> = run["upstreamRunIds"].as_array().unwrap().iter().map(slot).collect();
            assert_eq!((causes.len(), &causes[0]), (2, &causes[1]), "of one slot: {run}");
            assert!(slots.insert(causes[0].to_string()), "a slot started two runs: {run}");
            assert_eq!(run["upstreamRunId"], run["upstreamRunIds"][0]);
        }
        let runs = server.get("/runs?jobKey=prices&limit=200").expect(200);
        let of_prices: BTreeSet<String> = items(&runs).iter().map(|run| run["slotAt"].to_string()).collect();
        assert!(slots.is_subset(&of_prices), "{slots:?} {of_prices:?}");
        for line in reported(&server).lines() {
            let upstreams: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            let mut keys: Vec<&str> =
                upstreams.as_array().unwrap().iter().map(|run| run["jobKey"].as_str().unwrap()).collect();
            keys.sort_unstable();
            assert_eq!(keys, ["orders", "prices"], "{line}");
        }
        let chain = server.get("/jobs/key:orders/chain").expect(200);
        let keys: Vec<&Value> = chain["jobs"].as_array().unwrap().iter().map(|job| &job["jobKey"]).collect();
        assert_eq!(keys, ["orders", "prices", "report"], "{chain}");
        assert_eq!(chain["jobs"][2]["after"][1]["on"], "any", "{chain}");
        let groups = server.get("/jobs/key:report/chain").expect(200)["groups"].clone();
        let started = |group: &Value| group["startedRunId"].is_string();
        assert!(groups.as_array().unwrap().iter().any(started), "{groups}");
        let open = groups.as_array().unwrap().iter().find(|group| group["closedAt"].is_null());
        let open = open.expect("seconds of orders that prices has not");
        assert_eq!(open["missing"], json!(["prices has not ended"]), "{open}");
    }
}

#[test]
fn a_job_after_several_others_is_created_edited_and_explained() {
    let server = Server::start();
    for key in ["orders", "prices"] {
        server.job(key, &json!({}));
    }
    let by_hand = |key: &str| json!({ "job": key, "on": "success", "manual": true });
    let body = json!({
        "jobKey": "report", "target": "print", "after": [by_hand("orders"), by_hand("prices")],
        "afterGroup": "local_date", "timezone": "Europe/Paris",
    });
    let created = server.post("/jobs", &body).expect(201);
    assert_eq!(created["after"], body["after"], "{created}");
    assert_eq!((&created["afterGroup"], &created["afterWithin"]), (&json!("local_date"), &json!("PT24H")));
    let text = "When orders and prices have succeeded on the same local date, at most 24h after the first";
    assert_eq!((&created["scheduleText"], &created["nextRunAt"]), (&json!(text), &Value::Null));

    let explain = || {
        let explained = server.get("/jobs/key:report/explain?at=2099-01-01T00:00:00Z").expect(200);
        explained["detail"].as_str().unwrap().to_owned()
    };
    server.post("/jobs/key:orders/run-now", &json!({})).expect(202);
    server.until("/runs?jobKey=orders&status=succeeded", |page| items(page).len() == 1);
    let waiting = explain();
    assert!(waiting.contains("it waits until ") && waiting.contains(": prices has not ended."), "{waiting}");
    assert!(waiting.contains("nothing had started it.") && waiting.contains("prices had no run."), "{waiting}");
    server.post("/jobs/key:prices/run-now", &json!({})).expect(202);
    let reports = server.until("/runs?jobKey=report&status=succeeded", |page| items(page).len() == 1);
    let causes = items(&reports)[0]["upstreamRunIds"].as_array().unwrap().clone();
    let done = explain();
    let named = format!("which runs {} and {} started at ", causes[0].as_str().unwrap(), causes[1].as_str().unwrap());
    assert!(done.contains(&named), "{done}");

    let single = server.patch("/jobs/key:report", &json!({ "after": { "job": "orders" } })).expect(200);
    assert_eq!((&single["after"]["job"], &single["afterGroup"]), (&json!("orders"), &Value::Null), "{single}");
    let again = server.patch("/jobs/key:report", &json!({ "after": [{ "job": "orders" }, { "job": "prices" }] }));
    assert_eq!(again.expect(200)["afterGroup"], "slot");
    let closing = server.patch("/jobs/key:prices", &json!({ "after": [{ "job": "orders" }, { "job": "report" }] }));
    let errors = closing.problem(400, "InvalidInput")["errors"].to_string();
    assert!(errors.contains("would create a cycle: `prices` starts after `report` starts after `prices`"), "{errors}");
}

#[test]
fn the_command_line_creates_and_shows_a_chain() {
    let server = Server::start();
    for key in ["orders", "prices"] {
        server.job(key, &json!({}));
    }
    let create = ["jobs", "create", "report", "--target", "print", "--after", "orders", "--after", "prices"];
    let with = |more: &[&str]| everbell(&server, &[&create[..], more].concat());
    let uneven = with(&["--after-on", "any", "--after-on", "any", "--after-on", "any"]);
    assert!(uneven.code == Some(2) && uneven.stderr.contains("--after-on is given 3 times"), "{}", uneven.stderr);
    let options = ["--after-on", "success", "--after-on", "any", "--after-within", "6h", "--after-group", "local_date"];
    let made = with(&options);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let job = server.get("/jobs/key:report").expect(200);
    assert_eq!((&job["after"][1]["on"], &job["afterWithin"]), (&json!("any"), &json!("PT6H")), "{job}");
    let shown = everbell(&server, &["jobs", "show", "report"]).stdout;
    for part in ["chain\torders\n", "\tprices\n", "\treport (this job) ← orders succeeds and prices ends\n"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let exported = everbell(&server, &["jobs", "export", "report"]).stdout;
    assert!(exported.contains("after_within = ") && exported.contains("after_group = \"local_date\""), "{exported}");
    let file = server.folder.path().join("jobs.toml");
    fs::write(&file, &exported).unwrap();
    let again = everbell(&server, &["jobs", "apply", "-f", file.to_str().unwrap(), "--dry-run"]);
    assert_eq!(again.stdout, "unchanged: 1 job\n", "{exported}{}", again.stderr);
}
