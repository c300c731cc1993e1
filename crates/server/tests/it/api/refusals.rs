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
        (json!({ "policies": {"onLost": "again"} }), "#/policies/onLost", "fail, retry"),
        (json!({ "policies": {"onLost": "retry"} }), "#/policies/onLost", "needs at least 2 attempts"),
        (json!({ "policies": {"dependsOn": {"jobKey": "x"}} }), "#/policies/dependsOn/within", "required"),
        (json!({ "startAt": "+15m" }), "#/startAt", "use RFC 3339 such as `2027-03-13T00:00:00Z`, or a local time"),
        (json!({ "foo": 1 }), "#/foo", "is not known here; known: jobKey, pauseReason, target, "),
        (json!({ "status": "paused" }), "#/status", "is not known here; known: jobKey, pauseReason, target, "),
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
fn a_body_that_is_no_object_is_refused_for_that_alone() {
    let server = Server::start();
    server.job("a", &json!({}));
    for body in [json!([]), json!(null), json!("a"), json!(7)] {
        for reply in [server.post("/jobs", &body), server.patch("/jobs/key:a", &body)] {
            assert_eq!(reply.faults(), ["#"], "{body}");
            let detail = reply.expect(400)["detail"].as_str().unwrap().to_owned();
            assert!(detail.starts_with("#: must be an object, not "), "{detail}");
        }
    }
}

#[test]
fn a_time_that_depends_on_now_is_refused_with_what_is_taken() {
    let server = Server::start();
    server.job("a", &json!({}));
    let post = |path: &str, body: &Value| server.post(path, body).expect(400)["detail"].as_str().unwrap().to_owned();
    for detail in [
        post("/jobs", &json!({ "jobKey": "b", "target": "print", "runAt": "+15m" })),
        post("/jobs/key:a/reschedule", &json!({ "nextRunAt": "tomorrow 08:00" })),
        post("/tokens", &json!({ "name": "b", "role": "viewer", "expiresAt": "+1d" })),
        server.get("/runs?from=-2h").expect(400)["detail"].as_str().unwrap().to_owned(),
    ] {
        assert!(detail.contains("use RFC 3339 such as `2027-03-13T00:00:00Z`, or a local time such as "), "{detail}");
        assert!(!detail.contains("`now`") && !detail.contains("`today"), "{detail}");
    }
}

#[test]
fn a_refused_target_says_how_many_others_there_are() {
    let target = |n: usize| format!("[[target]]\nlabel = \"t-{n}\"\ntype = \"log\"\n");
    let server = Server::with(&(0..8).map(target).collect::<String>()).registered();
    let bad = json!({ "jobKey": "a", "target": "t-9", "cronExpression": "@daily" });
    for reply in [server.post("/jobs", &bad).expect(400), server.post("/targets/t-9/try", &json!({})).expect(404)] {
        let detail = reply["detail"].as_str().unwrap();
        assert!(detail.ends_with("known: `t-0`, `t-1`, `t-2`, `t-3`, `t-4` and 3 more"), "{detail}");
    }
}

#[test]
fn what_cannot_be_edited_is_told_with_the_way() {
    let server = Server::start();
    server.job("a", &json!({}));
    for (body, way) in [
        (json!({ "jobKey": "b" }), "cannot be changed; create a job with the new key and retire this one"),
        (json!({ "status": "paused" }), "cannot be edited; use `pause` or `resume`, or DELETE the job"),
        (json!({ "foo": 1 }), "is not known here; known: reason, activate, target, "),
    ] {
        for reply in [server.patch("/jobs/key:a", &body), server.post("/jobs/key:a/new-version", &body)] {
            let detail = reply.expect(400)["errors"][0]["detail"].as_str().unwrap().to_owned();
            assert!(detail.starts_with(way), "{detail}");
        }
    }
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
