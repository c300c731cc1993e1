//! Several processes on one file. A process is this test binary again, told what to do by a variable.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use everbell_core::store::{ClusterStore, JobFilter, JobStore, PageRequest, StoreError};
use everbell_store::conformance::checkers::Snapshot;
use everbell_store::sqlite::SqliteStore;
use sqlx::{ConnectOptions, SqliteConnection};

use super::sqlite::Folder;
use super::sqlite_world::{at, create, finish, plan_due, start};

const TASK: &str = "EVERBELL_TEST_TASK";
const FILE: &str = "EVERBELL_TEST_FILE";
const JOBS: usize = 200;

/// The body of the process that other tests start. Run alone, it does nothing.
#[tokio::test]
async fn the_other_process() {
    let (Ok(task), Some(file)) = (std::env::var(TASK), std::env::var_os(FILE)) else { return };
    let file = PathBuf::from(file);
    match task.as_str() {
        "open" => drop(SqliteStore::open(&file).await.unwrap()),
        "work" => work(&file, 2).await,
        "read-only" => read_only(&file).await,
        other => panic!("{other}"),
    }
}

fn spawn(task: &str, file: &Path, change: impl FnOnce(&mut Command)) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "sqlite_processes::the_other_process"]).env(TASK, task).env(FILE, file);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    change(&mut command);
    command.spawn().unwrap()
}

async fn ended(child: Child) {
    let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap()).await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

async fn raw(file: &Path) -> SqliteConnection {
    sqlx::sqlite::SqliteConnectOptions::new().filename(file).connect().await.unwrap()
}

#[tokio::test]
async fn ten_processes_that_start_together_migrate_once() {
    let folder = Folder::new();
    let children: Vec<Child> = (0..10).map(|_| spawn("open", &folder.file(), |_| ())).collect();
    for child in children {
        ended(child).await;
    }
    let versions = sqlx::query_scalar::<_, u32>("select version from everbell_migrations order by version");
    let versions = versions.fetch_all(&mut raw(&folder.file()).await).await.unwrap();
    let latest = SqliteStore::open(&folder.file()).await.unwrap().status().await.unwrap().schema_version;
    assert_eq!(versions, (1..=latest).collect::<Vec<_>>());
}

/// Takes part until everything that is due at five past is done.
async fn work(file: &Path, instance: u8) {
    let store = SqliteStore::open(file).await.unwrap();
    let now = at("00:05:00");
    loop {
        let planned = plan_due(&store, now, 7).await.unwrap();
        let claims = start(&store, instance, now, 5).await.unwrap();
        finish(&store, &claims, now).await.unwrap();
        if planned.timers == 0 && claims.is_empty() {
            return;
        }
    }
}

#[tokio::test]
async fn two_processes_share_the_work_and_neither_lose_nor_double_any() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.file()).await.unwrap();
    for number in 0..JOBS {
        create(&store, &format!("job-{number:04}"), "* * * * *").await;
    }
    let child = spawn("work", &folder.file(), |_| ());
    work(&folder.file(), 1).await;
    ended(child).await;
    // What the other one had planned and not started when this one saw nothing left.
    work(&folder.file(), 1).await;
    let snapshot = Snapshot::read(&store).await;
    let complaints = [snapshot.complaints(), snapshot.unfinished_runs()].concat();
    assert!(complaints.is_empty(), "{complaints:?}");
    assert_eq!(snapshot.runs.len(), JOBS, "one for each job: the earlier slots are folded into it");
}

async fn read_only(file: &Path) {
    let everything = PageRequest { limit: 10, after: None };
    let store = SqliteStore::open(file).await.unwrap();
    assert_eq!(store.list_jobs(&JobFilter::default(), &everything).await.unwrap().items.len(), 1);
    let Err(error) = plan_due(&store, at("01:00:00"), 10).await else { panic!("it was written") };
    assert!(matches!(error, StoreError::Unavailable { maybe_done: false, .. }), "{error:?}");
    let said = error.to_string();
    assert!(said.contains("readonly") && said.contains("check their owner and rights"), "{said}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_cannot_be_written_can_be_read_and_says_so() {
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::process::CommandExt;

    const NOBODY: u32 = 65_534;
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.file()).await.unwrap();
    create(&store, "hourly", "0 * * * *").await;
    let mode = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    // Rights mean nothing to root, so the other process is somebody else then. The store stays open: its files stand
    // beside the database, and may be read.
    let as_root = chown(folder.path(), Some(0), None).is_ok();
    for file in std::fs::read_dir(folder.path()).unwrap() {
        mode(&file.unwrap().path(), 0o444);
    }
    mode(folder.path(), 0o555);
    let child = spawn("read-only", &folder.file(), |command| {
        if as_root {
            command.uid(NOBODY).gid(NOBODY).current_dir("/");
        }
    });
    ended(child).await;
    mode(folder.path(), 0o755);
}
