//! Pages show runs only to roles that may read them, as configured.

use serde_json::json;

use super::visitor::{Visitor, assert_has};
use crate::server::{Server, TARGETS};

#[test]
fn pages_tell_of_runs_only_who_may_read_them() {
    let server = Server::with(&format!("{TARGETS}\n[auth]\nrun_history = \"operator\"\n"));
    server.job("broken", &json!({"target": "fail"}));
    let mut ids = Vec::new();
    for _ in 0..2 {
        let run = server.post("/jobs/key:broken/run-now", &json!({})).expect(202)["run"]["id"].clone();
        let id = run.as_str().unwrap().to_owned();
        server.until(&format!("/runs/{id}"), |run| run["status"] == "failed");
        ids.push(id);
    }
    server.job("long", &json!({"target": "sleep"}));
    server.post("/jobs/key:long/run-now", &json!({})).expect(202);
    server.until("/runs?status=running", |runs| runs["items"].as_array().unwrap().len() == 1);
    let pages = ["/", "/jobs", "/jobs/broken", "/jobs/broken?at=2026-01-01T00:00:00", "/timeline"];
    let message = [ids[0].as_str(), "ended with the exit code", "exit_code", "The job did not exist yet"];

    let operator = Visitor::sign_in(&server, "operator");
    assert_has(&operator.page("/"), &[message[1], message[2], "Running now", "Runs per hour", "1 problem"]);
    assert_has(&operator.page("/jobs/broken"), &[message[0]]);
    assert_has(&operator.page(pages[3]), &[message[3]]);

    let viewer = Visitor::sign_in(&server, "viewer");
    for path in pages {
        let page = viewer.page(path);
        for text in message {
            assert!(!page.contains(text), "{path} tells `{text}`: {page}");
        }
    }
    let overview = viewer.page("/");
    assert_has(&overview, &["failed 2 times in a row", "Next runs"]);
    for text in ["Runs per hour", "Start delay", "Running now", "in 24 h"] {
        assert!(!overview.contains(text), "`{text}`");
    }
    for path in ["/runs", "/runs/export?format=csv", "/jobs/broken/backfills", &format!("/runs/{}", ids[0])] {
        assert_eq!(viewer.get(path).status, 403, "{path}");
    }
}
