//! The `shell` target: real commands, with the environment of cron.

use std::collections::BTreeMap;

use everbell::{RunRecord, RunStatus};
use everbell_wire::secret::Secret;
use serde_json::{Value, json};

use super::given::{Folder, details, failure, perform_with};
use crate::targets::{Kind, ShellSettings};

async fn run(payload: Value) -> RunRecord {
    run_with(ShellSettings::default(), payload).await
}

async fn run_with(settings: ShellSettings, payload: Value) -> RunRecord {
    perform_with(Kind::Shell(settings), payload, |schedule| schedule).await
}

#[tokio::test]
async fn command_runs_with_the_environment_of_cron() {
    let folder = Folder::new();
    let home = folder.0.to_str().unwrap();
    let payload = json!({
        "command": "cat; echo \"$0 $((1 + 2))\" && pwd; env",
        "env": { "HOME": home, "A": "b c" },
        "stdin": "first\nsecond\n",
    });
    let run = run(payload).await;
    assert_eq!(run.status, RunStatus::Succeeded, "{run:?}");
    let output = run.output.as_deref().unwrap();
    assert!(output.starts_with("first\nsecond\n/bin/sh 3\n"), "{output}");
    let env: BTreeMap<&str, &str> = output.lines().filter_map(|line| line.split_once('=')).collect();
    let id = run.id.to_string();
    for (name, value) in
        [("HOME", home), ("A", "b c"), ("PATH", "/usr/bin:/bin"), ("SHELL", "/bin/sh"), ("EVERBELL_RUN_ID", &id)]
    {
        assert_eq!(env.get(name), Some(&value), "{name}: {env:#?}");
    }
    assert!(env.contains_key("TRACEPARENT") && env.get("LOGNAME") == env.get("USER"), "{env:#?}");
    assert!(!env.contains_key("CARGO_MANIFEST_DIR"), "{env:#?}");
    assert!(output.contains(&format!("\n{}\n", folder.0.canonicalize().unwrap().display())), "{output}");
}

#[tokio::test]
async fn exit_code_decides_and_the_failure_names_the_command() {
    let run = run(json!({ "command": "echo too bad >&2; exit 3" })).await;
    assert_eq!(failure(&run), ("exit_code", "`echo` ended with the exit code 3: too bad"));
    assert_eq!(details(&run), json!({ "exitCode": 3 }));
}

#[tokio::test]
async fn shell_of_the_payload_runs_the_command() {
    let run = run(json!({ "command": "x", "shell": "/nowhere/zsh" })).await;
    assert_eq!(failure(&run), ("spawn_failed", "`/nowhere/zsh` cannot start: there is no such program"));
}

#[tokio::test]
async fn payload_of_a_run_that_is_no_command_fails_it() {
    let run = run(json!({ "comand": "x" })).await;
    let (code, message) = failure(&run);
    assert_eq!(code, "invalid_payload");
    assert!(message.starts_with("the payload is no shell command: unknown field `comand`"), "{message}");
}

#[tokio::test]
async fn users_are_those_that_are_allowed() {
    let settings = ShellSettings { users: Some(vec!["nobody".to_owned()]), ..ShellSettings::default() };
    for payload in [json!({ "command": "id -un", "user": "daemon" }), json!({ "command": "id -un", "user": "0" })] {
        let run = run_with(settings.clone(), payload).await;
        let (code, message) = failure(&run);
        assert!(code == "invalid_payload" && message.contains("here; allowed: nobody"), "{message}");
    }
}

#[tokio::test]
async fn another_user_needs_a_server_that_is_root() {
    let run = run(json!({ "command": "id -un; echo $HOME $LOGNAME", "user": "nobody", "cwd": "/" })).await;
    if rustix::process::geteuid().is_root() {
        let output = run.output.as_deref().unwrap_or_default();
        assert!(output.starts_with("nobody\n") && output.ends_with(" nobody\n"), "{run:?}");
    } else {
        let (code, message) = failure(&run);
        assert!(code == "spawn_failed" && message.contains("may not run it as `nobody`"), "{message}");
    }
}

#[tokio::test]
async fn variables_of_the_configuration_are_hidden_and_those_of_the_payload_are_not() {
    let env = [("TOKEN".to_owned(), Secret::new("hunter2hunter2"))].into();
    let payload = json!({ "command": "echo $TOKEN $PLAIN", "env": { "PLAIN": "visible-text" } });
    let run = run_with(ShellSettings { env, users: None }, payload).await;
    assert_eq!(run.output.as_deref(), Some("*** visible-text\n"));
}
