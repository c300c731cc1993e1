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
    assert_eq!(changed["id"], made["id"], "an edit keeps the id");
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
    assert_eq!(replaced["id"], made["id"]);
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
fn an_id_names_the_schedule_whatever_was_edited() {
    let server = Server::start();
    let body = json!({ "name": "hourly", "cron_expression": "0 * * * *", "target": "print" });
    let first = server.post("/api/v1/schedules", &body).expect(201);
    let second = server.patch("/jobs/key:hourly", &json!({ "cronExpression": "1 * * * *" })).expect(200);
    server.patch("/jobs/key:hourly", &json!({ "cronExpression": "2 * * * *" })).expect(200);
    for id in [&first["id"], &second["id"]] {
        let path = format!("/api/v1/schedules/{}", id.as_str().unwrap());
        let read = server.get(&path).expect(200);
        assert_eq!((&read["cron_spec"], &read["id"]), (&json!("2 * * * *"), &first["id"]), "{id}");
        server.patch(&path, &json!({ "enabled": true })).expect(200);
    }
    assert_eq!(server.get("/api/v1/schedules").expect(200)[0]["id"], first["id"]);
}

#[test]
fn a_put_of_what_was_read_changes_nothing_and_keeps_a_pause() {
    let server = Server::start();
    let body = json!({ "name": "hourly", "cron_spec": "0 * * * *", "target": "print", "payload": { "pipelineId": 7 } });
    let made = server.post("/api/v1/schedules", &body).expect(201);
    server.post("/jobs/key:hourly/pause", &json!({ "reason": "the mail server is down" })).expect(200);
    let path = format!("/api/v1/schedules/{}", made["id"].as_str().unwrap());
    let read = server.get(&path).expect(200);
    assert_eq!(server.send("PUT", &path, Some(&read)).expect(200), read);

    let mut later = read.clone();
    later["cron_spec"] = json!("5 * * * *");
    assert_eq!(server.send("PUT", &path, Some(&later)).faults(), ["#/cron_spec"]);
    for derived in ["cron_expression", "enabled"] {
        later.as_object_mut().unwrap().remove(derived);
    }
    let replaced = server.send("PUT", &path, Some(&later)).expect(200);
    assert_eq!((&replaced["cron_expression"], &replaced["enabled"]), (&json!("5 * * * *"), &json!(false)));
    let job = server.get("/jobs/key:hourly").expect(200);
    assert_eq!(
        (&job["pauseReason"], &job["payload"]),
        (&json!("the mail server is down"), &json!({ "pipelineId": 7 }))
    );

    later["kind"] = json!("report");
    assert_eq!(server.send("PUT", &path, Some(&later)).faults(), ["#/kind"]);
}

#[test]
fn a_list_of_schedules_has_pages() {
    let server = Server::start();
    for name in ["a", "b", "c"] {
        let body = json!({ "name": name, "cron_expression": "0 * * * *", "target": "print" });
        server.post("/api/v1/schedules", &body).expect(201);
    }
    let names = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    let first = server.get("/api/v1/schedules?limit=2");
    let link = first.headers.get("link").expect("a link to the next page").clone();
    assert_eq!(names(&first.expect(200)), ["a", "b"]);
    let next = link.strip_prefix('<').and_then(|link| link.split_once('>')).expect("an address").0;
    let second = server.get(next);
    assert_eq!(second.headers.get("link"), None);
    assert_eq!(names(&second.expect(200)), ["c"]);
}

#[test]
fn the_facade_can_be_switched_off() {
    let server = Server::with(&format!("{TARGETS}\n[api]\ncompat = false\n"));
    server.get("/api/v1/schedules").problem(404, "NotFound");
    server.get("/api/schedules").problem(404, "NotFound");
}
