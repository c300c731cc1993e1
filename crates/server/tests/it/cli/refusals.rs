//! Error messages and exit codes.

use std::net::TcpListener;

use serde_json::json;

use super::{everbell, on_terminal, prepared, refused};
use crate::binary::ran;
use crate::server::Server;

#[test]
fn unreachable_server_is_reported() {
    let server = Server::start();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let message = refused(&server, &["jobs", "--server", &format!("http://{nobody}")], 7);
    assert_eq!(
        message,
        format!(
            "error: cannot reach the server at http://{nobody}: Connection refused (os error 111)\n  \
             hint: check that a server listens on this address, which comes from --server\n"
        )
    );
    // It takes connections, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", silent.local_addr().unwrap());
    let message = refused(&server, &["jobs", "--server", &address, "--request-timeout", "1s"], 7);
    assert!(message.starts_with(&format!("error: {address} did not answer within 1s\n  hint: ")), "{message}");
    assert!(refused(&server, &["jobs", "--server", "http://me:pw@host"], 2).contains("must not contain a password"));
}

#[test]
fn a_token_is_needed_and_is_found() {
    let server = Server::start();
    let without = |args: &[&str]| {
        let mut command = prepared(&server, args);
        command.env_remove("EVERBELL_TOKEN");
        command
    };
    // In the folder of the server its first token is used.
    assert_eq!(ran(without(&["status"]).output().unwrap()).code, Some(0));
    let elsewhere = ran(without(&["status"]).current_dir("/").output().unwrap());
    assert_eq!(elsewhere.code, Some(4));
    assert!(elsewhere.stderr.contains("\n  hint: set EVERBELL_TOKEN, "), "{}", elsewhere.stderr);
    let data = server.folder.path().join("everbell-data");
    let named = ran(without(&["status"]).current_dir("/").env("EVERBELL_DATA_DIR", &data).output().unwrap());
    assert_eq!(named.code, Some(0));
    let mut file = without(&["status"]);
    file.current_dir("/").env("EVERBELL_TOKEN_FILE", data.join("admin-token"));
    assert_eq!(ran(file.output().unwrap()).code, Some(0));
    // Set to nothing is as if it was not set.
    assert_eq!(ran(prepared(&server, &["status"]).env("EVERBELL_TOKEN", "").output().unwrap()).code, Some(0));
    let wrong = ran(prepared(&server, &["status"]).env("EVERBELL_TOKEN", "evb_wrong").output().unwrap());
    assert_eq!(wrong.code, Some(4));
    assert!(wrong.stderr.contains("the token in EVERBELL_TOKEN is not valid there") && !wrong.stderr.contains("evb_"));
    let missing = refused(&server, &["status", "--token-file", "none"], 2);
    assert!(missing.starts_with("error: --token-file: `none` cannot be read: "), "{missing}");
    assert!(refused(&server, &["status", "--token", "evb_x"], 2).contains("unexpected argument '--token'"));
}

#[test]
fn a_bad_job_is_refused_with_the_flags_at_fault() {
    let server = Server::start();
    server.job("there", &json!({}));
    let create = |more: &[&'static str]| [&["jobs", "create", "night", "--target", "print"], more].concat();
    assert_eq!(
        refused(&server, &create(&["--cron", "61 2 * * *"]), 2),
        "error: invalid cron expression\n   61 2 * * *\n   ^^ minute: 61 is outside 0-59\n  \
         allowed: 0-59, lists `0,30`, ranges `10-20`, steps `*/5`, or `*`\n"
    );
    assert_eq!(
        refused(&server, &create(&["--cron", "@daily", "--tz", "Europe/Pariss"]), 2),
        "error: unknown time zone `Europe/Pariss`; did you mean `Europe/Paris`?\n"
    );
    assert!(
        refused(&server, &create(&[]), 2).starts_with("error: a schedule is required\n  everbell jobs create night ")
    );
    let message =
        refused(&server, &["jobs", "create", "x", "--target", "nope", "--cron", "@daily", "--timeout", "1000d"], 2);
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines[0], "error: cannot create job `x`");
    assert_eq!(lines[1], "  --timeout: must be from 1 s to 2592000 s, not 86400000s");
    assert!(lines[2].starts_with("  --target: unknown target `nope`; known: "), "{message}");
    let hint = "  hint: list the targets: everbell targets; list the flags: everbell jobs create --help";
    assert_eq!(lines[3..], [hint]);
    assert_eq!(
        refused(&server, &["jobs", "create", "there", "--target", "print", "--cron", "@daily"], 5),
        "error: cannot create job `there`: job `there` already exists: it is active at version 1\n  \
         hint: change it: everbell jobs edit there; see it: everbell jobs show there\n"
    );
    assert!(refused(&server, &create(&["--cron", "@daily", "--payload", "{"]), 2).contains("--payload @FILE"));
    assert!(refused(&server, &create(&["--cron", "@daily", "--every", "5m"]), 2).contains("cannot be used with"));
}

#[test]
fn missing_objects_are_named() {
    let server = Server::start();
    for (verb, more) in [("show", vec![]), ("resume", vec![]), ("skip", vec![]), ("versions", vec![]), ("run", vec![])]
    {
        let message = refused(&server, &[vec!["jobs", verb, "nope"], more].concat(), 3);
        assert!(message.ends_with(": there is no job `nope`\n  hint: list them: everbell jobs list\n"), "{message}");
    }
    for verb in ["show", "watch", "cancel", "rerun"] {
        let message = refused(&server, &["runs", verb, "nope"], 3);
        assert!(message.ends_with(": there is no run `nope`\n  hint: list them: everbell runs list\n"), "{message}");
    }
}

#[test]
fn errors_name_flags_that_exist_or_the_line_of_the_file() {
    let server = Server::start();
    server.job("brief", &json!({"scope": "per_org", "cronExpression": "0 8 * * *"}));
    server.put("/orgs/paris", &json!({"timezone": "Europe/Paris"})).expect(201);
    let message = |args: &[&str], code: i32| refused(&server, args, code);
    for args in [["jobs", "list", "--last-run", "foo"], ["runs", "list", "--status", "foo"]] {
        let message = message(&args, 2);
        assert!(message.contains(&format!("invalid value 'foo' for '{} <STATUS>'", args[2])), "{message}");
    }
    assert_eq!(
        message(&["orgs", "override", "paris", "brief"], 2),
        "error: name what to override\n  everbell orgs override paris brief --at 09:30\n  \
         everbell orgs override paris brief --cron \"0 9 * * 1-5\"\n  \
         everbell orgs override paris brief --off, --on or --clear\n"
    );
    assert_eq!(
        message(&["orgs", "override", "paris", "brief", "--at", "7:5"], 2),
        "error: cannot override job `brief` for org `paris`\n  \
         --at: must be a time of day such as `08:30`\n"
    );
    let lines = "{\"id\":\"a\",\"timezone\":\"UTC\"}\n{,\n{\"id\":\"b\",\"timezone\":\"Mars\"}\n[1]\n";
    std::fs::write(server.folder.path().join("orgs.jsonl"), lines).unwrap();
    assert_eq!(
        message(&["orgs", "import", "orgs.jsonl"], 2),
        "error: cannot import orgs\n  line 2: column 2: key must be a string\n  \
         line 3: timezone: unknown time zone `Mars`; an IANA name such as `Europe/Paris` or `UTC` is needed\n  \
         line 4: must be an object, not a list\n"
    );
    for verb in ["run", "skip"] {
        let message = message(&["jobs", verb, "brief", "--org", "nope"], 3);
        assert!(message.ends_with(": there is no org `nope`\n  hint: list them: everbell orgs list\n"), "{message}");
    }
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let server = Server::start();
    (0..20).for_each(|n| drop(server.job(&format!("n-{n}"), &json!({}))));
    for args in [["jobs", "--json"].as_slice(), &["jobs", "-o", "jsonl"], &["jobs"]] {
        let mut child = prepared(&server, args).spawn().unwrap();
        drop(child.stdout.take());
        let found = ran(child.wait_with_output().unwrap());
        assert_eq!((found.code, found.stderr.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn colors_and_symbols_depend_on_the_terminal() {
    let server = Server::start();
    server.job("daily-briefing", &json!({}));
    assert!(!on_terminal(&server, 80, &["jobs"]).stdout.contains('\u{1b}'));
    assert!(
        everbell(&server, &["jobs", "-o", "table", "--color", "always"]).stdout.contains("\u{1b}[36m● active\u{1b}[0m")
    );
    let with =
        |name: &str, value: &str, args: &[&str]| ran(prepared(&server, args).env(name, value).output().unwrap()).stdout;
    assert!(with("CLICOLOR_FORCE", "1", &["jobs", "-o", "table"]).contains('\u{1b}'));
    assert!(!with("CLICOLOR_FORCE", "1", &["jobs", "-o", "table", "--color", "never"]).contains('\u{1b}'));
    assert!(!with("CLICOLOR_FORCE", "1", &["jobs"]).contains('\u{1b}'));
    assert!(with("LC_ALL", "C", &["jobs", "-o", "table"]).contains("* active"));
    // Texts of others do not reach the terminal as anything but text.
    server.job("evil", &json!({"description": "\u{1b}[2J\u{202e}gone"}));
    assert!(everbell(&server, &["jobs", "show", "evil"]).stdout.contains("description\t\\u{1b}[2J\\u{202e}gone\n"));
}
