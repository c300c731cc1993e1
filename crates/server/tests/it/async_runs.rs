//! Long work over HTTP: a target that answers 202 and ends its runs later, as a receiver on loopback sees it.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use serde_json::{Value, json};

use crate::binary::ran;
use crate::notify::{Got, Receiver};
use crate::server::{Response, Server, quiet};

/// A target whose remote side may be silent for this long.
fn config(receiver: &Receiver, lease: &str) -> String {
    let url = format!("http://127.0.0.1:{}/render", receiver.port);
    format!(
        r#"
[server]
public_url = "https://cron.example/everbell"
[[target]]
label = "render"
type = "http"
url = "{url}"
async = true
lease = "{lease}"
"#
    )
}

/// A receiver that says "I work on it", also to several attempts.
fn working() -> Receiver {
    Receiver::start(&[202; 4])
}

/// Starts a run of a job, and waits for the call that it makes.
fn begin(server: &Server, receiver: &Receiver, calls: usize, more: &Value) -> (String, String) {
    let mut job = json!({ "target": "render" });
    for (name, value) in more.as_object().unwrap() {
        job[name] = value.clone();
    }
    server.job(&format!("render-{calls}"), &job);
    let started = server.post(&format!("/jobs/key:render-{calls}/run-now"), &json!({})).expect(202);
    let run = started["run"]["id"].as_str().unwrap().to_owned();
    let call = receiver.calls(calls).remove(calls - 1);
    server.until(&format!("/runs/{run}"), |run| !run["remote"].is_null());
    (run, token(&call))
}

fn token(call: &Got) -> String {
    call.headers["everbell-run-token"].clone()
}

/// A report about a run, with a token of any kind.
fn report(server: &Server, token: &str, run: &str, what: &str, body: &Value) -> Response {
    let headers = [("authorization", &*format!("Bearer {token}"))];
    server.request("POST", &format!("/runs/{run}/{what}"), &headers, body.to_string().as_bytes())
}

#[test]
fn a_target_that_answers_202_ends_its_run_later_although_the_server_is_killed() {
    for start in [Server::with, Server::postgres] {
        let receiver = working();
        let server = start(&config(&receiver, "1m")).registered();
        let (run, token) = begin(&server, &receiver, 1, &json!({}));
        let call = receiver.calls(1).remove(0);
        assert_eq!(call.headers["everbell-run-url"], format!("https://cron.example/everbell/api/v1/runs/{run}"));
        let held = server.get(&format!("/runs/{run}")).expect(200);
        assert_eq!((&held["status"], &held["runnerInstanceId"]), (&json!("running"), &Value::Null), "{held}");
        assert_eq!((&held["remote"]["leaseMs"], &held["remote"]["progress"]), (&json!(60_000), &Value::Null));

        let server = server.restarted(|_| {});
        let report = |what: &str, body: Value| report(&server, &token, &run, what, &body);
        let alive = report("heartbeat", json!({})).expect(200);
        assert_eq!((&alive["status"], &alive["cancelRequested"]), (&json!("running"), &json!(false)), "{alive}");
        assert!(alive["leaseUntil"].as_str() > held["leaseUntil"].as_str(), "{alive} {held}");
        report("progress", json!({ "percent": 40, "message": "12 of 30" })).expect(200);
        report("log", json!({ "text": format!("with {token}") })).expect(200);
        let held = server.get(&format!("/runs/{run}")).expect(200);
        assert_eq!(held["remote"]["progress"], json!({ "percent": 40, "message": "12 of 30" }));
        assert!(report("progress", json!({})).faults()[0].contains("percent"));

        let done = json!({ "result": { "reports": 30 }, "output": "all written" });
        assert_eq!(report("complete", done.clone()).expect(200)["status"], "succeeded");
        let ended = server.get(&format!("/runs/{run}")).expect(200);
        assert_eq!((&ended["status"], &ended["result"]), (&json!("succeeded"), &json!({ "reports": 30 })));
        assert!(ended["output"].as_str().unwrap().ends_with("with ***\nall written\n"), "{ended}");
        assert_eq!(report("complete", done).expect(200)["status"], "succeeded", "the same again");
        let late = report("complete", json!({ "result": 1 })).problem(409, "Conflict");
        assert_eq!((&late["runStatus"], &late["attempt"]), (&json!("succeeded"), &json!(1)), "{late}");
        for (what, body) in
            [("heartbeat", json!({})), ("log", json!({ "text": "x" })), ("fail", json!({ "message": "x" }))]
        {
            report(what, body).problem(409, "Conflict");
        }
        assert_eq!(receiver.calls(1).len(), 1, "it was called once");
        // The receiver has sent the token back, too.
        assert!(!ended.to_string().contains(&token) && !server.log().contains(&token));
    }
}

#[test]
fn only_the_token_of_the_current_attempt_counts() {
    let receiver = working();
    let server = Server::with(&config(&receiver, "1m")).registered();
    let retry = json!({ "policies": { "retry": { "maxAttempts": 2, "initial": "1s" } } });
    let (run, first) = begin(&server, &receiver, 1, &retry);
    let (other, stranger) = begin(&server, &receiver, 2, &json!({}));
    let beat = |token: &str| report(&server, token, &run, "heartbeat", &json!({}));
    beat(&stranger).problem(403, "Forbidden");
    let forged = first.replace(&run.replace('-', ""), &other.replace('-', ""));
    for wrong in ["", "evr_", "evb_1", &forged, &first[..first.len() - 1]] {
        report(&server, wrong, &other, "heartbeat", &json!({})).problem(401, "Unauthenticated");
    }
    let by_token = [("authorization", &*format!("Bearer {first}"))];
    server.request("GET", &format!("/runs/{run}"), &by_token, b"").problem(401, "Unauthenticated");
    server.request("POST", &format!("/runs/{run}/cancel"), &by_token, b"{}").problem(401, "Unauthenticated");

    let fail = |token: &str, code: &str| {
        report(&server, token, &run, "fail", &json!({ "code": code, "message": "no disk", "output": "first" }))
    };
    report(&server, &first, &run, "fail", &json!({ "code": "lost", "message": "x" })).problem(400, "InvalidInput");
    assert_eq!(fail(&first, "no_disk").expect(200)["status"], "pending");
    let second = token(&receiver.calls(3)[2]);
    server.until(&format!("/runs/{run}"), |run| !run["remote"].is_null());
    assert_eq!(fail(&first, "no_disk").expect(200)["attempt"], 2, "the same report again");
    let late = report(&server, &first, &run, "complete", &json!({})).problem(409, "Conflict");
    assert_eq!((&late["attempt"], &late["currentAttempt"]), (&json!(1), &json!(2)), "{late}");
    beat(&first).problem(409, "Conflict");
    assert_eq!(report(&server, &second, &run, "complete", &json!({})).expect(200)["status"], "succeeded");
    let ended = server.get(&format!("/runs/{run}")).expect(200);
    assert_eq!(ended["earlierAttempts"][0]["failureCode"], "no_disk", "{ended}");
}

#[test]
fn a_silent_remote_side_loses_its_run_and_a_slow_one_is_timed_out() {
    for start in [Server::with, Server::postgres] {
        let receiver = working();
        let server = start(&config(&receiver, "1s")).registered();
        let (run, token) = begin(&server, &receiver, 1, &json!({}));
        let lost = server.until(&format!("/runs/{run}"), |run| run["status"] == "failed");
        assert_eq!(lost["failureCode"], "lost");
        assert_eq!(lost["failureMessage"], "its remote side sent no heartbeat for 1 s");
        assert_eq!(lost["failureDetails"]["leaseMs"], 1_000, "{lost}");
        let late = report(&server, &token, &run, "complete", &json!({})).problem(409, "Conflict");
        assert_eq!(late["runStatus"], "failed");
    }
    let receiver = working();
    let server = Server::with(&config(&receiver, "1m")).registered();
    let (run, _) = begin(&server, &receiver, 1, &json!({ "policies": { "timeout": "2s" } }));
    let late = server.until(&format!("/runs/{run}"), |run| run["status"] == "failed");
    assert_eq!((&late["failureCode"], &late["failureMessage"]), (&json!("timeout"), &json!("stopped after 2 s")));
}

#[test]
fn a_remote_side_hears_of_a_cancellation_and_need_not_answer_it() {
    let receiver = working();
    let server = Server::with(&config(&receiver, "2s")).registered();
    let (run, token) = begin(&server, &receiver, 1, &json!({}));
    let asked = server.post(&format!("/runs/{run}/cancel"), &json!({})).expect(202);
    assert_eq!(asked["outcome"], "requested");
    let beat = report(&server, &token, &run, "heartbeat", &json!({})).expect(200);
    assert_eq!(beat["cancelRequested"], true);
    let body = json!({ "message": "stopped as asked" });
    assert_eq!(report(&server, &token, &run, "fail", &body).expect(200)["status"], "canceled");
    assert_eq!(report(&server, &token, &run, "fail", &body).expect(200)["status"], "canceled", "the same again");

    let (run, _) = begin(&server, &receiver, 2, &json!({}));
    server.post(&format!("/runs/{run}/cancel"), &json!({})).expect(202);
    let canceled = server.until(&format!("/runs/{run}"), |run| run["status"] == "canceled");
    assert_eq!(canceled["failureCode"], "canceled", "{canceled}");
}

#[test]
fn operators_end_runs_of_remote_sides_and_no_others() {
    let receiver = working();
    let talk = "[[target]]\nlabel = \"sleep\"\ntype = \"command\"\nargv = [\"sleep\", \"60\"]\n";
    let server = Server::with(&format!("{}{talk}", config(&receiver, "1m"))).registered();
    let (run, _) = begin(&server, &receiver, 1, &json!({}));
    let viewer = server.token_of("viewer");
    report(&server, &viewer, &run, "complete", &json!({})).problem(403, "Forbidden");
    let operator = server.token_of("operator");
    report(&server, &operator, &run, "complete", &json!({ "attempt": 2 })).problem(409, "Conflict");

    let everbell = |args: &[&str]| {
        let mut command = quiet(server.folder.path());
        command
            .args(args)
            .env("EVERBELL_SERVER", format!("http://{}", server.address))
            .env("EVERBELL_TOKEN", &operator);
        ran(command.output().unwrap())
    };
    let shown = everbell(&["runs", "show", &run]).stdout;
    assert!(shown.contains("its remote side works on it"), "{shown}");
    let done = everbell(&["runs", "complete", &run, "--result", "{\"rows\":3}", "--add-output", "by hand"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let ended = server.get(&format!("/runs/{run}")).expect(200);
    assert_eq!((&ended["status"], &ended["result"]), (&json!("succeeded"), &json!({ "rows": 3 })));
    let trail = server.get(&format!("/audit?object=run:{run}")).expect(200);
    assert_eq!(trail["items"][0]["action"], "run.complete", "{trail}");

    let (run, _) = begin(&server, &receiver, 2, &json!({}));
    let failed = everbell(&["runs", "fail", &run, "--message", "no disk", "--code", "no_disk", "--no-retry"]);
    assert_eq!(failed.code, Some(0), "{}", failed.stderr);
    let ended = server.get(&format!("/runs/{run}")).expect(200);
    assert_eq!((&ended["status"], &ended["failureCode"]), (&json!("failed"), &json!("no_disk")));

    server.job("local", &json!({ "target": "sleep" }));
    let started = server.post("/jobs/key:local/run-now", &json!({})).expect(202);
    let run = started["run"]["id"].as_str().unwrap().to_owned();
    server.until(&format!("/runs/{run}"), |run| run["status"] == "running");
    let refused = report(&server, &operator, &run, "complete", &json!({})).problem(409, "Conflict");
    assert!(refused["detail"].as_str().unwrap().contains("an instance executes the run"), "{refused}");
}

#[test]
fn a_lease_is_for_async_targets() {
    let folder = crate::server::Folder::new();
    for (more, expected) in [
        ("lease = \"1m\"", "is only for targets with `async = true`"),
        ("async = true\nlease = \"25h\"", "must be 1s to 24h"),
    ] {
        let block = format!("[[target]]\nlabel = \"a\"\ntype = \"http\"\nurl = \"http://a.example\"\n{more}\n");
        std::fs::write(folder.path().join("everbell.toml"), block).unwrap();
        let checked = ran(quiet(folder.path()).args(["config", "check"]).output().unwrap());
        assert!(checked.stderr.contains(expected) && checked.code != Some(0), "{}", checked.stderr);
    }
}
