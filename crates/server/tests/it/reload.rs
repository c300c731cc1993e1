//! Reloading the configuration of a running server, as its targets, its operators and its log see it.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::fs;

use serde_json::{Value, json};

use crate::cli::{data, everbell};
use crate::server::Server;
use crate::serving::signal;

/// A target that appends a word to the file `seen`, and one that takes as long as the file `go` is missing.
fn config(word: &str, more: &str) -> String {
    format!(
        r#"
[log]
level = "info"
[[target]]
label = "write"
type = "command"
argv = ["sh", "-c", "echo {word} >> seen"]
[[target]]
label = "wait"
type = "command"
argv = ["sh", "-c", "until test -e go; do sleep 0.05; done; echo {word} >> seen"]
{more}
"#
    )
}

fn write(server: &Server, text: &str) {
    fs::write(server.folder.path().join("everbell.toml"), text).unwrap();
}

fn seen(server: &Server) -> Vec<String> {
    let text = fs::read_to_string(server.folder.path().join("seen")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn run(server: &Server, job: &str) -> String {
    server.post(&format!("/jobs/key:{job}/run-now"), &json!({})).headers["location"].clone()
}

fn change<'a>(reloaded: &'a Value, part: &str, name: &str) -> Option<&'a str> {
    let changes = reloaded["changes"].as_array().unwrap();
    changes.iter().find(|change| change["part"] == part && change["name"] == name)?["change"].as_str()
}

#[test]
fn a_signal_reloads_targets_and_jobs_and_disturbs_no_run() {
    for server in [Server::with(&config("old", "")), Server::postgres(&config("old", ""))] {
        let server = server.registered();
        server.job("quick", &json!({ "target": "write" }));
        server.job("slow", &json!({ "target": "wait", "policies": {"timeout": "1h"} }));
        let slow = run(&server, "slow");
        server.until(&slow, |run| run["status"] == "running");

        let added = "[[target]]\nlabel = \"print\"\ntype = \"log\"\n[[job]]\njob_key = \"hello\"\ntarget = \"print\"\n\
                     cron_expression = \"@daily\"\npayload = { message = \"good day\" }\n";
        write(&server, &config("new", added));
        signal(&server, "HUP");
        server.until_logged("configuration reloaded: target print: added");
        let job = server.until("/jobs/key:hello", |job| job["target"] == "print");
        assert_eq!(job["source"], "config");

        // The next run takes the new target, the one in flight ends with the old one.
        server.until(&run(&server, "quick"), |run| run["status"] == "succeeded");
        assert_eq!(seen(&server), ["new"]);
        fs::write(server.folder.path().join("go"), "").unwrap();
        server.until(&slow, |run| run["status"] == "succeeded");
        assert_eq!(seen(&server), ["new", "old"]);
        server.until(&run(&server, "hello"), |run| run["status"] == "succeeded");
        server.until_logged("good day");
        let audit = server.get("/audit?object=config").expect(200);
        assert_eq!(audit["items"][0]["action"], "config.reload");
    }
}

#[test]
fn a_removed_target_takes_no_more_runs_until_it_is_back() {
    let server = Server::with(&config("old", "")).registered();
    server.job("quick", &json!({ "target": "write" }));
    write(&server, "[[target]]\nlabel = \"print\"\ntype = \"log\"\n");
    let reloaded: Value = serde_json::from_str(&data(&server, &["reload", "--json"])).unwrap();
    assert_eq!(change(&reloaded, "target", "write"), Some("removed"));
    server.until("/instances", |list| list["items"][0]["targets"] == json!(["print"]));
    let waits = run(&server, "quick");
    // A run of another target shows that this instance has looked for work since.
    server.job("other", &json!({}));
    server.until(&run(&server, "other"), |run| run["status"] == "succeeded");
    assert_eq!(server.get(&waits).expect(200)["status"], "pending");

    write(&server, &config("back", ""));
    data(&server, &["reload"]);
    server.until(&waits, |run| run["status"] == "succeeded");
    assert_eq!(seen(&server), ["back"]);
}

#[test]
fn a_bad_file_changes_nothing_and_every_problem_is_told() {
    let server = Server::with(&config("old", "")).registered();
    server.job("quick", &json!({ "target": "write" }));
    let bad =
        config("new", "[[target]]\nlabel = \"x\"\ntype = \"htp\"\n[[job]]\njob_key = \"a\"\ntarget = \"nowhere\"\n");
    write(&server, &bad);
    signal(&server, "HUP");
    server.until_logged("the configuration was not reloaded; nothing was changed");
    for problem in ["everbell.toml:", "nowhere", "cron_expression"] {
        assert!(server.log().contains(problem), "{problem}: {}", server.log());
    }
    let problem = server.post("/config/reload", &json!({})).problem(409, "Conflict");
    assert!(problem["problems"].as_array().is_some_and(|problems| problems.len() >= 3), "{problem}");
    let told = everbell(&server, &["reload"]).stderr;
    assert!(told.contains("nothing was changed") && told.contains("nowhere"), "{told}");
    server.until(&run(&server, "quick"), |run| run["status"] == "succeeded");
    assert_eq!(seen(&server), ["old"]);
    server.get("/jobs/key:a").problem(404, "NotFound");
}

#[test]
fn a_conflict_with_another_owner_changes_nothing() {
    let server = Server::with(&config("old", "")).registered();
    server.job("taken", &json!({ "target": "write" }));
    let claims = "[[job]]\njob_key = \"taken\"\ntarget = \"write\"\ncron_expression = \"@daily\"\n";
    write(&server, &config("new", claims));
    let problem = server.post("/config/reload", &json!({})).problem(409, "Conflict");
    assert!(problem["detail"].as_str().unwrap().contains("taken"), "{problem}");
    server.until(&run(&server, "taken"), |run| run["status"] == "succeeded");
    assert_eq!(seen(&server), ["old"]);
}

#[test]
fn a_dry_run_says_what_would_change_and_what_needs_a_restart() {
    let server = Server::with(&config("old", "")).registered();
    let more = "[server]\nmax_connections = 77\n[engine]\nconcurrency = 3\n[ui]\nenvironment = \"staging\"\n";
    write(&server, &config("new", more).replace("level = \"info\"", "level = \"debug\""));
    let told = data(&server, &["reload", "--dry-run"]);
    for words in [
        "would reload everbell.toml",
        "target write: changed",
        "setting log.level: changed",
        "setting ui.environment: changed",
        "server.max_connections needs a restart",
        "engine.concurrency needs a restart",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let again: Value = serde_json::from_str(&data(&server, &["reload", "--json"])).unwrap();
    assert_eq!(again["needsRestart"], json!(["server.max_connections", "engine.concurrency"]), "{again}");
    // The rest is in use, and does not change again; what needs a restart still does.
    let third: Value = serde_json::from_str(&data(&server, &["reload", "--json"])).unwrap();
    assert_eq!((&third["changes"], &third["needsRestart"]), (&json!([]), &again["needsRestart"]), "{third}");
    server.until_logged("DEBUG");
}

#[test]
fn another_admin_token_counts_at_once() {
    let token = |letter: char| format!("evb_{}", letter.to_string().repeat(40));
    let auth = |letter| format!("[auth]\nadmin_token = \"{}\"\n", token(letter));
    let server = Server::with(&config("old", &auth('a')));
    let status =
        |letter| server.request("GET", "/jobs", &[("authorization", &format!("Bearer {}", token(letter)))], b"").status;
    assert_eq!((status('a'), status('b')), (200, 401));
    write(&server, &config("old", &auth('b')));
    signal(&server, "HUP");
    server.until_logged("setting auth.admin_token: changed");
    assert_eq!((status('a'), status('b')), (401, 200));
}

#[test]
fn a_file_that_was_in_use_before_counts_at_once() {
    let of = |target: &str| {
        let job = format!("[[job]]\njob_key = \"moving\"\ntarget = \"{target}\"\ncron_expression = \"@daily\"\n");
        format!("[[target]]\nlabel = \"{target}\"\ntype = \"log\"\n{job}")
    };
    let server = Server::with(&of("first")).registered();
    for target in ["second", "first", "second"] {
        write(&server, &of(target));
        let reloaded: Value = serde_json::from_str(&data(&server, &["reload", "--json"])).unwrap();
        assert!(change(&reloaded, "job", "moving").is_some(), "{reloaded}");
        assert_eq!(server.get("/jobs/key:moving").expect(200)["target"], target);
    }
}

#[test]
fn a_file_that_is_gone_changes_nothing() {
    let server = Server::with(&config("old", "")).registered();
    fs::rename(server.folder.path().join("everbell.toml"), server.folder.path().join("aside")).unwrap();
    let problem = server.post("/config/reload", &json!({})).problem(409, "Conflict");
    assert!(problem["detail"].as_str().unwrap().contains("everbell.toml is gone"), "{problem}");
    server.until("/instances", |list| list["items"][0]["targets"] == json!(["wait", "write"]));
}

/// A job that fires on no weekend, and the days of its calendar.
fn closed_on(days: &str) -> String {
    let calendar = format!("[[calendar]]\nname = \"closed\"\nweekly = {days}\n");
    let job = "[[job]]\njob_key = \"shop\"\ntarget = \"write\"\ncron_expression = \"0 9 * * *\"\n\
               [job.policies.calendar]\nexclude = [\"closed\"]\n";
    config("x", &format!("{calendar}{job}"))
}

#[test]
fn declared_calendars_come_before_jobs_and_belong_to_the_file() {
    for server in [Server::with(&closed_on(r#"["sun"]"#)), Server::postgres(&closed_on(r#"["sun"]"#))] {
        let server = server.registered();
        let calendar = server.get("/calendars/closed").expect(200);
        assert_eq!((&calendar["source"], &calendar["weekly"]), (&json!("config"), &json!(["sun"])));
        assert_eq!(calendar["jobs"], json!(["shop"]));
        let weekly = json!({"weekly": ["mon"]});
        let refused = server.send("PUT", "/calendars/closed", Some(&weekly)).expect(400);
        assert!(refused.to_string().contains("change its `[[calendar]]` block instead"), "{refused}");
        server.send("DELETE", "/calendars/closed", None).expect(400);

        write(&server, &closed_on(r#"["sat", "sun"]"#));
        let plan = server.post("/config/reload?dryRun=true", &json!({})).expect(200);
        assert_eq!(change(&plan, "calendar", "closed"), Some("changed"));
        assert_eq!(server.get("/calendars/closed").expect(200)["version"], 1, "a dry run changes nothing");
        let reloaded = server.post("/config/reload", &json!({})).expect(200);
        assert_eq!(change(&reloaded, "calendar", "closed"), Some("changed"));
        let calendar = server.get("/calendars/closed").expect(200);
        assert_eq!((&calendar["weekly"], &calendar["applied"]), (&json!(["sat", "sun"]), &json!(true)));
        let job = server.get("/jobs/key:shop").expect(200);
        assert_eq!(job["version"], 2, "the job follows as its next version");
        let again = server.post("/config/reload", &json!({})).expect(200);
        assert_eq!(again["changes"], json!([]), "the same file changes nothing");

        // Without its block it stays, and operators may edit it.
        write(&server, &config("x", ""));
        server.post("/config/reload", &json!({})).expect(200);
        let written = server.send("PUT", "/calendars/closed", Some(&weekly)).expect(200);
        assert_eq!(written["calendar"]["source"], "api");
        // Declared again, the file wins, and says whose edit it replaces.
        write(&server, &closed_on(r#"["sun"]"#));
        let reloaded = server.post("/config/reload", &json!({})).expect(200);
        let words = change(&reloaded, "calendar", "closed").unwrap();
        assert!(words.starts_with("changed, replaces the edit by "), "{words}");
    }
}
