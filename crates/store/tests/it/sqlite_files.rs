//! Files that go away under a running store, and what a closed store leaves behind.

use std::fs;
use std::path::{Path, PathBuf};

use everbell_core::store::{ClusterStore, JobFilter, JobStore, PageRequest, StoreError};
use everbell_store::sqlite::SqliteStore;

use super::sqlite::Folder;
use super::sqlite_world::{audit, create, job};

fn beside(folder: &Folder, end: &str) -> PathBuf {
    folder.path().join(format!("everbell.db{end}"))
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}

async fn jobs(store: &SqliteStore) -> usize {
    let page = PageRequest { limit: 100, after: None };
    store.list_jobs(&JobFilter::default(), &page).await.unwrap().items.len()
}

/// Returns the store's error of a write after `harm` was done to its files.
async fn refused_after(harm: impl FnOnce(&Folder)) -> String {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.file()).await.unwrap();
    create(&store, "before", "0 * * * *").await;
    harm(&folder);
    let error = store.create_job(&job("after", "0 * * * *"), &audit(2)).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { maybe_done: false, .. }), "{error:?}");
    let error = error.to_string();
    assert_eq!(store.status().await.unwrap_err().to_string(), error.clone(), "the status says the same");
    assert!(store.close().await.is_err(), "nor does it close as if nothing had happened");
    error
}

#[tokio::test]
async fn a_store_refuses_to_write_to_files_that_are_gone() {
    for end in ["", "-wal", "-shm"] {
        let said = refused_after(|folder| fs::remove_file(beside(folder, end)).unwrap()).await;
        let name = format!("everbell.db{end}` was removed while the server was using it");
        assert!(said.contains(&name) && said.contains("restore a backup"), "{end}: {said}");
    }
    let said = refused_after(|folder| fs::remove_dir_all(folder.path()).unwrap()).await;
    assert!(said.contains("was removed"), "{said}");
}

#[tokio::test]
async fn a_store_refuses_to_write_to_a_file_that_was_replaced_or_cut() {
    let said = refused_after(|folder| {
        fs::copy(folder.file(), folder.path().join("copy")).unwrap();
        fs::rename(folder.path().join("copy"), folder.file()).unwrap();
    });
    assert!(said.await.contains("was replaced by another file"));
    let said = refused_after(|folder| {
        fs::OpenOptions::new().write(true).open(folder.file()).unwrap().set_len(0).unwrap();
    });
    assert!(said.await.contains("was cut to nothing"));
}

#[tokio::test]
async fn a_store_goes_on_when_the_same_file_is_back() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.file()).await.unwrap();
    fs::rename(folder.file(), folder.path().join("elsewhere")).unwrap();
    assert!(store.create_job(&job("a", "0 * * * *"), &audit(1)).await.is_err());
    fs::rename(folder.path().join("elsewhere"), folder.file()).unwrap();
    create(&store, "a", "0 * * * *").await;
    assert_eq!(jobs(&store).await, 1);
}

#[tokio::test]
async fn a_vacuum_of_someone_else_is_no_damage() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.file()).await.unwrap();
    let mut other = super::sqlite_own::raw(&folder.file()).await;
    let fill = "create table filler (bytes blob); insert into filler values (zeroblob(3000000)); drop table filler";
    sqlx::raw_sql(fill).execute(&mut other).await.unwrap();
    drop(store);
    // Opened when the file was large.
    let store = SqliteStore::open(&folder.file()).await.unwrap();
    let before = size(&folder.file());
    sqlx::raw_sql("vacuum; pragma wal_checkpoint(truncate)").execute(&mut other).await.unwrap();
    assert!(size(&folder.file()) < before);
    create(&store, "a", "0 * * * *").await;
    assert_eq!(jobs(&store).await, 1);
}

#[tokio::test]
async fn a_closed_store_leaves_everything_in_its_file() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.file()).await.unwrap();
    for number in 0..20 {
        create(&store, &format!("job-{number}"), "0 * * * *").await;
    }
    let (reading, _) = tokio::join!(jobs(&store), jobs(&store));
    assert_eq!(reading, 20);
    store.close().await.unwrap();
    assert_eq!(size(&beside(&folder, "-wal")), 0, "the log is empty or gone");
    let error = store.create_job(&job("late", "0 * * * *"), &audit(99)).await.unwrap_err();
    assert!(error.to_string().contains("is closed"), "{error}");
    let copy = folder.path().join("copy.db");
    fs::copy(folder.file(), &copy).unwrap();
    assert_eq!(jobs(&SqliteStore::open(&copy).await.unwrap()).await, 20);
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_new_database_is_more_than_its_log_at_once() {
    let folder = Folder::new();
    let _store = SqliteStore::open(&folder.file()).await.unwrap();
    let copy = folder.path().join("copy.db");
    fs::copy(folder.file(), &copy).unwrap();
    let tables: i64 = sqlx::query_scalar("select count(*) from sqlite_schema where name = 'everbell_jobs'")
        .fetch_one(&mut super::sqlite_own::raw(&copy).await)
        .await
        .unwrap();
    assert_eq!(tables, 1);
}

#[tokio::test]
async fn a_database_that_was_there_before_is_not_replaced_by_an_empty_one() {
    let folder = Folder::new();
    SqliteStore::open(&folder.file()).await.unwrap().close().await.unwrap();
    for cut in [false, true] {
        if cut {
            fs::write(folder.file(), "").unwrap();
        } else {
            fs::remove_file(folder.file()).unwrap();
        }
        let error = SqliteStore::open(&folder.file()).await.unwrap_err().to_string();
        assert!(error.contains(if cut { "is empty" } else { "is missing" }), "{error}");
        assert!(error.contains("restore a backup") && error.contains("everbell.db.marker"), "{error}");
        assert!(!error.contains("-wal"), "{error}");
        assert_eq!(folder.file().exists(), cut, "nothing was created");
    }
    fs::remove_file(beside(&folder, ".marker")).unwrap();
    SqliteStore::open(&folder.file()).await.unwrap();
}

#[tokio::test]
async fn a_log_without_its_database_is_not_thrown_away() {
    let folder = Folder::new();
    fs::write(beside(&folder, "-wal"), "what is left").unwrap();
    let error = SqliteStore::open(&folder.file()).await.unwrap_err().to_string();
    assert!(error.contains("is missing") && error.contains("everbell.db-wal"), "{error}");
    assert_eq!(fs::read_to_string(beside(&folder, "-wal")).unwrap(), "what is left");
}
