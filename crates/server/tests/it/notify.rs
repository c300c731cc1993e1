//! Notifications as their receivers see them: a real server, and a receiver on loopback that writes down what it gets.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::server::{Folder, Server, eventually, quiet};

/// A receiver of messages.
pub(crate) struct Receiver {
    pub(crate) port: u16,
    got: Arc<Mutex<Vec<Got>>>,
    /// Statuses to answer with, before 200.
    answers: Arc<Mutex<VecDeque<u16>>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Got {
    status: u16,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
    /// The body as it came.
    pub(crate) text: String,
}

impl Receiver {
    pub(crate) fn start(answers: &[u16]) -> Receiver {
        Receiver::listen(TcpListener::bind("127.0.0.1:0").unwrap(), answers)
    }

    fn listen(listener: TcpListener, answers: &[u16]) -> Receiver {
        let port = listener.local_addr().unwrap().port();
        let receiver =
            Receiver { port, got: Arc::default(), answers: Arc::new(Mutex::new(answers.iter().copied().collect())) };
        let (got, answers) = (Arc::clone(&receiver.got), Arc::clone(&receiver.answers));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                receive(stream, &got, &answers);
            }
        });
        receiver
    }

    /// The messages that it accepted.
    pub(crate) fn accepted(&self) -> Vec<Got> {
        self.got.lock().unwrap().iter().filter(|got| got.status == 200).cloned().collect()
    }

    /// Waits for this many calls, whatever they were answered.
    pub(crate) fn calls(&self, count: usize) -> Vec<Got> {
        let all = || self.got.lock().unwrap().clone();
        let found = eventually(|| Some(all()).filter(|calls| calls.len() >= count));
        found.unwrap_or_else(|| panic!("{count} calls never came, only {:?}", all()))
    }

    /// Waits for this many accepted messages.
    pub(crate) fn until(&self, count: usize) -> Vec<Got> {
        let found = eventually(|| Some(self.accepted()).filter(|accepted| accepted.len() >= count));
        found.unwrap_or_else(|| panic!("{count} messages never came, only {:?}", self.accepted()))
    }
}

fn receive(mut stream: TcpStream, got: &Mutex<Vec<Got>>, answers: &Mutex<VecDeque<u16>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut headers = BTreeMap::new();
    let mut request = String::new();
    let _ = reader.read_line(&mut request);
    let path = request.split_whitespace().nth(1).unwrap_or_default().to_owned();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.insert(name.to_lowercase(), value.trim().to_owned());
        }
    }
    let length: usize = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let status = answers.lock().unwrap().pop_front().unwrap_or(200);
    let text = String::from_utf8_lossy(&body).into_owned();
    let body = serde_json::from_str(&text).unwrap_or(Value::Null);
    // A careless receiver sends back the token of a run.
    let echo = headers.get("everbell-run-token").cloned().unwrap_or_default();
    got.lock().unwrap().push(Got { status, path, headers, body, text });
    let length = echo.len();
    let answer = format!("HTTP/1.1 {status} Well\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{echo}");
    let _ = stream.write_all(answer.as_bytes());
}

/// A target that fails while the file `broken` exists, a channel, and a rule about all jobs.
fn config(port: u16, more: &str) -> String {
    format!(
        r#"
[[target]]
label = "fragile"
type = "command"
argv = ["sh", "-c", "echo checking; test ! -e broken"]
[[notify]]
name = "hook"
type = "webhook"
url = "http://127.0.0.1:{port}/everbell"
signing_keys = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]
[[rule]]
when = ["failed", "recovered", "auto_paused"]
jobs = {{ all = true }}
to = ["hook"]
{more}
"#
    )
}

fn break_target(server: &Server) {
    fs::write(server.folder.path().join("broken"), "").unwrap();
}

fn mend_target(server: &Server) {
    fs::remove_file(server.folder.path().join("broken")).unwrap();
}

/// Runs a job by hand, and waits for its end.
fn run(server: &Server, key: &str, status: &str) {
    let started = server.post(&format!("/jobs/key:{key}/run-now"), &json!({})).expect(202);
    let id = started["run"]["id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned();
    server.until(&format!("/runs/{id}"), |run| run["status"] == status);
}

fn kinds(got: &[Got]) -> Vec<&str> {
    got.iter().map(|got| got.body["type"].as_str().unwrap()).collect()
}

#[test]
fn a_failing_job_is_told_once_and_so_is_its_end() {
    let receiver = Receiver::start(&[]);
    let server = Server::with(&config(receiver.port, "")).registered();
    server.job("nightly", &json!({ "target": "fragile" }));
    break_target(&server);
    run(&server, "nightly", "failed");
    let told = receiver.until(1);
    let Got { headers, body, .. } = &told[0];
    assert_eq!(body["type"], "problem.opened");
    let data = &body["data"];
    assert_eq!((&data["problem"]["jobKey"], &data["problem"]["kind"]), (&json!("nightly"), &json!("failed")));
    assert_eq!(data["title"], "nightly is failing");
    assert_eq!(data["run"]["output"], "checking\n");
    assert_eq!(
        (headers["ce-type"].as_str(), headers["ce-specversion"].as_str()),
        ("dev.everbell.problem.opened", "1.0")
    );
    assert_eq!(headers["webhook-id"], headers["ce-id"]);
    assert!(headers["webhook-signature"].starts_with("v1,"), "{headers:?}");
    // Another failure is no news.
    run(&server, "nightly", "failed");
    let problem = server.until("/problems?open=true", |list| list["items"][0]["count"] == 2);
    assert_eq!(problem["items"][0]["told"], json!(["failed,recovered,auto_paused of all"]));
    mend_target(&server);
    run(&server, "nightly", "succeeded");
    receiver.until(2);
    // A failure that is over at once is told with its end.
    break_target(&server);
    run(&server, "nightly", "failed");
    mend_target(&server);
    run(&server, "nightly", "succeeded");
    let told = receiver.until(4);
    let expected = ["problem.opened", "problem.recovered", "problem.opened", "problem.recovered"];
    assert_eq!(kinds(&told), expected);
    assert_eq!(told[0].body["data"]["problem"]["id"], told[1].body["data"]["problem"]["id"]);
    assert_eq!(server.get("/problems?open=true").expect(200)["items"], json!([]));
}

#[test]
fn a_receiver_that_fails_is_tried_again_with_the_same_id() {
    let receiver = Receiver::start(&[500, 503]);
    let server = Server::with(&config(receiver.port, "")).registered();
    server.job("nightly", &json!({ "target": "fragile", "policies": { "pauseAfterFailures": 1 } }));
    break_target(&server);
    run(&server, "nightly", "failed");
    // Of the failure and of the pause.
    receiver.until(2);
    let got = receiver.got.lock().unwrap().clone();
    for refused in got.iter().filter(|got| got.status != 200) {
        let id = &refused.headers["webhook-id"];
        let again: Vec<_> = got.iter().filter(|got| got.headers["webhook-id"] == *id && got.status == 200).collect();
        assert_eq!(again.len(), 1, "{got:?}");
        assert_eq!(again[0].body, refused.body);
    }
    let all = server.until("/notify/deliveries", |list| {
        list["items"].as_array().unwrap().iter().all(|delivery| delivery["status"] == "delivered")
    });
    let attempts: u64 = all["items"].as_array().unwrap().iter().map(|one| one["attempts"].as_u64().unwrap()).sum();
    assert_eq!(attempts, 4);
    let mut kinds: Vec<_> = receiver
        .accepted()
        .iter()
        .map(|got| got.body["data"]["problem"]["kind"].as_str().unwrap().to_owned())
        .collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["auto_paused", "failed"]);
}

#[test]
fn a_server_that_is_killed_delivers_after_its_restart() {
    // Nobody listens there yet.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let mut server = Server::with(&config(port, "")).registered();
    server.job("nightly", &json!({ "target": "fragile" }));
    break_target(&server);
    run(&server, "nightly", "failed");
    let failed = |list: &Value| list["items"][0]["attempts"].as_u64() > Some(0) && !list["items"][0]["error"].is_null();
    let list = server.until("/notify/deliveries", failed);
    assert_eq!(list["items"][0]["status"], "pending");
    assert!(list["items"][0]["error"].as_str().unwrap().contains("cannot be reached"), "{list}");
    assert!(Command::new("kill").args(["-9", &server.pid().to_string()]).status().unwrap().success());
    server.ended();
    let receiver = Receiver::listen(TcpListener::bind(("127.0.0.1", port)).unwrap(), &[]);
    let token = server.token.clone();
    let mut server = Server::in_folder(server.take_folder(), &[], &[]);
    server.token = token;
    receiver.until(1);
    mend_target(&server);
    run(&server, "nightly", "succeeded");
    assert_eq!(kinds(&receiver.until(2)), ["problem.opened", "problem.recovered"]);
}

#[test]
fn a_failure_just_before_a_kill_is_told_after_the_restart() {
    let receiver = Receiver::start(&[]);
    let mut server = Server::with(&config(receiver.port, "")).registered();
    server.job("nightly", &json!({ "target": "fragile" }));
    break_target(&server);
    run(&server, "nightly", "failed");
    assert!(Command::new("kill").args(["-9", &server.pid().to_string()]).status().unwrap().success());
    server.ended();
    let token = server.token.clone();
    let mut server = Server::in_folder(server.take_folder(), &[], &[]);
    server.token = token;
    receiver.until(1);
    mend_target(&server);
    run(&server, "nightly", "succeeded");
    assert_eq!(kinds(&receiver.until(2)), ["problem.opened", "problem.recovered"]);
}

#[test]
fn two_instances_tell_once() {
    let receiver = Receiver::start(&[]);
    let config = config(receiver.port, "");
    let server = Server::postgres(&config).registered();
    let folder = Folder::new();
    fs::write(folder.path().join("everbell.toml"), &config).unwrap();
    let url = server.database_url();
    let other = Server::in_folder(folder, &[], &[("EVERBELL_DATABASE_URL", &url)]);
    server.until("/instances", |list| list["items"].as_array().unwrap().len() == 2);
    let roles = server.get("/instances").expect(200);
    let is_notifier = |one: &Value| one["roles"].as_array().unwrap().contains(&json!("notifier"));
    assert!(roles["items"].as_array().unwrap().iter().all(is_notifier), "{roles}");
    // It exists on both: whichever runs it.
    server.job("broken", &json!({ "target": "fragile", "policies": { "retry": { "maxAttempts": 1 } } }));
    break_target(&server);
    fs::write(other.folder.path().join("broken"), "").unwrap();
    run(&server, "broken", "failed");
    receiver.until(1);
    mend_target(&server);
    fs::remove_file(other.folder.path().join("broken")).unwrap();
    run(&server, "broken", "succeeded");
    assert_eq!(kinds(&receiver.until(2)), ["problem.opened", "problem.recovered"]);
    let all = server.get("/notify/deliveries").expect(200);
    assert_eq!(all["items"].as_array().unwrap().len(), 2, "{all}");
}

/// Runs a command of the command line, and returns its exit code and everything that it printed.
fn cli(server: &Server, args: &[&str]) -> (Option<i32>, String) {
    let mut command = quiet(server.folder.path());
    command.args(args).envs([("EVERBELL_SERVER", server.url("").as_str()), ("EVERBELL_TOKEN", &server.token)]);
    let done = command.output().unwrap();
    (done.status.code(), String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr))
}

#[test]
fn operators_test_channels() {
    let receiver = Receiver::start(&[404]);
    let more = r#"
[[notify]]
name = "script"
type = "command"
argv = ["sh", "-c", "cat > message.json; echo \"$EVERBELL_CHANGE $EVERBELL_TITLE\" > title; test ! -e refused"]
[[notify]]
name = "chat"
type = "slack"
url = { env = "CHAT_URL" }
"#;
    let url = format!("http://127.0.0.1:{}/secret-path", receiver.port);
    let server = Server::launch(&config(receiver.port, more), None, &[("CHAT_URL", &url)]).registered();
    let channels = server.get("/notify/channels").expect(200);
    assert_eq!(channels["items"][1]["name"], "script");
    assert!(!channels.to_string().contains("secret-path"), "{channels}");
    // A test is tried once, and its answer is shown.
    let test = server.post("/notify/channels/hook/test", &json!({})).expect(202);
    let path = format!("/notify/deliveries?id={}", test["id"].as_str().unwrap());
    let dead = server.until(&path, |list| list["items"][0]["status"] == "dead");
    assert!(dead["items"][0]["error"].as_str().unwrap().contains("404"), "{dead}");
    server.post("/notify/channels/chat/test", &json!({})).expect(202);
    let chat = receiver.until(1);
    assert!(chat[0].body["text"].as_str().unwrap().starts_with(":bell: *everbell can reach"), "{chat:?}");
    server.post("/notify/channels/nothing/test", &json!({})).expect(404);
    let (code, said) = cli(&server, &["notify", "test", "script"]);
    assert_eq!(code, Some(0), "{said}");
    let title = fs::read_to_string(server.folder.path().join("title")).unwrap();
    assert_eq!(title, "test everbell can reach this channel\n");
    fs::write(server.folder.path().join("refused"), "").unwrap();
    let (code, said) = cli(&server, &["notify", "test", "script"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("ended with code 1"), "{said}");
}

#[test]
fn operators_handle_problems() {
    let receiver = Receiver::start(&[]);
    let server = Server::with(&config(receiver.port, "")).registered();
    server.job("nightly", &json!({ "target": "fragile" }));
    break_target(&server);
    run(&server, "nightly", "failed");
    let open = server.until("/problems?open=true", |list| list["items"].as_array().is_some_and(|all| !all.is_empty()));
    let id = open["items"][0]["id"].as_str().unwrap();
    let known = server.post(&format!("/problems/{id}/acknowledge"), &json!({ "reason": "on it" })).expect(200);
    assert_eq!(
        (&known["acknowledged"]["by"], &known["acknowledged"]["reason"]),
        (&json!("token:admin"), &json!("on it"))
    );
    server.post(&format!("/problems/{id}/mute"), &json!({})).expect(400);
    let past = json!({ "reason": "later", "until": "2020-01-01T00:00:00Z" });
    server.post(&format!("/problems/{id}/mute"), &past).expect(400);
    let (code, said) = cli(&server, &["problems", "mute", id, "--for", "4h", "--reason", "maintenance"]);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = cli(&server, &["problems"]);
    assert!(code == Some(0) && said.contains("nightly") && said.contains("muted by token:admin"), "{said}");
    let muted = server.get("/problems").expect(200);
    assert_eq!(muted["items"][0]["muted"]["reason"], "maintenance");
    let free = server.post(&format!("/problems/{id}/unmute"), &json!({})).expect(200);
    assert_eq!(free["muted"], Value::Null);
    server.post("/problems/nothing/unmute", &json!({})).expect(404);
    let viewer = format!("Bearer {}", server.token_of("viewer"));
    let refused = server.request("POST", &format!("/problems/{id}/unmute"), &[("authorization", &viewer)], b"{}");
    assert_eq!(refused.status, 403);
    let audit = server.get(&format!("/audit?object=problem:{id}")).expect(200);
    let actions: Vec<_> = audit["items"].as_array().unwrap().iter().map(|entry| entry["action"].clone()).collect();
    assert_eq!(actions, ["problem.unmute", "problem.mute", "problem.acknowledge"]);
}
