//! Alive, ready, metrics.

use serde_json::json;

use crate::server::{Server, TARGETS};

#[test]
fn alive_and_ready() {
    let server = Server::start();
    assert_eq!(server.raw("GET", "/livez", &[], b"").text, "ok\n");
    server.until("/targets", |targets| targets["items"].as_array().unwrap().len() == 3);
    // It is ready when it has looked for due jobs once.
    server.until("/status", |_| server.raw("GET", "/readyz", &[], b"").status == 200);
    let ready = server.raw("GET", "/readyz?verbose", &[], b"");
    assert_eq!(ready.status, 200, "{}", ready.text);
    for check in ["database", "schema", "scheduler", "zoneData"] {
        assert!(ready.text.contains(check), "{check}: {}", ready.text);
    }
    assert_eq!(server.raw("GET", "/healthz", &[], b"").text, "ok\n");
}

#[test]
fn metrics_count_what_happens() {
    let server = Server::start();
    server.job("good", &json!({}));
    let path = server.post("/jobs/key:good/run-now", &json!({})).headers["location"].clone();
    server.until(&path, |run| run["status"] == "succeeded");
    server.job("each-second", &json!({ "cronExpression": "* * * * * *" }));
    let scheduled = "/runs?triggerType=scheduled&status=succeeded";
    server.until(scheduled, |page| !page["items"].as_array().unwrap().is_empty());
    let text = server.raw("GET", "/metrics", &[], b"").text;
    for line in [
        "everbell_runs_total{target=\"print\",status=\"succeeded\",trigger=\"manual\"} 1",
        "everbell_runs_total{target=\"print\",status=\"succeeded\",trigger=\"scheduled\"} ",
        "# TYPE everbell_fire_lag_seconds histogram",
        "everbell_http_requests_total{method=\"POST\",route=\"/api/v1/jobs\",status=\"201\"} 2",
        "everbell_build_info{",
        "everbell_schedules_skipped_total",
        "everbell_jobs{",
        "everbell_due_backlog 0",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn metrics_may_ask_for_a_token() {
    let server = Server::launch(TARGETS, None, &[("EVERBELL_METRICS_TOKEN", "evm_0123456789abcdef0123456789abcdef")]);
    assert_eq!(server.raw("GET", "/metrics", &[], b"").status, 401);
    let header = [("authorization", "Bearer evm_0123456789abcdef0123456789abcdef")];
    assert_eq!(server.raw("GET", "/metrics", &header, b"").status, 200);
}
