//! Jobs and runs that are written together with an application's own rows.

use everbell_core::change::{self, NewJob};
use everbell_core::plan::RunNow;
use everbell_core::store::{ClusterStore, JobRef, RunStore, Store, StoreError};
use everbell_core::{JobKey, RunId};
use everbell_store::postgres::PostgresStore;
use everbell_store::sqlite::SqliteStore;
use everbell_store::testing::TestDatabase;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection, Sqlite, SqliteConnection, Transaction};

use super::sqlite::Folder;
use super::sqlite_world::{at, audit, job};

fn new(key: &str) -> NewJob {
    job(key, "0 * * * *")
}

fn by_key(key: &str) -> JobRef {
    JobRef::Key(JobKey::new(key).unwrap())
}

async fn exists(store: &dyn Store, key: &str) -> bool {
    match store.get_job(&by_key(key)).await {
        Ok(_) => true,
        Err(StoreError::NotFound { .. }) => false,
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn on_postgres_a_job_lives_or_dies_with_the_transaction_of_its_application() {
    let database = TestDatabase::create().await;
    let store = PostgresStore::connect(database.url()).await.unwrap();
    let mut connection = PgConnection::connect(database.url()).await.unwrap();
    sqlx::raw_sql("create table orders (id integer)").execute(&mut connection).await.unwrap();

    let mut tx = connection.begin().await.unwrap();
    store.create_job_in(&mut tx, &new("given-up"), &audit(1)).await.unwrap();
    tx.rollback().await.unwrap();
    assert!(!exists(&store, "given-up").await);

    let mut tx = connection.begin().await.unwrap();
    sqlx::raw_sql("insert into orders values (1)").execute(&mut *tx).await.unwrap();
    store.create_job_in(&mut tx, &new("kept"), &audit(2)).await.unwrap();
    let refused = store.create_job_in(&mut tx, &new("kept"), &audit(3)).await.unwrap_err();
    assert!(matches!(refused, StoreError::Conflict { .. }), "{refused}");
    let request = RunNow {
        id: RunId::by_hand(at("00:10:00"), [7; 10]),
        actor: "ana",
        payload: None,
        overlap: None,
        trace_context: None,
    };
    let decide = |view: &change::JobView| change::run_now(view, &request, at("00:10:00"));
    let runs = store.change_job_in(&mut tx, &by_key("kept"), &decide, &audit(4)).await.unwrap();
    assert_eq!(runs, [request.id]);
    assert!(!exists(&store, "kept").await, "nobody sees it before the commit");
    let woken = tokio::time::timeout(std::time::Duration::from_secs(20), store.woken());
    let (woken, committed) = tokio::join!(biased; woken, tx.commit());
    committed.unwrap();
    assert!(woken.is_ok(), "the commit wakes");
    assert!(exists(&store, "kept").await);
    assert_eq!(store.get_run(request.id).await.unwrap().id, request.id);
    let orders: i64 = sqlx::query_scalar("select count(*) from orders").fetch_one(&mut connection).await.unwrap();
    assert_eq!(orders, 1, "a refusal did not spoil the rest");
}

async fn begin(connection: &mut SqliteConnection) -> Transaction<'_, Sqlite> {
    connection.begin_with("begin immediate").await.unwrap()
}

#[tokio::test]
async fn on_sqlite_a_job_lives_or_dies_with_the_transaction_of_its_application() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.file()).await.unwrap();
    let mut connection = SqliteConnectOptions::new().filename(folder.file()).connect().await.unwrap();
    sqlx::raw_sql("create table orders (id integer)").execute(&mut connection).await.unwrap();

    let mut tx = begin(&mut connection).await;
    store.create_job_in(&mut tx, &new("given-up"), &audit(5)).await.unwrap();
    tx.rollback().await.unwrap();
    assert!(!exists(&store, "given-up").await);

    let mut tx = begin(&mut connection).await;
    sqlx::raw_sql("insert into orders values (1)").execute(&mut *tx).await.unwrap();
    store.create_job_in(&mut tx, &new("kept"), &audit(6)).await.unwrap();
    let refused = store.create_job_in(&mut tx, &new("kept"), &audit(7)).await.unwrap_err();
    assert!(matches!(refused, StoreError::Conflict { .. }), "{refused}");
    let request = RunNow {
        id: RunId::by_hand(at("00:10:00"), [7; 10]),
        actor: "ana",
        payload: None,
        overlap: None,
        trace_context: None,
    };
    let decide = |view: &change::JobView| change::run_now(view, &request, at("00:10:00"));
    let runs = store.change_job_in(&mut tx, &by_key("kept"), &decide, &audit(8)).await.unwrap();
    assert_eq!(runs, [request.id]);
    assert!(!exists(&store, "kept").await, "nobody sees it before the commit");
    tx.commit().await.unwrap();
    assert!(exists(&store, "kept").await);
    assert_eq!(store.get_run(request.id).await.unwrap().id, request.id);
    let orders: i64 = sqlx::query_scalar("select count(*) from orders").fetch_one(&mut connection).await.unwrap();
    assert_eq!(orders, 1, "a refusal did not spoil the rest");
}
