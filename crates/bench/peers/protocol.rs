//! The protocol between the bench and the program of a peer, which everbell's own program speaks too.
//!
//! ```text
//! bench   {"database", "kind", "best", "jobs", "base_ms", "spread_ms", "results"}   one line of JSON
//! peer    {"event": "ready", "version"}   every job is enqueued
//! bench   go                              the worker starts, and the time of a drain begins
//! peer    {"event": "called"}             as many handlers were called as there are jobs
//! bench   stop                            also without `called`, when there was no more time
//! peer    {"event": "written"}            the file `results` has a line `NUMBER MICROSECONDS` for each call
//! ```
//!
//! Other lines of the peer are ignored. A job of the kind `drain` is due at once; job `n` of another kind is due
//! `base_ms + spread_ms * n / jobs` milliseconds after the epoch.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// An error of any kind, which ends the program.
pub(crate) type Problem = Box<dyn std::error::Error + Send + Sync>;

/// One piece of work.
#[derive(Clone, Debug)]
pub(crate) struct BenchTask {
    pub(crate) database: String,
    pub(crate) best: bool,
    pub(crate) jobs: u32,
    pub(crate) spread_ms: i64,
    base_ms: i64,
    at_once: bool,
    results: PathBuf,
}

impl BenchTask {
    /// Returns the time of a job in milliseconds since the epoch, or `None` if it is due at once.
    pub(crate) fn due_ms(&self, n: u32) -> Option<i64> {
        let at = self.base_ms + self.spread_ms * i64::from(n) / i64::from(self.jobs.max(1));
        (!self.at_once).then_some(at)
    }

    fn parse(line: &str) -> Result<BenchTask, Problem> {
        let said: Value = serde_json::from_str(line)?;
        let text = |name: &str| said[name].as_str().ok_or(format!("`{name}` is not a text")).map(str::to_owned);
        let number = |name: &str| said[name].as_i64().ok_or(format!("`{name}` is not a number"));
        Ok(BenchTask {
            database: text("database")?,
            best: said["best"].as_bool().ok_or("`best` is neither true nor false")?,
            jobs: number("jobs")?.try_into()?,
            spread_ms: number("spread_ms")?,
            base_ms: number("base_ms")?,
            at_once: text("kind")? == "drain",
            results: text("results")?.into(),
        })
    }
}

/// Notes each call of a handler. Clones share their notes.
#[derive(Clone, Debug)]
pub(crate) struct Witness {
    calls: Arc<Mutex<Vec<(u32, u128)>>>,
    expected: usize,
}

impl Witness {
    /// Notes that the handler of this job begins.
    #[allow(clippy::disallowed_methods, reason = "measuring time is reading a clock")]
    pub(crate) fn call(&self, n: u32) {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.push((n, at));
        if calls.len() == self.expected {
            say(&json!({"event": "called"}));
        }
    }

    fn lines(&self) -> String {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<String> = calls.iter().map(|(n, at)| format!("{n} {at}")).collect();
        lines.join("\n")
    }
}

/// The bench at the other end of the standard streams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bench(());

impl Bench {
    /// Reads what to do.
    pub(crate) async fn connect() -> Result<(Bench, BenchTask, Witness), Problem> {
        let work = BenchTask::parse(&next_line().await?)?;
        let witness = Witness { calls: Arc::default(), expected: work.jobs as usize };
        Ok((Bench(()), work, witness))
    }

    /// Says that everything is enqueued, and waits for the word to start.
    pub(crate) async fn ready(self, version: &str) -> Result<(), Problem> {
        say(&json!({"event": "ready", "version": version}));
        match next_line().await?.trim_end() {
            "go" => Ok(()),
            other => Err(format!("expected `go`, got `{other}`").into()),
        }
    }

    /// Waits until the bench has seen enough, and writes down the calls.
    pub(crate) async fn finish(self, work: &BenchTask, witness: &Witness) -> Result<(), Problem> {
        next_line().await?;
        std::fs::write(&work.results, witness.lines())?;
        say(&json!({"event": "written"}));
        Ok(())
    }
}

/// Waits in a thread of its own; an end of the input is an empty line.
async fn next_line() -> Result<String, Problem> {
    let read = || {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    };
    Ok(tokio::task::spawn_blocking(read).await??)
}

#[allow(clippy::print_stdout, reason = "the standard output is the line to the bench")]
fn say(message: &Value) {
    println!("{message}");
}
