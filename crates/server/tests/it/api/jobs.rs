//! Create, list, read.

use serde_json::{Value, json};

use crate::server::{Server, time};

fn keys(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|job| job["jobKey"].as_str().unwrap()).collect()
}

#[test]
fn a_job_is_made_as_it_was_asked_for() {
    let server = Server::start();
    let body = json!({
        "jobKey": "sample-heartbeat", "target": "print", "scheduleType": "recurring", "cronExpression": "*/5 * * * *",
        "timezone": "UTC", "payload": {"message": "hello world", "big": 9_007_199_254_740_993_u64},
    });
    let reply = server.post("/api/v2/admin/cron/jobs", &body);
    let job = reply.expect(201);
    assert_eq!(reply.headers["etag"], "\"1\"");
    assert_eq!(reply.headers["location"], format!("/api/v2/admin/cron/jobs/{}", job["id"].as_str().unwrap()));
    for (name, value) in body.as_object().unwrap() {
        assert_eq!(&job[name], value, "{name}");
    }
    assert_eq!(
        (&job["version"], &job["status"], &job["createdBy"], &job["updatedBy"]),
        (&json!(1), &json!("active"), &json!("token:admin"), &json!("token:admin"))
    );
    assert_eq!((&job["scheduleText"], &job["source"]), (&json!("Every 5 minutes"), &json!("api")));
    assert!(job["nextRunAt"].as_str().unwrap().ends_with(":00Z"), "{job}");
    // The first sixteen members stand first, in their order.
    let first = ["id", "jobKey", "version", "target", "payload", "scheduleType", "cronExpression", "runAt", "timezone"];
    let positions: Vec<usize> = first.iter().map(|name| reply.text.find(&format!("\"{name}\":")).unwrap()).collect();
    assert!(positions.is_sorted(), "{}", reply.text);

    let id = job["id"].as_str().unwrap();
    for name in [id, "key:sample-heartbeat", "key:sample-heartbeat@1", "key:sample%2Dheartbeat"] {
        assert_eq!(server.get(&format!("/jobs/{name}")).expect(200)["id"], job["id"], "{name}");
    }
    for missing in ["key:other", "key:sample-heartbeat@2", "nonsense", "key:", "00000000-0000-7000-8000-000000000000"] {
        server.get(&format!("/jobs/{missing}")).problem(404, "NotFound");
    }
}

#[test]
fn a_job_that_fires_once() {
    let server = Server::start();
    let body = json!({
        "jobKey": "single-run-sample", "target": "print", "scheduleType": "one_time", "runAt": "2040-02-21T15:00:00Z",
        "timezone": "UTC", "payload": {},
    });
    let job = server.post("/jobs", &body).expect(201);
    assert_eq!((&job["cronExpression"], &job["runAt"]), (&Value::Null, &json!("2040-02-21T15:00:00Z")));
    assert_eq!(job["nextRunAt"], "2040-02-21T15:00:00Z");
    let local =
        json!({ "jobKey": "local", "target": "print", "runAt": "2040-07-01T12:00:00", "timezone": "Europe/Paris" });
    let job = server.post("/jobs", &local).expect(201);
    assert_eq!((&job["runAt"], &job["scheduleType"]), (&json!("2040-07-01T10:00:00Z"), &json!("one_time")));
    assert_eq!(job["nextRunAtLocal"], "2040-07-01T12:00:00+02:00[Europe/Paris]");
}

#[test]
fn a_living_key_is_not_made_again() {
    let server = Server::start();
    let job = server.job("daily", &json!({}));
    let again = json!({ "jobKey": "daily", "target": "print", "cronExpression": "@daily" });
    let problem = server.post("/jobs", &again).problem(409, "JobKeyExists");
    assert_eq!(problem["jobId"], job["id"]);
    server.delete("/jobs/key:daily").expect(200);
    let next = server.post("/jobs", &again).expect(201);
    assert_eq!((&next["version"], &next["supersedesJobId"]), (&json!(2), &job["id"]));
}

#[test]
fn lists_are_filtered_sorted_and_cut_into_pages() {
    let server = Server::start();
    server.job("c-late", &json!({ "cronExpression": "0 0 1 6 *", "labels": {"team": "a"} }));
    server.job("a-soon", &json!({ "cronExpression": "* * * * *", "description": "the Soonest" }));
    server.job("b-never", &json!({ "target": "fail" }));
    server.patch("/jobs/key:b-never/pause", &json!({ "reason": "not now" })).expect(200);
    server.job("d-gone", &json!({}));
    server.delete("/jobs/key:d-gone").expect(200);

    assert_eq!(keys(&server.get("/jobs").expect(200)), ["a-soon", "b-never", "c-late"]);
    for (query, expected) in [
        ("status=paused", vec!["b-never"]),
        ("status=active,paused,retired", vec!["a-soon", "b-never", "c-late", "d-gone"]),
        ("status=retired&status=paused", vec!["b-never", "d-gone"]),
        ("sort=nextRunAt", vec!["a-soon", "c-late", "b-never"]),
        ("sort=-lastRunAt&status=paused", vec!["b-never"]),
        ("target=fail", vec!["b-never"]),
        ("q=SOONEST", vec!["a-soon"]),
        ("jobKey=d-gone", vec!["d-gone"]),
        ("source=config", vec![]),
        ("lastRunStatus=failed", vec![]),
        ("errored=true", vec![]),
        ("scheduleType=one_time", vec![]),
        ("scheduleType=recurring&target=fail", vec!["b-never"]),
    ] {
        let page = server.get(&format!("/jobs?{query}")).expect(200);
        let mut found = keys(&page);
        if !query.contains("sort") {
            found.sort_unstable();
        }
        assert_eq!(found, expected, "{query}");
    }

    // Those that were made in the same moment may stand in any order: a clock that was corrected stands still for a while.
    let page = server.get("/jobs?status=active,paused,retired&sort=-createdAt").expect(200);
    let made: Vec<_> = page["items"].as_array().unwrap().iter().map(|job| time(&job["createdAt"])).collect();
    assert!(made.len() == 4 && made.is_sorted_by(|a, b| a >= b), "{made:?}");

    let mut found = Vec::new();
    let mut path = "/api/v1/jobs?limit=1&sort=nextRunAt".to_owned();
    loop {
        let reply = server.get(&path);
        let page = reply.expect(200);
        found.extend(keys(&page).into_iter().map(str::to_owned));
        let Some(link) = reply.headers.get("link") else {
            assert_eq!(page["nextCursor"], Value::Null);
            break;
        };
        path = link.split(['<', '>']).nth(1).unwrap().to_owned();
        assert!(path.contains(page["nextCursor"].as_str().unwrap()), "{path}");
    }
    assert_eq!(found, ["a-soon", "c-late", "b-never"]);
}

#[test]
fn a_cursor_is_for_its_own_list() {
    let server = Server::start();
    server.job("a", &json!({}));
    server.job("b", &json!({}));
    let page = server.get("/jobs?limit=1").expect(200);
    let cursor = page["nextCursor"].as_str().unwrap();
    assert_eq!(server.get(&format!("/jobs?limit=1&status=paused&cursor={cursor}")).faults(), ["cursor"]);
    assert_eq!(server.get("/jobs?cursor=abc").faults(), ["cursor"]);
    assert_eq!(server.get(&format!("/jobs?cursor={}", cursor.replace(&cursor[3..6], "xyz"))).faults(), ["cursor"]);
    assert_eq!(keys(&server.get(&format!("/jobs?limit=200&cursor={cursor}")).expect(200)), ["b"]);
}

#[test]
fn what_may_surprise_is_told() {
    let server = Server::start();
    let job = server.job("night", &json!({ "cronExpression": "30 2 * * *", "timezone": "America/New_York" }));
    let codes: Vec<&str> = job["warnings"].as_array().unwrap().iter().map(|w| w["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"dst_gap"), "{codes:?}");
}
