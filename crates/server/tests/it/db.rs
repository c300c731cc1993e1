//! `everbell db`, through the real binary.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use everbell_store::testing::{TestDatabase, execute};
use serde_json::{Value, json};

use crate::binary::{Ran, document, keys, ran};
use crate::server::{Folder, Server, TARGETS, quiet};

fn db(folder: &Folder, args: &[&str]) -> Ran {
    ran(quiet(folder.path()).arg("db").args(args).output().unwrap())
}

/// The data of a command that must succeed without a word.
#[track_caller]
fn done(folder: &Folder, args: &[&str]) -> String {
    let ran = db(folder, args);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{args:?}");
    ran.stdout
}

/// Returns the error message of a command that must end with this code.
#[track_caller]
fn refused(folder: &Folder, args: &[&str], code: i32) -> String {
    let ran = db(folder, args);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{args:?}: {}", ran.stderr);
    ran.stderr
}

/// The version of the schema: the number of migrations.
fn schema() -> usize {
    fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../store/src/sqlite/migrations")).unwrap().count()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// The value beside a name in a table.
fn cell<'a>(table: &'a str, name: &str) -> &'a str {
    let line = table.lines().find(|line| line.starts_with(&format!("{name}\t")));
    line.and_then(|line| line.split_once('\t')).unwrap_or_else(|| panic!("no {name} in {table}")).1
}

#[test]
fn a_database_is_made_looked_at_and_up_to_date() {
    let folder = Folder::new();
    let expected = "error: there is no database file `everbell-data/everbell.db`\n  \
                    hint: create it with `everbell db migrate`, or name another one with `--database` or `--data-dir`\n";
    assert_eq!(refused(&folder, &["status"], 1), expected);
    assert_eq!(refused(&folder, &["prune", "--older-than", "1d", "--yes"], 1), expected);
    assert!(!folder.path().join("everbell-data").exists(), "looking makes nothing");

    assert_eq!(
        done(&folder, &["migrate"]),
        format!("schema none -> {}: the database is ready for `everbell serve`\n", schema())
    );
    assert_eq!(done(&folder, &["migrate"]), format!("schema {} is current; nothing to do\n", schema()));
    assert_eq!(
        document(&done(&folder, &["migrate", "--json"])),
        json!({"from": schema(), "to": schema(), "changed": false})
    );
    assert_eq!(document(&done(&folder, &["migrate", "--json", "--data-dir", "other"]))["from"], 0);

    let status = done(&folder, &["status"]);
    let names: Vec<&str> = status.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(names, ["database", "product", "schema", "size", "jobs", "runs", "oldest run"]);
    assert_eq!(cell(&status, "database"), "sqlite:everbell-data/everbell.db");
    assert!(cell(&status, "product").starts_with("sqlite 3."), "{status}");
    assert_eq!(cell(&status, "schema"), format!("{} (current)", schema()));
    assert!(cell(&status, "size").ends_with(" kB"), "{status}");
    assert_eq!(cell(&status, "jobs"), "0 (0 active, 0 paused), 0 retired");
    assert_eq!((cell(&status, "runs"), cell(&status, "oldest run")), ("0", "-"));
}

#[test]
fn a_schema_of_another_release_is_told_and_left_alone() {
    let folder = Folder::new();
    fs::write(folder.path().join("empty.db"), "").unwrap();
    let empty = ["--database", "sqlite:empty.db"];
    let ran = db(&folder, &[&["status"][..], &empty].concat());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""), "not in order");
    assert_eq!(cell(&ran.stdout, "schema"), format!("none yet; `everbell db migrate` brings it to {}", schema()));
    assert_eq!(fs::metadata(folder.path().join("empty.db")).unwrap().len(), 0, "status never migrates");
    assert_eq!(
        refused(&folder, &[&["prune", "--older-than", "1d", "--yes"][..], &empty].concat(), 1),
        format!(
            "error: the schema is at 0, and this binary needs {}\n  hint: `everbell db status` says what to do\n",
            schema()
        )
    );

    done(&folder, &["migrate"]);
    let url = format!("sqlite:{}/everbell-data/everbell.db", folder.path().display());
    block_on(execute(&url, "insert into everbell.migrations values (999, 0)"));
    let ran = db(&folder, &["status"]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(
        cell(&ran.stdout, "schema"),
        format!("999 (newer than this binary, which knows {}; use the newer release, or restore a backup)", schema())
    );
    let shown = document(&db(&folder, &["status", "--json"]).stdout);
    assert_eq!(
        (&shown["schema"], &shown["schemaVersion"], &shown["runs"]),
        (&json!("newer"), &json!(999), &Value::Null)
    );
    assert_eq!(
        refused(&folder, &["migrate"], 1),
        format!(
            "error: the database cannot be used: schema version 999 is newer than this binary knows ({}); start the newer \
             release, or restore a backup\n",
            schema()
        )
    );
    assert!(done(&folder, &["backup", "before.db"]).starts_with("copied "), "a copy needs no schema");
}

/// The tables of a release that gave them no prefix, after its last migration.
const OLD_LAYOUT: &str = concat!(
    include_str!("../../../store/tests/it/fixtures/old_layout_sqlite.sql"),
    include_str!("../../../store/tests/it/fixtures/old_rows_sqlite.sql"),
    "create table schema_migrations (version integer primary key, applied_at integer not null) strict;
     insert into schema_migrations values (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0);"
);

#[test]
fn tables_of_an_old_release_are_reported_and_moved() {
    let folder = Folder::new();
    let (file, latest) = (folder.path().join("old.db"), schema());
    block_on(execute(&format!("sqlite:{}?mode=rwc", file.display()), OLD_LAYOUT));
    let old = ["--database", "sqlite:old.db"];
    let with = |own: &[&'static str]| [own, &old].concat();
    let ran = db(&folder, &with(&["status"]));
    assert_eq!(ran.code, Some(1), "not in order");
    assert_eq!(
        cell(&ran.stdout, "schema"),
        format!("6 (tables of an old release; `everbell db migrate` moves them and brings it to {latest})")
    );
    assert_eq!(
        refused(&folder, &with(&["prune", "--older-than", "1d", "--yes"]), 1),
        "error: the tables are those of an old release\n  hint: `everbell db migrate` moves them\n"
    );
    assert_eq!(
        done(&folder, &with(&["migrate"])),
        format!("schema 6 -> {latest}: the tables of an old release were moved\n")
    );
    let shown = done(&folder, &with(&["status"]));
    assert_eq!(cell(&shown, "schema"), format!("{latest} (current)"));
    assert_eq!((cell(&shown, "jobs"), cell(&shown, "runs")), ("2 (2 active, 0 paused), 0 retired", "2"));
}

/// A server's database with jobs and runs of it; the server goes on.
fn lived_in(server: &Server) {
    server.job("first", &json!({}));
    server.job("second", &json!({}));
    server.post("/jobs/key:second/pause", &json!({ "reason": "not now" })).expect(200);
    for _ in 0..3 {
        let run = server.post("/jobs/key:first/run-now", &json!({})).expect(202);
        let id = run["run"]["id"].as_str().unwrap();
        server.until(&format!("/runs/{id}"), |run| run["status"] == "succeeded");
    }
}

/// Two hours go by for the audit trail.
const AGED_IN_SQLITE: &str = "update everbell.audit set at = at - 7200000000";
const AGED_IN_POSTGRES: &str = "update everbell.audit set at = at - interval '2 hours'";

fn history_is_counted_and_pruned(server: &Server, url: &str, args: &[&str]) {
    lived_in(server);
    let folder = &server.folder;
    let with = |own: &[&'static str]| [own, args].concat();
    let shown = document(&done(folder, &with(&["status", "--json"])));
    assert_eq!(
        keys(&shown),
        [
            "database",
            "jobs",
            "moreRuns",
            "movedTo",
            "neededSchemaVersion",
            "oldestRunAt",
            "oldestTransactionAt",
            "product",
            "runs",
            "schema",
            "schemaVersion",
            "sizeBytes",
            "unfinishedCopyTo",
        ]
    );
    assert_eq!(shown["jobs"], json!({"active": 1, "paused": 1, "retired": 0}));
    assert_eq!((&shown["schema"], &shown["runs"], &shown["moreRuns"]), (&json!("current"), &json!(3), &json!(false)));
    assert!(shown["oldestRunAt"].as_str().unwrap().starts_with("20"), "{shown}");

    let told = done(folder, &with(&["prune", "--older-than", "180d", "--yes"]));
    assert!(told.starts_with("nothing is older than 20") && told.ends_with(" UTC\n"), "{told}");
    // Nobody can want what is younger than an hour gone, in a dry run neither.
    for span in ["0s", "59m"] {
        for how in ["--yes", "--dry-run"] {
            let said = refused(folder, &with(&["prune", "--older-than", span, how]), 2);
            assert!(said.starts_with("error: --older-than: must be at least 1 hour, like `retention.keep`"), "{said}");
        }
    }
    let entries = server.get("/audit").expect(200)["items"].as_array().unwrap().len();
    block_on(execute(url, if url.starts_with("sqlite:") { AGED_IN_SQLITE } else { AGED_IN_POSTGRES }));
    let told = done(folder, &with(&["prune", "--older-than", "1h", "--dry-run"]));
    assert!(
        told.starts_with(&format!("would delete 0 runs, 0 gaps and {entries} audit entries from before ")),
        "{told}"
    );
    let said = refused(folder, &with(&["prune", "--older-than", "1h"]), 2);
    assert!(said.starts_with("error: no terminal to ask for confirmation: Delete 0 runs, 0 gaps and "), "{said}");
    assert!(said.ends_with("?\n  add `--yes`, or preview with `--dry-run`\n"), "{said}");
    assert_eq!(server.get("/audit").expect(200)["items"].as_array().unwrap().len(), entries, "nothing was deleted yet");

    let told = document(&done(folder, &with(&["prune", "--older-than", "1h", "--yes", "--json"])));
    assert_eq!(keys(&told), ["auditEntries", "before", "dryRun", "gaps", "inboxRequests", "jobs", "runs"]);
    assert_eq!((&told["runs"], &told["auditEntries"], &told["dryRun"]), (&json!(0), &json!(entries), &json!(false)));
    assert_eq!(server.get("/runs").expect(200)["items"].as_array().unwrap().len(), 3, "what is young stays");
    let trail = server.get("/audit").expect(200);
    let entry = &trail["items"][0];
    assert_eq!((&entry["actor"], &entry["action"]), (&json!("everbell db"), &json!("history.prune")), "{trail}");
    assert!(entry["reason"].as_str().unwrap().starts_with("older than 1h: 0 runs, 0 gaps and "), "{entry}");
}

#[test]
fn history_is_counted_and_pruned_in_sqlite() {
    let server = Server::start();
    let url = format!("sqlite:{}/everbell-data/everbell.db", server.folder.path().display());
    history_is_counted_and_pruned(&server, &url, &[]);
}

#[test]
fn history_is_counted_and_pruned_in_postgres() {
    let database = block_on(TestDatabase::empty());
    let url = database.url().to_owned();
    let args = ["--database", &url];
    let folder = Folder::new();
    let ran = db(&folder, &[&["status"][..], &args].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert_eq!(cell(&ran.stdout, "schema"), format!("none yet; `everbell db migrate` brings it to {}", schema()));
    let told = done(&folder, &[&["migrate"][..], &args].concat());
    assert_eq!(told, format!("schema none -> {}: the database is ready for `everbell serve`\n", schema()));

    let server = Server::launch(TARGETS, Some(database), &[]);
    history_is_counted_and_pruned(&server, &url, &args);
    let said = refused(&folder, &[&["backup", "copy.db"][..], &args].concat(), 2);
    assert!(said.starts_with("error: this is a PostgreSQL database: back it up with `pg_dump`\n"), "{said}");
    assert!(said.contains("\n  hint: pg_dump --format=custom --file=copy.db 'postgres://"), "{said}");
    assert!(!folder.path().join("copy.db").exists());
}

#[test]
fn a_password_is_never_told() {
    let folder = Folder::new();
    let url = "postgres://user:hunter2@127.0.0.1:1/db";
    for args in [&["status"][..], &["migrate"], &["prune", "--older-than", "1d"], &["backup", "copy.db"]] {
        let ran = db(&folder, &[args, &["--database", url]].concat());
        assert!(ran.code != Some(0) && !ran.stderr.contains("hunter2") && ran.stdout.is_empty(), "{ran:?}");
    }
    let said = refused(&folder, &["status", "--database", url], 1);
    assert!(
        said.starts_with("error: the database is not available: connecting to postgres://127.0.0.1:1/db"),
        "{said}"
    );
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let folder = Folder::new();
    done(&folder, &["migrate"]);
    for (span, said) in [("soon", "`soon` is not a duration"), ("1y", "`1y` is not"), ("5000000d", "nothing that old")]
    {
        let told = refused(&folder, &["prune", "--older-than", span, "--yes"], 2);
        assert!(told.starts_with("error: --older-than: ") && told.contains(said), "{told}");
    }
    assert!(refused(&folder, &["prune", "--yes"], 2).contains("--older-than <DURATION>"));
    assert!(refused(&folder, &["status", "--database", "mysql://h/d"], 2).contains("--database"));
    let memory = refused(&folder, &["status", "--database", "sqlite::memory:"], 1);
    assert!(memory.contains("is in the memory of one process"), "{memory}");
}

#[test]
fn a_copy_is_made_while_a_server_writes() {
    let server = Server::with(&format!(
        "{TARGETS}\n[[job]]\njob_key = \"busy\"\ntarget = \"print\"\ncron_expression = \"* * * * * *\"\n"
    ));
    lived_in(&server);
    let folder = &server.folder;
    let file = folder.path().join("copy.db");
    let told = done(folder, &["backup", "copy.db"]);
    let [copied, restore] = told.lines().collect::<Vec<_>>()[..] else { panic!("{told}") };
    assert!(copied.starts_with("copied ") && copied.ends_with(" to copy.db; SQLite verified the copy"), "{told}");
    assert_eq!(restore, "to restore it, stop the server and start it with --database sqlite:copy.db");
    let found = fs::metadata(&file).unwrap();
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    assert_eq!(names_in(folder.path(), "copy"), ["copy.db"]);

    let shown = document(&done(folder, &["status", "--database", "sqlite:copy.db", "--json"]));
    assert_eq!(shown["jobs"], json!({"active": 2, "paused": 1, "retired": 0}));
    assert!(shown["runs"].as_u64().unwrap() >= 3, "{shown}");
    assert_eq!(
        refused(folder, &["backup", "copy.db"], 1),
        "error: `copy.db` already exists; name a file that does not\n"
    );
    let other = document(&done(folder, &["backup", "other.db", "--json"]));
    assert_eq!((keys(&other), &other["file"]), (vec!["file", "sizeBytes"], &json!("other.db")));
    assert!(refused(folder, &["backup", "nowhere/copy.db"], 1).contains("nowhere/copy.db.partial"));
}

fn names_in(folder: &Path, begin: &str) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(begin)).collect();
    names.sort();
    names
}
