//! Targets that admins define without a configuration file, as a real receiver sees their calls.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::{data, everbell};
use crate::server::{Server, eventually};

/// Lets admins define both types, with secrets in the folder `secrets`.
const OPEN: &str = "[targets]\neditable = [\"http\", \"command\"]\nsecret_env = [\"HOME\", \"HOOK_*\"]\n\
                    secret_dir = \"secrets\"\nallow_private = true\n\
                    [[target]]\nlabel = \"print\"\ntype = \"log\"\n";

/// A receiver that answers 200 to everything, and the heads of what it received.
fn receiver() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/run", listener.local_addr().unwrap());
    let (heads, received) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut head = Vec::new();
            let mut part = [0; 4096];
            while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                match stream.read(&mut part) {
                    Ok(read) if read > 0 => head.extend_from_slice(&part[..read]),
                    _ => break,
                }
            }
            let answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            let _ = stream.write_all(answer.as_bytes());
            if heads.send(String::from_utf8_lossy(&head).into_owned()).is_err() {
                return;
            }
        }
    });
    (url, received)
}

/// The next call.
fn received(calls: &Receiver<String>) -> String {
    calls.recv_timeout(Duration::from_mins(1)).expect("a call")
}

fn secret(server: &Server, name: &str, text: &str) {
    let folder = server.folder.path().join("secrets");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(name), text).unwrap();
}

fn run(server: &Server, job: &str) -> Value {
    let location = server.post(&format!("/jobs/key:{job}/run-now"), &json!({})).headers["location"].clone();
    server.until(&location, |run| run["status"] != "pending" && run["status"] != "running")
}

fn if_match(server: &Server, path: &str, revision: u64, body: &Value) -> crate::server::Response {
    let (token, revision) = (format!("Bearer {}", server.token), format!("\"{revision}\""));
    let headers = [("authorization", token.as_str()), ("if-match", revision.as_str())];
    server.request("PUT", path, &headers, body.to_string().as_bytes())
}

fn a_stored_target_calls_with_its_secret(server: &Server) {
    let (url, calls) = receiver();
    secret(server, "hook", "Bearer first-secret");
    let mut hook = json!({ "type": "http", "url": url, "headers": { "Authorization": { "file": "secrets/hook" } } });
    let checked = server.send("PUT", "/targets/hook?dryRun=true", Some(&hook)).expect(200);
    assert_eq!(
        (&checked["dryRun"], &checked["created"], &checked["problem"]),
        (&json!(true), &json!(true), &Value::Null)
    );
    server.get("/targets/hook").problem(404, "NotFound");

    let written = server.put("/targets/hook", &hook).expect(200);
    assert_eq!((&written["created"], &written["target"]["revision"]), (&json!(true), &json!(1)));
    // The instance that wrote it serves it at once.
    server.job("calls", &json!({ "target": "hook" }));
    assert_eq!(run(server, "calls")["status"], "succeeded");
    assert!(received(&calls).contains("Bearer first-secret"));
    assert!(!server.get("/targets").text.contains("first-secret"), "secrets are never shown");

    // An edit names the revision that it changes, and the next run follows it.
    let (other, other_calls) = receiver();
    hook["url"] = json!(other);
    if_match(server, "/targets/hook", 7, &hook).problem(412, "RevisionMismatch");
    assert_eq!(if_match(server, "/targets/hook", 1, &hook).expect(200)["target"]["revision"], 2);
    assert_eq!(run(server, "calls")["status"], "succeeded");
    assert!(received(&other_calls).contains("Bearer first-secret"));

    // A reload of the file leaves it in place.
    everbell(server, &["reload"]);
    assert_eq!(run(server, "calls")["status"], "succeeded");
    received(&other_calls);

    let refused = server.delete("/targets/hook").problem(409, "Conflict");
    assert!(refused["detail"].as_str().unwrap().contains("is used by calls"), "{refused}");
    server.delete("/targets/hook?force=true").expect(204);
    server.until("/instances", |list| list["items"][0]["targets"] == json!(["print"]));
    let actions = server.get("/audit?object=target:hook").expect(200);
    let actions: Vec<&Value> = actions["items"].as_array().unwrap().iter().map(|entry| &entry["action"]).collect();
    assert_eq!(actions, ["target.delete", "target.put", "target.put"]);
}

#[test]
fn a_stored_target_calls_with_its_secret_until_it_is_deleted() {
    a_stored_target_calls_with_its_secret(&Server::with(OPEN).registered());
}

#[test]
fn a_stored_target_calls_with_its_secret_until_it_is_deleted_on_postgres() {
    a_stored_target_calls_with_its_secret(&Server::postgres(OPEN).registered());
}

#[test]
fn plain_secrets_clashing_labels_and_roles_are_refused() {
    let server = Server::with(OPEN).registered();
    let hook =
        json!({ "type": "http", "url": "https://hooks.example/", "headers": { "Authorization": "Bearer CANARY" } });
    let refused = server.put("/targets/hook", &hook);
    assert!(!refused.text.contains("CANARY"), "{}", refused.text);
    let refused = refused.problem(400, "InvalidInput");
    assert!(refused["errors"].to_string().contains("by reference"), "{refused}");
    let hook = json!({ "type": "http", "url": "https://hooks.example/" });
    let clash = server.put("/targets/print", &hook).problem(409, "Conflict");
    assert!(clash["detail"].as_str().unwrap().contains("[[target]]"), "{clash}");
    for role in ["viewer", "operator"] {
        let token = format!("Bearer {}", server.token_of(role));
        let headers = [("authorization", token.as_str())];
        server.request("PUT", "/targets/hook", &headers, hook.to_string().as_bytes()).problem(403, "Forbidden");
        server.request("DELETE", "/targets/hook", &headers, b"").problem(403, "Forbidden");
    }
    let closed = Server::start();
    let refused = closed.put("/targets/hook", &hook).problem(409, "Conflict");
    assert!(refused["detail"].as_str().unwrap().contains("`targets.editable`"), "{refused}");
}

#[test]
fn a_missing_secret_is_reported_and_counts_when_it_is_there() {
    let server = Server::with(OPEN).registered();
    let (url, calls) = receiver();
    let hook = json!({ "type": "http", "url": url, "headers": { "Authorization": { "file": "secrets/late" } } });
    let written = server.put("/targets/hook", &hook).expect(200);
    let problem = written["problem"].as_str().unwrap();
    assert!(problem.contains("the file `secrets/late` does not exist"), "{problem}");
    assert_eq!(server.get("/targets/hook").expect(200)["instances"], json!([]));
    let doctor = everbell(&server, &["doctor"]);
    assert!(doctor.stdout.contains("hook") && doctor.stdout.contains("secrets/late"), "{}", doctor.stdout);
    secret(&server, "late", "Bearer late-secret");
    server.put("/targets/hook", &hook).expect(200);
    server.job("calls", &json!({ "target": "hook" }));
    assert_eq!(run(&server, "calls")["status"], "succeeded");
    assert!(received(&calls).contains("Bearer late-secret"));
}

#[test]
fn every_instance_of_a_cluster_takes_a_change_within_seconds() {
    let one = Server::postgres(OPEN).registered();
    let mut two = Server::launch(OPEN, None, &[("EVERBELL_DATABASE_URL", &one.database_url())]);
    two.token.clone_from(&one.token);
    let write =
        json!({ "type": "command", "argv": ["sh", "-c", "echo ran >> \"$FILE\""], "env": { "FILE": "/dev/null" } });
    one.put("/targets/write", &write).expect(200);
    let serve_it = |list: &Value| {
        let items = list["items"].as_array().unwrap();
        let serves = |one: &&Value| one["targets"].as_array().unwrap().iter().any(|label| label == "write");
        items.len() == 2 && items.iter().filter(serves).count() == 2
    };
    one.until("/instances", serve_it);
    let document = two.get("/targets/write").expect(200);
    assert_eq!((&document["source"], &document["problem"]), (&json!("api"), &Value::Null));
    two.delete("/targets/write").expect(204);
    let gone = eventually(|| (one.get("/targets/write").status == 404).then_some(()));
    assert!(gone.is_some());
}

#[test]
fn stored_targets_survive_a_restart() {
    let server = Server::with(OPEN).registered();
    server.put("/targets/write", &json!({ "type": "command", "argv": ["sh", "-c", "echo ran >> ran"] })).expect(200);
    server.job("writes", &json!({ "target": "write" }));
    let server = server.restarted(|_| {}).registered();
    assert_eq!(run(&server, "writes")["status"], "succeeded");
    assert_eq!(fs::read_to_string(server.folder.path().join("ran")).unwrap(), "ran\n");
}

#[test]
fn targets_are_added_edited_and_removed_by_command() {
    let server = Server::with(OPEN).registered();
    let added =
        everbell(&server, &["targets", "add", "write", "--env", "WORD=first", "--", "sh", "-c", "echo $WORD >> ran"]);
    assert_eq!((added.code, added.stdout.as_str()), (Some(0), "✓ Created target write\n"), "{}", added.stderr);
    assert_eq!(everbell(&server, &["targets", "try", "write", "--wait"]).code, Some(0));
    let edited = everbell(&server, &["targets", "edit", "write", "--env", "WORD=second", "--timeout", "1m"]);
    assert_eq!(edited.code, Some(0), "{}", edited.stderr);
    assert_eq!(everbell(&server, &["targets", "try", "write", "--wait"]).code, Some(0));
    assert_eq!(fs::read_to_string(server.folder.path().join("ran")).unwrap(), "first\nsecond\n");
    let block = data(&server, &["targets", "show", "write", "--block"]);
    assert!(block.contains("timeout = \"1m\"") && block.contains("argv = [\"sh\", \"-c\""), "{block}");
    let again = everbell(&server, &["targets", "add", "write", "--", "true"]);
    assert_ne!(again.code, Some(0));
    let said = &again.stderr;
    assert!(said.contains("target `write` already exists") && said.contains("everbell targets edit write"), "{said}");
    let file = everbell(&server, &["targets", "edit", "print", "--timeout", "1m"]);
    assert!(file.stderr.contains("everbell reload"), "{}", file.stderr);
    assert_eq!(everbell(&server, &["targets", "rm", "write", "--yes"]).code, Some(0));
    server.get("/targets/write").problem(404, "NotFound");
}
