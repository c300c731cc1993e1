//! Passwords of the database that change while a server runs.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use everbell_store::testing::{OwnServer, OwnSetup, execute};
use serde_json::{Value, json};

use crate::cli::{data, everbell};
use crate::server::{Folder, Server, TARGETS, eventually};

/// A PostgreSQL server that asks the role `shop` for its password.
struct Guarded {
    server: OwnServer,
    folder: Folder,
}

impl Guarded {
    fn start() -> Guarded {
        let folder = Folder::new();
        let rules = folder.path().join("pg_hba.conf");
        fs::write(&rules, "local all postgres trust\nlocal all all scram-sha-256\n").unwrap();
        let settings = vec![("hba_file".to_owned(), rules.display().to_string())];
        let server = OwnServer::start_with(&OwnSetup { settings, ..OwnSetup::default() });
        let guarded = Guarded { server, folder };
        guarded.execute("create role shop login password 'one'; grant create on database postgres to shop");
        guarded
    }

    /// The address for this user, with a password or without one.
    fn url(&self, user: &str) -> String {
        self.server.url().replacen("postgres@", &format!("{user}@"), 1)
    }

    /// As the owner of the server.
    fn execute(&self, sql: &'static str) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(execute(self.server.url(), sql));
    }

    /// Changes the password, and cuts every connection that was made with the old one.
    fn rotate(&self) {
        self.execute("alter role shop password 'two'");
        self.cut();
    }

    fn cut(&self) {
        self.execute("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'shop'");
    }

    /// A file that only its owner reads.
    fn secret(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        write_secret(&path, text);
        path
    }
}

fn write_secret(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// Runs a job. Requests may fail while connections are replaced.
fn expect_work(server: &Server) {
    let run = eventually(|| {
        let asked = server.post("/jobs/key:quick/run-now", &json!({}));
        asked.headers.get("location").filter(|_| asked.status < 300).cloned()
    });
    let run = run.unwrap_or_else(|| panic!("no run could be requested: {}", server.log()));
    let ended = eventually(|| {
        let answer = server.get(&run);
        (answer.status == 200 && answer.expect(200)["status"] == "succeeded").then_some(())
    });
    assert!(ended.is_some(), "the run never succeeded: {}", server.log());
}

#[test]
fn a_reload_connects_with_the_password_that_its_file_has_by_then() {
    let database = Guarded::start();
    let file = database.secret("url", &database.url("shop:one"));
    let folder = Folder::new();
    let config = format!("[database]\nurl_file = \"{}\"\n{TARGETS}", file.display());
    fs::write(folder.path().join("everbell.toml"), config).unwrap();
    let server = Server::in_folder(folder, &[], &[]).registered();
    server.job("quick", &json!({}));

    // A password that does not hold is refused, and nothing changes.
    write_secret(&file, &database.url("shop:wrong"));
    let refused = everbell(&server, &["reload"]).stderr;
    assert!(refused.contains("check user and password") && !refused.contains("wrong"), "{refused}");
    expect_work(&server);

    write_secret(&file, &database.url("shop:two"));
    let planned: Value = serde_json::from_str(&data(&server, &["reload", "--dry-run", "--json"])).unwrap();
    assert_eq!(planned["needsRestart"], json!([]), "{planned}");
    database.execute("alter role shop password 'two'");
    let reloaded: Value = serde_json::from_str(&data(&server, &["reload", "--json"])).unwrap();
    let change = json!({ "part": "setting", "name": "database.url", "change": "changed" });
    assert_eq!((&reloaded["changes"], &reloaded["needsRestart"]), (&json!([change]), &json!([])), "{reloaded}");
    assert_eq!(planned["changes"], reloaded["changes"]);
    database.cut();
    expect_work(&server);

    // Another database is no matter of credentials.
    write_secret(&file, &database.url("shop:two").replacen("/postgres?", "/other?", 1));
    let reloaded: Value = serde_json::from_str(&data(&server, &["reload", "--json"])).unwrap();
    assert_eq!(reloaded["needsRestart"], json!(["database.url"]), "{reloaded}");
    expect_work(&server);
}

#[test]
fn a_file_of_passwords_is_read_for_each_connection() {
    let database = Guarded::start();
    let file = database.secret("pgpass", "*:*:*:shop:one\n");
    let (url, folder) = (database.url("shop"), Folder::new());
    fs::write(folder.path().join("everbell.toml"), TARGETS).unwrap();
    let env = [("EVERBELL_DATABASE_URL", url.as_str()), ("PGPASSFILE", file.to_str().unwrap())];
    let server = Server::in_folder(folder, &[], &env).registered();
    server.job("quick", &json!({}));
    write_secret(&file, "*:*:*:shop:two\n");
    database.rotate();
    expect_work(&server);
}
