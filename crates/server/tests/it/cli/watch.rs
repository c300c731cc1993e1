//! `--watch`: tables that follow, and events as lines.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::{prepared, refused};
use crate::server::Server;
use crate::talk::Talk;

#[test]
fn events_are_lines_for_programs() {
    let server = Server::start();
    server.job("daily-briefing", &json!({}));
    let mut child = prepared(&server, &["jobs", "--watch", "-o", "jsonl"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    let heard = AtomicBool::new(false);
    let happening = std::thread::scope(|scope| {
        scope.spawn(|| {
            // A server watches from when somebody listens, so this is done until it is heard.
            for n in 0..300 {
                let reason = json!({"reason": format!("again {n}")});
                server.post("/jobs/key:daily-briefing/pause", &reason).expect(200);
                std::thread::sleep(std::time::Duration::from_millis(100));
                if heard.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        lines.read_line(&mut line).unwrap();
        heard.store(true, Ordering::Relaxed);
        serde_json::from_str::<Value>(&line).unwrap()
    });
    assert_eq!((&happening["event"], &happening["data"]["jobKey"]), (&json!("job.pause"), &json!("daily-briefing")));
    // An interrupt ends it, with the code for that.
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn table_follows_changes() {
    let server = Server::start();
    server.job("daily-briefing", &json!({}));
    let mut child = prepared(&server, &["jobs", "--watch", "-o", "table"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("JOB KEY"));
    assert!(lines.next().unwrap().unwrap().contains("● active"));
    server.post("/jobs/key:daily-briefing/pause", &json!({"reason": "SMTP down"})).expect(200);
    assert!(lines.next().unwrap().unwrap().starts_with("JOB KEY"));
    assert!(lines.next().unwrap().unwrap().contains("‖ paused"));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn output_of_a_run_is_shown_as_it_grows() {
    let server = Server::with(&Talk::targets());
    let (talk, run) = Talk::begin(&server, "chatty");
    let args = ["runs", "watch", "chatty", "--log"];
    let mut child = prepared(&server, &args).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "one 1");
    talk.go_on_after("one");
    assert_eq!(lines.next().unwrap(), "two 1");
    talk.go_on_after("two");
    assert_eq!(lines.next().unwrap(), "three");
    let last = lines.next().unwrap();
    assert!(last.contains(&format!("run {} succeeded", run["id"].as_str().unwrap())), "{last}");
    assert_eq!((lines.next(), child.wait().unwrap().code()), (None, Some(0)));
}

#[test]
fn a_pipe_cannot_be_redrawn() {
    let server = Server::start();
    assert_eq!(
        refused(&server, &["runs", "--watch"], 2),
        "error: --watch redraws a table, which needs a terminal\n  hint: print events as they happen: --watch -o jsonl\n"
    );
}
