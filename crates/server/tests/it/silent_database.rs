//! A database that does not answer, or that somebody has locked: every request and every stop ends in time.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]
#![allow(clippy::disallowed_methods, reason = "these tests measure how long a client waits")]

use std::process::Command;
use std::time::{Duration, Instant};

use everbell_store::testing::{OwnServer, execute};
use serde_json::json;

use crate::server::{Folder, Server, TARGETS, eventually};

const LIMITS: &str = r#"
[server]
request_timeout = "2s"
[engine]
shutdown_grace = "1s"
cancel_grace = "1s"
"#;

/// Ample on a busy machine, and less than what a silent database used to cost.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(28);

fn start(database: &OwnServer) -> Server {
    let folder = Folder::new();
    std::fs::write(folder.path().join("everbell.toml"), format!("{LIMITS}{TARGETS}")).unwrap();
    Server::in_folder(folder, &[], &[("EVERBELL_DATABASE_URL", database.url())]).registered()
}

/// Every process of a database server is stopped until this is dropped.
struct Frozen(Vec<String>);

impl Frozen {
    fn new(database: &OwnServer) -> Frozen {
        let (_, folder) = database.url().split_once("?host=").unwrap();
        let pid = std::fs::read_to_string(format!("{folder}/data/postmaster.pid")).unwrap();
        let first = pid.lines().next().unwrap().to_owned();
        signal("STOP", &[&first]);
        let mut pids = vec![first.clone()];
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            // Behind the name, which may hold anything: state, parent.
            let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1));
            if parent == Some(first.as_str()) {
                pids.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        signal("STOP", &pids.iter().map(String::as_str).collect::<Vec<_>>());
        Frozen(pids)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        signal("CONT", &self.0.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

/// Some may be gone by now.
fn signal(name: &str, pids: &[&str]) {
    let _ = Command::new("kill").arg(format!("-{name}")).args(pids).status().unwrap();
}

#[test]
fn a_stop_ends_although_the_database_is_silent() {
    let database = OwnServer::start();
    let mut server = start(&database);
    server.job("slow", &json!({ "target": "sleep" }));
    let reply = server.post("/jobs/key:slow/run-now", &json!({}));
    server.until(&reply.headers["location"], |run| run["status"] == "running");
    let frozen = Frozen::new(&database);
    let began = Instant::now();
    signal("TERM", &[&server.pid().to_string()]);
    server.ended();
    assert!(began.elapsed() < MAX_ANSWER_TIME, "it took {:?}: {}", began.elapsed(), server.log());
    drop(frozen);
}

#[test]
fn a_request_is_answered_with_the_true_reason() {
    let database = OwnServer::start();
    let server = start(&database);
    server.job("one", &json!({}));
    let frozen = Frozen::new(&database);
    let began = Instant::now();
    let problem = server.get("/jobs").problem(503, "NotReady");
    assert!(began.elapsed() < MAX_ANSWER_TIME, "it took {:?}", began.elapsed());
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.starts_with("The database did not finish within "), "{detail}");
    drop(frozen);
    assert!(eventually(|| (server.get("/jobs").status == 200).then_some(())).is_some());

    let url = database.url().to_owned();
    let lock = "begin; lock table everbell.timers in access exclusive mode; select pg_sleep(20)";
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(execute(&url, lock));
    });
    let refused = eventually(|| {
        let reply = server.post("/jobs/key:one/run-now", &json!({}));
        (reply.status == 503).then_some(reply)
    });
    let detail = refused.unwrap().problem(503, "NotReady")["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("holds a lock on the required rows"), "{detail}");
}
