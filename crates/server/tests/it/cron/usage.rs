//! Behavior common to all commands: refusals, help, version, colors, closed pipes.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Command;

use everbell_store::testing::TestDatabase;

use crate::server::{Folder, quiet};

use super::{command, document, invalid_expressions, keys, ran, refusal, stdout};

#[test]
fn a_bad_expression_is_shown_with_the_place_marked() {
    let expected = "error: invalid cron expression\n   \
                    61 2 * * *\n   \
                    ^^ minute: 61 is outside 0-59\n  \
                    allowed: 0-59, lists `0,30`, ranges `10-20`, steps `*/5`, or `*`\n";
    for more in [["next"].as_slice(), &["explain"], &["check"], &["next", "--json"], &["explain", "--json"]] {
        assert_eq!(refusal(&[&["cron"], more, &["61 2 * * *"]].concat()), expected, "{more:?}");
    }
    assert_eq!(
        refusal(&["cron", "next", "0 0 30 2 *"]),
        "error: invalid cron expression\n   \
         0 0 30 2 *\n       \
         ^^^^^^ day-of-month: no date ever matches `30 2 *`\n  \
         allowed: 1-31, lists, ranges, steps, `L` (last day), `LW` (last weekday), `15W` (weekday nearest the 15th), \
         `*` or `?`\n  \
         hint: use `L` for the last day of a month\n"
    );
}

#[test]
fn every_invalid_expression_is_refused() {
    for text in invalid_expressions() {
        for command in ["next", "explain", "check"] {
            let said = refusal(&["cron", command, &text]);
            assert!(said.starts_with("error: invalid cron expression\n   "), "{text}: {said}");
            assert!(said.contains("\n  allowed: "), "{text}: {said}");
            // Nothing can be marked in an empty expression.
            assert!(text.is_empty() || said.contains("^ "), "{text}: {said}");
        }
    }
}

#[test]
fn an_unknown_zone_suggests_the_nearest() {
    for command in ["next", "explain", "check"] {
        assert_eq!(
            refusal(&["cron", command, "@daily", "--tz", "Europe/Pariss"]),
            "error: unknown time zone `Europe/Pariss`; did you mean `Europe/Paris`?\n"
        );
    }
}

#[test]
fn usage_errors_exit_with_2_and_help() {
    assert!(refusal(&["crom"]).contains("'cron'"));
    assert!(refusal(&["cron", "nxt"]).contains("a similar subcommand exists: 'next'"));
    assert!(refusal(&["cron", "next", "@daily", "--jsn"]).contains("a similar argument exists: '--json'"));
    // A command in the wrong place is named with its own one.
    let misplaced = refusal(&["backfill", "nightly"]);
    assert!(misplaced.contains("tip: did you mean 'everbell jobs backfill'?"), "{misplaced}");
    let several = refusal(&["show", "nightly"]);
    assert!(several.contains("'everbell jobs show', 'everbell runs show'"), "{several}");
    for count in ["0", "10001", "-1", "many"] {
        assert!(refusal(&["cron", "next", "@daily", &format!("--count={count}")]).contains("--count"), "{count}");
    }
    let gap = refusal(&["cron", "next", "@daily", "--dst-gap", "jump"]);
    assert!(gap.contains("[possible values: shift, skip]"), "{gap}");
    for args in [[].as_slice(), &["cron"]] {
        assert!(refusal(args).contains("Examples:\n  everbell "), "{args:?}");
    }
    assert!(refusal(&["cron", "check"]).contains("<EXPR>"));
}

#[test]
fn the_version_is_told() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(stdout(&["--version"]), format!("everbell {version}\n"));
    let shown = stdout(&["version"]);
    assert!(shown.starts_with(&format!("everbell {version}\ntime zone data 20")), "{shown}");
    let shown = document(&stdout(&["version", "--json"]));
    assert_eq!(keys(&shown), ["version", "zoneData"]);
    assert_eq!(shown["version"], version);
}

/// The pages of commands that need no server.
pub(crate) const HELP: [&[&str]; 20] = [
    &[],
    &["init"],
    &["serve"],
    &["config"],
    &["config", "check"],
    &["config", "show"],
    &["cron"],
    &["cron", "next"],
    &["cron", "explain"],
    &["cron", "check"],
    &["db"],
    &["db", "status"],
    &["db", "migrate"],
    &["db", "prune"],
    &["db", "backup"],
    &["db", "copy"],
    &["db", "reopen"],
    &["completions"],
    &["man"],
    &["version"],
];

/// A folder to try examples in, with the files that they name and a database.
fn place() -> Folder {
    let folder = Folder::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::copy(root.join("everbell.example.toml"), folder.path().join("everbell.example.toml")).unwrap();
    let made = quiet(folder.path()).args(["db", "migrate"]).output().unwrap();
    assert!(made.status.success());
    folder
}

#[test]
fn help_begins_with_three_examples_that_work() {
    let folder = Path::new(env!("CARGO_BIN_EXE_everbell")).parent().unwrap();
    let path = std::env::join_paths([folder, Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let database = runtime.block_on(TestDatabase::empty());
    for page in HELP {
        let place = place();
        let help = stdout(&[page, &["--help"]].concat());
        let mut lines = help.lines();
        assert_eq!(lines.next(), Some("Examples:"), "{page:?}");
        let examples: Vec<&str> = lines.map_while(|line| line.strip_prefix("  ")).collect();
        assert_eq!(examples.len(), 3, "{help}");
        for example in examples {
            assert!(example.contains("everbell"), "{example}");
            // A server would not end; its flags are those of the check of its configuration.
            let example = example.replace("everbell serve", "everbell config check");
            let example = example.replace("postgres://db.example.com/everbell", database.url());
            let found = Command::new("sh")
                .args(["-c", &example])
                .env("PATH", &path)
                .current_dir(place.path())
                .output()
                .unwrap();
            let found = ran(found);
            assert_eq!(found.code, Some(0), "{example}: {}", found.stderr);
            assert!(!found.stdout.is_empty(), "{example}");
        }
    }
}

#[test]
fn help_describes_every_flag() {
    let help = stdout(&["cron", "next", "--help"]);
    for flag in ["--tz", "--from", "--count", "--dst-gap", "--dst-fold", "--start-at", "--end-at", "--json", "--batch"]
    {
        let mut lines = help.lines().skip_while(|line| !line.trim_start().starts_with(flag));
        let below = lines.nth(1).unwrap_or_default().trim();
        assert!(below.split(' ').count() > 2, "{flag}: {below}\n{help}");
    }
}

#[test]
fn colours_are_only_for_those_who_want_them() {
    let said = |variables: &[(&str, &str)]| {
        let output = command(&["cron", "next", "61 2 * * *"]).envs(variables.iter().copied()).output().unwrap();
        ran(output).stderr
    };
    assert!(!said(&[]).contains('\u{1b}'));
    assert!(said(&[("CLICOLOR_FORCE", "1")]).contains('\u{1b}'));
    assert!(!said(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]).contains('\u{1b}'));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let mut child = command(&["cron", "next", "@hourly", "--count", "10000"]).spawn().unwrap();
    let mut first = String::new();
    // Dropped after the first line, long before the last is written.
    BufReader::with_capacity(16, child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let found = ran(child.wait_with_output().unwrap());
    assert_eq!((found.code, found.stderr.as_str()), (Some(0), ""));
    assert!(first.contains(":00:00\tUTC\t"), "{first}");
}

#[test]
fn a_closed_pipe_ends_a_batch_quietly() {
    let mut child = command(&["cron", "next", "--batch"]).spawn().unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    let line = "{\"expr\":\"@hourly\",\"start\":\"2027-03-13T00:00:00Z\",\"count\":10000}\n";
    // It stops reading once it cannot answer, so this ends with an error: the pipe would take this without an end.
    while stdin.write_all(line.as_bytes()).is_ok() {}
    drop(stdin);
    let found = ran(child.wait_with_output().unwrap());
    assert_eq!((found.code, found.stderr.as_str()), (Some(0), ""));
}
