use serde_json::json;

use super::super::Level;
use super::*;

fn now() -> Timestamp {
    "2027-03-10T12:00:00Z".parse().unwrap()
}

fn told(findings: &[Finding]) -> Vec<(Level, &str)> {
    findings.iter().map(|finding| (finding.level, finding.detail.as_str())).collect()
}

#[test]
fn what_is_not_ready_is_an_error() {
    let found = readiness("[+] database: sqlite 3.50\n[-] draining: takes no more work\nnot ready\n");
    let expected = [(Level::Ok, "database: sqlite 3.50"), (Level::Error, "draining: takes no more work")];
    assert_eq!(told(&found), expected);
}

#[test]
fn what_is_late_or_open_for_long_is_told() {
    let mut document = json!({ "tzData": Zone::data_version(), "activeJobs": 3, "pausedJobs": 1, "erroredJobs": 0,
        "dueTimers": 0, "oldestDueAt": null, "oldestTransactionAt": "2027-03-10T11:55:00Z", "notes": [] });
    let good = [
        (Level::Ok, "3 active, 1 paused jobs"),
        (Level::Ok, "no timer is overdue"),
        (Level::Ok, "no transaction is open for long"),
    ];
    assert_eq!(told(&status(&document, now())), good);
    document["dueTimers"] = json!(7);
    document["oldestDueAt"] = json!("2027-03-10T11:59:30Z");
    assert_eq!(told(&status(&document, now())), good, "half a minute is nothing");
    document["oldestDueAt"] = json!("2027-03-10T11:50:00Z");
    document["erroredJobs"] = json!(1);
    document["erroredOrgTimers"] = json!(2);
    document["oldestTransactionAt"] = json!("2027-03-10T10:00:00Z");
    document["notes"] = json!(["LISTEN is off"]);
    let bad = [
        (Level::Ok, "3 active, 1 paused jobs"),
        (Level::Error, "1 job cannot fire: a schedule or a timer cannot be read"),
        (Level::Warning, "2 timers of orgs cannot fire: a zone or an override cannot be read"),
        (Level::Error, "7 timers overdue, the oldest for 10m"),
        (Level::Warning, "a transaction is open for 2h, so the database cannot clean up behind it"),
        (Level::Warning, "LISTEN is off"),
    ];
    assert_eq!(told(&status(&document, now())), bad);
    document["tzData"] = json!("1999a");
    assert_eq!(status(&document, now())[0].check, "zoneData");
}

#[test]
fn instances_are_looked_at_together() {
    let one = json!({ "id": "i", "host": "a", "pid": 1, "version": "1", "alive": true, "draining": false,
        "roles": ["scheduler", "api"], "clockSkewMs": -3, "heartbeatAt": "2027-03-10T11:59:59Z" });
    let with = |name: &str, value: Value| {
        let mut other = one.clone();
        other[name] = value;
        other
    };
    let good =
        [(Level::Ok, "1 instance live"), (Level::Ok, "clocks of all hosts agree with the database's within a second")];
    assert_eq!(told(&instances(std::slice::from_ref(&one), now())), good);
    let mut dead = with("alive", json!(false));
    dead["heartbeatAt"] = json!("2027-03-10T11:00:00Z");
    let all = [with("version", json!("2")), with("draining", json!(true)), with("clockSkewMs", json!(4_000)), dead];
    let bad = [
        (Level::Ok, "3 instances live"),
        (Level::Warning, "instance a:1 was not heard of for 1h"),
        (Level::Warning, "instances of different versions: 1, 2"),
        (Level::Warning, "instance a:1 drains and takes no work"),
        (Level::Warning, "the clock of a:1 is 4000 ms off"),
    ];
    assert_eq!(told(&instances(&all, now())), bad);
    assert_eq!(told(&instances(&[], now())), [(Level::Error, "no instance lives that fires jobs")]);
    let answering = with("roles", json!(["api"]));
    let found = instances(&[answering], now());
    assert_eq!(told(&found)[0], (Level::Error, "no instance lives that fires jobs"), "it only answers");
}

#[test]
fn a_target_that_nobody_serves_is_an_error() {
    let served = json!({ "target": "log", "instances": ["i"], "waitingJobs": [] });
    assert_eq!(told(&targets(std::slice::from_ref(&served))), [(Level::Ok, "every job has a live target")]);
    let unserved = |target: &str, jobs: u64, named: &[&str]| json!({ "target": target, "instances": [], "jobs": jobs, "waitingJobs": named });
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
    assert_eq!(told(&targets(&all)), expected);
}

#[test]
fn a_lease_that_ran_out_is_stuck() {
    let run = |until: &str| json!({ "id": "r", "leaseUntil": until });
    assert_eq!(leases(&[run("2027-03-10T11:59:30Z")], now()).level, Level::Ok);
    let found = leases(&[run("2027-03-10T11:58:00Z"), run("2027-03-10T12:00:30Z")], now());
    assert_eq!(
        (found.level, found.detail.as_str()),
        (Level::Error, "1 run of a dead instance, and nobody takes over: r")
    );
}

#[test]
fn two_runs_of_a_slot_are_an_error() {
    let run = |origin: &str, job: &str, slot: &str| json!({ "origin": origin, "jobDefinitionId": job, "slotAt": slot });
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
fn a_fire_in_a_clock_change_is_a_warning() {
    let job = |key: &str, expression: &str, zone: &str| json!({ "jobKey": key, "target": "log", "cronExpression": expression, "timezone": zone, "payload": {} });
    let calm = [job("noon", "0 12 * * *", "America/New_York"), job("paris", "30 2 * * *", "Europe/Paris")];
    let found = clock_changes(&calm, false, now());
    assert_eq!((found.level, found.detail.as_str()), (Level::Ok, "no job fires in a clock change within 14 days"));
    let found = clock_changes(&[job("night", "30 2 * * *", "America/New_York")], true, now());
    let expected = "1 job among the first 1 has a fire in a clock change within 14 days: night";
    assert_eq!((found.level, found.detail.as_str()), (Level::Warning, expected));
}

#[test]
fn an_active_job_without_a_next_fire_is_an_error_if_slots_are_ahead() {
    let job = |key: &str, more: Value| {
        let mut job = json!({ "jobKey": key, "target": "log", "cronExpression": "0 12 * * *", "timezone": "UTC",
            "payload": {}, "scope": "global", "nextRunAt": null });
        job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        job
    };
    let right = [
        job("ended", json!({ "endAt": "2027-03-01T00:00:00Z" })),
        job("errored", json!({ "error": "no zone" })),
        job("orgs", json!({ "scope": "per_org" })),
    ];
    let found = resting_jobs(&right, now());
    assert_eq!((found.level, found.detail.as_str()), (Level::Ok, "every active job with slots ahead has a next fire"));
    let found = resting_jobs(&[job("lost", json!({}))], now());
    let expected = "1 active job has slots ahead and no next fire: lost";
    assert_eq!((found.level, found.detail.as_str()), (Level::Error, expected));
}
