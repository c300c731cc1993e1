use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::super::Level;
use super::*;

fn now() -> Timestamp {
    "2027-03-10T12:00:00Z".parse().unwrap()
}

/// A document of the API: `members`, and `rest` for the others.
fn document<T: DeserializeOwned>(members: &Value, mut rest: Value) -> T {
    rest.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    serde_json::from_value(rest).unwrap()
}

fn run(members: &Value) -> wire::Run {
    let rest = json!({ "id": "r", "target": "log", "triggerType": "scheduled", "status": "running", "origin": "slot",
        "triggerLabel": "schedule:@daily", "scheduledAt": "2027-03-10T11:00:00Z", "createdAt": "2027-03-10T11:00:00Z",
        "updatedAt": "2027-03-10T11:00:00Z", "attempt": 1, "foldedSlots": 0, "queued": false, "cancelRequested": false,
        "idempotencyKey": "k" });
    document(members, rest)
}

fn job(members: &Value) -> WithJson<wire::Job> {
    let rest = json!({ "id": "j", "version": 1, "target": "log", "payload": {}, "scheduleType": "recurring",
        "timezone": "UTC", "status": "active", "createdBy": "ana", "updatedBy": "ana",
        "createdAt": "2027-03-01T00:00:00Z", "updatedAt": "2027-03-01T00:00:00Z", "description": "", "scheduleText": "",
        "consecutiveFailures": 0, "labels": {}, "scope": "global", "source": "api", "revision": 1, "policies": {
            "overlap": "skip", "maxConcurrentRuns": 1, "catchUp": "once", "catchUpLimit": 10, "grace": "PT1M",
            "timeout": "PT15M", "jitter": "PT0S", "retry": { "maxAttempts": 1, "initial": "PT10S", "max": "PT1H" },
            "dst": { "gap": "shift", "fold": "first" } } });
    document(members, rest)
}

fn summaries(findings: &[Finding]) -> Vec<(Level, &str)> {
    findings.iter().map(|finding| (finding.level, finding.detail.as_str())).collect()
}

#[test]
fn failed_readiness_check_is_an_error() {
    let found = readiness("[+] database: sqlite 3.50\n[-] draining: takes no more work\nnot ready\n");
    let expected = [(Level::Ok, "database: sqlite 3.50"), (Level::Error, "draining: takes no more work")];
    assert_eq!(summaries(&found), expected);
}

#[test]
fn late_timers_and_old_transactions_are_reported() {
    let mut members = json!({ "tzData": Zone::data_version(), "activeJobs": 3, "pausedJobs": 1, "erroredJobs": 0,
        "dueTimers": 0, "oldestDueAt": null, "oldestTransactionAt": "2027-03-10T11:55:00Z", "notes": [] });
    let status = |members: &Value| {
        let rest = json!({ "version": "1", "now": now(), "actor": "token:ops", "role": "viewer", "database": "sqlite",
            "schemaVersion": 1, "orgs": 0, "erroredOrgTimers": 0, "pendingRuns": 0, "runningRuns": 0 });
        super::status(&document(members, rest), None, now())
    };
    let good = [
        (Level::Ok, "3 active, 1 paused jobs"),
        (Level::Ok, "no timer is overdue"),
        (Level::Ok, "no transaction has been open for long"),
    ];
    assert_eq!(summaries(&status(&members)), good);
    members["dueTimers"] = json!(7);
    members["oldestDueAt"] = json!("2027-03-10T11:59:30Z");
    assert_eq!(summaries(&status(&members)), good, "half a minute is nothing");
    members["oldestDueAt"] = json!("2027-03-10T11:50:00Z");
    members["erroredJobs"] = json!(1);
    members["erroredOrgTimers"] = json!(2);
    members["oldestTransactionAt"] = json!("2027-03-10T10:00:00Z");
    members["notes"] = json!(["LISTEN is off"]);
    let bad = [
        (Level::Ok, "3 active, 1 paused jobs"),
        (Level::Error, "1 job cannot fire: a schedule or a timer cannot be read"),
        (Level::Warning, "2 timers of orgs cannot fire: a zone or an override cannot be read"),
        (Level::Error, "7 timers overdue, the oldest for 10m"),
        (Level::Warning, "a transaction has been open for 2h, so the database cannot clean up"),
        (Level::Warning, "LISTEN is off"),
    ];
    assert_eq!(summaries(&status(&members)), bad);
    members["tzData"] = json!("1999a");
    assert_eq!(status(&members)[0].check, "zoneData");
}

#[test]
fn instances_are_looked_at_together() {
    let one = wire::Instance {
        id: "i".to_owned(),
        host: "a".to_owned(),
        pid: 1,
        version: "1".to_owned(),
        roles: vec!["scheduler".to_owned(), "api".to_owned()],
        targets: Vec::new(),
        started_at: now(),
        heartbeat_at: "2027-03-10T11:59:59Z".parse().unwrap(),
        alive: true,
        draining: false,
        clock_skew_ms: -3,
    };
    let good =
        [(Level::Ok, "1 instance live"), (Level::Ok, "the clocks of all hosts are within a second of the database")];
    assert_eq!(summaries(&instances(std::slice::from_ref(&one), now())), good);
    let all = [
        wire::Instance { version: "2".to_owned(), ..one.clone() },
        wire::Instance { draining: true, ..one.clone() },
        wire::Instance { clock_skew_ms: 4_000, ..one.clone() },
        wire::Instance { alive: false, heartbeat_at: "2027-03-10T11:00:00Z".parse().unwrap(), ..one.clone() },
    ];
    let bad = [
        (Level::Ok, "3 instances live"),
        (Level::Warning, "instance a:1 sent no heartbeat for 1h"),
        (Level::Warning, "instances of different versions: 1, 2"),
        (Level::Warning, "instance a:1 is draining and accepts no work"),
        (Level::Warning, "the clock of a:1 is 4000 ms off"),
    ];
    assert_eq!(summaries(&instances(&all, now())), bad);
    assert_eq!(summaries(&instances(&[], now())), [(Level::Error, "no live instance fires jobs")]);
    let answering = wire::Instance { roles: vec!["api".to_owned()], ..one };
    let found = instances(&[answering], now());
    assert_eq!(summaries(&found)[0], (Level::Error, "no live instance fires jobs"), "it only answers");
}

#[test]
fn unserved_target_is_an_error() {
    let target = |label: &str, instances: &[&str], jobs: u64, named: &[&str]| wire::Target {
        target: label.to_owned(),
        instances: instances.iter().map(ToString::to_string).collect(),
        jobs,
        waiting_jobs: named.iter().map(ToString::to_string).collect(),
        r#type: None,
        address: None,
        concurrency: None,
        last_day: None,
        source: None,
        revision: None,
        problem: None,
        block: None,
        definition: None,
        updated_by: None,
        updated_at: None,
    };
    let served = target("log", &["i"], 0, &[]);
    assert_eq!(summaries(&targets(std::slice::from_ref(&served))), [(Level::Ok, "every job has a live target")]);
    let unserved = |label: &str, jobs: u64, named: &[&str]| target(label, &[], jobs, named);
    let all = [
        served,
        unserved("fax", 7, &["a", "b", "c", "d", "e", "f", "g"]),
        unserved("mail", 4_000, &["a", "b"]),
        unserved("post", 1, &[]),
    ];
    let expected = [
        (Level::Error, "7 jobs target `fax`, which no live instance serves: a, b, c, d, e and 2 more"),
        (Level::Error, "4000 jobs target `mail`, which no live instance serves: a, b and 3998 more"),
        (Level::Error, "1 job targets `post`, which no live instance serves"),
    ];
    assert_eq!(summaries(&targets(&all)), expected);
}

#[test]
fn expired_lease_is_an_error() {
    let run = |until: &str| run(&json!({ "leaseUntil": until }));
    assert_eq!(leases(&[run("2027-03-10T11:59:30Z")], None, now()).level, Level::Ok);
    let found = leases(&[run("2027-03-10T11:58:00Z"), run("2027-03-10T12:00:30Z")], None, now());
    assert_eq!(
        (found.level, found.detail.as_str()),
        (Level::Error, "1 run of a dead instance that no other instance has taken over: r")
    );
}

#[test]
fn server_that_just_started_has_a_lease_to_take_over() {
    let old = run(&json!({ "leaseUntil": "2027-03-10T11:00:00Z" }));
    let started = |at: &str| Some(at.parse().unwrap());
    let level = |since| leases(std::slice::from_ref(&old), since, now()).level;
    assert_eq!(level(started("2027-03-10T11:59:30Z")), Level::Ok, "it waits for a lease after its start");
    assert_eq!(level(started("2027-03-10T11:58:30Z")), Level::Error);
    assert_eq!(level(None), Level::Error, "nothing will take it over");
}

#[test]
fn two_runs_of_a_slot_are_an_error() {
    let run = |origin: &str, job: &str, slot: &str| run(&json!({ "origin": origin, "jobId": job, "slotAt": slot }));
    let (a, b) = ("2027-03-10T11:00:00Z", "2027-03-10T12:00:00Z");
    let good = [run("slot", "1", a), run("slot", "2", a), run("catch_up", "1", b), run("manual", "1", a)];
    assert_eq!(slots(&good).detail, "no slot has two runs among the newest 4");
    let found = slots(&[run("slot", "1", a), run("catch_up", "1", a)]);
    assert_eq!(
        (found.level, found.detail.as_str()),
        (Level::Error, "1 slot has more than one run: 1 at 2027-03-10T11:00:00Z")
    );
}

#[test]
fn run_during_a_clock_change_is_a_warning() {
    let job = |key: &str, expression: &str, zone: &str| {
        job(&json!({ "jobKey": key, "cronExpression": expression, "timezone": zone }))
    };
    let calm = [job("noon", "0 12 * * *", "America/New_York"), job("paris", "30 2 * * *", "Europe/Paris")];
    let found = clock_changes(&calm, false, now());
    assert_eq!((found.level, found.detail.as_str()), (Level::Ok, "no job fires during a clock change within 14 days"));
    let found = clock_changes(&[job("night", "30 2 * * *", "America/New_York")], true, now());
    let expected = "1 job among the first 1 has a run during a clock change within 14 days: night";
    assert_eq!((found.level, found.detail.as_str()), (Level::Warning, expected));
}

#[test]
fn an_active_job_without_a_next_fire_is_an_error_if_slots_are_ahead() {
    let job = |key: &str, more: Value| {
        let mut members = json!({ "jobKey": key, "cronExpression": "0 12 * * *", "nextRunAt": null });
        members.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        job(&members)
    };
    let right = [
        job("ended", json!({ "endAt": "2027-03-01T00:00:00Z" })),
        job("errored", json!({ "error": "no zone" })),
        job("orgs", json!({ "scope": "per_org" })),
    ];
    let found = jobs_without_timer(&right, now());
    assert_eq!((found.level, found.detail.as_str()), (Level::Ok, "every active job with future slots has a next run"));
    let found = jobs_without_timer(&[job("lost", json!({}))], now());
    let expected = "1 active job has future slots but no next run: lost";
    assert_eq!((found.level, found.detail.as_str()), (Level::Error, expected));
}
