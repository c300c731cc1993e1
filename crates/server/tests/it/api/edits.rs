//! New versions and merge patches.

use serde_json::{Value, json};

use crate::server::Server;

#[test]
fn a_new_version_takes_only_what_changes() {
    let server = Server::start();
    let more = json!({ "timezone": "Europe/Paris", "payload": {"kind": "daily"}, "policies": {"timeout": "10m"} });
    let first = server.job("daily", &more);
    let edit = json!({ "cronExpression": "30 7 * * 1-5", "reason": "ops meeting moved" });
    let reply = server.post("/jobs/key:daily/new-version", &edit);
    let job = reply.expect(201);
    assert_eq!((&job["version"], &job["supersedesJobId"]), (&json!(2), &first["id"]));
    assert_eq!((&job["timezone"], &job["payload"]), (&first["timezone"], &first["payload"]));
    assert_eq!(job["policies"]["timeout"], "PT10M");
    assert_eq!(job["superseded"]["status"], "retired");
    assert_eq!(job["superseded"]["nextRunAt"], first["nextRunAt"]);
    assert_eq!(job["changes"], json!([{"field": "cronExpression", "from": "0 0 1 1 *", "to": "30 7 * * 1-5"}]));
    assert!(reply.headers["location"].ends_with(job["id"].as_str().unwrap()));
    let audit = server.get("/audit?object=job:daily").expect(200);
    assert_eq!(
        (&audit["items"][0]["action"], &audit["items"][0]["reason"]),
        (&json!("job.new_version"), &json!("ops meeting moved"))
    );
    let versions = server.get("/jobs/key:daily/versions").expect(200);
    let numbers: Vec<&Value> = versions["items"].as_array().unwrap().iter().map(|job| &job["version"]).collect();
    assert_eq!(numbers, [&json!(2), &json!(1)]);
    let diff = server.get("/jobs/key:daily/diff?from=1&to=2").expect(200);
    assert_eq!(diff["items"], job["changes"]);
    // The old version is final.
    let (old, now) = (first["id"].as_str().unwrap(), job["id"].as_str().unwrap());
    for (action, body) in [("new-version", json!({})), ("pause", json!({ "reason": "a test" })), ("run-now", json!({}))]
    {
        let refused = server.post(&format!("/jobs/{old}/{action}"), &body).problem(409, "JobRetired");
        let expected = format!(
            "version 1 of job `daily` is retired, which is final: the current version is 2, with the id {now}; name the \
             job by its key to reach it"
        );
        assert_eq!(refused["detail"], json!(expected), "{action}");
    }
}

#[test]
fn null_clears_and_absent_keeps() {
    let server = Server::start();
    let more = json!({
        "timezone": "Europe/Paris", "description": "d", "labels": {"a": "1", "b": "2"}, "payload": {"x": 1},
        "policies": {"timeout": "10m", "pauseAfterFailures": 3, "dependsOn": {"jobKey": "etl", "within": "1d"}},
    });
    server.job("daily", &more);
    let patch = json!({
        "timezone": null, "labels": {"a": null, "c": "3"}, "payload": null,
        "policies": {"pauseAfterFailures": null, "dependsOn": null, "grace": "5s"},
    });
    let job = server.patch("/jobs/key:daily", &patch).expect(200);
    assert_eq!((&job["version"], &job["timezone"], &job["payload"]), (&json!(2), &json!("UTC"), &json!({})));
    assert_eq!((&job["labels"], &job["description"]), (&json!({"b": "2", "c": "3"}), &json!("d")));
    let policies = &job["policies"];
    assert_eq!((&policies["pauseAfterFailures"], &policies["dependsOn"]), (&Value::Null, &Value::Null));
    assert_eq!((&policies["grace"], &policies["timeout"]), (&json!("PT5S"), &json!("PT10M")));
}

#[test]
fn a_patch_that_changes_nothing_makes_no_version() {
    let server = Server::start();
    let first = server.job("daily", &json!({ "cronExpression": "@every 90s" }));
    for patch in [json!({}), json!({ "timezone": "UTC" }), json!({ "cronExpression": "@every 90s", "timezone": null })]
    {
        assert_eq!(server.patch("/jobs/key:daily", &patch).expect(200)["id"], first["id"], "{patch}");
    }
    // What says nothing about the time leaves a fixed rate where it is.
    let job = server.patch("/jobs/key:daily", &json!({ "description": "new" })).expect(200);
    assert_eq!((&job["version"], &job["nextRunAt"]), (&json!(2), &first["nextRunAt"]));
}

#[test]
fn a_revision_guards_against_others() {
    let server = Server::start();
    server.job("daily", &json!({}));
    let auth = format!("Bearer {}", server.token);
    let send = |method: &str, path: &str, revision: &str, body: &Value| {
        let headers = [("authorization", auth.as_str()), ("if-match", revision)];
        server.request(method, path, &headers, body.to_string().as_bytes())
    };
    let pause = json!({ "reason": "SMTP down" });
    send("PATCH", "/jobs/key:daily/pause", "\"7\"", &pause).problem(412, "RevisionMismatch");
    send("PATCH", "/jobs/key:daily/pause", "soon", &pause).problem(400, "InvalidInput");
    let reply = send("PATCH", "/jobs/key:daily/pause", "\"1\"", &pause);
    assert_eq!((reply.expect(200)["revision"].clone(), reply.headers["etag"].as_str()), (json!(2), "\"2\""));
    for (method, path, body) in [
        ("PATCH", "/jobs/key:daily/resume", json!({})),
        ("POST", "/jobs/key:daily/reschedule", json!({ "nextRunAt": "2040-01-01T00:00:00Z" })),
        ("POST", "/jobs/key:daily/skip-next", json!({})),
        ("POST", "/jobs/key:daily/run-now", json!({})),
        ("POST", "/jobs/key:daily/new-version", json!({ "description": "x" })),
        ("PATCH", "/jobs/key:daily", json!({ "description": "x" })),
        ("DELETE", "/jobs/key:daily", Value::Null),
    ] {
        send(method, path, "\"1\"", &body).problem(412, "RevisionMismatch");
    }
    send("POST", "/jobs/key:daily/new-version", "\"2\"", &json!({ "description": "x" })).expect(201);
}

#[test]
fn a_pause_goes_on_in_the_new_version_unless_it_is_to_be_active() {
    let server = Server::start();
    server.job("daily", &json!({}));
    server.patch("/jobs/key:daily/pause", &json!({ "reason": "SMTP down" })).expect(200);
    let job = server.post("/jobs/key:daily/new-version", &json!({ "description": "a" })).expect(201);
    assert_eq!(
        (&job["status"], &job["pauseReason"], &job["nextRunAt"]),
        (&json!("paused"), &json!("SMTP down"), &Value::Null)
    );
    let job = server.post("/jobs/key:daily/new-version", &json!({ "activate": true })).expect(201);
    assert_eq!((&job["status"], &job["version"]), (&json!("active"), &json!(3)));
}

#[test]
fn an_edit_tells_everything_that_is_wrong_with_it() {
    let server = Server::start();
    server.job("daily", &json!({}));
    let edit = json!({
        "cronExpression": "61 * * * *", "timezone": "Mars/Olympus", "target": "nobody", "policies": {"timeout": 5},
        "jobKey": "other", "surprise": 1,
    });
    let expected = ["#/cronExpression", "#/jobKey", "#/policies/timeout", "#/surprise", "#/target", "#/timezone"];
    assert_eq!(server.post("/jobs/key:daily/new-version", &edit).faults(), expected);
    assert_eq!(server.patch("/jobs/key:daily", &edit).faults(), expected);
    assert_eq!(server.patch("/jobs/key:daily", &json!({ "target": null })).faults(), ["#/target"]);
    assert_eq!(server.get("/jobs/key:daily").expect(200)["version"], 1);
}

#[test]
fn a_job_depends_on_another_that_is_there() {
    let server = Server::start();
    let on = |key: &str| json!({ "policies": { "dependsOn": { "jobKey": key, "within": "6h" } } });
    let itself =
        json!({ "jobKey": "a", "target": "print", "cronExpression": "@daily", "policies": on("a")["policies"] });
    assert_eq!(server.post("/jobs", &itself).faults(), ["#/policies/dependsOn/jobKey"]);
    let codes = |job: &Value| -> Vec<String> {
        job["warnings"].as_array().unwrap().iter().map(|warning| warning["code"].as_str().unwrap().to_owned()).collect()
    };
    // It may come later, so that is a warning.
    let made = server.job("a", &on("import"));
    assert_eq!(codes(&made), ["unknown_dependency"]);
    for reply in [server.patch("/jobs/key:a", &on("a")), server.post("/jobs/key:a/new-version", &on("a"))] {
        assert_eq!(reply.faults(), ["#/policies/dependsOn/jobKey"]);
    }
    server.job("import", &json!({}));
    assert_eq!(codes(&server.post("/jobs/key:a/new-version", &json!({ "description": "b" })).expect(201)), [""; 0]);
    server.delete("/jobs/key:import").expect(200);
    assert_eq!(codes(&server.patch("/jobs/key:a", &json!({ "description": "c" })).expect(200)), ["unknown_dependency"]);
}
