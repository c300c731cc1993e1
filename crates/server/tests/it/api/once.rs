//! A request that changed something is never carried out twice, also if the server died before it answered.

use std::process::Command;
use std::time::Duration;

use everbell_store::testing::execute;
use serde_json::{Value, json};

use crate::server::{Response, Server, TARGETS};

fn post(server: &Server, path: &str, key: &str, body: &Value) -> Response {
    let auth = format!("Bearer {}", server.token);
    server.request("POST", path, &[("authorization", &auth), ("idempotency-key", key)], body.to_string().as_bytes())
}

/// Simulates a server that dies after a change and before its response is stored.
fn lose_answers(server: &Server) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(execute(
        &server.database_url(),
        "update everbell.requests set status = null, body = null where deed is not null",
    ));
}

/// Sends the same request before and after its answer was lost, and gives both answers.
#[track_caller]
fn twice(server: &Server, path: &str, body: &Value, status: u16) -> (Value, Value) {
    let key = format!("once {path}");
    let first = post(server, path, &key, body).expect(status);
    lose_answers(server);
    let again = post(server, path, &key, body);
    assert!(!again.headers.contains_key("idempotency-replayed"), "{path}: the answer was not lost");
    let again = again.expect(status);
    let replayed = post(server, path, &key, body);
    assert_eq!(replayed.headers["idempotency-replayed"], "true", "{path}: now it is remembered");
    (first, again)
}

fn count(server: &Server, path: &str) -> usize {
    server.get(path).expect(200)["items"].as_array().unwrap().len()
}

fn check(server: &Server) {
    let body = json!({ "jobKey": "daily", "target": "print", "cronExpression": "0 0 1 1 *" });
    let (first, again) = twice(server, "/jobs", &body, 201);
    assert_eq!((&first["id"], &first["version"]), (&again["id"], &again["version"]));
    assert_eq!(count(server, "/jobs"), 1);

    let (first, again) = twice(server, "/jobs/key:daily/run-now", &json!({ "force": true }), 202);
    assert_eq!(first["run"]["id"], again["run"]["id"]);
    let (first, again) = twice(server, "/targets/print/try", &json!({}), 202);
    assert_eq!(first["id"], again["id"]);
    let run = server.get("/runs?jobKey=daily").expect(200)["items"][0]["id"].as_str().unwrap().to_owned();
    server.until(&format!("/runs/{run}"), |run| run["status"] == "succeeded");
    let (first, again) = twice(server, &format!("/runs/{run}/rerun"), &json!({}), 202);
    assert_eq!(first["run"]["id"], again["run"]["id"]);
    assert_eq!(count(server, "/runs?jobKey=daily"), 2);

    let (first, again) = twice(server, "/jobs/key:daily/pause", &json!({ "reason": "SMTP down" }), 200);
    assert_eq!((&first["revision"], &first["pausedAt"]), (&again["revision"], &again["pausedAt"]));
    let (first, again) = twice(server, "/jobs/key:daily/resume", &json!({}), 200);
    assert_eq!((&first["revision"], &first["resumed"]), (&again["revision"], &again["resumed"]));
    let (first, again) = twice(server, "/jobs/key:daily/skip-next", &json!({ "count": 2 }), 200);
    assert_eq!((&first["revision"], &first["nextRunAt"]), (&again["revision"], &again["nextRunAt"]));
    let (first, again) = twice(server, "/jobs/key:daily/new-version", &json!({ "description": "next" }), 201);
    assert_eq!((&first["id"], &first["version"]), (&again["id"], &again["version"]));
    assert_eq!(count(server, "/jobs/key:daily/versions"), 2);

    server.job("private", &json!({}));
    server.post("/jobs/key:private/run-now", &json!({})).expect(202);
    server.until("/runs?jobKey=private", |runs| runs["items"][0]["status"] == "succeeded");
    let id = server.get("/jobs/key:private").expect(200)["id"].as_str().unwrap().to_owned();
    let (first, again) = twice(server, &format!("/jobs/{id}/purge"), &json!({ "reason": "erasure" }), 200);
    assert_eq!((first["jobKey"].as_str(), &first["runs"]), (Some("private"), &json!(1)));
    assert_eq!(first, again, "although the job is gone");

    server.job("other", &json!({}));
    let bulk = json!({ "action": "pause", "jobKeys": ["daily", "other"], "reason": "SMTP down" });
    let first = post(server, "/jobs/bulk", "many", &bulk).expect(200);
    lose_answers(server);
    let audited = count(server, "/audit");
    // The answer itself is no deed, so it is still known; without it each part is.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(execute(&server.database_url(), "delete from everbell.requests where deed is null"));
    let again = post(server, "/jobs/bulk", "many", &bulk).expect(200);
    assert_eq!(first["changed"], again["changed"], "{again}");
    assert_eq!(count(server, "/audit"), audited, "nothing was done again");
}

#[test]
fn what_was_done_is_not_done_again() {
    check(&Server::start());
}

#[test]
fn what_was_done_is_not_done_again_on_postgres() {
    check(&Server::postgres(TARGETS).registered());
}

/// Whatever moment a server is killed at: the same request to the next one makes the run, or finds it.
#[test]
fn a_server_that_is_killed_runs_nothing_twice() {
    let mut server = Server::start();
    let token = server.token.clone();
    server.job("daily", &json!({}));
    for round in 0..6_u64 {
        let (address, auth, key) = (server.address.clone(), format!("Bearer {token}"), format!("round {round}"));
        let sender = std::thread::spawn(move || {
            // The response may be truncated: it is not read.
            let head = [("authorization", auth.as_str()), ("idempotency-key", key.as_str())];
            drop(std::panic::catch_unwind(|| {
                crate::server::exchange(&address, "POST", "/api/v1/jobs/key:daily/run-now", &head, br#"{"force":true}"#)
            }));
        });
        std::thread::sleep(Duration::from_millis(round * 4));
        let pid = server.pid().to_string();
        assert!(Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
        sender.join().unwrap();
        server = Server::in_folder(server.take_folder(), &[], &[]);
        server.token.clone_from(&token);
        let body = json!({ "force": true });
        let first = post(&server, "/jobs/key:daily/run-now", &format!("round {round}"), &body).expect(202);
        let again = post(&server, "/jobs/key:daily/run-now", &format!("round {round}"), &body).expect(202);
        assert_eq!(first["run"]["id"], again["run"]["id"]);
        assert_eq!(count(&server, "/runs?jobKey=daily") as u64, round + 1, "round {round}: one run for each request");
    }
}

#[test]
fn keys_of_different_tokens_never_run_together() {
    let mut server = Server::start();
    server.job("daily", &json!({}));
    let token = |name: &str| {
        let made = server.post("/tokens", &json!({ "name": name, "role": "operator" })).expect(201);
        made["token"].as_str().unwrap().to_owned()
    };
    let (long, short) = (token("col x"), token("col"));
    let mut ran = |token: String, key: &str| {
        server.token = token;
        let ran = post(&server, "/jobs/key:daily/run-now", key, &json!({ "force": true })).expect(202);
        ran["run"]["id"].as_str().unwrap().to_owned()
    };
    assert_ne!(ran(long, "y"), ran(short, "x y"));
}
