//! What is denied leaves a trace, and what is done says from where.

use serde_json::{Value, json};

use crate::server::{Server, TARGETS};

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
    for part in ["WARN", "a request was denied", "127.0.0.1", "GET", "/api/v1/jobs", "401", "not known"] {
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

#[test]
fn a_known_token_that_is_denied_is_in_the_trail() {
    let server = Server::start();
    let viewer = format!("Bearer {}", token(&server, "curious", "viewer"));
    let headers = [("authorization", viewer.as_str()), ("x-request-id", "r-curious")];
    for _ in 0..100 {
        server.request("GET", "/tokens", &headers, b"").problem(403, "Forbidden");
    }
    let denied = entries(&server, "auth.denied");
    assert!((1..80).contains(&denied.len()), "{}", denied.len());
    let entry = &denied[0];
    assert_eq!((&entry["actor"], &entry["object"]), (&json!("token:curious"), &json!("route:GET /api/v1/tokens")));
    assert_eq!((&entry["from"], &entry["requestId"]), (&json!("127.0.0.1"), &json!("r-curious")));
    assert_eq!((&entry["role"], &entry["after"]["status"]), (&json!("viewer"), &json!(403)));
    // Somebody unknown cannot fill the trail.
    server.request("GET", "/tokens", &[("authorization", "Bearer evb_guess")], b"");
    assert!(entries(&server, "auth.denied").iter().all(|entry| entry["actor"] == "token:curious"));
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
