//! `everbell jobs edit` in an editor, and `everbell jobs rollback`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::json;

use super::{data, everbell, masked, on_terminal, prepared, refused};
use crate::binary::{Ran, ran};
use crate::server::Server;

fn edited_by(server: &Server, editor: &str) -> Ran {
    let mut command = prepared(server, &["jobs", "edit", "daily", "--reason", "a test"]);
    ran(command.env("EDITOR", editor).env("TMPDIR", server.folder.path()).output().unwrap())
}

fn version(server: &Server) -> serde_json::Value {
    server.get("/jobs/key:daily").expect(200)["version"].clone()
}

/// The files that the editor left.
fn left(server: &Server) -> Vec<PathBuf> {
    let files = fs::read_dir(server.folder.path()).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("everbell-daily-")).collect()
}

fn populated() -> Server {
    let server = Server::start();
    let daily = json!({"cronExpression": "0 8 * * *", "startAt": "2099-01-01T00:00:00Z", "payload": {"n": 1}});
    server.job("daily", &daily);
    server
}

#[test]
fn editor_changes_the_job() {
    let server = populated();
    let found = edited_by(&server, "sed -i 's/0 8/30 9/'");
    assert_eq!(found.code, Some(0), "{}", found.stderr);
    assert!(found.stdout.contains(" Created daily v2 (active), which replaces v1\n"), "{}", found.stdout);
    assert!(found.stdout.contains("  cronExpression: 0 8 * * * "), "{}", found.stdout);
    assert!(found.stdout.contains("; before: Thu 2099-01-01 08:00"), "{}", found.stdout);
    let job = server.get("/jobs/key:daily").expect(200);
    assert_eq!((&job["cronExpression"], &job["payload"]), (&json!("30 9 * * *"), &json!({"n": 1})));
    let payload = edited_by(&server, "sed -i 's/n = 1/n = 2/'");
    assert_eq!(payload.code, Some(0), "{}", payload.stderr);
    assert_eq!(server.get("/jobs/key:daily").expect(200)["payload"], json!({"n": 2}));
    assert_eq!(left(&server), Vec::<PathBuf>::new(), "nothing stays behind");
}

#[test]
fn unchanged_or_empty_file_changes_nothing() {
    let server = populated();
    for (editor, words) in [
        ("true", "nothing was changed\n"),
        ("truncate -s 0", "the file is empty; nothing was changed\n"),
        ("sed -i 's/^#.*/# mine/'", "nothing was changed\n"),
    ] {
        let found = edited_by(&server, editor);
        assert_eq!((found.code, found.stdout.as_str(), found.stderr.as_str()), (Some(0), "", words), "{editor}");
    }
    let failed = edited_by(&server, "false");
    assert_eq!(failed.code, Some(1));
    assert!(failed.stderr.starts_with("error: the editor `false` failed"), "{}", failed.stderr);
    assert_eq!((version(&server), left(&server).len()), (json!(1), 0));
}

#[test]
fn bad_text_is_kept_and_can_be_edited_again() {
    let server = populated();
    // The first look breaks it, the second one mends it.
    let mends =
        "sh -c 'grep -q \"# error: \" \"$1\" && sed -i \"s/99 8/15 8/\" \"$1\" || sed -i \"s/0 8/99 8/\" \"$1\"' sh";
    let found = edited_by(&server, mends);
    assert_eq!(found.code, Some(0), "{}", found.stderr);
    assert!(found.stderr.contains("minute: 99 is outside 0-59"), "{}", found.stderr);
    assert_eq!(server.get("/jobs/key:daily").expect(200)["cronExpression"], "15 8 * * *");
    // The server knows the targets.
    let found = edited_by(&server, "sed -i 's/\"print\"/\"nowhere\"/'");
    assert_eq!(found.code, Some(2), "{}", found.stderr);
    assert!(found.stderr.contains("unknown target `nowhere`"), "{}", found.stderr);
    assert!(found.stderr.contains("the job was not changed; your text is in "), "{}", found.stderr);
    let [file] = <[PathBuf; 1]>::try_from(left(&server)).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "payloads may hold secrets");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("# error: ") && text.contains("target = \"nowhere\"\n"), "{text}");
    fs::remove_file(file).unwrap();
    let found = edited_by(&server, "sed -i 's/\"daily\"/\"weekly\"/'");
    assert!(found.stderr.contains("job_key: a job keeps its key, which is `daily`"), "{}", found.stderr);
    assert_eq!(version(&server), json!(2));
}

#[test]
fn conflict_names_who_was_faster_and_keeps_the_text() {
    let server = populated();
    let script = server.folder.path().join("slow-editor");
    let other = format!("{} jobs edit daily --description other -q", env!("CARGO_BIN_EXE_everbell"));
    fs::write(&script, format!("#!/bin/sh\n{other}\nsed -i 's/0 8/0 9/' \"$1\"\n")).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let found = edited_by(&server, &script.display().to_string());
    assert_eq!(found.code, Some(5), "{}", found.stderr);
    assert!(found.stderr.contains("job `daily` was changed by token:admin ("), "{}", found.stderr);
    assert!(found.stderr.contains("and is at v2 now; your text is in "), "{}", found.stderr);
    let [file] = <[PathBuf; 1]>::try_from(left(&server)).unwrap();
    assert!(fs::read_to_string(file).unwrap().contains("0 9 * * *"));
    assert_eq!(server.get("/jobs/key:daily").expect(200)["cronExpression"], "0 8 * * *");
}

#[test]
fn rollback_restores_an_older_version() {
    let server = populated();
    let none = refused(&server, &["jobs", "rollback", "daily", "--yes"], 2);
    assert!(none.starts_with("error: job `daily` has one version"), "{none}");
    // A number that does not survive a float.
    server.raw(
        "PATCH",
        "/api/v1/jobs/key:daily",
        &[("authorization", &format!("Bearer {}", server.token)), ("content-type", "application/json")],
        b"{\"payload\": {\"n\": 1.10, \"big\": 12345678901234567890123}}",
    );
    data(&server, &["jobs", "edit", "daily", "--cron", "0 9 * * *", "--payload", "{}", "--label", "a=b", "-q"]);
    assert_eq!(version(&server), json!(3));

    let preview = on_terminal(&server, 120, &["jobs", "rollback", "daily", "--dry-run"]);
    assert!(
        preview.stdout.starts_with("daily: v4 would get the content of v2\n  cronExpression: 0 9 * * * → 0 8 * * *\n")
    );
    assert!(preview.stdout.contains("  labels.a: b → -\n"), "{}", preview.stdout);
    assert_eq!(version(&server), json!(3));
    let asked = everbell(&server, &["jobs", "rollback", "daily"]);
    assert_eq!(asked.code, Some(2));
    assert!(asked.stderr.contains("Roll back job daily from v3 to the content of v2?"), "{}", asked.stderr);

    let done = on_terminal(&server, 120, &["jobs", "rollback", "daily", "--yes"]);
    assert!(masked(&done.stdout).contains("✓ Created daily v4 (active), which replaces v3\n"), "{}", done.stdout);
    let text = server.get("/jobs/key:daily").text;
    assert!(text.contains("\"payload\":{\"n\":1.10,\"big\":12345678901234567890123}"), "{text}");
    let again = everbell(&server, &["jobs", "rollback", "daily", "--to", "2", "--yes"]);
    assert_eq!((again.code, version(&server)), (Some(0), json!(4)));
    assert!(again.stderr.contains("v4 already has the content of v2; nothing was changed"), "{}", again.stderr);
    assert!(refused(&server, &["jobs", "rollback", "daily", "--to", "9", "--yes"], 3).contains("daily@9"));
    assert!(
        refused(&server, &["jobs", "rollback", "daily", "--to", "4", "--yes"], 2).contains("is the current version")
    );
    data(&server, &["jobs", "rollback", "daily", "--to", "1", "--yes", "-q"]);
    assert_eq!(server.get("/jobs/key:daily").expect(200)["payload"], json!({"n": 1}));
}
