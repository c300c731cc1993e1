//! Pause, resume, run now, reschedule, skip, retire, purge.

use serde_json::{Value, json};

use crate::server::Server;

#[test]
fn a_pause_needs_a_reason() {
    let server = Server::start();
    server.job("daily", &json!({}));
    for body in [json!({}), json!({ "reason": null })] {
        let reply = server.patch("/jobs/key:daily/pause", &body);
        assert_eq!(reply.faults(), ["#/reason"]);
    }
    for body in [json!({ "reason": "no" }), json!({ "reason": 7 }), json!({ "reason": "x".repeat(501) })] {
        assert_eq!(server.patch("/jobs/key:daily/pause", &body).faults(), ["#/reason"], "{body}");
    }
    assert_eq!(server.get("/jobs/key:daily").expect(200)["status"], "active");
}

#[test]
fn a_paused_job_tells_why_and_resumes() {
    let server = Server::start();
    server.job("daily", &json!({ "timezone": "Europe/Paris" }));
    let body = json!({ "pauseReason": "SMTP down, INC-88", "until": "2040-07-01T12:00:00" });
    let job = server.patch("/jobs/key:daily/pause", &body).expect(200);
    assert_eq!((&job["status"], &job["pauseReason"]), (&json!("paused"), &json!("SMTP down, INC-88")));
    assert_eq!((&job["pausedBy"], &job["pausedUntil"]), (&json!("token:admin"), &json!("2040-07-01T10:00:00Z")));
    assert_eq!(job["nextRunAt"], Value::Null);
    // The same again is nothing new.
    assert_eq!(server.post("/jobs/key:daily/pause", &body).expect(200)["revision"], job["revision"]);
    let past = json!({ "reason": "too late", "until": "2020-01-01T00:00:00Z" });
    assert_eq!(server.patch("/jobs/key:daily/pause", &past).faults(), ["#/until"]);

    let resumed = server.patch("/jobs/key:daily/resume", &json!({})).expect(200);
    assert_eq!((&resumed["status"], &resumed["pauseReason"]), (&json!("active"), &Value::Null));
    assert_eq!(resumed["resumed"], json!({ "missedSlots": 0, "action": "skip", "releasedRuns": 0, "runIds": [] }));
    // An active job is unchanged.
    assert_eq!(server.post("/jobs/key:daily/resume", &json!({})).expect(200)["revision"], resumed["revision"]);
}

#[test]
fn a_run_by_hand_leaves_the_next_fire_alone() {
    let server = Server::start();
    let job = server.job("daily", &json!({ "payload": {"n": 1} }));
    let reply = server.post("/jobs/key:daily/run-now", &json!({ "payload": {"n": 2}, "note": "after the fix" }));
    let answer = reply.expect(202);
    assert_eq!((&answer["outcome"], &answer["nextRunAt"]), (&json!("started"), &job["nextRunAt"]));
    let run = &answer["run"];
    assert_eq!((&run["triggerType"], &run["triggerLabel"]), (&json!("manual"), &json!("manual:token:admin")));
    assert_eq!((&run["payloadSnapshot"], &run["slotAt"]), (&json!({"n": 2}), &Value::Null));
    let path = reply.headers["location"].clone();
    let run = server.until(&path, |run| run["status"] == "succeeded");
    assert!(run["output"].as_str().unwrap().contains("\"n\":2"), "{run}");
    // A paused job may be run by hand, a retired one not.
    server.patch("/jobs/key:daily/pause", &json!({ "reason": "not now" })).expect(200);
    server.post("/jobs/key:daily/run-now", &json!({})).expect(202);
    server.delete("/jobs/key:daily?reason=not%20needed").expect(200);
    server.post("/jobs/key:daily/run-now", &json!({})).problem(409, "JobRetired");
}

#[test]
fn an_overlap_is_recorded_and_told_with_both_runs() {
    let server = Server::start();
    server.job("slow", &json!({ "target": "sleep" }));
    let first = server.post("/jobs/key:slow/run-now", &json!({})).expect(202)["run"].clone();
    server.until(&format!("/runs/{}", first["id"].as_str().unwrap()), |run| run["status"] == "running");
    let problem = server.post("/jobs/key:slow/run-now", &json!({})).problem(409, "OverlapSkipped");
    assert_eq!((&problem["run"]["status"], &problem["run"]["skipReason"]), (&json!("skipped"), &json!("overlap")));
    assert_eq!((&problem["run"]["activeRunId"], &problem["activeRun"]["id"]), (&first["id"], &first["id"]));
    assert_eq!(problem["activeRun"]["status"], "running");
    let recorded = server.get(&format!("/runs/{}", problem["run"]["id"].as_str().unwrap())).expect(200);
    assert_eq!(recorded["status"], "skipped");

    let queued = server.post("/jobs/key:slow/run-now", &json!({ "queue": true })).expect(202);
    assert_eq!((&queued["outcome"], &queued["run"]["queued"]), (&json!("queued"), &json!(true)));
    let forced = server.post("/jobs/key:slow/run-now", &json!({ "force": true })).expect(202);
    assert_eq!(forced["outcome"], "started");
    assert_eq!(server.post("/jobs/key:slow/run-now", &json!({ "force": true, "queue": true })).faults(), ["#/queue"]);
}

#[test]
fn a_skip_may_be_a_success_for_who_wants_that() {
    let server = Server::with(&format!("{}\n[api]\nrun_now_overlap_status = 200\n", crate::server::TARGETS));
    server.job("slow", &json!({ "target": "sleep" }));
    server.post("/jobs/key:slow/run-now", &json!({})).expect(202);
    assert_eq!(server.post("/jobs/key:slow/run-now", &json!({})).expect(200)["outcome"], "skipped");
}

#[test]
fn the_next_fire_is_moved_or_passed_over() {
    let server = Server::start();
    let job = server.job("daily", &json!({ "cronExpression": "0 0 1 1 *" }));
    let moved = json!({ "nextRunAt": "2026-12-30T12:00:00Z", "reason": "wait for ETL" });
    let moved_job = server.post("/jobs/key:daily/reschedule", &moved).expect(200);
    assert_eq!(
        (&moved_job["nextRunAt"], &moved_job["rescheduledFrom"]),
        (&json!("2026-12-30T12:00:00Z"), &job["nextRunAt"])
    );
    let past = json!({ "nextRunAt": "2020-01-01T00:00:00Z" });
    assert_eq!(server.post("/jobs/key:daily/reschedule", &past).faults(), ["#/nextRunAt"]);
    assert_eq!(server.post("/jobs/key:daily/reschedule", &json!({})).faults(), ["#/nextRunAt"]);

    let other = server.job("other", &json!({ "cronExpression": "0 0 1 1 *" }));
    let skipped = server.post("/jobs/key:other/skip-next", &json!({ "count": 2, "reason": "holidays" })).expect(200);
    let year = |job: &Value| job["nextRunAt"].as_str().unwrap()[..4].parse::<i32>().unwrap();
    assert_eq!(year(&skipped), year(&other) + 2);
    let runs = server.get("/runs?jobKey=other&status=skipped").expect(200);
    assert_eq!(runs["items"].as_array().unwrap().len(), 2);
    assert_eq!(runs["items"][0]["skipReason"], "operator");
    for count in [0, 101, -1] {
        assert_eq!(server.post("/jobs/key:other/skip-next", &json!({ "count": count })).faults(), ["#/count"]);
    }
}

#[test]
fn next_fires_gaps_stats_and_explanations() {
    let server = Server::start();
    server.job("night", &json!({ "cronExpression": "30 2 * * *", "timezone": "America/New_York" }));
    let next = server.get("/jobs/key:night/next?count=200").expect(200);
    let items = next["items"].as_array().unwrap();
    assert_eq!(items.len(), 200);
    assert!(items.iter().any(|fire| fire["note"].is_string()), "a clock change within 200 days");
    assert!(items[0]["local"].as_str().unwrap().ends_with("[America/New_York]"));
    let slot = items[5]["at"].as_str().unwrap();
    assert_eq!(server.get(&format!("/jobs/key:night/explain?at={slot}")).expect(200)["outcome"], "ahead");
    let shown = server.get("/jobs/key:night/explain?at=2030-01-01T00:00:00").expect(200);
    assert_eq!((&shown["outcome"], &shown["nextSlotAt"]), (&json!("no_slot"), &json!("2030-01-01T07:30:00Z")));
    assert_eq!(server.get("/jobs/key:night/explain").faults(), ["at"]);
    assert_eq!(server.get("/jobs/key:night/gaps").expect(200)["items"], json!([]));

    server.job("print", &json!({}));
    let path = server.post("/jobs/key:print/run-now", &json!({})).headers["location"].clone();
    server.until(&path, |run| run["status"] == "succeeded");
    let stats = server.get("/jobs/key:print/stats?window=1h").expect(200);
    assert_eq!((&stats["runs"], &stats["complete"], &stats["successRate"]), (&json!(1), &json!(true), &json!(1.0)));
    assert!(stats["durationMsP50"].is_number() && stats["lagMsMax"].is_number(), "{stats}");
    assert_eq!(server.get("/jobs/key:print/stats?window=soon").faults(), ["window"]);
    // By its key a job is all its versions; by an id it is that one.
    let next = server.patch("/jobs/key:print", &json!({ "description": "again" })).expect(200);
    assert_eq!(server.get("/jobs/key:print/stats?window=1h").expect(200)["runs"], 1);
    let path = format!("/jobs/{}/stats?window=1h", next["id"].as_str().unwrap());
    assert_eq!(server.get(&path).expect(200)["runs"], 0);
}

#[test]
fn a_purged_job_is_gone_but_for_the_trail() {
    let server = Server::start();
    server.job("slow", &json!({ "target": "sleep", "payload": { "name": "Ana" } }));
    let run = server.post("/jobs/key:slow/run-now", &json!({})).expect(202)["run"]["id"].as_str().unwrap().to_owned();
    server.until(&format!("/runs/{run}"), |run| run["status"] == "running");
    let problem = server.post("/jobs/key:slow/purge", &json!({})).problem(409, "Conflict");
    assert!(problem["detail"].as_str().unwrap().contains(&format!("run {run} is running")), "{problem}");
    server.post(&format!("/runs/{run}/cancel"), &json!({})).expect(202);
    server.until(&format!("/runs/{run}"), |run| run["status"] == "canceled");
    let purged = server.post("/jobs/key:slow/purge", &json!({ "reason": "erasure request" })).expect(200);
    assert_eq!(purged, json!({ "jobKey": "slow", "versions": 1, "runs": 1, "gaps": 0 }));
    server.get("/jobs/key:slow").problem(404, "NotFound");
    server.get(&format!("/runs/{run}")).problem(404, "NotFound");
    server.post("/jobs/key:slow/purge", &json!({})).problem(404, "NotFound");
    let trail = server.get("/audit?object=job:slow").expect(200);
    assert_eq!(trail["items"][0]["action"], "job.purge");
    assert_eq!(trail["items"][0]["reason"], "erasure request");
    assert!(!trail.to_string().contains("Ana"), "{trail}");
}
