//! The `command` target: what a program gets and what comes of it.

use std::collections::BTreeMap;

use everbell::{RunRecord, RunStatus};
use serde_json::json;

use super::given::{Folder, details, failure, fired, fired_for_org, perform, perform_with, result, script, until};
use super::stopping::is_alive;
use crate::targets::{CommandSettings, Kind};
use everbell_wire::secret::Secret;

async fn run(text: &str) -> RunRecord {
    perform(Kind::Command(script(text))).await
}

#[tokio::test]
async fn a_program_gets_the_payload_and_the_run_and_nothing_else_of_the_server() {
    let folder = Folder::new();
    let command = CommandSettings {
        cwd: Some(folder.0.clone()),
        env: [("GREETING".to_owned(), Secret::new("bonjour"))].into(),
        pass_env: vec!["CARGO_PKG_VERSION".to_owned(), "NOT_THERE".to_owned()],
        ..script("cat; echo; pwd; env")
    };
    let run = fired(Kind::Command(command), "café \"1\"", json!({ "a": "é" })).await;
    assert_eq!(run.status, RunStatus::Succeeded, "{run:?}");
    let output = run.output.as_deref().unwrap();
    let mut lines = output.lines();
    assert_eq!(lines.next(), Some(r#"{"a":"é"}"#));
    let cwd = std::path::Path::new(lines.next().unwrap()).canonicalize().unwrap();
    assert_eq!(cwd, folder.0.canonicalize().unwrap());
    let env: BTreeMap<&str, &str> = lines.filter_map(|line| line.split_once('=')).collect();
    let id = run.id.to_string();
    for (name, value) in [
        ("GREETING", "bonjour"),
        ("CARGO_PKG_VERSION", env!("CARGO_PKG_VERSION")),
        ("PATH", &std::env::var("PATH").unwrap()),
        ("EVERBELL_RUN_ID", &id),
        ("EVERBELL_TARGET", "target"),
        ("EVERBELL_TRIGGER", "schedule:0 8 * * *"),
        ("EVERBELL_ATTEMPT", "1"),
        ("EVERBELL_IDEMPOTENCY_KEY", "schedule:café \"1\":1794812400"),
        ("EVERBELL_SCHEDULED_AT", "2026-11-16T07:00:00Z"),
        ("EVERBELL_JOB_KEY", "café \"1\""),
        ("EVERBELL_JOB_VERSION", "1"),
        ("EVERBELL_SLOT_AT", "2026-11-16T07:00:00Z"),
        ("EVERBELL_SLOT_AT_LOCAL", "2026-11-16T08:00:00+01:00[Europe/Paris]"),
    ] {
        assert_eq!(env.get(name), Some(&value), "{name}: {env:#?}");
    }
    assert!(!env.keys().any(|name| ["CARGO_MANIFEST_DIR", "EVERBELL_ORG_ID", "NOT_THERE"].contains(name)), "{env:#?}");
}

#[tokio::test]
async fn a_run_for_an_org_names_it_and_its_local_date() {
    let run = Box::pin(fired_for_org(Kind::Command(script("env")), "daily", "acme")).await;
    let output = run.output.unwrap();
    for line in
        ["EVERBELL_ORG_ID=acme\n", "EVERBELL_LOCAL_DATE=2026-11-15\n", "EVERBELL_SLOT_AT=2026-11-16T07:00:00Z\n"]
    {
        assert!(output.contains(line), "{output}");
    }
    assert!(!output.contains("EVERBELL_SLOT_AT_LOCAL"), "{output}");
}

#[tokio::test]
async fn a_run_by_hand_has_no_slot() {
    let run = run("env").await;
    let output = run.output.unwrap();
    assert!(output.contains("EVERBELL_TRIGGER=manual:ana\n"), "{output}");
    assert!(!output.contains("EVERBELL_SLOT_AT"), "{output}");
}

#[tokio::test]
async fn a_last_line_in_json_is_the_result() {
    for (text, wanted) in [
        (r#"echo working; echo '{"rows": 3}'"#, Some(r#"{"rows": 3}"#)),
        ("echo 42; echo", Some("42")),
        ("echo 42 >&2", None),
        ("echo 42; echo done", None),
        ("true", None),
    ] {
        let run = run(text).await;
        assert_eq!((run.status, result(&run)), (RunStatus::Succeeded, wanted), "{text}");
    }
}

#[tokio::test]
async fn an_exit_code_is_a_failure_unless_it_is_wanted() {
    let failed = run("echo said; echo 'no disk' >&2; exit 3").await;
    assert_eq!(failure(&failed), ("exit_code", "`sh` ended with the exit code 3: no disk"));
    assert_eq!(details(&failed), json!({ "exitCode": 3 }));
    let output = failed.output.unwrap();
    assert!(output.contains("said\n") && output.contains("no disk\n"), "{output}");
    let command = CommandSettings { success: vec![0, 3], ..script("exit 3") };
    assert_eq!(perform(Kind::Command(command)).await.status, RunStatus::Succeeded);
}

#[tokio::test]
async fn a_signal_is_a_failure() {
    let failed = run("kill -9 $$").await;
    assert_eq!(failure(&failed), ("signal", "`sh` was ended by SIGKILL"));
    assert_eq!(details(&failed), json!({ "signal": 9, "name": "SIGKILL" }));
}

#[tokio::test]
async fn a_program_that_cannot_start_is_not_tried_again() {
    let folder = Folder::new();
    let text = folder.file("text", "hello");
    let missing = folder.0.join("missing");
    for (argv, cwd, wanted) in [
        ("everbell-no-such-program", None, "there is no such program"),
        (text.to_str().unwrap(), None, "it may not be executed"),
        ("true", Some(&missing), "there is no folder "),
    ] {
        let command = CommandSettings { cwd: cwd.cloned(), ..CommandSettings::new(vec![argv.to_owned()]) };
        let failed =
            perform_with(Kind::Command(command), 1, |schedule| schedule.retry(5, everbell::Backoff::default())).await;
        let (code, message) = failure(&failed);
        assert_eq!((code, failed.attempt), ("spawn_failed", 1));
        assert!(message.starts_with(&format!("`{argv}` cannot start: {wanted}")), "{message}");
    }
}

#[tokio::test]
async fn no_shell_reads_the_arguments() {
    let argv = ["echo", "$HOME; exit 1", "*"].map(str::to_owned).to_vec();
    let run = perform(Kind::Command(CommandSettings::new(argv))).await;
    assert_eq!(run.output.as_deref(), Some("$HOME; exit 1 *\n"));
}

#[tokio::test]
async fn a_flood_is_cut_and_a_payload_that_nobody_reads_hurts_nobody() {
    let command = Kind::Command(script("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end"));
    let run = perform_with(command, "y".repeat(1_000_000), |schedule| schedule).await;
    assert_eq!(run.status, RunStatus::Succeeded, "{:?}", run.failure);
    let output = run.output.unwrap();
    assert!(output.len() <= 64 * 1024 && output.ends_with("x\nend\n"), "{} bytes", output.len());
}

#[tokio::test]
async fn whatever_a_program_leaves_behind_is_killed() {
    let run = run("sleep 1000 & echo $!").await;
    assert_eq!(run.status, RunStatus::Succeeded);
    let left: i32 = result(&run).unwrap().parse().unwrap();
    until(|| (!is_alive(left)).then_some(())).await;
}

/// A process that created its own session is out of reach, but the run does not wait for it.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn nobody_waits_for_what_got_away_with_the_pipes() {
    let run = run("setsid sleep 1000 & echo $!").await;
    let away: i32 = result(&run).unwrap().parse().unwrap();
    let away = rustix::process::Pid::from_raw(away).unwrap();
    // It may not have got away yet when it was killed with the others.
    let _gone = rustix::process::kill_process(away, rustix::process::Signal::KILL);
    assert_eq!(run.status, RunStatus::Succeeded);
}

#[tokio::test]
async fn a_secret_that_a_program_prints_is_hidden_everywhere() {
    let secret = "CANARY-0123456789";
    // In two pieces, with a pause between them that makes them two reads.
    let text = "printf 'a CANARY-0123'; sleep 0.3; printf '456789 b\\n'; echo \"{\\\"key\\\":\\\"$KEY\\\"}\"; echo \"bad $KEY\" >&2; exit $CODE";
    for code in ["0", "3"] {
        let env = [("KEY", secret), ("CODE", code)].map(|(name, value)| (name.to_owned(), Secret::new(value)));
        let run = perform(Kind::Command(CommandSettings { env: env.into(), ..script(text) })).await;
        assert!(!format!("{run:?}").contains("CANARY-0123"), "{run:?}");
        let output = run.output.as_deref().unwrap();
        // What is written to standard error may come in between.
        assert!(output.contains("*** b\n") && output.contains("bad ***"), "{output}");
        if code == "0" {
            assert_eq!(result(&run), Some(r#"{"key":"***"}"#));
        } else {
            assert_eq!(failure(&run), ("exit_code", "`sh` ended with the exit code 3: bad ***"));
        }
    }
}

#[tokio::test]
async fn a_program_runs_as_the_user_that_is_configured() {
    let command = CommandSettings {
        user: Some("65534".to_owned()),
        group: Some("65533".to_owned()),
        cwd: Some("/".into()),
        ..script("id -u; id -g; id -G; echo $HOME")
    };
    let run = perform(Kind::Command(command)).await;
    if rustix::process::geteuid().is_root() {
        let output = run.output.as_deref().unwrap();
        assert!(output.starts_with("65534\n65533\n65533\n"), "no group of the server is left: {output}");
    } else {
        assert!(failure(&run).1.contains("the server may not run it as `65534`"), "{run:?}");
    }
    let missing = CommandSettings { user: Some("no-such-user".to_owned()), ..script("true") };
    let run = perform(Kind::Command(missing)).await;
    assert_eq!(failure(&run), ("spawn_failed", "`sh` cannot start: there is no user `no-such-user`"));
}
