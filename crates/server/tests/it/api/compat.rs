//! Schedules, for programs that know no jobs.

use serde_json::{Value, json};

use crate::server::{Server, TARGETS};

#[test]
fn a_schedule_is_made_listed_and_changed() {
    let server = Server::start();
    let body = json!({ "name": "hourly", "cron_expression": "0 * * * *", "target": "print", "enabled": false, "payload": {"pipelineId": 7} });
    let made = server.post("/api/v1/schedules", &body).expect(201);
    assert_eq!((&made["enabled"], &made["next_run_at"]), (&json!(false), &Value::Null));
    let list =
        server.raw("GET", "/api/schedules", &[("authorization", &format!("Bearer {}", server.token))], b"").expect(200);
    assert_eq!(list[0], made);
    assert_eq!((&list[0]["kind"], &list[0]["cron_spec"]), (&json!("task"), &json!("0 * * * *")));
    assert_eq!(server.get("/api/v1/schedules").expect(200), list);

    let path = format!("/api/v1/schedules/{}", made["id"].as_str().unwrap());
    let changed = server.patch(&path, &json!({ "timezone": "America/New_York", "enabled": true })).expect(200);
    assert_eq!((&changed["timezone"], &changed["enabled"]), (&json!("America/New_York"), &json!(true)));
    assert_eq!(server.get("/jobs/key:hourly").expect(200)["payload"], json!({"pipelineId": 7}));
    let path = format!("/api/v1/schedules/{}", changed["id"].as_str().unwrap());
    let problem = server.patch(&path, &json!({ "timezone": "Mars/Olympus" }));
    assert_eq!(problem.faults(), ["#/timezone"]);
    assert_eq!(server.patch(&path, &json!({ "cron_expression": "x" })).faults(), ["#/cron_expression"]);
    // Null really clears.
    let cleared = server.patch(&path, &json!({ "timezone": null })).expect(200);
    assert_eq!((&cleared["timezone"], &cleared["name"]), (&json!("UTC"), &json!("hourly")));

    let path = "/api/v1/schedules/key:hourly";
    let put = json!({ "name": "hourly", "cron_expression": "30 * * * *", "target": "print" });
    let replaced = server.send("PUT", path, Some(&put)).expect(200);
    assert_eq!((&replaced["cron_expression"], &replaced["enabled"]), (&json!("30 * * * *"), &json!(true)));
    assert_eq!(server.get("/jobs/key:hourly").expect(200)["payload"], json!({}));
    assert_eq!(server.get(path).expect(200), replaced);
    assert_eq!(
        server.send("PUT", path, Some(&json!({ "name": "hourly" }))).faults(),
        ["#/cron_expression", "#/target"]
    );
    let renamed = json!({ "name": "other", "cron_expression": "@daily", "target": "print" });
    assert_eq!(server.send("PUT", path, Some(&renamed)).faults(), ["#/name"]);
    server.post("/api/v1/schedules", &put).problem(409, "JobKeyExists");
}

#[test]
fn the_facade_can_be_switched_off() {
    let server = Server::with(&format!("{TARGETS}\n[api]\ncompat = false\n"));
    server.get("/api/v1/schedules").problem(404, "NotFound");
    server.get("/api/schedules").problem(404, "NotFound");
}
