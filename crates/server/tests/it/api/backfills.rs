//! Backfills.

use serde_json::{Value, json};

use crate::server::{Server, TARGETS, time};

/// Hourly slots on 2 November: a backfill has what it needs, and the job does not fire while a test runs.
const HOURLY_ONCE_A_YEAR: &str = "0 * 2 11 *";

fn check(server: &Server) {
    server.job("daily", &json!({ "cronExpression": "0 8 * * *", "timezone": "Europe/Paris" }));
    let range = json!({ "from": "2026-11-02T00:00:00", "to": "2026-11-06T23:59:59", "reason": "ETL was down" });
    let mut dry = range.clone();
    dry["dryRun"] = json!(true);
    let planned = server.post("/jobs/key:daily/backfills", &dry).expect(200);
    assert_eq!((&planned["dryRun"], &planned["toCreate"], &planned["id"]), (&json!(true), &json!(5), &Value::Null));
    assert_eq!(planned["slots"][0]["local"], "2026-11-02T08:00:00+01:00[Europe/Paris]");
    assert_eq!(server.get("/runs?jobKey=daily").expect(200)["items"], json!([]));

    let begun = server.post("/jobs/key:daily/backfills", &range).expect(202);
    assert_eq!(begun["toCreate"], 5);
    let id = begun["id"].as_str().unwrap();
    let done = server.until("/jobs/key:daily/backfills", |list| list["items"][0]["status"] == "done");
    let report = &done["items"][0];
    assert_eq!(
        (&report["id"], &report["succeeded"], &report["reason"]),
        (&begun["id"], &json!(5), &json!("ETL was down"))
    );
    // What ran is left out.
    let again = server.post("/jobs/key:daily/backfills", &dry).expect(200);
    let run = server.get(&format!("/runs/{}", again["slots"][4]["runId"].as_str().unwrap())).expect(200);
    assert_eq!(
        (&run["origin"], &run["backfillId"], &run["slotAt"]),
        (&json!("backfill"), &begun["id"], &json!("2026-11-06T07:00:00Z"))
    );
    assert_eq!((&again["toCreate"], &again["slots"][0]["because"]), (&json!(0), &json!("succeeded")));
    assert_eq!(server.post(&format!("/jobs/key:daily/backfills/{id}/stop"), &json!({})).expect(200)["canceled"], 0);
}

#[test]
fn a_range_is_planned_and_run() {
    check(&Server::start());
}

#[test]
fn a_range_is_planned_and_run_on_postgres() {
    check(&Server::postgres(TARGETS));
}

#[test]
fn a_backfill_is_stopped() {
    let server = Server::start();
    server.job("slow", &json!({ "cronExpression": HOURLY_ONCE_A_YEAR, "target": "sleep" }));
    let range = json!({ "from": "2026-11-02T00:00:00Z", "to": "2026-11-02T09:00:00Z" });
    let begun = server.post("/jobs/key:slow/backfills", &range).expect(202);
    assert_eq!(begun["toCreate"], 10);
    // One at a time.
    server.until("/jobs/key:slow/backfills", |list| list["items"][0]["running"] == 1);
    let path = format!("/jobs/key:slow/backfills/{}/stop", begun["id"].as_str().unwrap());
    assert_eq!(server.post(&path, &json!({})).expect(200)["canceled"], 9);
}

#[test]
fn bad_ranges_are_refused() {
    let server = Server::start();
    server.job("often", &json!({ "cronExpression": "* * * * *" }));
    for (body, places) in [
        (json!({}), vec!["#/from", "#/to"]),
        (json!({ "from": "soon", "to": 5 }), vec!["#/to"]),
        (json!({ "from": "soon", "to": "later" }), vec!["#/from", "#/to"]),
        (json!({ "from": "2026-11-03T00:00:00Z", "to": "2026-11-02T00:00:00Z" }), vec!["#/to"]),
        (json!({ "from": "2026-11-01", "to": "2026-11-02", "rate": "fast" }), vec!["#/rate"]),
    ] {
        assert_eq!(server.post("/jobs/key:often/backfills", &body).faults(), places, "{body}");
    }
    server.post("/jobs/key:often/backfills/nothing/stop", &json!({})).problem(404, "NotFound");
    server.get("/jobs/key:nobody/backfills").problem(404, "NotFound");
}

#[test]
fn a_dry_run_refuses_what_the_runs_would_be_refused_for() {
    let server = Server::start();
    server.job("each", &json!({ "scope": "per_org" }));
    server.job("gone", &json!({}));
    server.delete("/jobs/key:gone").expect(200);
    for dry in [false, true] {
        let range = json!({ "from": "2026-11-02T00:00:00Z", "to": "2026-11-03T00:00:00Z", "dryRun": dry });
        assert_eq!(server.post("/jobs/key:each/backfills", &range).faults(), ["#/orgId"]);
        server.post("/jobs/key:gone@1/backfills", &range).problem(409, "JobRetired");
    }
}

fn check_bound(server: &Server) {
    let more = json!({ "cronExpression": HOURLY_ONCE_A_YEAR, "target": "sleep", "policies": { "overlap": "allow" } });
    server.job("slow", &more);
    server.job("other", &json!({}));
    let range = |to: &str| json!({ "from": "2026-11-02T00:00:00Z", "to": format!("2026-11-02T{to}:00:00Z") });
    // A backfill waits for room, and leaves one place for a run by hand.
    assert_eq!(server.post("/jobs/key:slow/backfills", &range("09")).expect(202)["toCreate"], 10);
    let open = server.get("/runs?jobKey=slow").expect(200);
    assert_eq!(open["items"].as_array().unwrap().len(), 4, "{open}");
    server.post("/jobs/key:slow/run-now", &json!({})).expect(202);
    let refused = server.post("/jobs/key:slow/run-now", &json!({})).problem(409, "TooManyPendingRuns");
    assert!(refused["detail"].as_str().unwrap().contains("has 5 runs"), "{refused}");
    // Other jobs have a bound of their own.
    server.post("/jobs/key:other/run-now", &json!({})).expect(202);
}

fn check_places(server: &Server) {
    let policies = json!({ "overlap": "allow" });
    let range = json!({ "from": "2026-09-01T00:00:00Z", "to": "2026-10-12T14:00:00Z" });
    for number in 0..15 {
        let key = format!("filled-{number}");
        let more = json!({ "cronExpression": "0 * * 9,10 *", "target": "sleep", "policies": policies });
        server.job(&key, &more);
        let begun = server.post(&format!("/jobs/key:{key}/backfills"), &range).expect(202);
        assert_eq!(begun["toCreate"], 999);
    }
    server.until("/runs?status=running&limit=20", |page| page["items"].as_array().unwrap().len() == 4);
    // Another job starts at once, on another target and on the same one.
    for (key, target, status) in [("quick", "print", "succeeded"), ("same", "sleep", "running")] {
        server.job(key, &json!({ "target": target }));
        let reply = server.post(&format!("/jobs/key:{key}/run-now"), &json!({}));
        let run = server.until(&reply.headers["location"], |run| run["status"] == status);
        let waited = time(&run["startedAt"]).duration_since(time(&run["scheduledAt"]));
        assert!(waited.as_secs() < 3, "{key} waited for {waited}: {run}");
    }
    // Backfills have half of the places, not more.
    let running = server.get("/runs?status=running&limit=20").expect(200);
    let backfills = running["items"].as_array().unwrap().iter().filter(|run| run["origin"] == "backfill").count();
    assert_eq!(backfills, 4, "{running}");
}

fn with_few_places() -> String {
    format!("[engine]\nconcurrency = 8\n{TARGETS}")
}

#[test]
fn backfills_leave_places_for_other_runs() {
    check_places(&Server::with(&with_few_places()).registered());
}

#[test]
fn backfills_leave_places_for_other_runs_on_postgres() {
    check_places(&Server::postgres(&with_few_places()).registered());
}

/// With a small bound on runs that have not ended.
fn bounded() -> String {
    format!("[engine]\nmax_pending_runs = 5\n{TARGETS}")
}

#[test]
fn runs_that_have_not_ended_are_bounded() {
    check_bound(&Server::with(&bounded()).registered());
}

#[test]
fn runs_that_have_not_ended_are_bounded_on_postgres() {
    check_bound(&Server::postgres(&bounded()).registered());
}

fn check_changes(server: &Server) {
    server.job("slow", &json!({ "cronExpression": "* * * * *", "target": "sleep" }));
    // A year of minutes.
    let range =
        json!({ "from": "2025-01-01T00:00:00Z", "to": "2025-12-31T23:59:00Z", "parallel": 2, "order": "newest" });
    let mut dry = range.clone();
    dry["dryRun"] = json!(true);
    let plan = server.post("/jobs/key:slow/backfills", &dry).expect(200);
    assert_eq!((&plan["total"], &plan["exact"], &plan["toCreate"]), (&json!(525_600), &json!(false), &json!(525_600)));
    assert_eq!(plan["slots"].as_array().unwrap().len(), 100);
    let begun = server.post("/jobs/key:slow/backfills", &range).expect(202);
    let one = format!("/jobs/key:slow/backfills/{}", begun["id"].as_str().unwrap());
    let running = server.until(&one, |backfill| backfill["running"] == 2);
    assert_eq!(
        (&running["left"], &running["pending"], &running["order"]),
        (&json!(525_598), &json!(525_598), &json!("newest"))
    );
    // The job is live: at the turn of a minute it has a run of its own too.
    let runs = server.get("/runs?jobKey=slow&status=running").expect(200);
    let newest = runs["items"].as_array().unwrap().iter().find(|run| run["origin"] == "backfill");
    assert_eq!(newest.unwrap()["slotAt"], "2025-12-31T23:59:00Z", "{runs}");

    let paused = server.post(&format!("{one}/pause"), &json!({ "reason": "too much" })).expect(200);
    assert_eq!((&paused["status"], &paused["running"]), (&json!("paused"), &json!(2)));
    server.post(&format!("{one}/pause"), &json!({})).expect(409);
    let set = server.patch(&one, &json!({ "parallel": 3, "rate": "2/h" })).expect(200);
    assert_eq!((&set["parallel"], &set["rate"], &set["status"]), (&json!(3), &json!("2/h"), &json!("paused")));
    assert_eq!(server.patch(&one, &json!({ "rate": "often" })).faults(), ["#/rate"]);
    assert_eq!(server.patch(&one, &json!({})).status, 400);
    assert_eq!(server.post(&format!("{one}/resume"), &json!({})).expect(200)["status"], "running");
    // One more run at once, and then one each half an hour.
    let limited = server.until(&one, |backfill| backfill["running"] == 3);
    assert_eq!(limited["left"], 525_597, "{limited}");
    assert!(limited["estimatedDoneAt"].is_string(), "{limited}");
    let stopped = server.post(&format!("{one}/stop"), &json!({})).expect(200);
    assert_eq!(stopped["canceled"], 525_597);
    assert_eq!(server.get(&one).expect(200)["status"], "stopped");
    let audit = server.get("/audit?object=job:slow").expect(200);
    let actions: Vec<&str> =
        audit["items"].as_array().unwrap().iter().rev().filter_map(|entry| entry["action"].as_str()).collect();
    let wanted = ["create", "backfill", "backfill_pause", "backfill_set", "backfill_resume", "backfill_stop"];
    assert_eq!(actions, wanted.map(|action| format!("job.{action}")), "{audit}");
}

#[test]
fn a_year_of_minutes_is_paused_changed_and_stopped() {
    check_changes(&Server::start());
}

#[test]
fn a_year_of_minutes_is_paused_changed_and_stopped_on_postgres() {
    check_changes(&Server::postgres(TARGETS));
}
