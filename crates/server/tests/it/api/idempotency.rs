//! Repeated requests get the same response.

use serde_json::{Value, json};

use crate::server::{Response, Server};

fn post(server: &Server, path: &str, key: &str, body: &Value) -> Response {
    let auth = format!("Bearer {}", server.token);
    server.request("POST", path, &[("authorization", &auth), ("idempotency-key", key)], body.to_string().as_bytes())
}

fn check(server: &mut Server) {
    let body = json!({ "jobKey": "daily", "target": "print", "cronExpression": "@daily" });
    let first = post(server, "/jobs", "\"k1\"", &body);
    let again = post(server, "/jobs", "k1", &body);
    assert_eq!((first.expect(201), &first.headers["location"]), (again.expect(201), &again.headers["location"]));
    assert_eq!((again.headers["idempotency-replayed"].as_str(), again.headers["etag"].as_str()), ("true", "\"1\""));
    assert!(!first.headers.contains_key("idempotency-replayed"));
    let other = json!({ "jobKey": "other", "target": "print", "cronExpression": "@daily" });
    post(server, "/jobs", "k1", &other).problem(422, "IdempotencyKeyReused");
    post(server, "/jobs/key:daily/run-now", "k1", &body).problem(400, "InvalidInput");

    let run = post(server, "/jobs/key:daily/run-now", "k2", &json!({}));
    assert_eq!(
        run.expect(202)["run"]["id"],
        post(server, "/jobs/key:daily/run-now", "k2", &json!({})).expect(202)["run"]["id"]
    );
    assert_eq!(server.get("/runs?jobKey=daily").expect(200)["items"].as_array().unwrap().len(), 1);

    // A refusal is an answer too.
    let again = post(server, "/jobs", "k3", &body);
    let replayed = post(server, "/jobs", "k3", &body).problem(409, "JobKeyExists");
    assert_eq!(again.problem(409, "JobKeyExists")["jobId"], replayed["jobId"]);
    assert!(replayed["instance"].as_str().is_some_and(|id| id.starts_with("urn:request:")), "{replayed}");
    for bad in ["", "\"\"", &"x".repeat(300)] {
        assert_eq!(post(server, "/jobs", bad, &body).faults(), ["Idempotency-Key"]);
    }
    // Keys belong to who sends them.
    let operator = server.token_of("operator");
    server.token = operator;
    let own = post(server, "/jobs/key:daily/run-now", "k2", &json!({})).expect(202);
    assert_ne!(own["run"]["id"], run.expect(202)["run"]["id"]);
}

#[test]
fn the_same_request_gets_the_same_answer() {
    check(&mut Server::start());
}

#[test]
fn the_same_request_gets_the_same_answer_on_postgres() {
    check(&mut Server::postgres(crate::server::TARGETS));
}

#[test]
fn a_new_token_is_never_remembered() {
    let server = Server::start();
    let body = json!({ "name": "ops", "role": "viewer" });
    post(&server, "/tokens", "k1", &body).expect(201);
    post(&server, "/tokens", "k1", &body).problem(409, "Conflict");
}
