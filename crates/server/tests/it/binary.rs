//! The real binary, as somebody types it.

#![allow(clippy::unwrap_used, reason = "only tests call this")]

use std::ffi::OsString;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The result of a command.
#[derive(Debug, PartialEq)]
pub(crate) struct Ran {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: Option<i32>,
}

pub(crate) fn everbell(args: &[&str]) -> Ran {
    everbell_with(args, "")
}

/// Runs the binary with this standard input.
pub(crate) fn everbell_with(args: &[&str], input: &str) -> Ran {
    let mut child = command(args).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // Written beside reading: neither side waits for a full pipe. It may end before it has read everything.
    let writer = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    ran(output)
}

pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_everbell"));
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // What the person who runs the tests prefers does not matter.
    let ours = std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("EVERBELL_"));
    let preferences =
        ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "TRACEPARENT", "TRACESTATE", "EDITOR", "VISUAL"];
    for name in ours.map(|(name, _)| name).chain(preferences.map(OsString::from)) {
        command.env_remove(name);
    }
    command.env("XDG_CONFIG_HOME", "/nonexistent");
    command
}

pub(crate) fn ran(output: Output) -> Ran {
    Ran {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code(),
    }
}

/// The data of a command that must succeed without a word.
#[track_caller]
pub(crate) fn stdout(args: &[&str]) -> String {
    let ran = everbell(args);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{args:?}");
    ran.stdout
}

/// Returns the error message of a command that must refuse.
#[track_caller]
pub(crate) fn refusal(args: &[&str]) -> String {
    let ran = everbell(args);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{args:?}");
    ran.stderr
}

/// The one JSON document that stands on one line.
#[track_caller]
pub(crate) fn document(stdout: &str) -> Value {
    assert_eq!(stdout.matches('\n').count(), 1, "{stdout}");
    serde_json::from_str(stdout).unwrap()
}

pub(crate) fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}
