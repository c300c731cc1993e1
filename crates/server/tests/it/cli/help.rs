//! The examples of every help page work, in the order in which somebody would try them.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::{data, everbell};
use crate::binary::{ran, stdout};
use crate::server::{Server, TARGETS};
use crate::ui::visitor::Visitor;

/// Every page, in an order in which the examples of one do not need those of a later one.
const PAGES: &[&[&str]] = &[
    &["status"],
    &["api"],
    &["jobs"],
    &["jobs", "list"],
    &["jobs", "show"],
    &["jobs", "create"],
    &["jobs", "once"],
    &["jobs", "versions"],
    &["jobs", "run"],
    &["jobs", "edit"],
    &["jobs", "rollback"],
    &["jobs", "restore-declaration"],
    &["jobs", "pause"],
    &["jobs", "resume"],
    &["jobs", "reschedule"],
    &["jobs", "skip"],
    &["jobs", "explain"],
    &["jobs", "gaps"],
    &["jobs", "stats"],
    &["jobs", "backfill"],
    &["jobs", "backfills"],
    &["jobs", "backfill-set"],
    &["jobs", "backfill-pause"],
    &["jobs", "backfill-resume"],
    &["jobs", "backfill-stop"],
    &["jobs", "retire"],
    &["jobs", "purge"],
    &["orgs"],
    &["orgs", "set"],
    &["orgs", "list"],
    &["orgs", "show"],
    &["orgs", "check"],
    &["orgs", "import"],
    &["orgs", "export"],
    &["orgs", "override"],
    &["orgs", "rebuild"],
    &["orgs", "stop"],
    &["orgs", "delete"],
    &["runs"],
    &["runs", "list"],
    &["runs", "show"],
    &["runs", "logs"],
    &["runs", "watch"],
    &["runs", "rerun"],
    &["runs", "cancel"],
    &["next"],
    &["gaps"],
    &["outages"],
    &["top"],
    &["simulate"],
    &["context"],
    &["context", "add"],
    &["context", "list"],
    &["context", "use"],
    &["context", "remove"],
    &["targets"],
    &["targets", "list"],
    &["targets", "show"],
    &["targets", "add"],
    &["targets", "edit"],
    &["targets", "rm"],
    &["targets", "try"],
    &["instances"],
    &["instances", "list"],
    &["instances", "drain"],
    &["instances", "undrain"],
    &["sessions"],
    &["sessions", "list"],
    &["sessions", "end"],
    &["tokens"],
    &["tokens", "create"],
    &["tokens", "list"],
    &["tokens", "revoke"],
    &["audit"],
    &["reload"],
    &["calendars"],
    &["calendars", "list"],
    &["calendars", "set"],
    &["calendars", "show"],
    &["calendars", "delete"],
    &["freeze"],
    &["freeze", "list"],
    &["freeze", "add"],
    &["freeze", "end"],
    &["problems"],
    &["problems", "list"],
    &["problems", "acknowledge"],
    &["problems", "mute"],
    &["problems", "unmute"],
    &["notify"],
    &["notify", "channels"],
    &["notify", "test"],
    &["notify", "deliveries"],
    &["help"],
];

/// Their examples need a run whose target left it to a remote side: `async_runs.rs` runs these commands.
const REMOTE: &[&[&str]] = &[&["runs", "complete"], &["runs", "fail"]];

/// A run that has ended well, and one that is there to be canceled.
fn runs(server: &Server) -> [String; 2] {
    let id = |key: &str| data(server, &["jobs", "run", key, "--force", "-o", "name"]).trim().to_owned();
    let ended = id("daily-briefing");
    everbell(server, &["runs", "watch", &ended]);
    [ended, id("slow")]
}

/// A browser that has just signed in.
fn session(server: &Server) -> String {
    Visitor::signed_in_by(server, &server.token, &[]);
    let sessions = server.get("/sessions").expect(200);
    sessions["items"][0]["id"].as_str().unwrap().to_owned()
}

/// Lets targets be defined here.
const EDITABLE: &str = "[targets]\neditable = [\"http\", \"command\"]\nsecret_env = [\"HOOK_*\"]\n";

/// Channels that are in examples, and a rule, for a server.
const NOTIFY: &str = r#"
[[notify]]
name = "ops-slack"
type = "command"
argv = ["true"]
[[notify]]
name = "oncall"
type = "command"
argv = ["true"]
[[rule]]
when = ["failed"]
jobs = { keys = ["nightly-backup"] }
to = ["ops-slack"]
"#;

/// A new freeze of a label that no job has.
fn freeze(server: &Server) -> String {
    let body =
        json!({"until": "2099-01-01T00:00:00Z", "from": "2098-12-31T00:00:00Z", "reason": "a test", "label": "x"});
    let added = server.post("/freezes", &body).expect(201);
    added["id"].as_str().unwrap_or_default().to_owned()
}

/// Puts the backfill of `metrics` into the state that a command changes.
fn turn_backfill(server: &Server, change: &str) {
    let backfill = &server.get("/jobs/key:metrics/backfills").expect(200)["items"][0];
    let (id, is_paused) = (backfill["id"].as_str().unwrap(), backfill["status"] == "paused");
    match (change, is_paused) {
        ("backfill-pause", true) => {
            server.post(&format!("/jobs/key:metrics/backfills/{id}/resume"), &json!({})).expect(200)
        }
        ("backfill-resume", false) => {
            server.post(&format!("/jobs/key:metrics/backfills/{id}/pause"), &json!({})).expect(200)
        }
        _ => return,
    };
}

/// Stops the backfill of `metrics` once no page needs it: its thousands of runs would cost more than all commands.
fn stop_backfill(server: &Server) {
    let backfill = &server.get("/jobs/key:metrics/backfills").expect(200)["items"][0];
    let id = backfill["id"].as_str().unwrap();
    server.post(&format!("/jobs/key:metrics/backfills/{id}/stop"), &json!({})).expect(200);
}

/// Puts the targets of examples into the state that a command expects.
fn prepare_targets(server: &Server, command: &str) {
    match command {
        "add" => ["hook", "backup"].into_iter().for_each(|label| drop(server.delete(&format!("/targets/{label}")))),
        "edit" | "rm" => {
            let hook = json!({ "type": "http", "url": "https://hooks.example/run" });
            assert!(server.put("/targets/hook", &hook).status < 300);
        }
        _ => {}
    }
}

/// The problem of a job that has failed.
fn problem(server: &Server) -> String {
    server.job("nightly-backup", &json!({"target": "fail"}));
    data(server, &["jobs", "run", "nightly-backup"]);
    let open = server.until("/problems", |list| list["items"].as_array().is_some_and(|items| items.len() == 1));
    open["items"][0]["id"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn help_begins_with_three_examples_that_work() {
    let declared = "[[job]]\njob_key = \"nightly-report\"\ntarget = \"print\"\ncron_expression = \"@daily\"\n";
    let server = Server::with(&format!("{TARGETS}\n{declared}{NOTIFY}{EDITABLE}")).registered();
    server.job("daily-briefing", &json!({"startAt": "2099-01-01T00:00:00Z"}));
    server.job("slow", &json!({"target": "sleep"}));
    server.job("metrics", &json!({"cronExpression": "@hourly"}));
    server.job("sync", &json!({"labels": {"team": "data", "imported": "crontab.txt"}}));
    server.job("org-briefing", &json!({"scope": "per_org"}));
    // The files that examples name.
    fs::write(server.folder.path().join("jobs.toml"), declared).unwrap();
    fs::write(server.folder.path().join("prod.token"), "evb_prod\n").unwrap();
    let instance = data(&server, &["instances", "-o", "name"]).trim().to_owned();
    let problem = problem(&server);
    let folder = Path::new(env!("CARGO_BIN_EXE_everbell")).parent().unwrap();
    let path = std::env::join_paths([folder, Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
    for page in PAGES {
        if page.ends_with(&["retire"]) {
            stop_backfill(&server);
        }
        let help = stdout(&[*page, &["--help"]].concat());
        let mut lines = help.lines();
        assert_eq!(lines.next(), Some("Examples:"), "{page:?}");
        let examples: Vec<&str> = lines.map_while(|line| line.strip_prefix("  ")).collect();
        assert_eq!(examples.len(), 3, "{help}");
        for example in examples {
            assert!(example.contains(&format!("everbell {}", page[0])), "{page:?}: {example}");
            if page.ends_with(&["restore-declaration"]) {
                server.patch("/jobs/key:nightly-report", &json!({ "description": "edited" })).expect(200);
            }
            if page.ends_with(&["unmute"]) {
                server.post(&format!("/problems/{problem}/mute"), &json!({ "reason": "as before" })).expect(200);
            }
            if let [_, change @ ("backfill-pause" | "backfill-resume")] = page {
                turn_backfill(&server, change);
            }
            if let ["targets", command] = page {
                prepare_targets(&server, command);
            }
            let [run, active] = if page[0] == "runs" { runs(&server) } else { Default::default() };
            let mut shell = Command::new("sh");
            // Not every machine has this editor.
            let example = example.replace("EDITOR=nano", "EDITOR=true");
            shell.args(["-c", &example.replace("http://127.0.0.1:7070", "\"$EVERBELL_SERVER\"")]);
            shell.env("XDG_CONFIG_HOME", server.folder.path()).env_remove("VISUAL");
            shell.current_dir(server.folder.path()).env("PATH", &path).env("LC_ALL", "C.UTF-8");
            shell.env("EVERBELL_SERVER", format!("http://{}", server.address)).env("EVERBELL_TOKEN", &server.token);
            shell.env("SESSION", if page[0] == "sessions" { session(&server) } else { String::new() });
            shell.env("FREEZE", if page.ends_with(&["end"]) { freeze(&server) } else { String::new() });
            shell.env("RUN", run).env("ACTIVE", active).env("INSTANCE", &instance).env("PROBLEM", &problem);
            let found = ran(shell.output().unwrap());
            assert_eq!(found.code, Some(0), "{example}: {}{}", found.stdout, found.stderr);
        }
    }
}

/// The commands below a page, as its help lists them.
fn below(page: &[String]) -> Vec<String> {
    let mut args: Vec<&str> = page.iter().map(String::as_str).collect();
    args.push("--help");
    let help = stdout(&args);
    // Those of the program stand in groups.
    let first = if page.is_empty() { "Start:" } else { "Commands:" };
    let commands = help.lines().skip_while(|line| *line != first).take_while(|line| *line != "Options:");
    let commands = commands.take_while(|line| page.is_empty() || !line.is_empty());
    let names = commands.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next().map(str::to_owned));
    names.filter(|name| page.is_empty() || name != "help").collect()
}

#[test]
fn every_page_is_known_here() {
    let mut pages = vec![Vec::new()];
    let mut seen = 0;
    while let Some(page) = pages.pop() {
        let words: Vec<&str> = page.iter().map(String::as_str).collect();
        let known = [PAGES, REMOTE, &crate::cron::usage::HELP[..], &crate::doctor::ONLINE];
        let known = known.iter().any(|pages| pages.contains(&words.as_slice()));
        assert!(known, "the examples of `everbell {}` are not run: add it to `PAGES`", words.join(" "));
        seen += 1;
        pages.extend(below(&page).into_iter().map(|name| [page.clone(), vec![name]].concat()));
    }
    assert!(seen > 40, "{seen}");
}

#[test]
fn topics_are_there() {
    for (topic, text) in [
        ("exit-codes", "  130  interrupted"),
        ("environment", "  EVERBELL_TOKEN "),
        ("time", "tomorrow 08:00"),
        ("formatting", "  -o jsonl   one JSON object per line"),
    ] {
        assert!(stdout(&["help", topic]).contains(text), "{topic}");
        assert!(stdout(&["--help"]).contains(&format!("everbell help {topic}")), "{topic}");
    }
    assert!(stdout(&["help", "jobs", "pause"]).contains("Usage: everbell jobs pause"));
    assert!(crate::binary::refusal(&["help", "nothing"]).starts_with("error: no help for `nothing`\n"));
}
