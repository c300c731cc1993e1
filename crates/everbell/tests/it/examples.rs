//! The examples do what they show, and end by themselves when they are told how long.

use std::path::PathBuf;
use std::process::{Command, Output};

#[cfg(target_os = "linux")]
use rustix::process::Signal;

/// Built examples lie beside the folder of the test binaries: `debug/deps/it-…` and `debug/examples/NAME`. `cargo test`
/// and `cargo nextest run` build them, unless they are told what else to build: then this does.
fn example(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("the path of this test");
    let folder = own.parent().and_then(|deps| deps.parent()).expect("the folder of the build");
    let path = folder.join("examples").join(name);
    if !path.exists() {
        let arguments = ["build", "--locked", "--package", "everbell", "--example", name];
        let built = Command::new(env!("CARGO")).args(arguments).output().expect("cargo starts");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    }
    path
}

fn run(name: &str) -> String {
    let Output { status, stdout, stderr } = Command::new(example(name))
        .env("EVERBELL_EXAMPLE_SECONDS", "2")
        .env_remove("EVERBELL_EXAMPLE_ADDRESS")
        .output()
        .expect("the example starts");
    let stdout = String::from_utf8_lossy(&stdout).into_owned();
    assert!(status.success(), "{name}: {status}\n{stdout}\n{}", String::from_utf8_lossy(&stderr));
    stdout
}

#[test]
fn minimal_ticks() {
    let said = run("minimal");
    assert!(said.lines().filter(|line| line.starts_with("tick ")).count() >= 1, "{said}");
}

#[cfg(target_os = "linux")]
#[test]
fn minimal_ends_in_order_on_sigterm_and_on_sigint() {
    for signal in [Signal::TERM, Signal::INT] {
        ends_in_order_on(signal);
    }
}

#[cfg(target_os = "linux")]
fn ends_in_order_on(signal: Signal) {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    let mut command = Command::new(example("minimal"));
    let mut child = command.env_remove("EVERBELL_EXAMPLE_SECONDS").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("tick "));
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).unwrap();
    // Its output ends with it.
    lines.for_each(|line| assert!(line.unwrap().starts_with("tick ")));
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}");
}

#[test]
fn typed_shows_results_and_failures() {
    let said = run("typed");
    for wanted in [
        "+ create       daily-briefing v1",
        "succeeded after ",
        r#"{"mails":7}"#,
        "refused: payload: target `brief` cannot read the payload of job `daily-briefing`: it is no `Briefing`: invalid type: string",
        // The mail server is busy for whichever comes first.
        " attempt(s): no_recipients: org 100 has no members",
    ] {
        assert!(said.contains(wanted), "{wanted}\n{said}");
    }
}

#[test]
fn one_time_fires_once() {
    let said = run("one_time");
    assert!(said.contains("sending invoice 42\ninvoice-42 is retired\n"), "{said}");
}

#[test]
fn transaction_reminds_of_what_was_committed() {
    let said = run("transaction");
    let wanted =
        "reminding of order 1\nreminder-1 is retired\nreminder-2 has never been there\nreminder-3 is retired\n";
    assert_eq!(said, wanted);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn axum_app_reminds_of_an_order_and_ends_in_order() {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpStream;
    use std::process::Stdio;

    use everbell_store::testing::TestDatabase;

    fn ask(address: &str, what: &str) -> String {
        let mut connection = TcpStream::connect(address).unwrap();
        write!(connection, "{what} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        answer
    }

    let database = TestDatabase::create().await;
    let mut command = Command::new(example("axum_app"));
    command.env("DATABASE_URL", database.url()).env_remove("EVERBELL_EXAMPLE_SECONDS");
    let mut child = command.env_remove("EVERBELL_EXAMPLE_ADDRESS").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let address = lines.next().unwrap().strip_prefix("listening on http://").unwrap().to_owned();
    assert!(ask(&address, "POST /orders/tea").ends_with("\r\n\r\n1\n"));
    assert!(ask(&address, "POST /orders/milk").ends_with("\r\n\r\n2\n"));
    assert!(ask(&address, "DELETE /orders/2").starts_with("HTTP/1.1 204 "));
    assert!(ask(&address, "DELETE /orders/2").starts_with("HTTP/1.1 400 "), "it is retired already");
    assert_eq!(lines.next().unwrap(), "reminding of order 1: tea");
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(lines.collect::<Vec<_>>(), ["stopped"]);
    assert!(child.wait().unwrap().success());
}

#[test]
fn testing_needs_no_time() {
    let said = run("testing");
    for wanted in [
        "2027-03-29T06:00:00Z succeeded",
        "mail_server: greylisted",
        "and at its second: briefed support",
        "failed lost",
        "next: 2027-04-01T08:00:00+02:00",
        "1 slot(s) folded into the run of 2027-04-02T06:00:00Z",
    ] {
        assert!(said.contains(wanted), "{wanted}\n{said}");
    }
}

#[test]
fn per_org_fires_at_each_ones_own_time() {
    let said = run("per_org");
    let wanted = "2026-11-15T19:00:00Z kiwi for their 2026-11-16\n\
                  2026-11-15T23:00:00Z lotus for their 2026-11-16\n\
                  2026-11-16T07:00:00Z lys for their 2026-11-16\n\
                  2026-11-16T14:30:00Z maple for their 2026-11-16\n\
                  if lotus moved to Toronto: 2026-11-16 ran_already\n";
    assert!(said.starts_with(wanted), "{said}");
}
