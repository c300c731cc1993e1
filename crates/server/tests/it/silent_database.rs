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
    /// A process that was about to fork, or that had the signal still before it, may do its work for a moment more: this
    /// returns only when the server and every child that it has are seen to be stopped.
    fn new(database: &OwnServer) -> Frozen {
        let (_, folder) = database.url().split_once("?host=").unwrap();
        let pid = std::fs::read_to_string(format!("{folder}/data/postmaster.pid")).unwrap();
        let first = pid.lines().next().unwrap().to_owned();
        let mut frozen = Frozen(vec![first.clone()]);
        let all_stopped = eventually(|| {
            signal("STOP", &frozen.0.iter().map(String::as_str).collect::<Vec<_>>());
            // A server that is seen to be stopped before its children are listed has no more of them.
            let server_stopped = state_and_parent(&first).is_some_and(|(state, _)| state == "T");
            let children = children_of(&first);
            frozen.0 = std::iter::once(&first).chain(children.iter().map(|(pid, _)| pid)).cloned().collect();
            (server_stopped && children.iter().all(|(_, state)| state == "T")).then_some(())
        });
        assert!(all_stopped.is_some(), "the processes of the database did not stop");
        frozen
    }
}

/// The processes that this one started, each with its state.
fn children_of(parent: &str) -> Vec<(String, String)> {
    let mut children = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let pid = entry.file_name().to_string_lossy().into_owned();
        if let Some((state, its_parent)) = state_and_parent(&pid)
            && its_parent == parent
            // One that has ended waits for its parent, which is stopped.
            && state != "Z"
        {
            children.push((pid, state));
        }
    }
    children
}

fn state_and_parent(pid: &str) -> Option<(String, String)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Behind the name, which may hold anything: state, parent.
    let mut rest = stat.rsplit(')').next()?.split_whitespace();
    Some((rest.next()?.to_owned(), rest.next()?.to_owned()))
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
