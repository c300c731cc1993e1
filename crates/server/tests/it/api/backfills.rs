//! Runs for slots that have gone by.

use serde_json::{Value, json};

use crate::server::{Server, TARGETS};

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
    let run = server.get(&format!("/runs/{}", begun["slots"][4]["runId"].as_str().unwrap())).expect(200);
    assert_eq!(
        (&run["origin"], &run["backfillId"], &run["slotAt"]),
        (&json!("backfill"), &begun["id"], &json!("2026-11-06T07:00:00Z"))
    );
    // What ran is left out.
    let again = server.post("/jobs/key:daily/backfills", &dry).expect(200);
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
    server.job("slow", &json!({ "cronExpression": "0 * * * *", "target": "sleep" }));
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
        (json!({ "from": "2026-11-01T00:00:00Z", "to": "2026-11-02T00:00:00Z" }), vec!["#/to"]),
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
