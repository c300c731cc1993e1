//! Denials are logged, and audit entries record the origin.

use serde_json::{Value, json};

use crate::server::{Server, TARGETS};
use crate::serving::signal;
use crate::ui::visitor::Visitor;

fn token(server: &Server, name: &str, role: &str) -> String {
    let made = server.post("/tokens", &json!({ "name": name, "role": role }));
    made.expect(201)["token"].as_str().unwrap().to_owned()
}

/// The entries of this action, the newest first.
fn entries(server: &Server, action: &str) -> Vec<Value> {
    let trail = server.get("/audit?limit=200").expect(200);
    trail["items"].as_array().unwrap().iter().filter(|entry| entry["action"] == action).cloned().collect()
}

#[test]
fn denied_requests_are_logged_with_who_where_and_why() {
    let server = Server::start();
    let header = [("authorization", "Bearer evb_guess"), ("x-request-id", "r-guess")];
    server.request("GET", "/jobs", &header, b"").problem(401, "Unauthenticated");
    server.until_logged("r-guess");
    let form = [("content-type", "application/x-www-form-urlencoded"), ("x-request-id", "r-form")];
    assert_eq!(server.raw("POST", "/sign-in", &form, b"token=evb_guess").status, 401);
    server.until_logged("r-form");
    let log = server.log();
    let line = log.lines().find(|line| line.contains("r-guess")).unwrap();
    for part in ["WARN", "a request was denied", "127.0.0.1", "GET", "/api/v1/jobs", "401", "unknown"] {
        assert!(line.contains(part), "{part}: {line}");
    }
    assert!(log.lines().any(|line| line.contains("r-form") && line.contains("/sign-in")), "{log}");
    assert!(!log.contains("evb_guess"), "{log}");
}

#[test]
fn the_log_of_denied_requests_is_bounded() {
    let server = Server::start();
    let header = [("authorization", "Bearer evb_guess")];
    for _ in 0..200 {
        server.request("GET", "/jobs", &header, b"");
    }
    let lines = server.log().lines().filter(|line| line.contains("a request was denied")).count();
    assert!((1..150).contains(&lines), "{lines}");
}

fn check_denied(server: &Server) {
    let viewer = format!("Bearer {}", token(server, "curious", "viewer"));
    let headers = [("authorization", viewer.as_str()), ("x-request-id", "r-curious")];
    for _ in 0..100 {
        server.request("GET", "/tokens", &headers, b"").problem(403, "Forbidden");
    }
    let denied = entries(server, "auth.denied");
    // Those after the first are written as one when their minute is over.
    assert!((1..=2).contains(&denied.len()), "{denied:?}");
    let entry = denied.last().unwrap();
    assert_eq!((&entry["actor"], &entry["object"]), (&json!("token:curious"), &json!("route:GET /api/v1/tokens")));
    assert_eq!((&entry["from"], &entry["requestId"]), (&json!("127.0.0.1"), &json!("r-curious")));
    assert_eq!((&entry["role"], &entry["after"]), (&json!("viewer"), &json!({ "status": 403, "count": 1 })));
    // A bad token is in the log only: anybody could fill the trail.
    server.request("GET", "/tokens", &[("authorization", "Bearer evb_guess")], b"").problem(401, "Unauthenticated");
    assert!(entries(server, "auth.denied").iter().all(|entry| entry["actor"] == "token:curious"));
    assert!(entries(server, "auth.failed").is_empty());
}

#[test]
fn a_known_token_that_is_denied_is_in_the_trail() {
    check_denied(&Server::start());
}

#[test]
fn a_known_token_that_is_denied_is_in_the_trail_on_postgres() {
    check_denied(&Server::postgres(TARGETS));
}

#[test]
fn a_page_that_is_denied_is_in_the_trail() {
    let server = Server::start();
    let visitor = Visitor::new(&server, &token(&server, "curious", "viewer"));
    visitor.post("/settings/tokens", &[("name", "mine"), ("role", "admin")]);
    let denied = entries(&server, "auth.denied");
    assert_eq!(denied.len(), 1, "{denied:?}");
    assert_eq!((&denied[0]["actor"], &denied[0]["role"]), (&json!("token:curious"), &json!("viewer")));
    assert_eq!((&denied[0]["object"], &denied[0]["from"]), (&json!("route:POST /tokens"), &json!("127.0.0.1")));
}

#[test]
fn sign_ins_and_failed_ones_are_in_the_trail() {
    let mut server = Server::start();
    let form = [("content-type", "application/x-www-form-urlencoded"), ("x-request-id", "r-form")];
    for _ in 0..50 {
        let reply = server.raw("POST", "/sign-in", &form, b"token=evb_guess");
        assert!([401, 429].contains(&reply.status), "{reply:?}");
    }
    let failed = entries(&server, "auth.failed");
    assert!((1..=2).contains(&failed.len()), "{failed:?}");
    let entry = failed.last().unwrap();
    assert_eq!((&entry["actor"], &entry["object"]), (&json!("nobody"), &json!("route:POST /sign-in")));
    assert_eq!((&entry["from"], &entry["requestId"]), (&json!("127.0.0.1"), &json!("r-form")));
    assert_eq!((&entry["role"], &entry["after"]), (&Value::Null, &json!({ "status": 401, "count": 1 })));

    // A valid token still gets in, with an entry and a line of the log.
    let sent = format!("token={}", server.token);
    let form = [("content-type", "application/x-www-form-urlencoded"), ("x-request-id", "r-in")];
    assert_eq!(server.raw("POST", "/sign-in", &form, sent.as_bytes()).status, 303);
    let entry = &entries(&server, "session.create")[0];
    assert_eq!((&entry["actor"], &entry["role"]), (&json!("token:admin"), &json!("admin")));
    assert_eq!((&entry["from"], &entry["requestId"]), (&json!("127.0.0.1"), &json!("r-in")));
    server.until_logged("r-in");
    let log = server.log();
    let line = log.lines().find(|line| line.contains("r-in")).unwrap();
    for part in ["INFO", "session.create", "token:admin", "127.0.0.1"] {
        assert!(line.contains(part), "{part}: {line}");
    }

    // What was only counted is written at the end.
    let token = server.token.clone();
    signal(&server, "TERM");
    assert_eq!(server.ended(), Some(0));
    let mut server = Server::in_folder(server.take_folder(), &[], &[]);
    server.token = token;
    let failed = entries(&server, "auth.failed");
    let counts: u64 = failed.iter().map(|entry| entry["after"]["count"].as_u64().unwrap()).sum();
    assert_eq!((failed.len(), counts), (2, 50), "{failed:?}");
}

fn check_origin(server: &Server) {
    let header = format!("Bearer {}", server.token);
    let headers = [("authorization", header.as_str()), ("x-request-id", "r-make")];
    let body = json!({ "jobKey": "daily", "target": "print", "cronExpression": "0 0 1 1 *" }).to_string();
    server.request("POST", "/jobs", &headers, body.as_bytes()).expect(201);
    let entry = &entries(server, "job.create")[0];
    assert_eq!((&entry["from"], &entry["requestId"]), (&json!("127.0.0.1"), &json!("r-make")), "{entry}");
    assert_eq!(entry["role"], "admin");
    // What everbell does by itself comes from nowhere.
    let first = entries(server, "token.create").pop().unwrap();
    assert_eq!((&first["actor"], &first["from"]), (&json!("everbell"), &Value::Null), "{first}");
}

#[test]
fn entries_say_from_where_and_by_which_request() {
    check_origin(&Server::start());
}

#[test]
fn entries_say_from_where_on_postgres() {
    check_origin(&Server::postgres(TARGETS));
}
