//! List, read, cancel, run again.

use serde_json::{Value, json};

use crate::server::{Server, time};
use crate::talk::Talk;

fn run_now(server: &Server, key: &str, status: &str) -> Value {
    let path = server.post(&format!("/jobs/key:{key}/run-now"), &json!({})).headers["location"].clone();
    server.until(&path, |run| run["status"] == status)
}

#[test]
fn a_run_tells_what_happened_and_why() {
    let server = Server::start();
    let job = server.job("bad", &json!({ "target": "fail" }));
    let run = run_now(&server, "bad", "failed");
    assert_eq!((&run["jobId"], &run["jobKey"], &run["jobVersion"]), (&job["id"], &json!("bad"), &json!(1)));
    assert_eq!(run["jobDefinitionId"], run["jobId"], "the old name stays");
    assert_eq!((&run["failureCode"], &run["failureDetails"]["exitCode"]), (&json!("exit_code"), &json!(1)));
    assert!(run["failureMessage"].as_str().unwrap().contains('1'), "{run}");
    for name in ["startedAt", "finishedAt", "claimedAt", "runnerInstanceId", "createdAt", "updatedAt"] {
        assert!(run[name].is_string(), "{name}: {run}");
    }
    assert!(run["durationMs"].is_number() && run["lagMs"].is_number() && run["attempt"] == 1);
    assert_eq!(server.get("/jobs/key:bad").expect(200)["lastRun"]["failureCode"], "exit_code");
    assert_eq!(server.get("/jobs/key:bad").expect(200)["consecutiveFailures"], 1);
    server.get("/runs/nonsense").problem(404, "NotFound");
    server.get("/runs/00000000-0000-7000-8000-000000000000").problem(404, "NotFound");
}

#[test]
fn what_a_run_prints_is_told_while_it_is_at_work() {
    told_while_at_work(&Server::with(&Talk::targets()));
}

#[test]
fn what_a_run_prints_is_told_while_it_is_at_work_on_postgres() {
    told_while_at_work(&Server::postgres(&Talk::targets()));
}

fn told_while_at_work(server: &Server) {
    let (talk, run) = Talk::begin(server, "chatty");
    let path = format!("/runs/{}", run["id"].as_str().unwrap());
    let run = server.until(&path, |run| run["output"] == "one 1\n");
    assert_eq!((&run["status"], &run["nextAttemptAt"]), (&json!("running"), &Value::Null));
    talk.go_on_after("one");
    server.until(&path, |run| run["output"] == "one 1\ntwo 1\n");
    assert!(server.get("/runs").expect(200)["items"][0].get("output").is_none(), "a list is short");
    talk.shall_fail();
    talk.go_on_after("two");
    let run = server.until(&path, |run| run["status"] == "pending");
    assert_eq!(run["output"], "one 1\ntwo 1\nthree\n", "what the last attempt said");
    assert!(time(&run["nextAttemptAt"]) > time(&run["startedAt"]), "{run}");
    server.post(&format!("{path}/cancel"), &json!({})).expect(202);
    let run = server.get(&path).expect(200);
    assert_eq!((&run["status"], &run["output"]), (&json!("canceled"), &json!("one 1\ntwo 1\nthree\n")));
    assert_eq!(run["nextAttemptAt"], Value::Null);
}

#[test]
fn lists_are_filtered_and_cut_into_pages() {
    let server = Server::start();
    let good = server.job("good", &json!({}));
    server.job("bad", &json!({ "target": "fail" }));
    for _ in 0..3 {
        run_now(&server, "good", "succeeded");
    }
    run_now(&server, "bad", "failed");
    let count = |query: &str| server.get(&format!("/runs?{query}")).expect(200)["items"].as_array().unwrap().len();
    let id = good["id"].as_str().unwrap();
    for (query, expected) in [
        (String::new(), 4),
        ("status=failed,skipped".to_owned(), 1),
        ("jobKey=good".to_owned(), 3),
        (format!("jobId={id}"), 3),
        ("target=fail".to_owned(), 1),
        ("failureCode=exit_code".to_owned(), 1),
        ("triggerType=manual".to_owned(), 4),
        ("triggerType=scheduled".to_owned(), 0),
        ("triggerType=after".to_owned(), 0),
        ("from=2040-01-01T00:00:00Z".to_owned(), 0),
        ("to=2040-01-01T00:00:00Z&limit=3".to_owned(), 3),
        ("orgId=acme".to_owned(), 0),
    ] {
        assert_eq!(count(&query), expected, "{query}");
    }
    let instance = server.get("/runs").expect(200)["items"][0]["runnerInstanceId"].as_str().unwrap().to_owned();
    assert_eq!(count(&format!("instanceId={instance}")), 4);
    assert_eq!(server.get("/runs?jobId=x&from=soon").faults().len(), 1);

    let mut seen = std::collections::BTreeSet::new();
    let mut path = "/runs?limit=1".to_owned();
    while let Some(cursor) = {
        let page = server.get(&path).expect(200);
        page["items"].as_array().unwrap().iter().for_each(|run| assert!(seen.insert(run["id"].to_string())));
        page["nextCursor"].as_str().map(str::to_owned)
    } {
        path = format!("/runs?limit=1&cursor={cursor}");
    }
    assert_eq!(seen.len(), 4);
}

#[test]
fn a_run_is_canceled_and_run_again() {
    let server = Server::start();
    server.job("slow", &json!({ "target": "sleep", "payload": {"n": 1} }));
    let run = run_now(&server, "slow", "running");
    let path = format!("/runs/{}", run["id"].as_str().unwrap());
    assert_eq!(
        server.post(&format!("{path}/cancel"), &json!({ "reason": "too slow" })).expect(202)["outcome"],
        "requested"
    );
    let run = server.until(&path, |run| run["status"] == "canceled");
    let problem = server.post(&format!("{path}/cancel"), &json!({})).problem(409, "Conflict");
    assert_eq!(problem["runStatus"], "canceled");
    let again = server.post(&format!("{path}/rerun"), &json!({})).expect(202);
    assert_eq!((&again["outcome"], &again["run"]["payloadSnapshot"]), (&json!("started"), &json!({"n": 1})));
    assert_ne!(again["run"]["id"], run["id"]);
}

#[test]
fn a_target_is_tried_without_a_job() {
    let server = Server::start();
    // It is served as soon as the instance has said so.
    server.until("/targets", |targets| targets["items"].as_array().unwrap().len() == 3);
    let reply = server.post("/targets/print/try", &json!({ "payload": {"dry": true} }));
    assert_eq!(reply.expect(202)["run"]["triggerType"], "ad_hoc");
    let run = server.until(&reply.headers["location"], |run| run["status"] == "succeeded");
    assert_eq!((&run["jobKey"], &run["payloadSnapshot"]), (&Value::Null, &json!({"dry": true})));
    server.post("/targets/nobody/try", &json!({})).problem(404, "NotFound");
    let again = server.post(&format!("/runs/{}/rerun", run["id"].as_str().unwrap()), &json!({}));
    assert_eq!(again.expect(202)["run"]["payloadSnapshot"], json!({"dry": true}));
}
