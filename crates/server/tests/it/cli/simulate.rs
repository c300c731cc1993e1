//! `everbell simulate`: offline with a file, and with jobs of a server.

use std::fs;

use serde_json::{Value, json};

use super::{data, json as printed, refused};
use crate::binary::{command, ran, stdout};
use crate::server::{Folder, Server, TARGETS};

const JOBS: &str = r#"
[[job]]
job_key = "hourly"
target = "print"
cron_expression = "0 * * * *"

[[job]]
job_key = "<slow>&co"
target = "print"
cron_expression = "*/10 * * * *"
policies.catch_up = "none"
"#;

const WINDOW: [&str; 6] = ["--from", "2026-07-01", "--to", "2026-07-01T08:00Z", "--outage", "02:30..05:30"];

fn in_folder(folder: &Folder, args: &[&str]) -> crate::binary::Ran {
    let mut command = command(&[&["simulate", "-f", "jobs.toml"], args].concat());
    // No server is asked: there is none at this address.
    command.current_dir(folder.path()).env("EVERBELL_SERVER", "http://127.0.0.1:1").env("LC_ALL", "C.UTF-8");
    ran(command.output().unwrap())
}

#[test]
fn file_is_simulated_without_a_server() {
    let folder = Folder::new();
    fs::write(folder.path().join("jobs.toml"), JOBS).unwrap();
    let flags = [&WINDOW[..], &["--duration", "10s", "--duration", "<slow>&co=14m"]].concat();
    let shown = in_folder(&folder, &[&flags[..], &["-o", "table", "--timeline", "out.svg"]].concat());
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let lines: Vec<&str> = shown.stdout.lines().collect();
    assert_eq!(
        lines[..3],
        [
            "JOB KEY    SLOTS  RAN  SKIPPED  COALESCED  MISSED  FAILED  PEAK  LONGEST WAIT",
            "hourly         8    6        0          2       0       0     1           30m",
            "<slow>&co     48   15       15          0      18       1     1             -",
        ],
        "{}",
        shown.stdout
    );
    assert!(shown.stdout.contains("hourly     ⚠ coalesced  2 slots until 07-01 04:00\n"), "{}", shown.stdout);
    let late = "2026-07-01 05:00 +00:00  hourly     ✓ succeeded  started 30m late, catches up 2 earlier slots\n";
    assert!(shown.stdout.contains(late), "{}", shown.stdout);
    assert!(shown.stderr.contains("56 slots from Wed 2026-07-01 00:00 UTC to Wed 2026-07-01 08:00 UTC, 3h of outages"));
    let picture = fs::read_to_string(folder.path().join("out.svg")).unwrap();
    assert!(picture.starts_with("<svg xmlns=") && picture.ends_with("</svg>\n"), "{picture}");
    assert!(picture.contains("&lt;slow&gt;&amp;co") && picture.contains("fill=\"url(#hatch)\""), "{picture}");
    assert!(picture.contains("prefers-color-scheme:dark"), "readable on dark pages too");

    let document = in_folder(&folder, &[&flags[..], &["--json"]].concat()).stdout;
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["jobs"][0]["counts"], json!({"ran": 6, "coalesced": 2}));
    assert_eq!(document["outages"], json!([{"from": "2026-07-01T02:30:00Z", "to": "2026-07-01T05:30:00Z"}]));
    for job in document["jobs"].as_array().unwrap() {
        let counts = job["counts"].as_object().unwrap().values().filter_map(Value::as_u64).sum::<u64>();
        assert_eq!(json!(counts), job["slots"], "{job}");
    }
    let plain = in_folder(&folder, &flags).stdout;
    assert!(plain.starts_with("job\thourly\t8\t6\t0\t2\t0\t0\t0\t0\t1\t1800000\n"), "{plain}");
    assert!(plain.contains("\nslot\thourly\t2026-07-01T03:00:00+00:00\t2\tcoalesced\t"), "{plain}");
    let all = in_folder(&folder, &["--from", "2026-07-01", "--to", "+7d", "--verbose"]);
    assert_eq!(all.stdout.lines().filter(|line| line.starts_with("slot\t")).count(), 1_000, "bounded");
    assert!(all.stderr.contains("176 more slots not listed; "), "{}", all.stderr);
}

#[test]
fn flags_that_cannot_be_used_are_refused() {
    let folder = Folder::new();
    fs::write(folder.path().join("jobs.toml"), JOBS).unwrap();
    for (flags, words) in [
        (["--outage", "02:30"], "error: --outage: `02:30` has no `..` between its start and its end\n"),
        (["--duration", "huorly=3m"], "no job `huorly` is simulated\n  hint: did you mean `hourly`?\n"),
        (["--target-concurrency", "print"], "error: --target-concurrency: `print` is not TARGET=N\n"),
        (["--to", "-1d"], "error: --to: must be after `from`"),
        (["--to", "+30y"], "slots, and at most 500000 are simulated"),
    ] {
        let found = in_folder(&folder, &flags);
        assert_eq!((found.code, found.stdout.as_str()), (Some(2), ""), "{flags:?}");
        assert!(found.stderr.contains(words), "{flags:?}: {}", found.stderr);
    }
    fs::write(folder.path().join("jobs.toml"), "[server]\n").unwrap();
    assert!(in_folder(&folder, &[]).stderr.contains("jobs.toml has no `[[job]]` block"));
}

#[test]
fn targets_have_the_limits_of_the_server_or_of_flags() {
    let config = format!("{TARGETS}concurrency = 2\n");
    let server = Server::with(&config).registered();
    for key in ["one", "two", "three"] {
        server.job(key, &json!({"target": "fail", "cronExpression": "@hourly"}));
    }
    let simulated = |more: &[&str]| {
        let flags = ["simulate", "one", "two", "three", "--to", "+2h", "--duration", "10m"];
        let document = printed(&server, &[&flags, more].concat());
        (document["targetPlaces"].clone(), document["peakConcurrentRuns"].clone())
    };
    assert_eq!(simulated(&[]), (json!({"fail": 2}), json!(2)));
    assert_eq!(simulated(&["--instances", "2"]), (json!({"fail": 4}), json!(3)));
    assert_eq!(simulated(&["--target-concurrency", "fail=1"]), (json!({"fail": 1}), json!(1)));
    // A file says nothing about targets.
    let folder = Folder::new();
    fs::write(folder.path().join("jobs.toml"), JOBS.replace("<slow>&co", "slow")).unwrap();
    let peak = |more: &[&str]| {
        let flags = ["--from", "2026-07-01", "--to", "+2h", "--duration", "5m", "--json"];
        serde_json::from_str::<Value>(&in_folder(&folder, &[&flags, more].concat()).stdout).unwrap()["peakConcurrentRuns"]
            .clone()
    };
    assert_eq!((peak(&[]), peak(&["--target-concurrency", "print=1"])), (json!(2), json!(1)));
}

#[test]
fn job_of_a_server_is_simulated_as_it_will_fire() {
    let server = Server::start();
    let nightly = json!({"cronExpression": "30 2 * * *", "timezone": "America/New_York", "policies": {"jitter": "5m"}});
    server.job("nightly", &nightly);
    server.job("pulse", &json!({"cronExpression": "@every 90s"}));
    let slots = |document: &Value, member: &str| -> Vec<Value> {
        document["jobs"][0]["items"].as_array().unwrap().iter().map(|item| item[member].clone()).collect()
    };
    let times = |document: &Value| -> Vec<Value> {
        document["items"].as_array().unwrap().iter().map(|fire| fire["at"].clone()).collect()
    };
    // Clocks go forward in this window.
    let window = ["--from", "2027-03-13", "--to", "2027-03-17", "--verbose"];
    let found = printed(&server, &[&["simulate", "nightly"], &window[..]].concat());
    let from = ["--tz", "America/New_York", "--from", "2027-03-13", "--count", "4", "--json"];
    let cron: Value = serde_json::from_str(&stdout(&[&["cron", "next", "30 2 * * *"], &from[..]].concat())).unwrap();
    assert_eq!(slots(&found, "slotAt"), times(&cron));
    let from = ["--tz", "America/New_York", "--from", "2027-03-13", "--limit", "4"];
    let next = printed(&server, &[&["next", "nightly"], &from[..]].concat());
    assert_eq!(slots(&found, "startedAt"), times(&next), "with the jitter of this very job");

    let next = times(&printed(&server, &["next", "pulse", "--limit", "3"]));
    let at = |time: &Value| time.as_str().unwrap().to_owned();
    let found = printed(&server, &["simulate", "pulse", "--from", &at(&next[0]), "--to", "+181s", "--verbose"]);
    assert_eq!(slots(&found, "startedAt"), next);
    assert!(refused(&server, &["simulate", "nothing"], 3).contains("hint: list them: everbell jobs list"));
    assert!(data(&server, &["simulate", "nightly", "pulse", "--to", "+1h", "-o", "name"]).contains("pulse\n"));
}
