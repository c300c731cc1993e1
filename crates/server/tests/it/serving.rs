//! `everbell serve` from its start to its end, through the real binary.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::fs;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use everbell_store::testing::TestDatabase;
use serde_json::{Value, json};

use crate::binary::ran;
use crate::server::{Folder, SERVE, Server, TARGETS, eventually, quiet, without_ours};

pub(crate) fn signal(server: &Server, name: &str) {
    let sent = Command::new("kill").args([format!("-{name}"), server.pid().to_string()]).status().unwrap();
    assert!(sent.success());
}

fn database() -> TestDatabase {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(TestDatabase::create())
}

#[test]
fn a_first_start_needs_nothing() {
    let folder = Folder::new();
    let server = Server::in_folder(folder, &[], &[]);
    assert!(server.greeting.contains("listening on http://127.0.0.1:"), "{}", server.greeting);
    assert!(server.greeting.contains("sqlite:everbell-data/everbell.db"), "{}", server.greeting);
    let job = server.get("/jobs/key:demo").expect(200);
    assert_eq!(
        (&job["cronExpression"], &job["source"], &job["target"]),
        (&json!("* * * * *"), &json!("config"), &json!("log"))
    );
    let reply = server.post("/jobs/key:demo/run-now", &json!({}));
    server.until(&reply.headers["location"], |run| run["status"] == "succeeded");
    server.until_logged("hello world");
}

#[test]
fn it_ends_in_good_order_when_it_is_told_to() {
    let mut server = Server::start();
    server.job("slow", &json!({ "target": "sleep", "policies": {"timeout": "1h"} }));
    server.job("quick", &json!({}));
    signal(&server, "TERM");
    assert_eq!(server.ended(), Some(0));
    assert!(server.log().contains("stopped"), "{}", server.log());
}

#[test]
fn a_terminal_that_is_closed_ends_it_in_good_order() {
    let folder = Folder::new();
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    let serve =
        format!("echo $$ > pid; exec {} serve --listen 127.0.0.1:0 > out 2> log", env!("CARGO_BIN_EXE_everbell"));
    let mut terminal = without_ours("script");
    terminal.args(["-qc", &serve, "/dev/null"]).current_dir(folder.path());
    let mut terminal = terminal.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    eventually(|| read("out").contains("listening on").then_some(())).expect("it never listened");
    let pid = read("pid").trim().to_owned();
    // Somebody asks for a reload, as the terminal is still there.
    assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    eventually(|| read("log").contains("configuration reloaded").then_some(())).expect("it never reloaded");
    terminal.kill().unwrap();
    terminal.wait().unwrap();
    eventually(|| read("log").contains("stopped").then_some(())).unwrap_or_else(|| panic!("{}", read("log")));
    assert!(read("log").contains("stopping: taking no more work"), "{}", read("log"));
}

#[test]
fn with_nohup_it_outlives_its_terminal() {
    let folder = Folder::new();
    let mut command = without_ours("nohup");
    command.arg(env!("CARGO_BIN_EXE_everbell")).args(SERVE).current_dir(folder.path()).stdin(Stdio::null());
    let mut server = Server::begin(folder, command);
    signal(&server, "HUP");
    let reply = server.post("/jobs/key:demo/run-now", &json!({}));
    server.until(&reply.headers["location"], |run| run["status"] == "succeeded");
    assert!(!server.log().contains("stopping"), "{}", server.log());
    signal(&server, "TERM");
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn a_start_says_that_no_admin_token_is_valid() {
    let mut server = Server::in_folder(Folder::new(), &[], &[]);
    server.delete("/tokens/admin").problem(409, "Conflict");
    server.delete("/tokens/admin?force=true").expect(204);
    signal(&server, "TERM");
    server.ended();
    let server = Server::in_folder(server.take_folder(), &[], &[]);
    assert!(server.greeting.contains("no valid admin token is left"), "{}", server.greeting);
    assert!(!server.greeting.contains("admin-token"), "{}", server.greeting);
}

#[test]
fn a_second_signal_ends_at_once() {
    let mut server = Server::start();
    server.job("slow", &json!({ "target": "sleep" }));
    let reply = server.post("/jobs/key:slow/run-now", &json!({}));
    server.until(&reply.headers["location"], |run| run["status"] == "running");
    signal(&server, "INT");
    server.until_logged("send a second signal to exit at once");
    // Nobody should be sent here any more.
    let ready = server.raw("GET", "/readyz?verbose", &[], b"");
    assert!(ready.status == 503 && ready.text.contains("accepts no more work"), "{}", ready.text);
    signal(&server, "INT");
    assert_eq!(server.ended(), Some(130));
}

#[test]
fn what_was_there_before_is_there_again() {
    let config = format!("{TARGETS}\n[[job]]\njob_key = \"daily\"\ntarget = \"print\"\ncron_expression = \"@daily\"\n");
    let mut server = Server::with(&config);
    let token = server.token.clone();
    server.patch("/jobs/key:daily/pause", &json!({ "reason": "holidays" })).expect(200);
    server.job("mine", &json!({}));
    signal(&server, "TERM");
    assert_eq!(server.ended(), Some(0));
    let folder = server.take_folder();

    let edited = config.replace("@daily", "@hourly");
    fs::write(folder.path().join("everbell.toml"), edited).unwrap();
    let mut server = Server::in_folder(folder, &[], &[]);
    // The token is shown once.
    assert_eq!(server.token, "");
    assert!(server.greeting.contains("in everbell-data/admin-token"), "{}", server.greeting);
    server.token = token;
    let job = server.get("/jobs/key:daily").expect(200);
    assert_eq!((&job["version"], &job["cronExpression"]), (&json!(2), &json!("@hourly")));
    assert_eq!((&job["status"], &job["pauseReason"]), (&json!("paused"), &json!("holidays")));
    assert_eq!(server.get("/jobs/key:mine").expect(200)["source"], "api");
}

#[test]
fn one_process_schedules_and_another_answers() {
    let database = database();
    let url = [("EVERBELL_DATABASE_URL", database.url())];
    let folder = Folder::new();
    fs::write(folder.path().join("everbell.toml"), TARGETS).unwrap();
    let scheduler = Server::in_folder(folder, &["--role", "scheduler"], &url);
    let folder = Folder::new();
    let api = Server::in_folder(folder, &["--role", "api"], &url);
    // The scheduler answers probes and nothing else, and lets nobody in.
    assert_eq!(scheduler.raw("GET", "/livez", &[], b"").status, 200);
    scheduler.raw("GET", "/api/v1/jobs", &[], b"").problem(401, "Unauthenticated");
    scheduler.raw("GET", "/openapi.json", &[], b"").problem(404, "NotFound");
    assert_eq!(scheduler.token, "");

    let targets = api.until("/targets", |targets| targets["items"].as_array().unwrap().len() >= 3);
    assert!(targets["items"].as_array().unwrap().iter().any(|target| target["target"] == "print"));
    api.job("far", &json!({ "target": "print" }));
    let reply = api.post("/jobs/key:far/run-now", &json!({}));
    let run = api.until(&reply.headers["location"], |run| run["status"] == "succeeded");
    let instances = api.until("/instances", |instances| instances["items"].as_array().unwrap().len() == 2);
    let with_role = |role: &str| {
        let mut all = instances["items"].as_array().unwrap().iter();
        all.find(|one| one["roles"] == json!([role])).unwrap_or_else(|| panic!("no {role}: {instances}"))
    };
    assert_eq!(run["runnerInstanceId"], with_role("scheduler")["id"]);
    assert_eq!((&with_role("api")["pid"], &with_role("api")["targets"]), (&json!(api.pid()), &json!([])));
    assert_eq!(api.raw("GET", "/readyz", &[], b"").status, 200);
}

#[test]
fn logs_may_be_for_programs() {
    let server = Server::launch(TARGETS, None, &[("EVERBELL_LOG_FORMAT", "json"), ("EVERBELL_LOG", "debug")]);
    let greeting: Value = serde_json::from_str(&server.greeting).expect("one line, and no other");
    let message = format!("everbell {} listening on http://{}", env!("CARGO_PKG_VERSION"), server.address);
    assert_eq!((&greeting["level"], &greeting["message"]), (&json!("INFO"), &json!(message)));
    assert!(greeting["targets"].as_array().unwrap().contains(&json!("fail")), "{greeting}");
    server.job("bad", &json!({ "target": "fail" }));
    let reply = server.post("/jobs/key:bad/run-now", &json!({}));
    let run = server.until(&reply.headers["location"], |run| run["status"] == "failed");
    let failures = eventually(|| {
        let lines: Vec<Value> = server.log().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let failures = lines.into_iter().filter(|line| line["level"] == "WARN" && !line["job"].is_null());
        Some(failures.collect::<Vec<Value>>()).filter(|failures| !failures.is_empty())
    });
    let failures = failures.unwrap();
    assert_eq!(failures.len(), 1, "each failure once: {failures:?}");
    assert_eq!((&failures[0]["job"], &failures[0]["run"]), (&json!("bad"), &run["id"]));
    assert_eq!(failures[0]["error"], run["failureMessage"]);
    let log = server.log();
    let mut lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let audited = lines.find(|line| line["action"] == "job.create").expect("a line for what an operator did");
    assert_eq!((&audited["object"], &audited["actor"]), (&json!("job:bad"), &json!("token:admin")));
}

#[test]
fn what_keeps_it_from_starting_is_told_with_what_to_do() {
    let folder = Folder::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let busy = taken.local_addr().unwrap().to_string();
    let start = |args: &[&str], env: &[(&str, &str)]| {
        let mut command = quiet(folder.path());
        command.arg("serve").args(args).envs(env.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
        ran(command.output().unwrap())
    };
    for (args, env, code, texts) in [
        (vec!["--listen", &busy], vec![], 1, ["cannot listen on", "hint: another process may be using this port"]),
        (
            vec!["--listen", "127.0.0.1:0"],
            vec![("EVERBELL_DATABASE_URL", "postgres://nobody:hunter2@127.0.0.1:1/none")],
            1,
            ["error: the database is not available", "hint: check that the database is running"],
        ),
        (vec!["--config", "none.toml"], vec![], 2, ["none.toml", "the configuration file"]),
        (vec![], vec![("EVERBELL_ADMIN_TOKEN", "")], 2, ["EVERBELL_ADMIN_TOKEN", "empty"]),
        (vec!["--role", "boss"], vec![], 2, ["role", "all, scheduler, api"]),
    ] {
        let ran = start(&args, &env);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{args:?}: {}", ran.stderr);
        for text in texts {
            assert!(ran.stderr.contains(text), "{args:?}: {text}: {}", ran.stderr);
        }
        assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
    }
}

#[test]
fn a_job_of_somebody_else_is_not_taken_over() {
    let mut server = Server::start();
    server.job("mine", &json!({}));
    signal(&server, "TERM");
    server.ended();
    let folder = server.take_folder();
    let config = format!("{TARGETS}\n[[job]]\njob_key = \"mine\"\ntarget = \"print\"\ncron_expression = \"@daily\"\n");
    fs::write(folder.path().join("everbell.toml"), &config).unwrap();
    let mut command = quiet(folder.path());
    let ran = ran(command.args(["serve", "--listen", "127.0.0.1:0"]).output().unwrap());
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("owned by api") && ran.stderr.contains("adopt = true"), "{}", ran.stderr);
    fs::write(folder.path().join("everbell.toml"), format!("{config}\n[jobs]\nadopt = true\n")).unwrap();
    let server = Server::in_folder(folder, &[], &[]);
    server.until_logged("mine v1 -> v2");
}

#[test]
fn instances_share_the_work_and_one_that_is_killed_takes_nothing_with_it() {
    let database = database();
    let url = [("EVERBELL_DATABASE_URL", database.url())];
    let start = || {
        let folder = Folder::new();
        fs::write(folder.path().join("everbell.toml"), TARGETS).unwrap();
        Server::in_folder(folder, &[], &url)
    };
    let (one, mut other) = (start(), start());
    // The first start made the token; whoever comes second lets its bearer in as well.
    assert!(one.token.starts_with("evb_") && other.token.is_empty());
    other.token.clone_from(&one.token);
    other.until("/instances", |list| list["items"].as_array().unwrap().len() == 2);
    one.job("each-second", &json!({ "cronExpression": "* * * * * *" }));
    let done = "/runs?jobKey=each-second&status=succeeded&limit=200";
    let count = |page: &Value| page["items"].as_array().unwrap().len();
    other.until(done, |page| count(page) >= 2);
    drop(one);
    let before = count(&other.get(done).expect(200));
    let page = other.until(done, |page| count(page) >= before + 3);
    let mut slots: Vec<&str> =
        page["items"].as_array().unwrap().iter().map(|run| run["slotAt"].as_str().unwrap()).collect();
    slots.sort_unstable();
    let all = slots.len();
    slots.dedup();
    assert_eq!(slots.len(), all, "a slot ran twice");
}

/// The kernel gives what it tells about a process that may not be inspected to root, whoever runs it.
#[test]
#[cfg(target_os = "linux")]
fn other_programs_of_its_user_cannot_look_into_it() {
    use std::os::unix::fs::{MetadataExt, chown};
    use std::os::unix::process::CommandExt;

    let folder = Folder::new();
    let mut command = quiet(folder.path());
    command.args(SERVE);
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        // As root everything belongs to root anyway.
        chown(folder.path(), Some(65_534), Some(65_534)).unwrap();
        command.uid(65_534).gid(65_534);
    }
    let server = Server::begin(folder, command);
    let of_server = fs::metadata(format!("/proc/{}/environ", server.pid())).unwrap();
    assert_eq!(of_server.uid(), 0, "its environment can be read by every program of its user");
    server.get("/status").expect(200);
}
