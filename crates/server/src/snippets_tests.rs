//! The snippets of a job page mean the same job to everything that reads them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::process::Command;

use everbell_core::Definition;
use everbell_ui::Snippets;
use everbell_wire::body::job;
use everbell_wire::form::Naming;
use everbell_wire::job_body::declared;
use jiff::Timestamp;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

fn now() -> Timestamp {
    "2026-11-15T12:00:00Z".parse().unwrap()
}

fn definition(body: &Value, payload: &Value) -> Definition {
    let read = job::read(body, Some(&to_raw_value(payload).unwrap()), Naming::Camel);
    assert_eq!(read.faults, [], "{body}");
    declared(&read.draft, now()).unwrap()
}

/// Jobs that say nothing, much, and something else.
fn samples() -> Vec<Definition> {
    let full = json!({
        "jobKey": "daily 'report'", "target": "brief", "cronExpression": "0 8 * * mon-fri", "timezone": "Europe/Paris",
        "startAt": "2027-01-01T00:00:00Z", "endAt": "2028-01-01T00:00:00Z", "description": "-- it's \"<b>\" é",
        "labels": {"team": "ops", "a b": "c=d"},
        "policies": {
            "overlap": "queue", "maxConcurrentRuns": 2, "catchUp": "all", "catchUpLimit": 5, "catchUpWindow": "PT2H",
            "grace": "PT30S", "timeout": "PT1H", "jitter": "PT5S", "onLeaseLoss": "continue", "pauseAfterFailures": 3,
            "retry": {"maxAttempts": 4}, "dependsOn": {"jobKey": "etl", "within": "PT24H"},
            "dst": {"gap": "skip", "fold": "both"}, "onLost": "retry",
        },
    });
    let one_time = json!({"jobKey": "o", "target": "t", "runAt": "2027-03-13T09:00:00Z", "timezone": "Asia/Tokyo"});
    vec![
        definition(&json!({"jobKey": "a", "target": "t", "cronExpression": "@every 90s"}), &json!({})),
        definition(&full, &json!({"kind": "it's", "n": [1, 2.5]})),
        definition(&one_time, &json!({})),
        definition(&json!({"jobKey": "e", "target": "t", "cronExpression": "@daily", "scope": "per_org"}), &json!({})),
    ]
}

#[test]
fn configuration_reads_a_block_as_the_same_job() {
    for own in samples() {
        let block = Snippets::new(&own, "http://h/api/v1", now()).unwrap().toml.unwrap();
        let read = crate::config::read_jobs("jobs.toml", &block).unwrap();
        assert_eq!(declared(&read[0], now()).unwrap().content_hash(), own.content_hash(), "{block}");
    }
}

#[test]
fn command_line_takes_the_words_that_a_shell_makes_of_a_snippet() {
    for own in samples() {
        let Snippets { cli, unsaid, .. } = Snippets::new(&own, "http://h/api/v1", now()).unwrap();
        let printed = Command::new("sh").arg("-c").arg(format!("printf '%s\\0' {cli}")).output().unwrap();
        assert!(printed.status.success(), "{cli}");
        let words = printed.stdout.split(|byte| *byte == 0).map(|word| OsString::from_vec(word.to_vec()));
        let mut words: Vec<OsString> = words.collect();
        // What stands behind the last NUL.
        words.pop();
        let read = everbell_cli::parse::<crate::commands::Cli>(words.into_iter()).unwrap();
        assert!(format!("{read:?}").contains(own.key.as_str()) && unsaid.is_empty(), "{unsaid:?}: {read:?}");
    }
}
