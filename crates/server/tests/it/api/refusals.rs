//! Bad input gets a clear 400 and changes nothing.

use serde_json::{Value, json};

use crate::server::Server;

fn job(more: &Value) -> Value {
    let mut body = json!({ "jobKey": "a", "target": "print", "cronExpression": "@daily" });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

#[test]
fn bad_jobs_are_refused_with_the_place_and_the_reason() {
    let server = Server::start();
    for (more, place, reason) in [
        (json!({ "timezone": "Europe/Pariss" }), "#/timezone", "did you mean `Europe/Paris`"),
        (json!({ "timezone": "../../etc/passwd" }), "#/timezone", "unknown time zone"),
        (json!({ "timezone": "posixrules" }), "#/timezone", "unknown time zone"),
        (json!({ "target": "nobody" }), "#/target", "known: `fail`"),
        (json!({ "target": "" }), "#/target", "1 to 200 characters"),
        (json!({ "cronExpression": "* ".repeat(5_000) }), "#/cronExpression", "1 to 1000 characters"),
        (json!({ "cronExpression": "61 * * * *" }), "#/cronExpression", "61"),
        (json!({ "cronExpression": "0 0 30 2 *" }), "#/cronExpression", "no date ever matches"),
        (json!({ "cronExpression": "0 0 1--100000000 * *" }), "#/cronExpression", ""),
        (json!({ "cronExpression": 5 }), "#/cronExpression", "must be a text, not a number"),
        (json!({ "jobKey": "a\u{0}b" }), "#/jobKey", "NUL"),
        (json!({ "description": "a\u{0}b" }), "#/description", "NUL"),
        (json!({ "labels": {"a": "\u{0}"} }), "#/labels", "NUL"),
        (json!({ "payload": {"a": ["\u{0}"]} }), "#/payload", "u0000"),
        (json!({ "endAt": "9999-12-31T23:59:59Z" }), "#/endAt", "1900 to 2199"),
        (json!({ "startAt": "2027-01-01", "endAt": "2026-01-01" }), "#/endAt", "after startAt"),
        (json!({ "policies": {"overlap": "maybe"} }), "#/policies/overlap", "skip, queue, replace, allow"),
        (json!({ "policies": {"timeout": "-5m"} }), "#/policies/timeout", "negative"),
        (json!({ "policies": {"retry": {"maxAttempts": 101}} }), "#/policies/retry/maxAttempts", "1 to 100"),
        (json!({ "policies": {"dependsOn": {"jobKey": "x"}} }), "#/policies/dependsOn/within", "required"),
        (json!({ "croExpression": "@daily" }), "#/croExpression", "did you mean `cronExpression`"),
        (json!({ "scheduleType": "sometimes" }), "#/scheduleType", "recurring, one_time"),
    ] {
        let reply = server.post("/jobs", &job(&more));
        assert_eq!(reply.faults(), [place], "{more}");
        let detail = reply.expect(400)["errors"][0]["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(reason), "{more}: {detail}");
    }
    let once = |at: &str, zone: &str| json!({ "jobKey": "a", "target": "print", "runAt": at, "timezone": zone });
    for (at, zone) in [
        ("2020-01-01T00:00:00Z", "UTC"),
        ("9999-12-31T23:59:59Z", "UTC"),
        ("2027-03-14T02:30:00", "America/New_York"),
        ("2027-11-07T01:30:00", "America/New_York"),
        ("tomorrow", "UTC"),
        ("", "UTC"),
    ] {
        assert_eq!(server.post("/jobs", &once(at, zone)).faults(), ["#/runAt"], "{at}");
    }
    assert_eq!(server.get("/jobs?status=active,paused,retired").expect(200)["items"], json!([]));
    assert_eq!(server.get("/audit?object=job:a").expect(200)["items"], json!([]));
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let server = Server::start();
    let body = json!({
        "jobKey": "", "target": "nobody", "cronExpression": "x", "timezone": "Nowhere", "payload": {"a": "\u{0}"},
        "policies": {"timeout": "soon", "retry": {"maxAttempts": 0}}, "labels": [], "surprise": true,
    });
    let expected = [
        "#/cronExpression",
        "#/jobKey",
        "#/labels",
        "#/payload",
        "#/policies/retry/maxAttempts",
        "#/policies/timeout",
        "#/surprise",
        "#/target",
        "#/timezone",
    ];
    assert_eq!(server.post("/jobs", &body).faults(), expected);
}

#[test]
fn bodies_that_are_no_json_are_refused() {
    let server = Server::start();
    let auth = format!("Bearer {}", server.token);
    let send = |body: &[u8], media: &str| {
        server.request("POST", "/jobs", &[("authorization", &auth), ("content-type", media)], body)
    };
    send(b"{", "application/json").problem(400, "MalformedJson");
    send(b"{\"jobKey\": \"\xff\"}", "application/json").problem(400, "MalformedJson");
    send(b"jobKey=a", "application/x-www-form-urlencoded").problem(415, "UnsupportedMediaType");
    send(b"{\"payload\": 1e400}", "application/json").problem(400, "MalformedJson");
    assert_eq!(send(b"[1]", "application/json; charset=utf-8").faults()[0], "#");
    assert!(!send(b"", "application/json").faults().is_empty());
    let deep = format!("{{\"payload\": {}1{}}}", "[".repeat(100), "]".repeat(100));
    send(deep.as_bytes(), "application/json").problem(400, "InvalidInput");
    let deeper = format!("{{\"payload\": {}", "[".repeat(100_000));
    send(deeper.as_bytes(), "application/json").problem(400, "MalformedJson");
    let large = format!("{{\"payload\": \"{}\"}}", "x".repeat(2 << 20));
    send(large.as_bytes(), "application/json").problem(413, "PayloadTooLarge");
}

#[test]
fn bad_queries_are_refused() {
    let server = Server::start();
    for (path, place) in [
        ("/jobs?limit=0", "limit"),
        ("/jobs?limit=-1", "limit"),
        ("/jobs?limit=201", "limit"),
        ("/jobs?limit=99999999999999999999", "limit"),
        ("/jobs?limit=many", "limit"),
        ("/jobs?status=lost", "status.0"),
        ("/jobs?sort=name", "sort"),
        ("/jobs?errored=perhaps", "errored"),
        ("/jobs?page=2", "page"),
        ("/jobs?q=%00", "q"),
        ("/jobs?jobKey=%0a", "jobKey"),
        ("/runs?from=yesterday", "from"),
        ("/runs?from=9999-01-01T00:00:00Z", "from"),
        ("/runs?triggerType=magic", "triggerType"),
        ("/jobs/key:a/next?count=0", "count"),
    ] {
        assert_eq!(server.get(path).faults(), [place], "{path}");
    }
    for path in ["/jobs?q=%ff", "/jobs?q=%zz", "/jobs?q=a&q=b"] {
        server.get(path).problem(400, "InvalidInput");
    }
}

#[test]
fn every_answer_can_be_traced_and_is_not_stored() {
    let server = Server::start();
    for path in ["/api/v1/jobs", "/api/v1/nothing", "/livez", "/nothing"] {
        let auth = format!("Bearer {}", server.token);
        let reply = server.raw("GET", path, &[("authorization", &auth), ("x-request-id", "abc-1")], b"");
        assert_eq!(reply.headers["x-request-id"], "abc-1", "{path}");
        assert_eq!(reply.headers["cache-control"], "no-store", "{path}");
        let reply = server.raw("GET", path, &[("x-request-id", "<script>")], b"");
        assert_eq!(reply.headers["x-request-id"].len(), 36, "{path}");
    }
}
