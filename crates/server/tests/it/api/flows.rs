//! The main flows from end to end, on both databases.

use serde_json::{Value, json};

use crate::server::{Server, TARGETS};

/// The nine endpoints of the contract that the second mount keeps, as its clients use them.
fn nine_endpoints(server: &Server) {
    let at = |path: &str| format!("/api/v2/admin/cron{path}");
    let body = json!({
        "jobKey": "sample-heartbeat", "target": "print", "scheduleType": "recurring", "cronExpression": "* * * * * *",
        "timezone": "UTC", "payload": {"message": "hello world"},
    });
    let job = server.post(&at("/jobs"), &body).expect(201);
    let id = job["id"].as_str().unwrap();
    assert_eq!(server.get(&at("/jobs")).expect(200)["items"][0]["id"], job["id"]);
    assert_eq!(server.get(&at(&format!("/jobs/{id}"))).expect(200)["jobKey"], "sample-heartbeat");

    // A schedule that prints a message appears in the history.
    let runs = server.until(&at("/runs?jobKey=sample-heartbeat&status=succeeded"), |page| {
        page["items"].as_array().unwrap().len() >= 2
    });
    let run = &runs["items"][0];
    assert_eq!((&run["triggerType"], &run["triggerLabel"]), (&json!("scheduled"), &json!("schedule:* * * * * *")));
    assert_eq!((&run["origin"], &run["slotAt"]), (&json!("slot"), &run["scheduledAt"]));
    let whole = server.get(&at(&format!("/runs/{}", run["id"].as_str().unwrap()))).expect(200);
    assert!(whole["output"].as_str().unwrap().contains("hello world"), "{whole}");
    let slot = run["slotAt"].as_str().unwrap();
    let explained = server.get(&at(&format!("/jobs/{id}/explain?at={slot}"))).expect(200);
    assert_eq!((&explained["outcome"], &explained["run"]["id"]), (&json!("run"), &run["id"]));

    let paused = server.patch(&at(&format!("/jobs/{id}/pause")), &json!({ "reason": "for a while" })).expect(200);
    assert_eq!(paused["status"], "paused");
    let resumed = server.patch(&at(&format!("/jobs/{id}/resume")), &json!({})).expect(200);
    assert_eq!(resumed["status"], "active");
    let next =
        server.post(&at(&format!("/jobs/{id}/new-version")), &json!({ "cronExpression": "0 0 1 1 *" })).expect(201);
    assert_eq!((&next["version"], &next["supersedesJobId"]), (&json!(2), &job["id"]));
    let reply = server.post(&at(&format!("/jobs/{}/run-now", next["id"].as_str().unwrap())), &json!({}));
    assert_eq!(reply.expect(202)["run"]["jobVersion"], 2);
    server.until(&reply.headers["location"], |run| run["status"] == "succeeded");

    // Every slot of the first version has one outcome.
    let runs = server.get(&at(&format!("/runs?jobId={id}&limit=200"))).expect(200);
    let mut slots: Vec<&Value> = runs["items"].as_array().unwrap().iter().map(|run| &run["slotAt"]).collect();
    let all = slots.len();
    slots.dedup();
    assert_eq!(slots.len(), all);
}

#[test]
fn the_nine_endpoints() {
    nine_endpoints(&Server::start());
}

#[test]
fn the_nine_endpoints_on_postgres() {
    nine_endpoints(&Server::postgres(TARGETS));
}

/// A whole life: made, edited, paused, resumed, retired, with everything in the trail.
fn a_life(server: &Server) {
    server.job("daily", &json!({ "policies": {"timeout": "1m"} }));
    server.patch("/jobs/key:daily", &json!({ "timezone": "Asia/Tokyo", "description": "tea" })).expect(200);
    server.post("/jobs/key:daily/reschedule", &json!({ "nextRunAt": "2026-12-24T18:00:00" })).expect(200);
    server.post("/jobs/key:daily/skip-next", &json!({})).expect(200);
    server.post("/jobs/bulk", &json!({ "action": "pause", "jobKeys": ["daily"], "reason": "holidays" })).expect(200);
    server.post("/jobs/key:daily/resume", &json!({ "missed": "fire_once" })).expect(200);
    server.delete("/jobs/key:daily").expect(200);
    let audit = server.get("/audit?object=job:daily").expect(200);
    let mut actions: Vec<&str> =
        audit["items"].as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    actions.reverse();
    let expected =
        ["job.create", "job.new_version", "job.reschedule", "job.skip_next", "job.pause", "job.resume", "job.retire"];
    assert_eq!(actions, expected);
    let job = server.get("/jobs/key:daily").expect(200);
    assert_eq!((&job["status"], &job["version"], &job["nextRunAt"]), (&json!("retired"), &json!(2), &Value::Null));
}

#[test]
fn the_life_of_a_job() {
    a_life(&Server::start());
}

#[test]
fn the_life_of_a_job_on_postgres() {
    a_life(&Server::postgres(TARGETS));
}
