//! Everbell's own program under the bench of peers, through the protocol that every peer speaks.

#![allow(clippy::unwrap_used, reason = "helpers of a test")]

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use everbell_store::testing::TestDatabase;
use serde_json::{Value, json};

const JOBS: u32 = 50;

/// The program; a failed test ends it.
struct Adapter {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Adapter {
    fn start(work: &Value) -> Adapter {
        let mut command = Command::new(env!("CARGO_BIN_EXE_everbell-bench"));
        command.args(["peers", "adapter"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        let mut adapter = Adapter { process, input, output };
        adapter.send(&work.to_string());
        adapter
    }

    fn send(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    fn expect(&mut self, event: &str) {
        let mut line = String::new();
        assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the program ended before `{event}`");
        let said: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(said["event"], event, "{line}");
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        let _it_may_have_ended = self.process.kill();
        let _reaped = self.process.wait();
    }
}

/// Puts jobs through the program, and returns the number and the time in microseconds of each call.
fn calls(kind: &str, base_ms: i64, spread_ms: i64) -> Vec<(u32, i64)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let database = runtime.block_on(TestDatabase::empty());
    let results = std::env::temp_dir().join(format!("everbell-bench-calls-{}", uuid::Uuid::new_v4()));
    let mut adapter = Adapter::start(&json!({
        "database": database.url(), "kind": kind, "best": false, "jobs": JOBS,
        "base_ms": base_ms, "spread_ms": spread_ms, "results": results,
    }));
    adapter.expect("ready");
    adapter.send("go");
    adapter.expect("called");
    adapter.send("stop");
    adapter.expect("written");
    assert!(adapter.process.wait().unwrap().success());
    let text = std::fs::read_to_string(&results).unwrap();
    std::fs::remove_file(&results).unwrap();
    let call = |line: &str| {
        let (job, at) = line.split_once(' ').unwrap();
        (job.parse().unwrap(), at.parse().unwrap())
    };
    text.lines().map(call).collect()
}

fn numbers(calls: &[(u32, i64)]) -> HashSet<u32> {
    calls.iter().map(|(job, _)| *job).collect()
}

#[test]
fn due_jobs_are_each_called_once() {
    let calls = calls("drain", 0, 0);
    assert_eq!(calls.len(), JOBS as usize);
    assert_eq!(numbers(&calls), (0..JOBS).collect());
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "the time of a job is a wall time, which another process compares with its clock"
)]
fn timed_jobs_are_each_called_once_and_never_early() {
    let base_ms = jiff::Timestamp::now().as_millisecond() + 1_500;
    let calls = calls("timed", base_ms, 500);
    assert_eq!(calls.len(), JOBS as usize);
    assert_eq!(numbers(&calls), (0..JOBS).collect());
    for (job, at_us) in calls {
        let due_ms = base_ms + 500 * i64::from(job) / i64::from(JOBS);
        assert!(at_us >= 1_000 * due_ms, "job {job} began {} µs before its time", 1_000 * due_ms - at_us);
    }
}
