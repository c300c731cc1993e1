//! One machine: files that go away, pipes that nobody reads, clients that do not let go, limits of the system.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::binary::ran;
use crate::server::{Folder, SERVE, Server, TARGETS, eventually, exchange, quiet, without_ours};

fn signal(process: u32, name: &str) {
    assert!(Command::new("kill").args([format!("-{name}"), process.to_string()]).status().unwrap().success());
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}

#[test]
fn a_database_that_is_removed_is_named_and_not_begun_anew() {
    let mut server = Server::start();
    server.job("kept", &json!({}));
    let file = server.folder.path().join("everbell-data/everbell.db");
    fs::remove_file(&file).unwrap();
    let body = json!({ "jobKey": "lost", "target": "print", "cronExpression": "0 0 1 1 *" });
    let problem = server.post("/jobs", &body).problem(503, "NotReady");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("`everbell.db` was removed while the server was using it"), "{problem}");
    let ready = server.raw("GET", "/readyz", &[], b"");
    assert_eq!(ready.status, 503);
    assert!(ready.text.contains("[-] database") && ready.text.contains("was removed"), "{}", ready.text);
    assert_eq!(server.raw("GET", "/livez", &[], b"").status, 200);
    server.until_logged("ERROR");
    assert!(server.log().contains("restore a backup"), "{}", server.log());
    signal(server.pid(), "TERM");
    server.ended();

    let folder = server.take_folder();
    let ran = ran(quiet(folder.path()).args(SERVE).output().unwrap());
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("is missing") && ran.stderr.contains("everbell.db.marker"), "{}", ran.stderr);
    assert!(!file.exists());
}

#[test]
fn a_stop_leaves_the_whole_database_in_its_file() {
    let mut folder = Folder::new();
    fs::write(folder.path().join("everbell.toml"), TARGETS).unwrap();
    let mut token = String::new();
    for number in 0..6 {
        let mut server = Server::in_folder(folder, &[], &[]);
        if number == 0 {
            token.clone_from(&server.token);
        }
        server.token.clone_from(&token);
        server.job(&format!("job-{number}"), &json!({}));
        signal(server.pid(), "TERM");
        assert_eq!(server.ended(), Some(0));
        folder = server.take_folder();
        let data = folder.path().join("everbell-data");
        assert_eq!(size(&data.join("everbell.db-wal")), 0, "stop {number}");
        assert!(size(&data.join("everbell.db")) > 100_000, "stop {number}");
    }
}

#[test]
fn a_copy_does_not_start_beside_its_original() {
    let server = Server::start();
    let copy = server.folder.path().join("copy.db");
    let backup = ran(quiet(server.folder.path()).args(["db", "backup", "copy.db"]).output().unwrap());
    assert_eq!(backup.code, Some(0), "{}", backup.stderr);
    let database = format!("sqlite:{}", copy.display());
    let folder = Folder::new();
    let refused = ran(quiet(folder.path()).args(SERVE).args(["--database", &database]).output().unwrap());
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    let (pid, said) = (format!("process {}", server.pid()), &refused.stderr);
    assert!(said.contains(&pid) && said.contains("is a copy") && said.contains("ALLOW_COPY"), "{said}");
    let allowed = [("EVERBELL_DATABASE_ALLOW_COPY", "true")];
    let both = Server::in_folder(folder, &["--database", &database], &allowed);
    both.until_logged("both fire the same jobs");
    // Two processes with one file are no copies.
    let original = format!("sqlite:{}", server.folder.path().join("everbell-data/everbell.db").display());
    let second = Server::in_folder(Folder::new(), &["--database", &original], &[]);
    assert!(!second.log().contains("both fire"), "{}", second.log());
}

/// A server whose log goes into a pipe.
fn piped(folder: &Folder) -> (Child, ChildStderr, String, String) {
    let mut command = quiet(folder.path());
    command.args(SERVE).env("EVERBELL_LOG", "trace");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut greeting = String::new();
    while !greeting.contains("\n  jobs ") {
        assert!(lines.read_line(&mut greeting).unwrap() > 0, "{greeting}");
    }
    let after = |text: &str| greeting.split_once(text).unwrap().1.split_whitespace().next().unwrap().to_owned();
    let log = child.stderr.take().unwrap();
    let token = std::fs::read_to_string(folder.path().join(after("first admin token is in "))).unwrap();
    (child, log, after("listening on http://"), token.trim().to_owned())
}

/// Runs the demo job often enough that its lines do not fit into a pipe.
fn chatter(address: &str, token: &str) {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    let big = json!({ "payload": { "text": "x".repeat(30_000) } }).to_string();
    for _ in 0..10 {
        let reply = exchange(address, "POST", "/api/v1/jobs/key:demo/run-now", &headers, big.as_bytes());
        let place = reply.headers.get("location").unwrap_or_else(|| panic!("{reply:?}")).clone();
        let ended = eventually(|| {
            let run = exchange(address, "GET", &place, &headers, b"").expect(200);
            (run["status"] == "succeeded").then_some(())
        });
        assert!(ended.is_some(), "runs go on");
    }
    assert_eq!(exchange(address, "GET", "/livez", &[], b"").status, 200);
}

#[test]
fn a_log_that_nobody_reads_stops_nothing() {
    let folder = Folder::new();
    let (mut child, mut log, address, token) = piped(&folder);
    chatter(&address, &token);
    signal(child.id(), "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut text = Vec::new();
    log.read_to_end(&mut text).unwrap();
    assert!(text.len() > 50_000, "the pipe was full: {}", text.len());
}

#[test]
fn a_log_whose_reader_is_gone_stops_nothing() {
    let folder = Folder::new();
    let (mut child, log, address, token) = piped(&folder);
    drop(log);
    chatter(&address, &token);
    let metrics = exchange(&address, "GET", "/metrics", &[], b"").text;
    let dropped = metrics.lines().find_map(|line| line.strip_prefix("everbell_log_lines_dropped_total "));
    assert!(dropped.unwrap().parse::<f64>().unwrap() > 0.0, "{dropped:?}");
    signal(child.id(), "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn clients_that_never_read_do_not_keep_probes_out() {
    let server = Server::launch(TARGETS, None, &[("EVERBELL_MAX_CONNECTIONS_PER_ADDRESS", "20")]);
    let ask = format!("GET /openapi.json HTTP/1.1\r\nhost: {}\r\n\r\n", server.address).repeat(40);
    let greedy: Vec<TcpStream> = (0..100)
        .filter_map(|_| {
            let mut stream = TcpStream::connect(&server.address).ok()?;
            // Beyond the limit it may be closed while this is sent.
            let _ = stream.write_all(ask.as_bytes());
            Some(stream)
        })
        .collect();
    let live = eventually(|| {
        let mut stream = TcpStream::connect(&server.address).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
        stream.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n").ok()?;
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer.starts_with("HTTP/1.1 200").then_some(())
    });
    assert!(live.is_some(), "/livez is answered");
    let refused = eventually(|| {
        let mut stream = TcpStream::connect(&server.address).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
        stream.write_all(b"GET /api/v1/jobs HTTP/1.1\r\nhost: x\r\n\r\n").ok()?;
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer.starts_with("HTTP/1.1 429").then_some(answer)
    });
    let refused = refused.expect("others are refused in words").to_lowercase();
    assert!(refused.contains("application/problem+json") && refused.contains("connection: close"), "{refused}");
    drop(greedy);
    let again = eventually(|| {
        let mut stream = TcpStream::connect(&server.address).ok()?;
        stream.write_all(b"GET /openapi.json HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer.starts_with("HTTP/1.1 200").then_some(())
    });
    assert!(again.is_some(), "who lets go makes room");
    let metrics = server.raw("GET", "/metrics", &[], b"").text;
    assert!(metrics.contains("everbell_http_connections_refused_total{limit=\"address\"}"), "{metrics}");
}

#[test]
fn connections_leave_descriptors_for_runs() {
    let config = "[[target]]\nlabel = \"true\"\ntype = \"command\"\nargv = [\"true\"]\n";
    let folder = Folder::new();
    fs::write(folder.path().join("everbell.toml"), config).unwrap();
    let mut command = without_ours("sh");
    let serve = format!("ulimit -n 200; exec {} {}", env!("CARGO_BIN_EXE_everbell"), SERVE.join(" "));
    command.args(["-c", &serve]).env("EVERBELL_MAX_CONNECTIONS_PER_ADDRESS", "1000");
    command.current_dir(folder.path()).stdin(Stdio::null());
    let server = Server::begin(folder, command);
    server.until_logged("too low for the configured number of connections");
    server.job("true", &json!({ "target": "true" }));
    let idle: Vec<TcpStream> = (0..45).filter_map(|_| TcpStream::connect(&server.address).ok()).collect();
    for _ in 0..3 {
        let reply = server.post("/jobs/key:true/run-now", &json!({}));
        server.until(&reply.headers["location"], |run| run["status"] == "succeeded");
    }
    drop(idle);
}

#[test]
fn a_request_that_means_two_things_is_refused() {
    let server = Server::start();
    for head in [
        "GET /livez HTTP/1.1\r\n\r\n",
        "GET /livez HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
        "GET /api/v1/jobs HTTP/1.1\r\nhost: a\r\nauthorization: Bearer x\r\nauthorization: Bearer y\r\n\r\n",
    ] {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("application/problem+json"), "{head}: {answer}");
    }
}

#[test]
fn a_path_that_is_no_text_is_a_problem_like_any_other() {
    let server = Server::start();
    let problem = server.raw("GET", "/api/v1/jobs/%ff", &[], b"");
    problem.problem(400, "InvalidInput");
    assert!(problem.headers.contains_key("x-request-id"), "{problem:?}");
    let page = server.raw("GET", "/jobs/%ff", &[("accept", "text/html")], b"");
    assert_eq!(page.status, 400);
    assert!(page.headers["content-type"].starts_with("text/html"), "{page:?}");
    assert!(page.headers.contains_key("content-security-policy"), "{page:?}");
}

#[test]
fn a_token_has_so_many_streams() {
    let server = Server::start();
    let open = || {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        let head = format!("GET /api/v1/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\r\n", server.token);
        stream.write_all(head.as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
        (stream, line)
    };
    let mut streams: Vec<TcpStream> = Vec::new();
    for _ in 0..16 {
        let (stream, line) = open();
        assert!(line.starts_with("HTTP/1.1 200"), "{line}");
        streams.push(stream);
    }
    assert!(open().1.starts_with("HTTP/1.1 429"));
    drop(streams);
    let again = eventually(|| open().1.starts_with("HTTP/1.1 200").then_some(()));
    assert!(again.is_some(), "who closes one may open another");
}

#[test]
fn details_of_readiness_are_for_this_machine_and_for_tokens() {
    let server = Server::start();
    let ready = |headers: &[(&str, &str)]| server.raw("GET", "/readyz?verbose=true", headers, b"").text;
    let elsewhere = ("x-forwarded-for", "192.0.2.7");
    assert!(ready(&[]).contains("sqlite 3"), "{}", ready(&[]));
    let told = ready(&[elsewhere]);
    assert!(told.contains("[+] database\n") && !told.contains("sqlite"), "{told}");
    let bearer = format!("Bearer {}", server.token);
    assert!(ready(&[elsewhere, ("authorization", &bearer)]).contains("sqlite 3"));
    assert!(!ready(&[elsewhere, ("authorization", "Bearer evb_none")]).contains("sqlite"));
}
