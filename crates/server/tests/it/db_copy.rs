//! Moving house: a server on SQLite stops, its database is copied to PostgreSQL and back, and servers go on there as if
//! nothing had happened.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::collections::BTreeSet;
use std::fs;

use everbell_store::testing::TestDatabase;
use serde_json::{Value, json};

use crate::binary::{Ran, document, ran};
use crate::server::{Folder, SERVE, Server, TARGETS, quiet, time};

fn db(folder: &Folder, args: &[&str]) -> Ran {
    ran(quiet(folder.path()).arg("db").args(args).output().unwrap())
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Asks a server to stop, and waits until it has.
fn stop(mut server: Server) -> Folder {
    let killed = std::process::Command::new("kill").args(["-TERM", &server.pid().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(server.ended(), Some(0), "{}", server.log());
    server.take_folder()
}

/// A server in this folder on this database, for people who have the token of the first one.
fn start(folder: Folder, database: &str, token: &str) -> Server {
    let mut server = Server::in_folder(folder, &[], &[("EVERBELL_DATABASE_URL", database)]);
    token.clone_into(&mut server.token);
    server.registered()
}

const EVERY_SECOND: &str = "* * * * * *";

/// Jobs of every kind, with history.
fn live_in(server: &Server) {
    server.job("edited", &json!({ "description": "first", "payload": { "b": 1, "a": [1, null, "ü"] } }));
    server.patch("/jobs/key:edited", &json!({ "description": "second" })).expect(200);
    server.job("paused", &json!({ "cronExpression": EVERY_SECOND }));
    let pause = json!({ "reason": "the database moves", "until": "2099-01-01T00:00:00Z" });
    server.post("/jobs/key:paused/pause", &pause).expect(200);
    server.put("/orgs/acme", &json!({ "timezone": "Asia/Tokyo", "name": "Acme" })).expect(201);
    server.job("briefing", &json!({ "scope": "per_org", "cronExpression": "0 8 1 1 *" }));
    server.put("/orgs/acme/jobs/briefing", &json!({ "cronExpression": "30 9 1 1 *" })).expect(200);
    server.job("once", &json!({ "cronExpression": null, "runAt": "2099-01-01T00:00:00Z" }));
    server.put("/calendars/closures", &json!({ "dates": ["2099-12-24"] })).expect(200);
    let freeze =
        json!({ "from": "2098-12-31T00:00:00Z", "until": "2099-01-01T00:00:00Z", "reason": "release", "label": "x" });
    server.post("/freezes", &freeze).expect(201);
    let all = json!({ "catchUp": "all", "catchUpLimit": 1000, "catchUpWindow": "1h", "overlap": "allow" });
    server.job("tick", &json!({ "cronExpression": EVERY_SECOND, "policies": all }));
    server.job("failing", &json!({ "target": "fail" }));
    for (key, status) in [("edited", "succeeded"), ("failing", "failed")] {
        let run = server.post(&format!("/jobs/key:{key}/run-now"), &json!({ "note": "a test" })).expect(202);
        server.until(&format!("/runs/{}", run["run"]["id"].as_str().unwrap()), |run| run["status"] == status);
    }
    server.until("/runs?jobKey=tick&status=succeeded", |list| items(list).len() >= 3);
}

fn items(list: &Value) -> Vec<Value> {
    list["items"].as_array().unwrap().clone()
}

/// The answers that must be the same before and after, without those that change while a server runs.
fn answers(server: &Server) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for path in [
        "/jobs/key:edited",
        "/jobs/key:edited/versions",
        "/jobs/key:paused",
        "/jobs/key:briefing",
        "/jobs/key:once",
        "/jobs/key:failing",
        "/runs?jobKey=failing",
        "/runs?jobKey=edited",
        "/orgs/acme",
        "/orgs/acme/jobs/briefing",
        "/tokens",
        "/calendars/closures",
        "/freezes",
    ] {
        let mut answer = server.get(path).expect(200);
        forget(&mut answer, &["localTime", "localDate", "lastUsedAt", "now"]);
        found.push((path.to_owned(), answer));
    }
    let run = items(&server.get("/runs?jobKey=failing").expect(200))[0]["id"].as_str().unwrap().to_owned();
    found.push(("output".to_owned(), server.get(&format!("/runs/{run}")).expect(200)));
    found
}

fn forget(value: &mut Value, names: &[&str]) {
    match value {
        Value::Object(members) => {
            members.retain(|name, _| !names.contains(&name.as_str()));
            for member in members.values_mut() {
                forget(member, names);
            }
        }
        Value::Array(items) => {
            for item in items {
                forget(item, names);
            }
        }
        _ => {}
    }
}

/// The seconds at which the job fired, oldest first; each is there once.
fn ticks(server: &Server) -> Vec<i64> {
    let runs = items(&server.get("/runs?jobKey=tick&limit=200").expect(200));
    let slots: Vec<i64> = runs.iter().map(|run| time(&run["slotAt"]).as_second()).collect();
    let unique: BTreeSet<i64> = slots.iter().copied().collect();
    assert_eq!(unique.len(), slots.len(), "a slot ran twice: {slots:?}");
    unique.into_iter().collect()
}

/// Every slot up to now ran once, also those of the move.
fn fires_without_a_gap(server: &Server) {
    let moved_at = everbell_cli::clock::wall().as_second();
    server.until("/runs?jobKey=tick&limit=200&status=succeeded", |list| {
        items(list).iter().filter(|run| time(&run["slotAt"]).as_second() > moved_at).count() >= 2
    });
    let slots = ticks(server);
    let expected: Vec<i64> = (slots[0]..=*slots.last().unwrap()).collect();
    assert_eq!(slots, expected);
    assert!(slots.contains(&moved_at), "{moved_at}: {slots:?}");
}

#[test]
fn server_goes_on_in_postgres_and_back_in_sqlite() {
    let database = block_on(TestDatabase::empty());
    let server = Server::start();
    live_in(&server);
    let (token, operator) = (server.token.clone(), server.token_of("operator"));
    let before = answers(&server);

    let said = db(&server.folder, &["copy", "--to", database.url()]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{}", said.stderr);
    let pid = server.pid();
    assert!(
        said.stderr.contains(&format!("the source, open (the last server was process {pid} on host ")),
        "{}",
        said.stderr
    );
    let planned = document(&db(&server.folder, &["copy", "--to", database.url(), "--dry-run", "--json"]).stdout);
    assert_eq!(
        (&planned["targetWasEmpty"], &planned["dryRun"], &planned["tables"][0]["table"]),
        (&json!(true), &json!(true), &json!("jobs"))
    );

    let folder = stop(server);
    let done = db(&folder, &["copy", "--to", database.url()]);
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{}", done.stdout);
    let jobs =
        done.stdout.lines().find(|line| line.starts_with("jobs\t7\t")).unwrap_or_else(|| panic!("{}", done.stdout));
    assert!(jobs.ends_with("\tequal"), "{jobs}");
    assert!(done.stdout.contains("is marked as moved: no server starts on it"), "{}", done.stdout);
    // The source no longer fires.
    let refused = ran(quiet(folder.path()).args(SERVE).output().unwrap());
    assert!(refused.code != Some(0), "{refused:?}");
    assert!(refused.stderr.contains("was copied to `postgres://"), "{}", refused.stderr);

    let server = start(folder, database.url(), &token);
    assert_eq!(answers(&server), before);
    fires_without_a_gap(&server);
    let audit = server.get("/audit?limit=100").expect(200);
    assert!(items(&audit).iter().any(|entry| entry["action"] == "database.copy"), "{audit}");
    assert!(items(&audit).iter().any(|entry| entry["action"] == "job.pause"), "{audit}");
    let headers = format!("Bearer {operator}");
    let paused = server.request(
        "POST",
        "/jobs/key:failing/pause",
        &[("authorization", &headers)],
        br#"{"reason":"by a token of the source"}"#,
    );
    paused.expect(200);
    let before = answers(&server);

    let busy = db(&server.folder, &["copy", "--from", database.url(), "--to", "sqlite:back.db"]);
    assert_eq!(busy.code, Some(1));
    assert!(
        busy.stderr.contains(&format!("a server uses the source: process {} on host ", server.pid())),
        "{}",
        busy.stderr
    );
    let folder = stop(server);
    let done = db(&folder, &["copy", "--from", database.url(), "--to", "sqlite:back.db", "--json"]);
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{}", done.stdout);
    let shown = document(&done.stdout);
    assert_eq!((&shown["equal"], &shown["sourceMarked"]), (&json!(true), &json!(true)));
    let server = start(folder, "sqlite:back.db", &token);
    assert_eq!(answers(&server), before);
    fires_without_a_gap(&server);
}

#[test]
fn run_that_was_cut_off_is_lost_in_the_target() {
    let database = block_on(TestDatabase::empty());
    let mut server = Server::start();
    server.job("slow", &json!({ "target": "sleep" }));
    let run = server.post("/jobs/key:slow/run-now", &json!({})).expect(202)["run"]["id"].as_str().unwrap().to_owned();
    server.until(&format!("/runs/{run}"), |run| run["status"] == "running");
    let token = server.token.clone();
    let killed = std::process::Command::new("kill").args(["-KILL", &server.pid().to_string()]).status().unwrap();
    assert!(killed.success());
    server.ended();
    let folder = server.take_folder();
    // The file is free, so the process is gone; its run is copied with the lease that it had.
    let done = db(&folder, &["copy", "--to", database.url()]);
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{}", done.stdout);
    block_on(everbell_store::testing::execute(
        database.url(),
        "update everbell.active_runs set lease_until = clock_timestamp() - interval '1 second'",
    ));
    let server = start(folder, database.url(), &token);
    let lost = server.until(&format!("/runs/{run}"), |run| run["status"] == "failed");
    assert_eq!(lost["failureCode"], "lost", "{lost}");
}

#[test]
fn moved_database_is_shown_and_reopened() {
    let folder = Folder::new();
    assert_eq!(db(&folder, &["migrate"]).code, Some(0));
    let done = db(&folder, &["copy", "--to", "sqlite:moved.db"]);
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{}", done.stdout);
    let moved = format!("sqlite:{}", fs::canonicalize(folder.path()).unwrap().join("moved.db").display());
    assert_eq!(document(&db(&folder, &["status", "--json"]).stdout)["movedTo"], json!(moved));
    assert!(
        db(&folder, &["status"]).stdout.contains(&format!("\nmoved\tto {moved} at 20")),
        "{}",
        db(&folder, &["status"]).stdout
    );
    let prune = db(&folder, &["prune", "--older-than", "1d", "--yes"]);
    assert!(
        prune.stderr.starts_with("error: the database cannot be used: was copied to `sqlite:/"),
        "{}",
        prune.stderr
    );
    let again = db(&folder, &["reopen"]).stdout;
    assert_eq!(
        again,
        format!("sqlite:everbell-data/everbell.db can be used again; do not start {moved}, or every job fires twice\n")
    );
    assert_eq!(
        db(&folder, &["reopen"]).stdout,
        "sqlite:everbell-data/everbell.db is not marked as moved; nothing to do\n"
    );
    assert_eq!(db(&folder, &["prune", "--older-than", "1d", "--yes"]).code, Some(0));
}

#[test]
fn bad_arguments_are_refused_and_passwords_never_shown() {
    let folder = Folder::new();
    db(&folder, &["migrate"]);
    for (args, said) in [
        (&["copy", "--to", "mysql://h/d"][..], "error: --to: must be `sqlite:PATH`"),
        (&["copy", "--to", "sqlite:a.db", "--history", "soon"], "error: --history: `soon` is not a duration"),
        (&["copy"], "--to <URL>"),
        (
            &["copy", "--to", "sqlite:everbell-data/everbell.db"],
            "error: the source and the target are the same database",
        ),
        (&["copy", "--to", "sqlite::memory:"], "error: is in the memory of one process"),
        (&["copy", "--from", "sqlite:none.db", "--to", "sqlite:a.db"], "error: there is no database file `none.db`"),
    ] {
        let found = db(&folder, args);
        assert!(found.code != Some(0) && found.stderr.contains(said), "{args:?}: {}", found.stderr);
    }
    let url = "postgres://user:hunter2@127.0.0.1:1/db";
    for args in [
        ["copy", "--from", url, "--to", "sqlite:a.db"],
        ["copy", "--from", "sqlite:everbell-data/everbell.db", "--to", url],
    ] {
        let found = db(&folder, &args);
        assert!(found.code != Some(0) && !found.stderr.contains("hunter2") && found.stdout.is_empty(), "{found:?}");
    }
}

#[test]
fn jobs_and_orgs_survive_export_and_import() {
    let from = Server::with(TARGETS).registered();
    from.job("running", &json!({}));
    from.job("paused", &json!({}));
    from.job("resting", &json!({}));
    from.post("/jobs/key:paused/pause", &json!({ "reason": "say \"no\"" })).expect(200);
    from.post("/jobs/key:resting/pause", &json!({ "reason": "a break", "until": "2099-01-01T00:00:00Z" })).expect(200);
    from.put("/orgs/acme", &json!({ "timezone": "Asia/Tokyo", "settings": { "b": 1, "a": 2 }, "enabled": false }))
        .expect(201);
    let to = Server::with(TARGETS).registered();
    let cli = |server: &Server, args: &[&str]| {
        let mut command = quiet(to.folder.path());
        command
            .args(args)
            .args(["--server", &format!("http://{}", server.address)])
            .env("EVERBELL_TOKEN", &server.token);
        let ran = ran(command.output().unwrap());
        assert_eq!(ran.code, Some(0), "{args:?}: {}{}", ran.stdout, ran.stderr);
        ran.stdout
    };
    cli(&from, &["jobs", "export", "--all", "--with-state", "-f", "jobs.toml"]);
    let file = fs::read_to_string(to.folder.path().join("jobs.toml")).unwrap();
    assert_eq!(file.matches("[[job_state]]").count(), 2, "{file}");
    assert!(!cli(&from, &["jobs", "export", "--all"]).contains("job_state"));
    // One that exists there, and is active, is paused as well.
    to.job("paused", &json!({}));
    let planned = cli(&to, &["jobs", "apply", "-f", "jobs.toml", "--dry-run"]);
    assert!(planned.contains("pause paused: say \"no\"\n"), "{planned}");
    assert!(planned.contains("create resting\npause resting until 2099-01-01T00:00:00Z: a break\n"), "{planned}");
    assert_eq!(to.get("/jobs/key:paused").expect(200)["status"], "active");
    cli(&to, &["jobs", "apply", "-f", "jobs.toml", "--yes"]);
    for key in ["running", "paused", "resting"] {
        let state = |server: &Server| {
            let job = server.get(&format!("/jobs/key:{key}")).expect(200);
            ["status", "pauseReason", "pausedUntil"].map(|name| job[name].clone())
        };
        assert_eq!(state(&from), state(&to), "{key}");
    }
    assert_eq!(cli(&to, &["jobs", "apply", "-f", "jobs.toml", "--yes"]), "unchanged: 3 jobs\n");

    let settings = |server: &Server| server.get("/orgs/acme").expect(200)["settings"].to_string();
    for export in [&["orgs", "-o", "jsonl"][..], &["orgs", "export"]] {
        fs::write(to.folder.path().join("orgs.jsonl"), cli(&from, export)).unwrap();
        cli(&to, &["orgs", "import", "orgs.jsonl"]);
        let org = to.get("/orgs/acme").expect(200);
        assert_eq!((&org["timezone"], &org["enabled"]), (&json!("Asia/Tokyo"), &json!(false)));
        assert_eq!(settings(&from), settings(&to));
        to.delete("/orgs/acme").expect(204);
    }
}
