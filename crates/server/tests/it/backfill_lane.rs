//! A backfill beside the live schedule, as the target sees it.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::server::{Server, eventually};

/// Runs of a backfill take until the file `go` is there; all others write a line at once.
const CONFIG: &str = r#"
[[target]]
label = "work"
type = "command"
argv = ["sh", "-c", "case $EVERBELL_TRIGGER in backfill*) until test -e go; do sleep 0.05; done;; *) echo $EVERBELL_TRIGGER >> live;; esac"]
"#;

#[test]
fn live_slots_run_while_a_backfill_is_at_work_and_a_stop_is_one_audit_entry() {
    for server in [Server::with(CONFIG), Server::postgres(CONFIG)] {
        let server = server.registered();
        let past = json!({ "target": "work", "cronExpression": "* * * * * *", "startAt": "2020-01-01T00:00:00Z" });
        server.job("busy", &past);
        let live = || fs::read_to_string(server.folder.path().join("live")).unwrap_or_default().lines().count();
        eventually(|| (live() > 0).then_some(())).expect("the schedule never fired");
        let range = json!({ "from": "2021-01-01T00:00:00Z", "to": "2021-01-01T00:00:09Z", "parallel": 2 });
        let begun = server.post("/jobs/key:busy/backfills", &range).expect(202);
        assert_eq!(begun["toCreate"], 10, "{begun}");
        let progress = |wanted: [u64; 2]| {
            server.until("/jobs/key:busy/backfills", |list| {
                let backfill = &list["items"][0];
                backfill["running"] == wanted[0] && backfill["pending"] == wanted[1]
            });
        };
        progress([2, 8]);
        let before = live();
        eventually(|| (live() >= before + 3).then_some(())).expect("the schedule waits for the backfill");
        let skipped = server.get("/runs?jobKey=busy&status=skipped").expect(200);
        assert_eq!(skipped["items"], json!([]), "{skipped}");
        progress([2, 8]);

        let id = begun["id"].as_str().unwrap();
        let stopped = server.post(&format!("/jobs/key:busy/backfills/{id}/stop"), &json!({}));
        assert_eq!(stopped.expect(200)["canceled"], 8);
        progress([2, 0]);
        let audit = server.get("/audit?object=job:busy").expect(200);
        let stops = audit["items"].as_array().unwrap().iter().filter(|entry| entry["action"] == "job.backfill_stop");
        assert_eq!(stops.count(), 1, "{audit}");
        fs::write(server.folder.path().join("go"), "").unwrap();
        progress([0, 0]);
    }
}

/// Each run writes its trigger and its slot.
const LOGGED: &str = r#"
[[target]]
label = "work"
type = "command"
argv = ["sh", "-c", "echo $EVERBELL_TRIGGER $EVERBELL_SLOT_AT >> slots"]
"#;

/// How many slots the backfill has that a killed server began.
const SLOTS: usize = 500;

fn goes_on_after_a_kill(server: Server) {
    let server = server.registered();
    let past = json!({ "target": "work", "cronExpression": "* * * * * *", "startAt": "2020-01-01T00:00:00Z" });
    server.job("busy", &past);
    let range = json!({ "from": "2021-01-01T00:00:00Z", "to": "2021-01-01T00:08:19Z", "parallel": 10 });
    let begun = server.post("/jobs/key:busy/backfills", &range).expect(202);
    assert_eq!(begun["total"], SLOTS, "{begun}");
    let one = format!("/jobs/key:busy/backfills/{}", begun["id"].as_str().unwrap());
    server.until(&one, |backfill| backfill["succeeded"].as_u64() > Some(50));
    let server = server.restarted(|_| {});
    // Runs of the dead server may keep their places for as long as its lease lasts.
    let before = server.get(&one).expect(200);
    assert!(before["left"].as_u64() > Some(0), "killed too late: {before}");
    server.patch(&one, &json!({ "parallel": 20 })).expect(200);
    let wanted = |backfill: &Value| {
        let lost = backfill["failed"].as_u64().unwrap() + backfill["running"].as_u64().unwrap();
        backfill["pending"] == 0 && lost <= 10
    };
    let almost = eventually(|| Some(server.get(&one).expect(200)).filter(wanted)).expect("the backfill never ends");

    // The target's own log has each slot once, but for runs that were lost in the middle.
    let text = fs::read_to_string(server.folder.path().join("slots")).unwrap();
    let slots: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("backfill:")?.split_once(' ')).map(|(_, slot)| slot).collect();
    let distinct: BTreeSet<&str> = slots.iter().copied().collect();
    assert_eq!(distinct.len(), slots.len(), "a slot ran twice");
    let lost = (almost["failed"].as_u64().unwrap() + almost["running"].as_u64().unwrap()) as usize;
    assert!(distinct.len() + lost >= SLOTS, "{} slots ran, {lost} were lost: {almost}", distinct.len());
    // Live slots went on beside it.
    let skipped = server.get("/runs?jobKey=busy&status=skipped").expect(200);
    assert_eq!(skipped["items"], json!([]), "{skipped}");
}

#[test]
fn a_backfill_goes_on_when_its_server_is_killed() {
    goes_on_after_a_kill(Server::with(LOGGED));
}

#[test]
fn a_backfill_goes_on_when_its_server_is_killed_on_postgres() {
    goes_on_after_a_kill(Server::postgres(LOGGED));
}
