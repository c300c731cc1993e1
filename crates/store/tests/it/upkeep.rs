//! Looking after databases from outside: nothing that is looked at changes.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use everbell_core::JobStatus;
use everbell_core::store::{JobCount, JobFilter, PageRequest, PruneBefore, Pruned, Store, StoreError};
use everbell_store::connect;
use everbell_store::testing::{TestDatabase, execute};
use everbell_store::upkeep::{back_up, count_old, inspect};

use super::sqlite::Folder;
use super::sqlite_world::{at, create, finish, plan_due, start};

fn url(folder: &Folder) -> String {
    format!("sqlite:{}", folder.file().display())
}

/// Two jobs, and a run that has ended.
async fn lived_in(url: &str) -> Arc<dyn Store> {
    let store = connect(url).await.unwrap();
    create(&*store, "hourly", "0 * * * *").await;
    create(&*store, "daily", "0 0 * * *").await;
    plan_due(&*store, at("01:00:00"), 10).await.unwrap();
    let claims = start(&*store, 1, at("01:00:00"), 10).await.unwrap();
    finish(&*store, &claims, at("01:00:01")).await.unwrap();
    store
}

async fn is_looked_at(url: &str, product: &str) {
    let store = lived_in(url).await;
    let found = inspect(url).await.unwrap();
    assert!(found.product.starts_with(product), "{found:?}");
    assert_eq!(found.schema_version, found.needed_version);
    assert!(found.size_bytes.is_some_and(|bytes| bytes > 10_000), "{found:?}");
    let content = found.content.unwrap();
    assert_eq!(content.jobs, [JobCount { status: JobStatus::Active, one_time: false, jobs: 2 }]);
    assert_eq!((content.runs, content.more_runs), (1, false));
    assert_eq!(content.oldest_run_at, Some(at("01:00:00")));

    let none = count_old(url, at("01:00:01")).await.unwrap();
    assert_eq!(none, Pruned { audit: 2, ..Pruned::default() });
    let all = count_old(url, at("01:00:02")).await.unwrap();
    assert_eq!(all, Pruned { runs: 1, audit: 2, ..Pruned::default() });
    assert_eq!(
        store.prune(PruneBefore { requests: at("00:00:00"), ..PruneBefore::all(at("01:00:02")) }, 10).await.unwrap(),
        all,
        "counted as it is pruned"
    );
}

async fn a_newer_one_is_told(url: &str) {
    let found = inspect(url).await.unwrap();
    assert_eq!((found.schema_version, found.content), (999, None));
}

#[tokio::test]
async fn an_sqlite_database_is_looked_at() {
    let folder = Folder::new();
    is_looked_at(&url(&folder), "sqlite 3.").await;
    execute(&url(&folder), "insert into everbell.migrations values (999, 0)").await;
    a_newer_one_is_told(&url(&folder)).await;
}

#[tokio::test]
async fn a_postgres_database_is_looked_at() {
    let database = TestDatabase::empty().await;
    let found = inspect(database.url()).await.unwrap();
    assert_eq!((found.schema_version, found.content), (0, None), "an empty one stays empty");
    assert_eq!(inspect(database.url()).await.unwrap().schema_version, 0);
    is_looked_at(database.url(), "postgres ").await;
    execute(database.url(), "insert into everbell.migrations values (999, clock_timestamp())").await;
    a_newer_one_is_told(database.url()).await;
    let error = back_up(database.url(), "copy.db".as_ref(), &|_, _| ()).await.unwrap_err();
    assert_eq!(error.to_string(), "database: is PostgreSQL, which is copied with its own `pg_dump`");
}

#[tokio::test]
async fn a_file_that_is_not_there_stays_away_and_an_empty_one_stays_empty() {
    let folder = Folder::new();
    let url = url(&folder);
    for error in [
        inspect(&url).await.unwrap_err(),
        count_old(&url, at("00:00:00")).await.unwrap_err(),
        back_up(&url, &folder.path().join("copy"), &|_, _| ()).await.unwrap_err(),
    ] {
        assert!(matches!(error, StoreError::NotFound { .. }), "{error:?}");
        assert_eq!(error.to_string(), format!("there is no database file `{}`", folder.file().display()));
    }
    assert!(!folder.file().exists());
    std::fs::write(folder.file(), "").unwrap();
    let found = inspect(&url).await.unwrap();
    assert_eq!((found.schema_version, found.content), (0, None));
    assert!(std::fs::read(folder.file()).unwrap().is_empty());
}

#[tokio::test]
async fn what_is_no_database_is_told() {
    let folder = Folder::new();
    std::fs::write(folder.file(), "not a database, and long enough to look like something ".repeat(100)).unwrap();
    let error = inspect(&url(&folder)).await.unwrap_err();
    assert!(error.to_string().contains("the file is not an SQLite database"), "{error}");
    let error = inspect("sqlite::memory:").await.unwrap_err();
    assert_eq!(error.to_string(), "database: is in the memory of one process, so there is nothing to look at");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_is_whole_while_somebody_writes() {
    let folder = Folder::new();
    let store = lived_in(&url(&folder)).await;
    let written = Arc::new(AtomicUsize::new(0));
    let (writer, counter) = (Arc::clone(&store), Arc::clone(&written));
    let writing = tokio::spawn(async move {
        loop {
            let number = counter.load(Ordering::SeqCst);
            create(&*writer, &format!("job-{number:05}"), "@daily").await;
            counter.store(number + 1, Ordering::SeqCst);
        }
    });
    let copy = folder.path().join("copy.db");
    // A quick machine may copy between two writes. The second of two that end during a copy was also begun during it.
    let bytes = loop {
        let before = written.load(Ordering::SeqCst);
        let bytes = back_up(&url(&folder), &copy, &|_, _| ()).await.unwrap();
        if before > 0 && written.load(Ordering::SeqCst) >= before + 2 {
            break bytes;
        }
        std::fs::remove_file(&copy).unwrap();
        tokio::task::yield_now().await;
    };
    writing.abort();
    let found = std::fs::metadata(&copy).unwrap();
    assert_eq!((found.len(), found.permissions().mode() & 0o777), (bytes, 0o600));
    assert!(!folder.path().join("copy.db.partial").exists());

    let restored = connect(&format!("sqlite:{}", copy.display())).await.unwrap();
    let page = PageRequest { limit: 1_000, after: None };
    let jobs = restored.list_jobs(&JobFilter::default(), &page).await.unwrap();
    assert!(jobs.items.len() >= 2 && jobs.unreadable.is_empty(), "{}", jobs.items.len());
}

#[tokio::test]
async fn a_copy_overwrites_nothing_and_leaves_nothing_half_done() {
    let folder = Folder::new();
    drop(lived_in(&url(&folder)).await);
    let (copy, partial) = (folder.path().join("copy.db"), folder.path().join("copy.db.partial"));
    let said = async || back_up(&url(&folder), &copy, &|_, _| ()).await.unwrap_err().to_string();
    std::fs::write(&copy, "precious").unwrap();
    assert_eq!(said().await, format!("file: `{}` already exists; name a file that does not", copy.display()));
    assert_eq!(std::fs::read_to_string(&copy).unwrap(), "precious");
    std::fs::rename(&copy, &partial).unwrap();
    assert!(said().await.contains("already exists and is not an unfinished backup"));
    assert_eq!(std::fs::read_to_string(&partial).unwrap(), "precious", "it may be somebody else's");
    std::fs::remove_file(&partial).unwrap();
    let being_written = std::fs::File::create(&partial).unwrap();
    being_written.try_lock().unwrap();
    assert!(said().await.contains("is being written by another backup"));
    std::fs::remove_file(&partial).unwrap();
    let nowhere = folder.path().join("nowhere/copy.db");
    let error = back_up(&url(&folder), &nowhere, &|_, _| ()).await.unwrap_err();
    assert!(error.to_string().contains("nowhere/copy.db.partial: No such file"), "{error}");

    // What a backup that was killed left behind does not stand in the way of the next one.
    let page = std::fs::read(folder.file()).unwrap()[..4_096].to_vec();
    for left in [page, Vec::new()] {
        std::fs::write(&partial, left).unwrap();
        back_up(&url(&folder), &copy, &|_, _| ()).await.unwrap();
        assert!(!partial.exists());
        std::fs::remove_file(&copy).unwrap();
    }

    // A damaged database gives no copy: everything behind its first pages is overwritten.
    execute(&url(&folder), "pragma wal_checkpoint(truncate)").await;
    let mut bytes = std::fs::read(folder.file()).unwrap();
    bytes[8_192..].fill(0x5a);
    std::fs::write(folder.file(), bytes).unwrap();
    assert!(said().await.contains("malformed"), "{}", said().await);
    assert!(!copy.exists() && !partial.exists());
}
