//! Targets, instances, audit, status.

use serde_json::{Value, json};

use crate::server::Server;

#[test]
fn targets_instances_and_the_server_itself() {
    let server = Server::start();
    let targets = server.until("/targets", |targets| targets["items"].as_array().unwrap().len() == 3);
    let labels: Vec<&str> =
        targets["items"].as_array().unwrap().iter().map(|t| t["target"].as_str().unwrap()).collect();
    assert_eq!(labels, ["fail", "print", "sleep"]);
    let instances = server.get("/instances").expect(200);
    let instance = &instances["items"][0];
    assert_eq!((&instance["alive"], &instance["draining"]), (&json!(true), &json!(false)));
    assert_eq!((&instance["pid"], &instance["roles"]), (&json!(server.pid()), &json!(["scheduler", "api"])));

    let id = instance["id"].as_str().unwrap();
    server.post(&format!("/instances/{id}/drain"), &json!({})).expect(204);
    server.until("/instances", |list| list["items"][0]["draining"] == true);
    server.post(&format!("/instances/{id}/undrain"), &json!({})).expect(204);
    server.until("/instances", |list| list["items"][0]["draining"] == false);
    server.post("/instances/nobody/drain", &json!({})).problem(404, "NotFound");
    server.post("/instances/00000000-0000-7000-8000-000000000000/drain", &json!({})).problem(404, "NotFound");
    let actions = server.get(&format!("/audit?object=instance:{id}")).expect(200);
    assert_eq!(actions["items"].as_array().unwrap().len(), 2);

    let status = server.get("/status").expect(200);
    assert!(status["database"].as_str().unwrap().starts_with("sqlite 3"), "{status}");
    assert_eq!((&status["actor"], &status["dueTimers"]), (&json!("token:admin"), &json!(0)));
    assert!(status["tzData"].as_str().unwrap().starts_with("20"));
}

#[test]
fn targets_tell_how_many_of_their_runs_failed_lately() {
    let server = Server::start();
    for (key, target) in [("good", "print"), ("bad", "fail")] {
        server.job(key, &json!({ "target": target }));
        server.post(&format!("/jobs/key:{key}/run-now"), &json!({})).expect(202);
    }
    let ended = |targets: &Value| {
        let of = |label: &str| {
            targets["items"].as_array().unwrap().iter().find(|one| one["target"] == label).cloned().unwrap_or_default()
        };
        (of("print"), of("fail"))
    };
    let targets = server.until("/targets", |targets| {
        let (print, fail) = ended(targets);
        print["recentRuns"] == 1 && fail["recentRuns"] == 1
    });
    let (print, fail) = ended(&targets);
    assert_eq!((&print["recentFailures"], &print["failureRate"]), (&json!(0), &json!(0.0)));
    assert_eq!((&fail["recentFailures"], &fail["failureRate"]), (&json!(1), &json!(1.0)));
}

#[test]
fn a_document_is_one_line_however_its_payload_was_written() {
    let server = Server::start();
    let body = b"{ \"jobKey\": \"a\", \"target\": \"print\", \"cronExpression\": \"@daily\",\n \"payload\": {\n  \"n\": 1.50\n} }";
    let headers = [("authorization", &*format!("Bearer {}", server.token)), ("content-type", "application/json")];
    let made = server.raw("POST", "/api/v1/jobs", &headers, body);
    made.expect(201);
    let read = server.get("/jobs/key:a");
    assert!(read.text.contains(r#""payload":{"n":1.50}"#) && !read.text.trim_end().contains('\n'), "{}", read.text);
}

#[test]
fn the_audit_trail_tells_who_did_what() {
    let mut server = Server::start();
    let operator = server.token_of("operator");
    server.job("daily", &json!({}));
    server.token = operator;
    server.patch("/jobs/key:daily/pause", &json!({ "reason": "SMTP down" })).expect(200);
    let page = server.get("/audit?object=job:daily&limit=1").expect(200);
    let entry = &page["items"][0];
    assert_eq!(
        (&entry["actor"], &entry["action"], &entry["reason"]),
        (&json!("token:a-operator"), &json!("job.pause"), &json!("SMTP down"))
    );
    assert_eq!((&entry["before"]["status"], &entry["after"]["status"]), (&json!("active"), &json!("paused")));
    let cursor = page["nextCursor"].as_str().unwrap();
    let next = server.get(&format!("/audit?object=job:daily&cursor={cursor}")).expect(200);
    assert_eq!(next["items"][0]["action"], "job.create");
    assert_eq!(server.get("/jobs/key:daily").expect(200)["updatedBy"], "token:a-operator");
}
