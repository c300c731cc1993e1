//! `auth.run_history`: what a role may not read is left out everywhere.

use std::collections::BTreeSet;

use serde_json::json;

use crate::server::{Server, TARGETS};
use crate::ui::visitor::Visitor;

/// A server whose run history is for admins, with a job whose last run failed. Also the id of that run.
fn given() -> (Server, String) {
    let server = Server::with(&format!("{TARGETS}\n[auth]\nrun_history = \"admin\"\n")).registered();
    server.job("daily", &json!({ "target": "fail" }));
    let run = server.post("/jobs/key:daily/run-now", &json!({ "payload": { "x": "CANARY" } })).expect(202);
    let id = run["run"]["id"].as_str().unwrap().to_owned();
    server.until(&format!("/runs/{id}"), |run| run["status"] == "failed");
    (server, id)
}

#[test]
fn no_route_shows_runs_to_a_role_that_may_not_read_them() {
    let (server, id) = given();
    let document = server.raw("GET", "/openapi.json", &[], b"").expect(200);
    let paths: BTreeSet<&String> = document["paths"].as_object().unwrap().keys().collect();
    let (mut shown, mut refused) = (0, 0);
    for role in ["viewer", "operator"] {
        let header = format!("Bearer {}", server.token_of(role));
        let get = |path: &str| server.raw("GET", path, &[("authorization", &header)], b"");
        for path in &paths {
            // The audit trail records actions, including started runs.
            let is_read = document["paths"][path.as_str()].get("get").is_some() && path.starts_with("/api/");
            if !is_read || path.ends_with("/audit") {
                continue;
            }
            let filled = path.replace("{jobId}", "key:daily").replace("{runId}", &id).replace("{target}", "fail");
            let reply = get(&filled.replace(['{', '}'], ""));
            if reply.status == 200 {
                shown += 1;
            } else {
                refused += 1;
            }
            for secret in [id.as_str(), "CANARY", "exit_code"] {
                assert!(!reply.text.contains(secret), "{role} reads {secret} at {filled}: {}", reply.text);
            }
        }
        for path in ["/api/v1/jobs?lastRunStatus=failed", "/api/v1/jobs?sort=-lastRunAt"] {
            get(path).problem(403, "Forbidden");
        }
        assert_eq!(get("/api/v1/jobs").expect(200)["items"][0]["lastRun"], json!(null));
        assert_eq!(get("/api/v1/schedules/key:daily").expect(200)["last_run_at"], json!(null));
    }
    assert!(shown > 15 && refused > 5, "{shown} {refused}");
    assert_eq!(server.get("/jobs").expect(200)["items"][0]["lastRun"]["id"], id.as_str(), "admins read them");
}

#[test]
fn an_action_does_not_show_what_a_run_got_or_returned() {
    let (server, id) = given();
    let operator = format!("Bearer {}", server.token_of("operator"));
    let post = |path: &str, body: &str| server.request("POST", path, &[("authorization", &operator)], body.as_bytes());
    let again = post(&format!("/runs/{id}/rerun"), "{}");
    assert_eq!((again.status, again.text.contains("CANARY")), (202, false), "{}", again.text);
    let filter = r#"{"action":"pause","reason":"SMTP down","filter":{"lastRunStatus":["failed"]},"dryRun":true}"#;
    assert_eq!(post("/jobs/bulk", filter).status, 403);
    server.job("slow", &json!({ "target": "sleep" }));
    let run = server.post("/jobs/key:slow/run-now", &json!({ "payload": { "x": "CANARY" } })).expect(202);
    let skipped = post("/jobs/key:slow/run-now", "{}").problem(409, "OverlapSkipped");
    assert!(skipped.get("activeRun").is_none() && !skipped.to_string().contains("CANARY"), "{skipped}");
    let canceled = post(&format!("/runs/{}/cancel", run["run"]["id"].as_str().unwrap()), "{}");
    assert_eq!((canceled.status, canceled.text.contains("CANARY")), (202, false), "{}", canceled.text);
}

#[test]
fn no_page_shows_runs_to_a_role_that_may_not_read_them() {
    let (server, id) = given();
    let viewer = Visitor::sign_in(&server, "viewer");
    for path in ["/", "/jobs", "/jobs/daily", "/jobs/daily/versions", "/timeline", "/targets", "/cluster", "/orgs"] {
        let reply = viewer.get(path);
        assert!(reply.status == 200 || reply.status == 404, "{path}: {}", reply.status);
        for secret in [id.as_str(), "CANARY", "exit_code"] {
            assert!(!reply.text.contains(secret), "a viewer reads {secret} at {path}");
        }
    }
    for path in ["/runs", "/runs/export", &format!("/runs/{id}"), "/jobs?lastRunStatus=failed", "/ui/events"] {
        assert_eq!(viewer.get(path).status, 403, "{path}");
    }
}
