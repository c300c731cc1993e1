//! Access control.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::server::{Server, TARGETS};

/// Every operation of the document: method, path, and the role that it needs.
fn operations(server: &Server) -> Vec<(String, String, Option<String>)> {
    let document = server.raw("GET", "/openapi.json", &[], b"").expect(200);
    let mut all = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let role = operation["x-role"].as_str().map(str::to_owned);
            let path = path.replace("{jobId}", "key:daily").replace(['{', '}'], "");
            all.push((method.to_uppercase(), path, role));
        }
    }
    all
}

#[test]
fn every_route_asks_for_a_token_and_its_role() {
    let server = Server::start();
    server.job("daily", &json!({}));
    let (viewer, operator) = (server.token_of("viewer"), server.token_of("operator"));
    let operations = operations(&server);
    assert!(operations.len() > 40, "{}", operations.len());
    let open = [
        "/livez",
        "/readyz",
        "/healthz",
        "/metrics",
        "/openapi.json",
        "/docs/api",
        "/docs/style.css",
        "/docs/problems/problem",
    ];
    for (method, path, role) in operations {
        let Some(role) = role else {
            assert!(open.contains(&path.as_str()), "{method} {path} has no role");
            continue;
        };
        // Wrong tokens would be too many soon.
        let problem = server.raw(&method, &path, &[], b"").problem(401, "Unauthenticated");
        assert!(problem["detail"].as_str().unwrap().contains("no `Authorization"), "{method} {path}");
        let below = match role.as_str() {
            "viewer" => vec![],
            "operator" => vec![&viewer],
            "admin" => vec![&viewer, &operator],
            other => panic!("{other}"),
        };
        for token in below {
            let header = format!("Bearer {token}");
            let problem = server.raw(&method, &path, &[("authorization", &header)], b"").problem(403, "Forbidden");
            assert_eq!(problem["neededRole"], role.as_str(), "{method} {path}");
        }
    }
    // Unknown routes require a token, too.
    server.raw("GET", "/api/v1/nothing", &[], b"").problem(401, "Unauthenticated");
    server.raw("PUT", "/api/v1/jobs", &[], b"").problem(401, "Unauthenticated");
    server.get("/nothing").problem(404, "NotFound");
    let reply = server.send("PUT", "/jobs", None);
    reply.problem(405, "MethodNotAllowed");
    assert!(reply.headers["allow"].contains("POST"), "{reply:?}");
    server.raw("GET", "/nothing", &[], b"").problem(404, "NotFound");
}

#[test]
fn the_first_start_makes_a_token_for_its_owner_only() {
    let server = Server::start();
    let file = server.folder.path().join("everbell-data/admin-token");
    assert_eq!(fs::read_to_string(&file).unwrap().trim(), server.token);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(file.parent().unwrap()).unwrap().permissions().mode() & 0o077, 0);
    let tokens = server.get("/tokens").expect(200);
    assert_eq!((&tokens["items"][0]["name"], &tokens["items"][0]["role"]), (&json!("admin"), &json!("admin")));
    assert!(tokens["items"][0]["lastUsedAt"].is_string());
    assert!(!server.get("/tokens").text.contains(&server.token[4..]));
}

#[test]
fn a_configured_token_is_used_instead() {
    let token = format!("evb_{}", "x".repeat(43));
    let mut server = Server::launch(TARGETS, None, &[("EVERBELL_ADMIN_TOKEN", &token)]);
    assert_eq!(server.token, "");
    assert!(!server.folder.path().join("everbell-data/admin-token").exists());
    server.token = token;
    assert_eq!(server.get("/status").expect(200)["actor"], "config:admin");
    server.token = format!("evb_{}", "y".repeat(43));
    server.get("/status").problem(401, "Unauthenticated");
}

#[test]
fn tokens_are_made_shown_once_used_and_revoked() {
    let mut server = Server::start();
    let made =
        server.post("/tokens", &json!({ "name": "ops", "role": "operator", "expiresAt": "2040-01-01T00:00:00Z" }));
    let token = made.expect(201)["token"].as_str().unwrap().to_owned();
    assert!(token.starts_with("evb_") && token.len() == 47);
    server.post("/tokens", &json!({ "name": "ops", "role": "viewer" })).problem(409, "Conflict");
    let faults =
        server.post("/tokens", &json!({ "name": " x", "role": "king", "expiresAt": "2020-01-01T00:00:00Z" })).faults();
    assert_eq!(faults, ["#/role"]);
    let faults =
        server.post("/tokens", &json!({ "name": " x", "role": "admin", "expiresAt": "2020-01-01T00:00:00Z" })).faults();
    assert_eq!(faults, ["#/expiresAt", "#/name"]);

    let admin = std::mem::replace(&mut server.token, token);
    assert_eq!(server.get("/status").expect(200)["role"], "operator");
    server.token = admin;
    // Who did what carries the name of the token.
    server.delete("/tokens/ops").expect(204);
    server.delete("/tokens/nobody").problem(404, "NotFound");
    let audit = server.get("/audit?object=token:ops").expect(200);
    let actions: Vec<&Value> = audit["items"].as_array().unwrap().iter().map(|entry| &entry["action"]).collect();
    assert_eq!(actions, ["token.revoke", "token.create"]);
    let revoked =
        server.get("/tokens").expect(200)["items"].as_array().unwrap().iter().find(|t| t["name"] == "ops").cloned();
    assert!(revoked.unwrap()["revokedAt"].is_string());
    server.token = made.expect(201)["token"].as_str().unwrap().to_owned();
    server.get("/status").problem(401, "Unauthenticated");
}

#[test]
fn guessing_is_bounded() {
    let server = Server::start();
    let header = [("authorization", "Bearer evb_guess")];
    let guesses: Vec<u16> = (0..60).map(|_| server.request("GET", "/jobs", &header, b"").status).collect();
    assert_eq!(guesses[0], 401);
    let refused = guesses.iter().position(|status| *status == 429).expect("guessing is stopped");
    assert!(refused >= 20, "{guesses:?}");
    let reply = server.request("GET", "/jobs", &header, b"");
    if reply.status == 429 {
        assert!(reply.headers["retry-after"].parse::<u64>().unwrap() <= 60);
    }
    // Who has a token comes in all the same.
    server.get("/jobs").expect(200);
}

#[test]
fn run_history_may_be_for_admins_only() {
    let mut server = Server::with(&format!("{TARGETS}\n[auth]\nrun_history = \"admin\"\n"));
    let viewer = server.token_of("viewer");
    server.get("/runs").expect(200);
    server.token = viewer;
    let run = "/runs/00000000-0000-7000-8000-000000000000";
    for path in
        ["/runs", run, "/jobs/key:a/gaps", "/jobs/key:a/stats", "/top", "/problems", "/notify/channels", "/events"]
    {
        server.get(path).problem(403, "Forbidden");
    }
    server.get("/jobs").expect(200);
}

#[test]
fn no_secret_is_ever_told() {
    let secrets = ["s3cr3t-header", "whsec_c2VjcmV0LXNpZ25pbmcta2V5", "s3cr3t-env"];
    let config = format!(
        "{TARGETS}\n[log]\nlevel = \"trace\"\n[[target]]\nlabel = \"hook\"\ntype = \"http\"\nurl = \"http://127.0.0.1:9/x?k=s3cr3t-query\"\n\
         headers = {{ x-key = \"{}\" }}\nsigning_keys = [\"{}\"]\n[[target]]\nlabel = \"cmd\"\ntype = \"command\"\nargv = [\"false\"]\nenv = {{ KEY = \"{}\" }}\n",
        secrets[0], secrets[1], secrets[2]
    );
    let server = Server::with(&config);
    let guess = "evb_a-guess-that-must-not-be-logged";
    server
        .request("GET", "/jobs", &[("authorization", &format!("Bearer {guess}"))], b"")
        .problem(401, "Unauthenticated");
    for target in ["hook", "cmd"] {
        server.job(target, &json!({ "target": target }));
        let path = server.post(&format!("/jobs/key:{target}/run-now"), &json!({})).headers["location"].clone();
        server.until(&path, |run| run["status"] == "failed");
    }
    let made = server.post("/tokens", &json!({ "name": "ops", "role": "viewer" })).expect(201);
    let shown = [
        server.log(),
        server.get("/audit").text,
        server.get("/runs").text,
        server.get("/targets").text,
        server.get("/tokens").text,
        server.raw("GET", "/metrics", &[], b"").text,
    ];
    for secret in secrets.into_iter().chain([guess, "s3cr3t-query", &server.token, made["token"].as_str().unwrap()]) {
        for text in &shown {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}
