//! Calendars as targets see them: a real server, and jobs that write down when they ran.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::fs;
use std::process::Command;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::server::{Server, eventually, quiet};
use crate::ui::visitor::Visitor;

/// Targets that write their name into a file, which is the truth about what ran.
const TARGETS: &str = r#"
[[target]]
label = "open"
type = "command"
argv = ["sh", "-c", "echo open >> ran"]
[[target]]
label = "closed"
type = "command"
argv = ["sh", "-c", "echo closed >> ran"]
[[target]]
label = "slots"
type = "command"
argv = ["sh", "-c", "echo $EVERBELL_SLOT_AT >> ran"]
"#;

/// How often a target has run.
fn ran(server: &Server, name: &str) -> usize {
    let text = fs::read_to_string(server.folder.path().join("ran")).unwrap_or_default();
    text.lines().filter(|line| *line == name).count()
}

/// Waits until a target has run this many times more.
fn until_ran(server: &Server, name: &str, more: usize) {
    let before = ran(server, name);
    let found = eventually(|| (ran(server, name) >= before + more).then_some(()));
    assert!(found.is_some(), "`{name}` ran only {} times: {}", ran(server, name), server.log());
}

fn put(server: &Server, name: &str, body: &Value) -> Value {
    server.send("PUT", &format!("/calendars/{name}"), Some(body)).expect(200)
}

/// From yesterday to tomorrow, whatever time zone a test runs in.
fn these_days() -> String {
    let day =
        |hours: i64| (everbell_cli::clock::wall() + SignedDuration::from_hours(hours)).strftime("%Y-%m-%d").to_string();
    format!("{}..{} inventory", day(-24), day(24))
}

fn cli(server: &Server, args: &[&str]) -> (i32, String) {
    let mut command: Command = quiet(server.folder.path());
    command.args(args).args(["--server", &format!("http://{}", server.address)]).env("EVERBELL_TOKEN", &server.token);
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout) + &text(&output.stderr))
}

fn excluded_slots_do_not_run(server: &Server) {
    let written = put(server, "closures", &json!({"dates": [these_days()]}));
    assert_eq!((&written["calendar"]["version"], &written["dryRun"]), (&json!(1), &json!(false)));
    let every_second = |key: &str, policies: Value| {
        let body = json!({"jobKey": key, "target": key, "cronExpression": "* * * * * *", "policies": policies});
        server.post("/jobs", &body).expect(201)
    };
    every_second("open", json!({}));
    let job = every_second("closed", json!({"calendar": {"exclude": ["closures"]}}));
    assert_eq!(job["policies"]["calendar"], json!({"exclude": ["closures"], "only": [], "roll": "skip"}));
    until_ran(server, "open", 3);
    assert_eq!(ran(server, "closed"), 0, "the day is excluded");

    // Nothing changes by asking what would.
    let other = json!({"dates": ["2020-01-01"]});
    let dry = server.send("PUT", "/calendars/closures?dryRun=true", Some(&other)).expect(200);
    assert_eq!((&dry["dryRun"], &dry["effects"][0]["jobKey"]), (&json!(true), &json!("closed")));
    assert!(dry["effects"][0]["added"].as_u64().unwrap() > 1_000, "{dry}");
    assert_eq!(server.get("/calendars/closures").expect(200)["version"], 1);

    // An edit takes effect at once, both ways.
    let written = put(server, "closures", &other);
    assert_eq!((&written["updatedJobs"], &written["failedJobs"]), (&json!(["closed"]), &json!([])));
    until_ran(server, "closed", 2);
    let gaps = server.until("/jobs/key:closed/gaps?reason=excluded", |gaps| gaps["items"][0]["slots"].is_u64());
    assert!(gaps["items"][0]["slots"].as_u64().unwrap() >= 1, "{gaps}");
    put(server, "closures", &json!({"dates": [these_days()]}));
    let job = server.get("/jobs/key:closed").expect(200);
    assert_eq!(job["version"], 3);
    // A run of the version before may just have begun.
    until_ran(server, "open", 2);
    let before = ran(server, "closed");
    until_ran(server, "open", 3);
    assert_eq!(ran(server, "closed"), before, "excluded again");

    let soon = (everbell_cli::clock::wall() + SignedDuration::from_secs(60)).strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let explained = server.get(&format!("/jobs/key:closed/explain?at={soon}")).expect(200);
    assert_eq!(explained["outcome"], "excluded", "{explained}");
    let detail = explained["detail"].as_str().unwrap();
    assert!(detail.contains("the calendar closures excludes") && detail.contains("(inventory)"), "{detail}");
    let missed = server.get("/jobs/key:closed/gaps?reason=missed").expect(200);
    assert_eq!(missed["items"], json!([]), "excluded slots are never missed");

    let refused = server.send("DELETE", "/calendars/closures", None);
    let refused = refused.expect(409);
    assert!(refused["detail"].as_str().unwrap().contains("is used by closed"), "{refused}");
}

#[test]
fn excluded_slots_do_not_run_and_an_edit_takes_effect_at_once() {
    excluded_slots_do_not_run(&Server::with(TARGETS).registered());
}

#[test]
fn excluded_slots_do_not_run_and_an_edit_takes_effect_at_once_on_postgres() {
    excluded_slots_do_not_run(&Server::postgres(TARGETS).registered());
}

/// A zone in which it is around noon, so that no day ends during a test.
fn zone_of_noon() -> String {
    let hour = everbell_cli::clock::wall().to_zoned(jiff::tz::TimeZone::UTC).hour();
    // `Etc/GMT+5` is five hours behind UTC.
    match i32::from(hour) - 12 {
        0 => "Etc/GMT".to_owned(),
        behind @ 1.. => format!("Etc/GMT+{behind}"),
        ahead => format!("Etc/GMT{ahead}"),
    }
}

/// The slot of tomorrow moves to today, and runs after that of today.
fn slots_of_excluded_days_run_on_allowed_ones(server: &Server) {
    let zone = zone_of_noon();
    let soon = everbell_cli::clock::wall() + SignedDuration::from_secs(20);
    let local = |hours: i64| {
        (soon + SignedDuration::from_hours(hours)).to_zoned(everbell_core::Zone::get(&zone).unwrap().as_jiff().clone())
    };
    let (today, tomorrow) = (local(0), local(24));
    put(server, "closures", &json!({"dates": [format!("{} inventory", tomorrow.date())]}));
    let expression = format!("{} {} {} * * *", today.second(), today.minute(), today.hour());
    let job = json!({
        "jobKey": "moving", "target": "slots", "cronExpression": expression, "timezone": zone,
        "policies": {"calendar": {"exclude": ["closures"], "roll": "previous"}}
    });
    let job = server.post("/jobs", &job).expect(201);
    assert_eq!(job["policies"]["calendar"]["roll"], "previous");
    let slot = tomorrow.timestamp().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let note = format!("also moved here: {} (inventory)", tomorrow.date());
    let next = server.get("/jobs/key:moving/next?count=2").expect(200);
    assert_eq!((&next["items"][0]["note"], next["items"].as_array().unwrap().len()), (&json!(note), 2), "{next}");
    assert!(next["items"][1]["note"].is_null(), "{next}");
    // The fire of today is two runs, the next one is one, in every list.
    let runs = |list: &Value| -> Vec<u64> {
        let fires = list["items"].as_array().unwrap().iter();
        fires.map(|fire| fire["runs"].as_u64().unwrap_or(1)).collect()
    };
    assert_eq!(runs(&next), [2, 1], "{next}");
    let all = server.get("/next?within=72h").expect(200);
    assert_eq!(runs(&all)[..2], [2, 1], "{all}");
    let (code, said) = cli(server, &["next", "--within", "72h", "--json"]);
    let listed: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert_eq!((code, &runs(&listed)[..2]), (0, &[2, 1][..]), "{said}");
    let explained = server.get(&format!("/jobs/key:moving/explain?at={slot}")).expect(200);
    assert_eq!(explained["outcome"], "moved", "{explained}");
    assert!(explained["detail"].as_str().unwrap().contains("(inventory)"), "{explained}");

    let ran = eventually(|| {
        let text = fs::read_to_string(server.folder.path().join("ran")).unwrap_or_default();
        (text.lines().count() >= 2).then_some(text)
    });
    let expected = format!("{}\n{slot}\n", today.timestamp().strftime("%Y-%m-%dT%H:%M:%SZ"));
    assert_eq!(ran.unwrap_or_else(|| panic!("two slots have not run: {}", server.log())), expected);
    let explained = server.get(&format!("/jobs/key:moving/explain?at={slot}")).expect(200);
    assert_eq!((&explained["outcome"], &explained["run"]["slotAt"]), (&json!("run"), &json!(slot)), "{explained}");
    let id = explained["run"]["id"].as_str().unwrap();
    let page = Visitor::admin(server).get(&format!("/runs/{id}"));
    assert!(page.text.contains(&format!("moved from {} (inventory)", tomorrow.date())), "{}", page.text);
    // The day of the slot is to come, and is not a slot any more after the calendar lets go of it.
    put(server, "closures", &json!({"dates": ["2020-01-01"]}));
    let next = server.get("/jobs/key:moving/next?count=1").expect(200);
    let expected = tomorrow.timestamp() + SignedDuration::from_hours(24);
    let expected = expected.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    assert_eq!(next["items"][0]["at"], json!(expected), "{next}");

    for (cron, roll, said) in [("*/5 * * * *", "next", "at most 24 fixed times"), ("0 9 * * *", "sideways", "roll")] {
        let policies = json!({"calendar": {"exclude": ["closures"], "roll": roll}});
        let body = json!({"jobKey": "bad", "target": "slots", "cronExpression": cron, "policies": policies});
        let refused = server.post("/jobs", &body).expect(400).to_string();
        assert!(refused.contains("/policies/calendar/roll") && refused.contains(said), "{refused}");
    }
    let body = json!({"jobKey": "bad", "target": "slots", "cronExpression": "0 9 * * *", "policies": {"calendar": {"roll": "next"}}});
    let refused = server.post("/jobs", &body).expect(400).to_string();
    assert!(refused.contains("no slot can move"), "{refused}");
}

#[test]
fn slots_of_excluded_days_run_on_allowed_ones_on_sqlite() {
    slots_of_excluded_days_run_on_allowed_ones(&Server::with(TARGETS).registered());
}

#[test]
fn slots_of_excluded_days_run_on_allowed_ones_on_postgres() {
    slots_of_excluded_days_run_on_allowed_ones(&Server::postgres(TARGETS).registered());
}

/// Slots of a freeze do not run, and runs by hand do.
fn frozen_slots_do_not_run(server: &Server) {
    for key in ["open", "closed"] {
        let body = json!({"jobKey": key, "target": key, "cronExpression": "* * * * * *", "labels": {"is": key}});
        server.post("/jobs", &body).expect(201);
    }
    until_ran(server, "closed", 1);
    let until = (everbell_cli::clock::wall() + SignedDuration::from_hours(1)).to_string();
    let body = json!({"until": until, "reason": "release weekend", "label": "is=closed"});
    let freeze = server.post("/freezes", &body).expect(201);
    assert_eq!((&freeze["inForce"], &freeze["label"]), (&json!(true), &json!("is=closed")));
    // A run that was planned before may just have begun.
    until_ran(server, "open", 2);
    let before = ran(server, "closed");
    until_ran(server, "open", 3);
    assert_eq!(ran(server, "closed"), before, "it is frozen");
    let job = server.get("/jobs/key:closed").expect(200);
    assert!(job["warnings"].to_string().contains("release weekend"), "{job}");
    let (code, said) = cli(server, &["jobs", "show", "closed"]);
    assert!(code == 0 && said.contains("frozen"), "{said}");
    let soon = (everbell_cli::clock::now() + SignedDuration::from_secs(600)).to_string();
    let explained = server.get(&format!("/jobs/key:closed/explain?at={soon}")).expect(200);
    assert!(explained["detail"].as_str().unwrap().contains("release weekend"), "{explained}");
    server.post("/jobs/key:closed/run-now", &json!({})).expect(202);
    until_ran_since(server, "closed", before + 1);
    let gaps = server.until("/jobs/key:closed/gaps?reason=frozen", |gaps| gaps["items"][0]["slots"].is_u64());
    assert_eq!(gaps["items"][0]["reason"], "frozen");
    let (code, said) = cli(server, &["freeze"]);
    assert!(code == 0 && said.contains("release weekend") && said.contains("in force"), "{said}");
    let (code, said) = cli(server, &["freeze", "end", freeze["id"].as_str().unwrap()]);
    assert_eq!(code, 0, "{said}");
    until_ran(server, "closed", 2);
    let job = server.get("/jobs/key:closed").expect(200);
    assert!(!job["warnings"].to_string().contains("frozen"), "{job}");
    let missed = server.get("/jobs/key:closed/gaps?reason=missed").expect(200);
    assert_eq!(missed["items"], json!([]), "frozen slots are never missed");
    let past = json!({"from": "2020-01-01T00:00:00Z", "until": "2020-01-02T00:00:00Z", "reason": "too late"});
    let refused = server.post("/freezes", &past).expect(400);
    assert!(refused.to_string().contains("must be in the future"), "{refused}");
}

/// Waits until a target has run this many times in all.
fn until_ran_since(server: &Server, name: &str, all: usize) {
    let found = eventually(|| (ran(server, name) >= all).then_some(()));
    assert!(found.is_some(), "`{name}` ran only {} times: {}", ran(server, name), server.log());
}

#[test]
fn frozen_slots_do_not_run_and_runs_by_hand_do() {
    frozen_slots_do_not_run(&Server::with(TARGETS).registered());
}

#[test]
fn frozen_slots_do_not_run_and_runs_by_hand_do_on_postgres() {
    frozen_slots_do_not_run(&Server::postgres(TARGETS).registered());
}

/// A freeze holds a one-time job back until it ends. If the job is paused when its time comes, that time is missed, as it is
/// without a freeze.
fn one_time_job_waits_for_the_end_of_a_freeze(server: &Server) {
    let now = everbell_cli::clock::wall();
    let later = |seconds: i64| (now + SignedDuration::from_secs(seconds)).to_string();
    let freeze = json!({"until": later(3_600), "reason": "release weekend"});
    let freeze = server.post("/freezes", &freeze).expect(201);
    for key in ["waits", "early", "late", "asked"] {
        server.post("/jobs", &json!({"jobKey": key, "target": "open", "runAt": later(5)})).expect(201);
    }
    for key in ["early", "late", "asked"] {
        server.post(&format!("/jobs/key:{key}/pause"), &json!({"reason": "not now"})).expect(200);
    }
    let early = server.post("/jobs/key:early/resume", &json!({})).expect(200);
    assert_eq!((&early["status"], &early["resumed"]["missedSlots"]), (&json!("active"), &json!(0)), "{early}");
    server.until("/status", |_| everbell_cli::clock::wall() > now + SignedDuration::from_secs(6));
    let late = server.post("/jobs/key:late/resume", &json!({})).expect(200);
    assert_eq!((&late["status"], &late["resumed"]["missedSlots"]), (&json!("retired"), &json!(1)), "{late}");
    for (key, status) in [("waits", "active"), ("early", "active"), ("asked", "paused")] {
        let job = server.get(&format!("/jobs/key:{key}")).expect(200);
        assert_eq!(job["status"], status, "{job}");
    }
    assert_eq!(ran(server, "open"), 0, "it is frozen");
    server.send("DELETE", &format!("/freezes/{}", freeze["id"].as_str().unwrap()), None).expect(200);
    until_ran_since(server, "open", 2);
    for key in ["waits", "early"] {
        server.until(&format!("/runs?jobKey={key}"), |list| list["items"][0]["status"] == "succeeded");
    }
    let asked = server.post("/jobs/key:asked/resume", &json!({"missed": "fire_once"})).expect(200);
    assert_eq!(asked["resumed"]["missedSlots"], 1, "{asked}");
    until_ran_since(server, "open", 3);
    assert_eq!(server.get("/runs?jobKey=late").expect(200)["items"], json!([]));
}

#[test]
fn one_time_job_waits_for_the_end_of_a_freeze_on_sqlite() {
    one_time_job_waits_for_the_end_of_a_freeze(&Server::with(TARGETS).registered());
}

#[test]
fn one_time_job_waits_for_the_end_of_a_freeze_on_postgres() {
    one_time_job_waits_for_the_end_of_a_freeze(&Server::postgres(TARGETS).registered());
}

#[test]
fn calendars_are_refused_with_the_reason() {
    let server = Server::with(TARGETS).registered();
    for (body, pointer, said) in [
        (json!({}), "#/dates", "has no day"),
        (json!({"dates": ["2027-02-30"]}), "#/dates/0", "is not a day"),
        (json!({"weekly": ["caturday"]}), "#/weekly", "allowed: mon"),
        (json!({"dates": ["*-12-25"], "timezone": "Nowhere"}), "#/timezone", "unknown time zone"),
        (json!({"ics": "BEGIN:VEVENT\nDTSTART:20270101\nRRULE:FREQ=DAILY\nEND:VEVENT"}), "#/ics", "RRULE:FREQ=DAILY"),
    ] {
        let problem = server.send("PUT", "/calendars/some", Some(&body)).expect(400);
        let fault = &problem["errors"][0];
        assert_eq!(fault["pointer"], pointer, "{problem}");
        assert!(fault["detail"].as_str().unwrap().contains(said), "{problem}");
    }
    let create = |policies: Value, timing: (&str, &str)| {
        let body = json!({"jobKey": "a", "target": "open", timing.0: timing.1, "policies": policies});
        server.post("/jobs", &body).expect(400).to_string()
    };
    let unknown = create(json!({"calendar": {"exclude": ["nope"]}}), ("cronExpression", "@daily"));
    assert!(unknown.contains("there is no calendar named `nope`"), "{unknown}");
    let once = create(json!({"calendar": {"only": ["nope"]}}), ("runAt", "2099-01-01T00:00:00Z"));
    assert!(once.contains("a one-time job names its time"), "{once}");
    put(&server, "sundays", &json!({"weekly": ["sun"]}));
    let never = create(json!({"calendar": {"exclude": ["sundays"]}}), ("cronExpression", "0 9 * * sun"));
    assert!(never.contains("its calendars leave no slot"), "{never}");
}

#[test]
fn calendars_are_kept_with_the_command_line() {
    let server = Server::with(TARGETS).registered();
    let (code, said) = cli(&server, &["calendars", "set", "weekend", "--weekly", "sat,sun"]);
    assert_eq!(code, 0, "{said}");
    let flags = ["--cron", "0 9 * * *", "--target", "open", "--exclude", "weekend"];
    let (code, said) = cli(&server, &[&["jobs", "create", "daily"], &flags[..]].concat());
    assert_eq!(code, 0, "{said}");
    let next = server.get("/jobs/key:daily/next?count=20").expect(200);
    assert!(!next.to_string().is_empty());
    for fire in next["items"].as_array().unwrap() {
        let at: Timestamp = fire["at"].as_str().unwrap().parse().unwrap();
        let weekday = at.to_zoned(jiff::tz::TimeZone::UTC).weekday().to_monday_zero_offset();
        assert!(weekday < 5, "{fire}");
    }
    let (code, said) = cli(&server, &["calendars"]);
    assert!(code == 0 && said.contains("weekend") && said.contains("sat,sun"), "{said}");
    let (code, said) = cli(&server, &["calendars", "show", "weekend"]);
    assert!(code == 0 && said.contains("daily"), "{said}");
    let (code, said) = cli(&server, &["calendars", "delete", "weekend", "--yes"]);
    assert!(code != 0 && said.contains("is used by daily"), "{code}: {said}");
    let (code, said) = cli(&server, &["jobs", "show", "daily"]);
    assert!(code == 0 && said.contains("not on weekend"), "{said}");
    server.patch("/jobs/key:daily", &json!({"policies": {"calendar": null}})).expect(200);
    let (code, said) = cli(&server, &["calendars", "delete", "weekend", "--yes"]);
    assert_eq!(code, 0, "{said}");
}
