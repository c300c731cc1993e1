//! Channels of type `command`: a program that gets the message on its standard input and in its environment.

use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use everbell_core::alert::Delivery;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use crate::targets::{CommandSettings, passed_environment, redact, run_as};

/// The most that is read of what a program complains.
const MAX_COMPLAINT_BYTES: u64 = 2_000;

/// How long its complaints are read after its end.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A program, which ends with this value together with everything that it started, unless it has ended by itself.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        // It was not reaped, so its id is still its own.
        let leader = self.0.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(leader) = leader {
            let _gone = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// Runs the program, and returns why it did not take the message.
pub(super) async fn run(
    settings: &CommandSettings,
    timeout: Duration,
    delivery: &Delivery,
    message: &Value,
) -> Result<(), String> {
    let program = settings.argv.first().map_or("", String::as_str);
    let mut command = Command::new(program);
    command.args(settings.argv.iter().skip(1)).env_clear().envs(passed_environment(settings));
    command.envs(about(delivery, message));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
    if let Some(folder) = &settings.cwd {
        command.current_dir(folder);
    }
    run_as(settings, &mut command)?;
    let child = command.spawn().map_err(|error| format!("`{program}` cannot be started: {error}"))?;
    let mut group = Group(child);
    let attended = tokio::time::timeout(timeout, attend(&mut group.0, settings, message)).await;
    let (code, complaint) = match attended {
        Err(_) => return Err(format!("`{program}` did not end within {} s", timeout.as_secs_f64())),
        Ok(Err(error)) => return Err(format!("`{program}` cannot be attended: {error}")),
        Ok(Ok(ended)) => ended,
    };
    match code {
        Some(code) if settings.success.contains(&code) => Ok(()),
        Some(code) => Err(format!("`{program}` ended with code {code}: {}", complaint.trim())),
        None => Err(format!("`{program}` was ended by a signal: {}", complaint.trim())),
    }
}

/// Feeds and reads the program until it ends, and returns its exit code and what it complained.
async fn attend(
    child: &mut Child,
    settings: &CommandSettings,
    message: &Value,
) -> std::io::Result<(Option<i32>, String)> {
    let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
    let feed = async {
        if let Some(mut stdin) = stdin {
            // A program that does not read all of it does not want it.
            let _unwanted = stdin.write_all(message.to_string().as_bytes()).await;
        }
    };
    let mut complaint = Vec::new();
    let listen = async {
        if let Some(stderr) = stderr {
            let mut start = stderr.take(MAX_COMPLAINT_BYTES);
            start.read_to_end(&mut complaint).await?;
            // The rest is read so that the program does not wait for a reader, and dropped.
            let mut rest = start.into_inner();
            tokio::io::copy(&mut rest, &mut tokio::io::sink()).await?;
        }
        std::io::Result::Ok(())
    };
    let status = {
        let mut pipes = pin!(async { tokio::join!(feed, listen).1 });
        let mut is_read = false;
        let status = loop {
            tokio::select! {
                read = &mut pipes, if !is_read => {
                    read?;
                    is_read = true;
                }
                status = child.wait() => break status?,
            }
        };
        if !is_read {
            // What it left in the background may keep its pipes open for as long as it wants.
            let _kept_open = tokio::time::timeout(LAST_WORDS, &mut pipes).await;
        }
        status
    };
    let complaint = redact(settings, &complaint, (complaint.len() as u64) < MAX_COMPLAINT_BYTES);
    let complaint = everbell_core::storable_text(&String::from_utf8_lossy(&complaint), 2_000);
    Ok((status.code(), complaint))
}

/// Variables that describe the message.
fn about(delivery: &Delivery, message: &Value) -> Vec<(&'static str, String)> {
    let text = |name: &str| message.pointer(name).and_then(Value::as_str).unwrap_or_default().replace('\0', "");
    vec![
        ("EVERBELL_DELIVERY_ID", delivery.new.id.to_string()),
        ("EVERBELL_CHANGE", delivery.new.change.as_str().to_owned()),
        ("EVERBELL_PROBLEM_ID", text("/problem/id")),
        ("EVERBELL_PROBLEM_KIND", text("/problem/kind")),
        ("EVERBELL_JOB_KEY", text("/problem/jobKey")),
        ("EVERBELL_RUN_ID", text("/run/id")),
        ("EVERBELL_TITLE", text("/title")),
        ("EVERBELL_TEXT", text("/text")),
        ("EVERBELL_URL", text("/url")),
    ]
}
