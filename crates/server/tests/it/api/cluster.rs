//! Targets, instances, audit, status.

use serde_json::{Value, json};

use crate::server::Server;

#[test]
fn targets_instances_and_the_server_itself() {
    let server = Server::start();
    let targets = server.until("/targets", |targets| targets["items"].as_array().unwrap().len() == 3);
    let labels: Vec<&str> =
        targets["items"].as_array().unwrap().iter().map(|t| t["target"].as_str().unwrap()).collect();
    assert_eq!(labels, ["fail", "print", "sleep"]);
    let instances = server.get("/instances").expect(200);
    let instance = &instances["items"][0];
    assert_eq!((&instance["alive"], &instance["draining"]), (&json!(true), &json!(false)));
    assert_eq!((&instance["pid"], &instance["roles"]), (&json!(server.pid()), &json!(["scheduler", "api"])));

    let id = instance["id"].as_str().unwrap();
    server.post(&format!("/instances/{id}/drain"), &json!({})).expect(204);
    server.until("/instances", |list| list["items"][0]["draining"] == true);
    server.post(&format!("/instances/{id}/undrain"), &json!({})).expect(204);
    server.until("/instances", |list| list["items"][0]["draining"] == false);
    server.post("/instances/nobody/drain", &json!({})).problem(404, "NotFound");
    server.post("/instances/00000000-0000-7000-8000-000000000000/drain", &json!({})).problem(404, "NotFound");
    let actions = server.get(&format!("/audit?object=instance:{id}")).expect(200);
    assert_eq!(actions["items"].as_array().unwrap().len(), 2);

    let status = server.get("/status").expect(200);
    assert!(status["database"].as_str().unwrap().starts_with("sqlite 3"), "{status}");
    assert_eq!((&status["actor"], &status["dueTimers"]), (&json!("token:admin"), &json!(0)));
    assert!(status["tzData"].as_str().unwrap().starts_with("20"));
}

#[test]
fn targets_tell_how_many_of_their_runs_failed_lately() {
    let server = Server::start();
    for (key, target) in [("good", "print"), ("bad", "fail")] {
        server.job(key, &json!({ "target": target }));
        server.post(&format!("/jobs/key:{key}/run-now"), &json!({})).expect(202);
    }
    let ended = |targets: &Value| {
        let of = |label: &str| {
            targets["items"].as_array().unwrap().iter().find(|one| one["target"] == label).cloned().unwrap_or_default()
        };
        (of("print"), of("fail"))
    };
    let targets = server.until("/targets", |targets| {
        let (print, fail) = ended(targets);
        print["lastDay"]["runs"] == 1 && fail["lastDay"]["runs"] == 1
    });
    let (print, fail) = ended(&targets);
    let runs = |target: &Value| {
        let day = &target["lastDay"];
        (day["succeeded"].clone(), day["failed"].clone(), day["successRate"].clone(), day["failureRate"].clone())
    };
    assert_eq!(runs(&print), (json!(1), json!(0), json!(1.0), json!(0.0)));
    assert_eq!(runs(&fail), (json!(0), json!(1), json!(0.0), json!(1.0)));
    assert_eq!(targets["complete"], true);
    assert!(print["lastDay"]["p95Ms"].is_i64(), "{print}");
    assert_eq!(server.get("/targets/fail").expect(200)["lastDay"], fail["lastDay"]);
    server.get("/targets/nothing").problem(404, "NotFound");
}

#[test]
fn targets_show_where_they_lead_and_never_a_secret() {
    let file = r#"
[[target]]
label = "hook"
type = "http"
url = "http://127.0.0.1:9/CANARY?key=CANARY"
headers = { "X-Key" = "CANARY", "Authorization" = { env = "HOME" } }
[[target]]
label = "program"
type = "command"
argv = ["/bin/echo", "--all"]
env = { TOKEN = "CANARY" }
"#;
    let server = Server::with(file).registered();
    let viewer = server.token_of("viewer");
    let found = |label: &str| server.get(&format!("/targets/{label}")).expect(200);
    let (hook, program) = (found("hook"), found("program"));
    assert_eq!((&hook["type"], &hook["address"]), (&json!("http"), &json!("http://127.0.0.1:9/…")));
    assert_eq!((&program["type"], &program["address"]), (&json!("command"), &json!("/bin/echo")));
    let block = hook["block"].as_str().unwrap();
    assert!(block.contains("Authorization = { env = \"HOME\" }") && block.contains("(hidden)"), "{block}");
    assert!(program["block"].as_str().unwrap().contains("argv = [\"/bin/echo\", \"--all\"]"));
    let seen = server.request("GET", "/targets", &[("authorization", &format!("Bearer {viewer}"))], b"").expect(200);
    assert!(seen["items"].as_array().unwrap().iter().all(|target| target["block"].is_null()), "{seen}");
    // The path of the URL is for admins only.
    assert!(!seen.to_string().contains("CANARY"), "{seen}");
    assert!(!block.contains("user:") && !block.contains("key="), "{block}");
}

#[test]
fn a_document_is_one_line_however_its_payload_was_written() {
    let server = Server::start();
    let body = b"{ \"jobKey\": \"a\", \"target\": \"print\", \"cronExpression\": \"@daily\",\n \"payload\": {\n  \"n\": 1.50\n} }";
    let headers = [("authorization", &*format!("Bearer {}", server.token)), ("content-type", "application/json")];
    let made = server.raw("POST", "/api/v1/jobs", &headers, body);
    made.expect(201);
    let read = server.get("/jobs/key:a");
    assert!(read.text.contains(r#""payload":{"n":1.50}"#) && !read.text.trim_end().contains('\n'), "{}", read.text);
}

#[test]
fn the_audit_trail_tells_who_did_what() {
    let mut server = Server::start();
    let operator = server.token_of("operator");
    server.job("daily", &json!({}));
    server.token = operator;
    server.patch("/jobs/key:daily/pause", &json!({ "reason": "SMTP down" })).expect(200);
    let page = server.get("/audit?object=job:daily&limit=1").expect(200);
    let entry = &page["items"][0];
    assert_eq!(
        (&entry["actor"], &entry["action"], &entry["reason"]),
        (&json!("token:a-operator"), &json!("job.pause"), &json!("SMTP down"))
    );
    assert_eq!((&entry["before"]["status"], &entry["after"]["status"]), (&json!("active"), &json!("paused")));
    let cursor = page["nextCursor"].as_str().unwrap();
    let next = server.get(&format!("/audit?object=job:daily&cursor={cursor}")).expect(200);
    assert_eq!(next["items"][0]["action"], "job.create");
    assert_eq!(server.get("/jobs/key:daily").expect(200)["updatedBy"], "token:a-operator");
}
