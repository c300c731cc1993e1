//! `everbell runs` and `everbell jobs run`.

use jiff::SignedDuration;
use serde_json::json;

use super::{data, everbell, json as printed, loose, masked, on_terminal, refused, time, until_reached};
use crate::server::{Server, TARGETS};
use crate::ui::visitor::Visitor;

fn flow(server: &Server) {
    server.job("daily-briefing", &json!({"startAt": "2099-01-01T00:00:00Z", "timezone": "Europe/Paris"}));
    server.job("broken", &json!({"target": "fail"}));
    server.job("slow", &json!({"target": "sleep"}));
    let good = everbell(server, &["jobs", "run", "daily-briefing", "--wait"]);
    assert_eq!(
        (good.code, masked(&good.stdout), good.stderr.as_str()),
        (Some(0), "✓ run ID succeeded in SPAN\n".to_owned(), "")
    );
    let bad = on_terminal(server, 120, &["jobs", "run", "broken", "--wait"]);
    assert_eq!(
        (bad.code, masked(&bad.stdout), masked(&bad.stderr)),
        (
            Some(6),
            "✕ run ID failed in SPAN\n  exit_code: `false` ended with the exit code 1\n".to_owned(),
            "show details: everbell runs show ID\n".to_owned()
        )
    );
    let started = on_terminal(server, 120, &["jobs", "run", "slow"]);
    assert_eq!(masked(&started.stderr), "follow it: everbell runs watch ID\n");
    assert!(masked(&started.stdout).starts_with("→ Started run ID of slow\n  Next   "), "{}", started.stdout);
    let active =
        printed(server, &["runs", "--status", "pending,running"])["items"][0]["id"].as_str().unwrap().to_owned();
    server.until(&format!("/runs/{active}"), |run| run["status"] == "running");
    overlap(server, &active);
    assert_eq!(
        masked(&refused(server, &["runs", "watch", &active, "--timeout", "1s"], 7)),
        "error: run ID is still running after SPAN\n  hint: it continues; follow it: everbell runs watch ID\n"
    );
    let canceled = on_terminal(server, 120, &["runs", "cancel", &active, "--reason", "wrong"]);
    assert_eq!(
        (masked(&canceled.stdout), masked(&canceled.stderr)),
        ("⊘ Asked run ID to stop\n".to_owned(), "follow it: everbell runs watch ID\n".to_owned())
    );
    let ended = everbell(server, &["runs", "watch", &active]);
    assert_eq!(ended.code, Some(6));
    assert!(masked(&ended.stdout).starts_with("⊘ run ID canceled in SPAN\n"), "{}", ended.stdout);
    let late = masked(&refused(server, &["runs", "cancel", &active], 5));
    let expected = "error: cannot cancel run `ID`: run ID has already ended: it is canceled\n  \
                    hint: see how it ended: everbell runs show ID\n";
    assert_eq!(late, expected);
}

fn overlap(server: &Server, active: &str) {
    let skipped = everbell(server, &["jobs", "run", "slow"]);
    assert_eq!((skipped.code, skipped.stdout.as_str()), (Some(5), ""));
    let mut lines = skipped.stderr.lines();
    let first = lines.next().unwrap();
    assert!(
        first.starts_with(&format!("⤼ Skipped: run {active} is still running (")) && first.contains(" on "),
        "{first}"
    );
    assert!(lines.next().unwrap().starts_with("  recorded as run "));
    let ways = "  start anyway: everbell jobs run slow --force, or wait for it: everbell jobs run slow --queue";
    assert_eq!((lines.next(), lines.next()), (Some(ways), None));
    let problem = everbell(server, &["jobs", "run", "slow", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&problem.stdout).unwrap();
    assert_eq!((problem.code, &document["activeRun"]["id"]), (Some(5), &json!(active)));
    let queued = masked(&data(server, &["jobs", "run", "slow", "--queue"]));
    assert!(queued.starts_with("→ Queued run ID of slow, which waits for the active run\n"), "{queued}");
    // One that waits is enough, and the same again is no advice.
    let second = everbell(server, &["jobs", "run", "slow", "--queue"]);
    assert_eq!((second.code, second.stdout.as_str()), (Some(5), ""));
    let ways = "  another run is already queued; start anyway: everbell jobs run slow --force\n";
    assert!(second.stderr.ends_with(ways), "{}", second.stderr);
    // Skipped is a conflict, whether somebody waits or not; `help exit-codes` says so.
    assert_eq!(everbell(server, &["jobs", "run", "slow", "--wait"]).code, Some(5));
    assert!(crate::binary::stdout(&["help", "exit-codes"]).contains("another one is active (also with --wait)"));
    let waiting = printed(server, &["runs", "--status", "pending"])["items"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(masked(&data(server, &["runs", "cancel", &waiting])), "⊘ Canceled run ID before it started\n");
}

#[test]
fn a_run_is_followed_to_its_end() {
    flow(&Server::start());
}

#[test]
fn a_run_is_followed_to_its_end_on_postgres() {
    flow(&Server::postgres(TARGETS));
}

#[test]
fn runs_are_listed_and_shown() {
    let server = Server::start();
    server.job("broken-report", &json!({"target": "fail", "payload": {"n": 1}}));
    assert_eq!(everbell(&server, &["jobs", "run", "broken-report", "--wait", "-q"]).stdout, "");
    let id = data(&server, &["runs", "-o", "name"]).trim().to_owned();
    // More than a second ago, so that the columns are as wide as they are below; ages are counted to the last whole second.
    let asked_at = time(&server.get(&format!("/runs/{id}")).expect(200)["scheduledAt"]);
    until_reached(&server, asked_at + SignedDuration::from_secs(2));
    let narrow = on_terminal(&server, 80, &["runs"]);
    assert_eq!(loose(&narrow.stdout), "RUN STATUS JOB AGE WHY\nID ✕ failed broken-report SPAN ago exit_code");
    assert_eq!(masked(&narrow.stderr), "1 run · next: everbell runs show ID\n");
    let wide = on_terminal(&server, 120, &["runs", "list"]).stdout;
    assert_eq!(
        loose(&wide),
        "RUN STATUS JOB SCHEDULED AGE TOOK WHY\nID ✕ failed broken-report DATE CLOCK +00:00 SPAN ago SPAN exit_code"
    );
    let plain = masked(&data(&server, &["runs"]));
    assert!(
        plain.starts_with("ID\tfailed\tbroken-report\tmanual\tTIME\t") && plain.ends_with("\texit_code\n"),
        "{plain}"
    );
    assert_eq!(data(&server, &["runs", "--json"]), format!("{}\n", server.get("/runs?limit=30").text));
    let shown = on_terminal(&server, 80, &["runs", "show", &id]);
    let expected = "✕ failed broken-report v1\nid ID\ntarget fail\ntrigger manual:token:admin\ncreated DATE CLOCK UTC\n\
                    started DATE CLOCK UTC on HOST, SPAN late\nfinished DATE CLOCK UTC, took SPAN\n\
                    why exit_code: `false` ended with the exit code 1\ndetails {\"exitCode\":1}\npayload {\"n\":1}";
    let host = printed(&server, &["instances"])["items"][0]["host"].as_str().unwrap().to_owned();
    assert_eq!(loose(&shown.stdout).replace(&format!(" on {host},"), " on HOST,"), expected);
    assert_eq!(shown.stderr, format!("next: everbell runs rerun {id}\n"));
    let document = data(&server, &["runs", "show", &id, "--json"]);
    assert_eq!(data(&server, &["runs", "show", "broken-report", "--json"]), document);
    assert_eq!(document, format!("{}\n", server.get(&format!("/runs/{id}")).text));
    let again = everbell(&server, &["runs", "rerun", &id, "--wait", "--json"]);
    let again: serde_json::Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!((&again["status"], &again["payloadSnapshot"]), (&json!("failed"), &json!({"n": 1})));
    assert_eq!(data(&server, &["runs", "--job", "other"]), "");
    assert_eq!(data(&server, &["runs", "--trigger", "after"]), "");
    let from = refused(&server, &["runs", "--from", "soon"], 2);
    assert!(from.starts_with("error: --from: `soon` is not a time\n"), "{from}");
}

#[test]
fn output_of_a_run_is_shown_in_a_pipe() {
    let server =
        Server::with("[[target]]\nlabel = \"say\"\ntype = \"command\"\nargv = [\"seq\", \"30\"]\n").registered();
    server.job("talk", &json!({"target": "say"}));
    assert_eq!(everbell(&server, &["jobs", "run", "talk", "--wait"]).code, Some(0));
    let plain = data(&server, &["runs", "show", "talk"]);
    let lines: Vec<&str> = plain.lines().filter_map(|line| line.strip_prefix("output\t")).collect();
    // A program gets all of it, a terminal the end.
    assert_eq!((lines.len(), lines[0], lines[29]), (30, "1", "30"), "{plain}");
    let shown = on_terminal(&server, 80, &["runs", "show", "talk"]).stdout;
    assert!(shown.contains("  output (the last 20 lines; show all: --log)\n    11\n"), "{shown}");
}

/// Hangs the first time, and is done at once after that.
const STURDY: &str = r#"
[engine]
lease = "6s"
[[target]]
label = "sturdy"
type = "command"
argv = ["sh", "-c", "if [ -e began ]; then echo again; else touch began; sleep 1000; fi"]
"#;

#[test]
fn a_run_that_was_lost_with_its_server_is_retried_and_every_view_says_so() {
    let server = Server::with(STURDY).registered();
    let policies = json!({ "onLost": "retry", "retry": { "maxAttempts": 2, "initial": "1s" } });
    server.job("sturdy", &json!({ "target": "sturdy", "cronExpression": "* * * * * *", "policies": policies }));
    let found = server.until("/runs?status=running", |list| list["items"][0]["startedAt"].is_string());
    let (id, slot) = (found["items"][0]["id"].as_str().unwrap(), found["items"][0]["slotAt"].as_str().unwrap());
    // It takes no leave: it is killed.
    let (token, folder) = (server.token.clone(), server.take_folder());
    let mut server = Server::in_folder(folder, &[], &[]);
    server.token = token;
    let run = server.until(&format!("/runs/{id}"), |run| run["status"] == "succeeded");
    assert_eq!((&run["attempt"], &run["output"]), (&json!(2), &json!("again\n")));
    let earlier = &run["earlierAttempts"][0];
    assert_eq!(
        (&earlier["attempt"], &earlier["failureCode"], &earlier["counts"]),
        (&json!(1), &json!("lost"), &json!(true))
    );
    assert_eq!(earlier["detail"], "attempt 1 was lost");

    let words = "This slot has a run; its status is succeeded: attempt 1 was lost, attempt 2 succeeded";
    let explained = server.get(&format!("/jobs/key:sturdy/explain?at={slot}")).expect(200);
    assert_eq!(explained["detail"], format!("{words}."));
    let shown = on_terminal(&server, 120, &["jobs", "explain", "sturdy", slot]);
    assert!(shown.stdout.contains(words), "{}", shown.stdout);
    let shown = on_terminal(&server, 120, &["runs", "show", id]);
    assert!(masked(&shown.stdout).contains("attempt 1 was lost, "), "{}", shown.stdout);
    let page = Visitor::admin(&server).page(&format!("/runs/{id}"));
    assert!(page.contains("<span class=\"name\">Lost</span>") && page.contains("attempt 1"), "{page}");
    assert!(page.contains("<dd>2 of 2"), "{page}");
}
