//! A server that is killed leaves no programs behind.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::server::{Server, eventually};

/// Programs with a child, that tell their process ids in a file: one ends when it is asked and tells so, one does not.
const PROGRAMS: &str = r#"
[[target]]
label = "polite"
type = "command"
argv = ["sh", "-c", """
trap 'echo bye > polite-bye; exit' TERM
sleep 1000 & echo $$ $! > polite-new; mv polite-new polite; wait
"""]
[[target]]
label = "stubborn"
type = "command"
argv = ["sh", "-c", "trap '' TERM; sleep 1000 & echo $$ $! > stubborn-new; mv stubborn-new stubborn; wait"]
"#;

/// The process ids of the program of a run that is at work.
fn begin(server: &Server, target: &str) -> Vec<u32> {
    server.job(target, &json!({ "target": target }));
    begin_again(server, target)
}

/// Starts another run of an existing job, and returns the process ids of its programs.
fn begin_again(server: &Server, target: &str) -> Vec<u32> {
    server.post(&format!("/jobs/key:{target}/run-now"), &json!({})).expect(202);
    let file = server.folder.path().join(target);
    let told = eventually(|| fs::read_to_string(&file).ok()).expect("the program begins");
    let processes: Vec<u32> = told.split_whitespace().map(|id| id.parse().unwrap()).collect();
    assert!(processes.len() == 2 && processes.iter().all(|id| is_alive(*id)), "{processes:?}");
    processes
}

/// The state and the parent of a process.
fn look(process: u32) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, which may be anything, is in brackets.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// Whether it does anything. A dead one that nobody has reaped does not.
fn is_alive(process: u32) -> bool {
    look(process).is_some_and(|(state, _)| !['Z', 'X'].contains(&state))
}

fn are_gone(processes: &[u32]) {
    let gone = eventually(|| processes.iter().all(|id| !is_alive(*id)).then_some(()));
    assert!(gone.is_some(), "{processes:?} live on");
}

/// The supervisor of a server.
fn supervisor(server: &Server) -> u32 {
    let supervisors = supervisors(server);
    assert_eq!(supervisors.len(), 1, "{supervisors:?}");
    supervisors[0]
}

/// The supervisor that takes the place of another one.
fn supervisor_after(server: &Server, last: u32) -> u32 {
    let other = || supervisors(server).into_iter().find(|supervisor| *supervisor != last);
    eventually(other).expect("another supervisor")
}

fn supervisors(server: &Server) -> Vec<u32> {
    let processes =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    processes
        .filter(|id: &u32| look(*id).is_some_and(|(state, parent)| state != 'Z' && parent == server.pid()))
        .filter(|id| fs::read(format!("/proc/{id}/cmdline")).is_ok_and(|line| line.ends_with(b"\0supervise-groups\0")))
        .collect()
}

fn signal(process: u32, name: &str) {
    assert!(Command::new("kill").args([format!("-{name}"), process.to_string()]).status().unwrap().success());
}

#[test]
fn programs_end_with_a_server_that_is_killed() {
    let server = Server::with(PROGRAMS).registered();
    let supervisor = supervisor(&server);
    let mut processes = begin(&server, "polite");
    processes.extend(begin(&server, "stubborn"));
    signal(server.pid(), "KILL");
    are_gone(&processes);
    are_gone(&[supervisor]);
    assert_eq!(fs::read_to_string(server.folder.path().join("polite-bye")).unwrap(), "bye\n", "it is asked first");
}

#[test]
fn another_supervisor_knows_what_the_last_one_knew() {
    let server = Server::with(PROGRAMS).registered();
    let first = supervisor(&server);
    let mut processes = begin(&server, "polite");
    signal(first, "KILL");
    are_gone(&[first]);
    assert!(processes.iter().all(|id| is_alive(*id)), "a supervisor that is ended ends nobody");
    processes.extend(begin(&server, "stubborn"));
    let second = supervisor_after(&server, first);
    signal(server.pid(), "KILL");
    are_gone(&processes);
    are_gone(&[second]);
}

#[test]
fn a_supervisor_goes_with_its_server() {
    let mut server = Server::with(PROGRAMS).registered();
    let supervisor = supervisor(&server);
    signal(server.pid(), "TERM");
    server.ended();
    are_gone(&[supervisor]);
    assert!(!server.log().contains("supervisor"), "{}", server.log());
}

/// Leases that end while a test is patient.
const SHORT_LEASE: &str = "[engine]\nlease = \"6s\"\n";

#[test]
fn programs_of_a_frozen_server_end_before_their_leases_do_unless_they_may_continue() {
    let continuing = PROGRAMS.replace("polite", "continuing");
    let (target, _) = continuing.split_once("[[target]]\nlabel = \"stubborn\"").unwrap();
    let server = Server::postgres(&format!("{SHORT_LEASE}{PROGRAMS}{target}")).registered();
    server.job("continuing", &json!({ "target": "continuing", "policies": { "onLeaseLoss": "continue" } }));
    let continuing = begin_again(&server, "continuing");
    let mut processes = begin(&server, "polite");
    processes.extend(begin(&server, "stubborn"));
    signal(server.pid(), "STOP");
    are_gone(&processes);
    assert_eq!(fs::read_to_string(server.folder.path().join("polite-bye")).unwrap(), "bye\n", "it is asked first");
    assert!(continuing.iter().all(|id| is_alive(*id)), "its job lets it continue");
    signal(server.pid(), "CONT");
    let run = "/runs?jobKey=polite";
    let ended = server.until(run, |list| list["items"][0]["status"] == "failed");
    assert_eq!(ended["items"][0]["failureCode"], "fenced", "{ended}");
    signal(server.pid(), "KILL");
    are_gone(&continuing);
}
