//! Bodies and names that are made to cost, to mislead or to slip past a gateway.

use serde_json::{Value, json};

use crate::server::{Response, Server, TARGETS};
use crate::ui::visitor::part;

/// An object with this many members that no route knows.
fn unknown_members(count: usize) -> Value {
    Value::Object((0..count).map(|n| (format!("m{n}"), json!(1))).collect())
}

fn listed(reply: &Response) -> usize {
    reply.problem(400, "InvalidInput")["errors"].as_array().unwrap().len()
}

#[test]
fn a_body_with_many_faults_gets_a_short_answer() {
    let server = Server::start();
    let reply = server.post("/cron/preview", &unknown_members(150));
    assert_eq!(listed(&reply), 20);
    let detail = reply.expect(400)["detail"].as_str().unwrap().to_owned();
    // The expression is missing as well.
    assert_eq!(detail, "151 members or parameters are invalid; the first 20 are listed.");

    let reply = server.post("/cron/preview", &unknown_members(60_000));
    let detail = "#: has 60000 members; at most 200 are allowed here";
    assert_eq!((listed(&reply), &reply.expect(400)["detail"]), (1, &json!(detail)));
    let policies = |count| json!({ "jobKey": "a", "target": "print", "cronExpression": "@daily", "policies": unknown_members(count) });
    server.job("there", &json!({}));
    for (method, path) in [("POST", "/jobs"), ("PATCH", "/jobs/key:there"), ("POST", "/jobs/key:there/new-version")] {
        let reply = server.send(method, path, Some(&policies(60_000)));
        assert!(listed(&reply) <= 2 && reply.text.len() < 2_000, "{method} {path}: {}", reply.text);
        assert!(reply.text.contains("#/policies: has 60000 members") || listed(&reply) == 2, "{}", reply.text);
        let reply = server.send(method, path, Some(&policies(199)));
        assert!(listed(&reply) == 20 && reply.text.len() < 32_000, "{method} {path}: {}", reply.text.len());
    }
    let labels: Value = (0..60_000).map(|n| (format!("l{n}"), json!(1))).collect::<serde_json::Map<_, _>>().into();
    let reply = server
        .post("/jobs", &json!({ "jobKey": "a", "target": "print", "cronExpression": "@daily", "labels": labels }));
    assert_eq!((listed(&reply), reply.faults().remove(0)), (1, "#/labels".to_owned()));
    let query: Vec<String> = (0..150).map(|n| format!("m{n}=1")).collect();
    assert_eq!(listed(&server.get(&format!("/jobs?{}", query.join("&")))), 20);
}

#[test]
fn a_member_that_is_there_twice_is_refused() {
    let server = Server::start();
    let auth = format!("Bearer {}", server.token);
    let send = |path: &str, kind: &str, body: &str| {
        server.request("POST", path, &[("authorization", &auth), ("content-type", kind)], body.as_bytes())
    };
    let json = "application/json";
    let reply = send("/tokens", json, r#"{"name":"d","role":"viewer","role":"admin"}"#);
    assert_eq!(reply.faults(), ["#/role"]);
    assert!(reply.text.contains("appears more than once"), "{}", reply.text);
    // The same name in other letters of JSON is the same name.
    assert_eq!(send("/tokens", json, r#"{"name":"d","role":"viewer","\u0072ole":"admin"}"#).faults(), ["#/role"]);
    let job = r#"{"jobKey":"a","target":"print","cronExpression":"@daily","policies":{"grace":"1s","grace":"9s"}}"#;
    assert_eq!(send("/jobs", json, job).faults(), ["#/policies/grace"]);
    let job =
        r#"{"jobKey":"a","target":"print","cronExpression":"@daily","payload":[{"x":1},{"x":1,"y/z":{"q":1,"q":2}}]}"#;
    assert_eq!(send("/jobs", json, job).faults(), ["#/payload/1/y~1z/q"]);
    let line = "{\"id\":\"acme\",\"timezone\":\"UTC\",\"timezone\":\"Asia/Tokyo\"}";
    let reply = send("/orgs", "application/x-ndjson", line);
    assert!(reply.status == 400 && reply.text.contains("timezone"), "{}", reply.text);
    assert_eq!(server.get("/orgs").expect(200)["items"], json!([]));
    assert_eq!(server.get("/tokens").expect(200)["items"].as_array().unwrap().len(), 1);
}

#[test]
fn a_body_is_read_as_what_it_says_it_is() {
    let server = Server::start();
    let auth = format!("Bearer {}", server.token);
    let send = |headers: &[(&str, &str)]| {
        let headers: Vec<_> = headers.iter().copied().chain([("authorization", auth.as_str())]).collect();
        server.request("POST", "/cron/preview", &headers, br#"{"cronExpression":"@daily"}"#)
    };
    for kind in [
        "application/json",
        "APPLICATION/JSON",
        "application/json; charset=utf-8",
        "Application/Json;charset=\"UTF-8\"",
        "application/json; profile=x",
    ] {
        send(&[("content-type", kind)]).expect(200);
    }
    for kind in ["application/json;charset=utf-16", "application/json; charset=latin1", "text/json", ""] {
        send(&[("content-type", kind)]).problem(415, "UnsupportedMediaType");
    }
    send(&[("content-type", "application/json"), ("content-encoding", "identity")]).expect(200);
    let problem = send(&[("content-type", "application/json"), ("content-encoding", "gzip")])
        .problem(415, "UnsupportedMediaType");
    assert_eq!(problem["detail"], "The content encoding `gzip` is not supported; send the body without one.");
}

#[test]
fn names_look_like_what_they_are() {
    let server = Server::start();
    for name in [".", "..", "admin\u{200c}", "\u{202e}nimda", "\u{430}dmin", "a\u{7f}", " a"] {
        let reply = server.post("/tokens", &json!({ "name": name, "role": "viewer" }));
        assert_eq!(reply.faults(), ["#/name"], "{name:?}");
    }
    for key in ["daily\u{200b}", "\u{202e}yliad", "a\u{2066}b", "\u{feff}a", "a\u{ad}b", "a\u{2028}b", "a\u{e0041}"] {
        let body = json!({ "jobKey": key, "target": "print", "cronExpression": "@daily" });
        assert_eq!(server.post("/jobs", &body).faults(), ["#/jobKey"], "{key:?}");
        let path = format!("/orgs/{}", part(key));
        assert_eq!(server.put(&path, &json!({ "timezone": "UTC" })).faults(), ["#/orgId"], "{key:?}");
    }
    for labels in
        [json!({ "a": "x\ny" }), json!({ "a": "\u{1b}[31m" }), json!({ "a\u{200d}": "x" }), json!({ "a": "\u{202e}" })]
    {
        let body = json!({ "jobKey": "a", "target": "print", "cronExpression": "@daily", "labels": labels });
        assert_eq!(server.post("/jobs", &body).faults(), ["#/labels"], "{labels}");
    }
    // Every other script stays welcome, also those that join letters.
    for key in ["שלום", "日本語", "naïve", "⏰"] {
        server.job(key, &json!({ "labels": { "équipe": "Zürich" } }));
    }
}

#[test]
fn an_offset_is_one_that_exists() {
    let server = Server::start();
    let once = |at: &str| server.post("/jobs", &json!({ "jobKey": "a", "target": "print", "runAt": at }));
    for at in [
        "2040-01-01T00:00:00+25:00",
        "2040-01-01T00:00:00-24:00",
        "2040-01-01T00:00:00+18:01",
        "2040-01-01T00:00:60Z",
        "2040-01-01T00:00:60",
    ] {
        assert_eq!(once(at).faults(), ["#/runAt"], "{at}");
    }
    once("2040-01-01T00:00:00+14:00").expect(201);
}

/// Twelve at once change what they all have read.
fn one_of_many_wins(server: &Server) {
    server.job("x", &json!({}));
    let auth = format!("Bearer {}", server.token);
    for round in 0..3 {
        let read = server.get("/jobs/key:x").headers["etag"].clone();
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let patch = |n: usize| {
                let headers = [("authorization", auth.as_str()), ("if-match", read.as_str())];
                let body = json!({ "cronExpression": format!("{n} {round} 1 1 *") }).to_string();
                server.request("PATCH", "/jobs/key:x", &headers, body.as_bytes()).status
            };
            let all: Vec<_> = (1..=12).map(|n| scope.spawn(move || patch(n))).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let (good, bad): (Vec<u16>, Vec<u16>) = statuses.iter().partition(|status| **status == 200);
        assert_eq!((good.len(), bad.iter().all(|status| *status == 412)), (1, true), "{statuses:?}");
        assert_eq!(server.get("/jobs/key:x").expect(200)["version"], round + 2);
    }
}

#[test]
fn one_of_many_with_the_same_etag_wins_on_sqlite() {
    one_of_many_wins(&Server::start());
}

#[test]
fn one_of_many_with_the_same_etag_wins_on_postgres() {
    one_of_many_wins(&Server::postgres(TARGETS).registered());
}

#[test]
fn an_etag_of_an_earlier_version_is_never_valid_again() {
    let server = Server::with(&format!("{TARGETS}\n[api]\nrequire_if_match = true\n")).registered();
    server.job("x", &json!({}));
    let auth = format!("Bearer {}", server.token);
    let send = |method: &str, path: &str, etag: &str, body: &Value| {
        let headers = [("authorization", auth.as_str()), ("if-match", etag)];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        server.request(method, path, &headers, body.as_bytes())
    };
    let mut seen: Vec<String> = Vec::new();
    let mut read = |path: &str| {
        let etag = server.get(path).headers["etag"].clone();
        assert!(!seen.contains(&etag), "{etag} was there before: {seen:?}");
        for old in &seen {
            for (method, path, body) in [
                ("PATCH", "/jobs/key:x", json!({ "description": "y" })),
                // Nothing would change; it is stale all the same.
                ("PATCH", "/jobs/key:x", json!({})),
                ("POST", "/jobs/key:x/new-version", json!({})),
                ("POST", "/jobs/key:x/pause", json!({ "reason": "SMTP down" })),
                ("DELETE", "/jobs/key:x", Value::Null),
                ("PATCH", "/api/v1/schedules/key:x", json!({ "cron_expression": "0 7 1 1 *" })),
                ("PATCH", "/api/v1/schedules/key:x", json!({ "enabled": false })),
                (
                    "PUT",
                    "/api/v1/schedules/key:x",
                    json!({ "name": "x", "cron_expression": "0 7 1 1 *", "target": "print" }),
                ),
            ] {
                send(method, path, old, &body).problem(412, "RevisionMismatch");
            }
        }
        seen.push(etag.clone());
        etag
    };
    let etag = read("/jobs/key:x");
    send("PATCH", "/jobs/key:x", &etag, &json!({ "cronExpression": "0 1 1 1 *" })).expect(200);
    let etag = read("/jobs/key:x");
    send("POST", "/jobs/key:x/pause", &etag, &json!({ "reason": "SMTP down" })).expect(200);
    let etag = read("/api/v1/schedules/key:x");
    let reply =
        send("PATCH", "/api/v1/schedules/key:x", &etag, &json!({ "cron_expression": "0 2 1 1 *", "enabled": true }));
    assert_eq!(reply.expect(200)["enabled"], true);
    let etag = read("/api/v1/schedules/key:x");
    assert_eq!(reply.headers["etag"], etag);
    send("DELETE", "/jobs/key:x", &etag, &Value::Null).expect(200);
    // A new job continues with the next version.
    server.job("x", &json!({}));
    read("/jobs/key:x");
    for (method, path, body) in [
        ("PATCH", "/api/v1/schedules/key:x", json!({ "enabled": false })),
        ("PUT", "/api/v1/schedules/key:x", json!({ "name": "x", "cron_expression": "0 7 1 1 *", "target": "print" })),
        ("PATCH", "/jobs/key:x", json!({})),
    ] {
        server.send(method, path, Some(&body)).problem(428, "PreconditionRequired");
    }
}

#[test]
fn a_long_form_of_a_stranger_is_not_sent_back() {
    let server = Server::start();
    let post = |length: usize| {
        let headers = [("sec-fetch-site", "same-origin"), ("content-type", "application/x-www-form-urlencoded")];
        server.raw("POST", "/jobs/x/pause", &headers, format!("reason={}", "<".repeat(length)).as_bytes())
    };
    let short = post(1_000);
    assert!(short.status == 401 && short.text.contains("Your input is kept"), "{}", short.text);
    let long = post(900_000);
    assert!(long.status == 401 && long.text.len() < 64_000, "{} bytes", long.text.len());
}
