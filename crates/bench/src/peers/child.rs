//! The program of a peer, and the bench's side of the protocol.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::catalog::Peer;

/// How long a program may take to write down its calls.
const WRITE_LIMIT: Duration = Duration::from_secs(20);
/// How much of what a program says about its failure is repeated.
const MAX_REASON_CHARS: usize = 300;

/// A running program; dropping it kills the process.
#[derive(Debug)]
pub(super) struct Program {
    process: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    errors: PathBuf,
}

/// Why an expected event did not come.
#[derive(Debug)]
pub(super) enum Missing {
    /// The program is still at work.
    TimedOut,
    /// It ended, or cannot be read.
    Failed(String),
}

impl Program {
    /// Starts the program and gives it the work.
    pub(super) async fn start(peer: &Peer, cache: &Path, folder: &Path, work: &Value) -> Result<Program, String> {
        let (program, arguments) = peer.command(cache)?;
        let errors = folder.join("errors");
        let file = File::create(&errors).map_err(|error| format!("create {}: {error}", errors.display()))?;
        let mut command = Command::new(&program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(file).kill_on_drop(true);
        let mut process = command.spawn().map_err(|error| format!("start {}: {error}", program.display()))?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("the program has no standard streams".to_owned());
        };
        let mut program = Program { process, input, lines: BufReader::new(output).lines(), errors };
        program.send(&work.to_string()).await?;
        Ok(program)
    }

    /// Sends one line.
    pub(super) async fn send(&mut self, line: &str) -> Result<(), String> {
        let sent = self.input.write_all(format!("{line}\n").as_bytes()).await;
        sent.map_err(|error| self.failure(&format!("it does not listen ({error})")))
    }

    /// Waits for the event of this name, and returns it.
    pub(super) async fn expect(&mut self, event: &str, limit: Duration) -> Result<Value, Missing> {
        let found = async {
            loop {
                let line = self.lines.next_line().await.map_err(|error| error.to_string())?;
                let line = line.ok_or_else(|| "it ended".to_owned())?;
                let Ok(said) = serde_json::from_str::<Value>(&line) else { continue };
                if said["event"] == event {
                    return Ok::<Value, String>(said);
                }
            }
        };
        match timeout(limit, found).await {
            Err(_) => Err(Missing::TimedOut),
            Ok(Ok(said)) => Ok(said),
            Ok(Err(reason)) => {
                // Its last words are in the file once it is gone.
                let _ended = timeout(Duration::from_secs(1), self.process.wait()).await;
                Err(Missing::Failed(self.failure(&reason)))
            }
        }
    }

    /// Stops it, and waits until its calls are written.
    pub(super) async fn stop(mut self) -> Result<(), String> {
        self.send("stop").await?;
        let written = self.expect("written", WRITE_LIMIT).await;
        written.map(drop).map_err(|missing| match missing {
            Missing::TimedOut => format!("it did not write its calls within {} s", WRITE_LIMIT.as_secs()),
            Missing::Failed(reason) => reason,
        })?;
        self.kill().await;
        Ok(())
    }

    /// Ends the process and waits for that, so that its connections are gone.
    pub(super) async fn kill(mut self) {
        let _it_may_have_ended = self.process.kill().await;
    }

    fn failure(&self, what: &str) -> String {
        let text = std::fs::read_to_string(&self.errors).unwrap_or_default();
        let Some(last) = text.lines().rev().find(|line| !line.trim().is_empty()) else { return what.to_owned() };
        format!("{what}: {}", last.trim().chars().take(MAX_REASON_CHARS).collect::<String>())
    }
}
