//! A good guest: everything is in a schema of its own, and an application's tables and settings mean nothing to it.

use std::sync::Arc;
use std::time::Duration;

use everbell_core::plan::RunNow;
use everbell_core::store::{
    ClusterStore, GapFilter, JobFilter, JobRef, JobStore, PageRequest, RunStore, Store, StoreError, UnavailableReason,
};
use everbell_core::{JobKey, RunId, change};
use everbell_store::conformance::{Database, Fresh};
use everbell_store::postgres::PostgresStore;
use everbell_store::sqlite::SqliteStore;
use everbell_store::testing::TestDatabase;
use everbell_store::{ConnectOptions, connect};
use sqlx::postgres::PgListener;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::old_layout::{in_file, relations};
use super::sqlite::Folder;
use super::sqlite_own::raw;
use super::sqlite_world::{at, audit, create, job, plan_due};

/// Tables of an application that has names for them that everbell has too, and other columns.
const FOREIGN: &str = "create table jobs (id bigint primary key, title text);
    create table runs (id bigint); create table orgs (id bigint, plan text); create table timers (at date);
    insert into jobs values (7, 'gardener')";

async fn run(url: &str, sql: &str) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await.unwrap();
}

/// A store, and the address with which others open it.
struct Guest {
    store: Arc<dyn Store>,
    url: String,
    _database: TestDatabase,
}

#[async_trait::async_trait]
impl Database for Guest {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    async fn reconnect(&self) -> Arc<dyn Store> {
        connect(&self.url).await.unwrap()
    }
}

/// The address with one more parameter.
fn with(url: &str, parameter: &str) -> String {
    format!("{url}{}{parameter}", if url.contains('?') { '&' } else { '?' })
}

/// In a schema of another name, in a database whose `search_path` leads to foreign tables: a name without a schema, or
/// with the usual one, finds something else or nothing.
async fn among_others() -> Fresh {
    let database = TestDatabase::create().await;
    let name = database.name();
    // A function finds its tables by the path that it was created with.
    let rename = "alter schema everbell rename to \"Other_1\";
                  alter function \"Other_1\".refuse_moved() set search_path = \"Other_1\", pg_temp";
    let foreign = format!("create schema app; set search_path = app; {FOREIGN}");
    run(database.url(), &format!("{rename}; {foreign}; alter database {name} set search_path = app")).await;
    let url = with(database.url(), "schema=Other_1");
    Fresh::with(Guest { store: connect(&url).await.unwrap(), url, _database: database })
}

/// Every statement names its schema by the same code, so a sample of all families is enough.
macro_rules! samples {
    ($($name:ident: $offset:literal;)+) => {
        mod among_others {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $name() {
                for case in $crate::chosen::sample($offset) {
                    (case.run)(super::among_others().await).await;
                }
            })+
        }
    };
}

samples! {
    first_sample: 0;
    second_sample: 1;
}

async fn keys(store: &dyn Store) -> Vec<String> {
    let page = PageRequest { limit: 10, after: None };
    let jobs = store.list_jobs(&JobFilter::default(), &page).await.unwrap().items;
    jobs.iter().map(|row| row.job.definition.key.to_string()).collect()
}

#[tokio::test]
async fn two_schemas_of_one_database_are_two_everbells() {
    let database = TestDatabase::empty().await;
    let one = PostgresStore::connect(database.url()).await.unwrap();
    let options = ConnectOptions::default().schema("other");
    let other = PostgresStore::connect_with(database.url(), &options).await.unwrap();
    assert_eq!((one.schema(), other.schema()), ("everbell", "other"));
    // Then each has said its word, which the listener of this test must not take for news.
    while !one.hears_others() || !other.hears_others() {
        tokio::task::yield_now().await;
    }
    let mut listener = PgListener::connect(database.url()).await.unwrap();
    listener.listen_all(["everbell", "everbell:other"]).await.unwrap();
    create(&other, "second", "0 * * * *").await;
    create(&one, "first", "0 * * * *").await;
    assert_eq!((keys(&one).await, keys(&other).await), (vec!["first".to_owned()], vec!["second".to_owned()]));
    for channel in ["everbell:other", "everbell"] {
        assert_eq!(listener.recv().await.unwrap().channel(), channel, "each notifies its own instances");
    }
    assert_eq!(relations(&database, "public").await, [""; 0]);

    // Subscribed when the status no longer complains.
    while !other.status().await.unwrap().notes.is_empty() {
        tokio::task::yield_now().await;
    }
    let woken = tokio::time::timeout(Duration::from_secs(20), other.woken());
    let notified = run(database.url(), "notify \"everbell:other\"");
    let (woken, ()) = tokio::join!(biased; woken, notified);
    assert!(woken.is_ok(), "its own channel wakes it");
}

#[tokio::test]
async fn a_bad_name_of_a_schema_is_refused_before_anything_is_reached() {
    let options = ConnectOptions::default().schema("pg_mine");
    let error = PostgresStore::connect_with("postgres://127.0.0.1:1/nowhere", &options).await.unwrap_err();
    assert!(matches!(&error, StoreError::Invalid(invalid) if invalid.field == "schema"), "{error:?}");
}

#[tokio::test]
async fn tables_of_an_application_and_of_its_migrator_are_left_alone() {
    for migrations in [
        "create table schema_migrations (version integer); insert into schema_migrations values (1)",
        "create table schema_migrations (version integer); insert into schema_migrations values (37)",
        "create table schema_migrations (version integer, applied_at timestamptz); insert into schema_migrations values (1)",
        "create table schema_migrations (version bigint, dirty boolean); insert into schema_migrations values (1, false)",
        "create table schema_migrations (version bigint, dirty boolean); insert into schema_migrations values (37, false)",
        "create table schema_migrations (version varchar); insert into schema_migrations values ('1')",
        "create table schema_migrations (version varchar); insert into schema_migrations values ('37')",
    ] {
        let database = TestDatabase::empty().await;
        run(database.url(), &format!("{FOREIGN}; {migrations}")).await;
        let before = relations(&database, "public").await;
        for _ in 0..2 {
            let store = connect(database.url()).await.unwrap_or_else(|error| panic!("{migrations}: {error}"));
            assert_eq!(keys(&*store).await, [""; 0]);
        }
        assert_eq!(relations(&database, "public").await, before, "{migrations}");
        let mut connection = PgConnection::connect(database.url()).await.unwrap();
        let mine = "select (select title from public.jobs) || (select max(version) from public.schema_migrations)";
        let mine: String = sqlx::query_scalar(mine).fetch_one(&mut connection).await.unwrap();
        assert!(["gardener1", "gardener37"].contains(&mine.as_str()), "{mine}");
    }
}

#[tokio::test]
async fn sqlite_tables_of_an_application_and_of_its_migrator_are_left_alone() {
    for migrations in [
        "create table schema_migrations (version integer, applied_at integer); insert into schema_migrations values (1, 0)",
        "create table schema_migrations (version bigint, dirty boolean); insert into schema_migrations values (37, 0)",
        "create table schema_migrations (version varchar); insert into schema_migrations values ('37')",
    ] {
        let folder = Folder::new();
        let sql = format!("{FOREIGN}; {migrations}; create table everbell_notes (text text)");
        in_file(&folder.file(), sql).await;
        for _ in 0..2 {
            let store = SqliteStore::open(&folder.file()).await.unwrap();
            create(&store, &format!("job-{}", keys(&store).await.len()), "0 * * * *").await;
            assert!(plan_due(&store, at("01:00:00"), 10).await.is_ok());
        }
        let mine = "select (select title from jobs) || (select count(*) from schema_migrations)";
        let mine: String = sqlx::query_scalar(mine).fetch_one(&mut raw(&folder.file()).await).await.unwrap();
        assert_eq!(mine, "gardener1");
    }
}

/// The error of a start, which must come at once.
async fn refused(url: &str) -> String {
    // Thirty retries take six seconds.
    let answer = tokio::time::timeout(Duration::from_secs(5), connect(url)).await.expect("it is not retried");
    let error = answer.expect_err("a start that is refused");
    assert!(matches!(error, StoreError::Invalid(_)), "{error:?}");
    error.to_string()
}

#[tokio::test]
async fn objects_of_others_in_the_schema_are_named_at_once() {
    for (sql, named) in [
        ("create schema everbell; create table everbell.jobs (id bigint)", "`jobs`"),
        ("create schema everbell; create view everbell.run_rows as select 1 as one", "`run_rows`"),
        ("create schema everbell; create table everbell.migrations (name text)", "`migrations`"),
    ] {
        let database = TestDatabase::empty().await;
        run(database.url(), sql).await;
        let error = refused(database.url()).await;
        assert!(error.contains("the schema `everbell` has a relation") && error.contains(named), "{error}");
        connect(&with(database.url(), "schema=everbell_jobs")).await.unwrap();
    }
    let database = TestDatabase::empty().await;
    run(database.url(), "create schema everbell; create table everbell.orders (id bigint)").await;
    connect(database.url()).await.unwrap();

    let database = TestDatabase::empty().await;
    let migrator = "create schema everbell; create table everbell.migrations (version integer, applied_at timestamptz);
                    insert into everbell.migrations values (1)";
    run(database.url(), migrator).await;
    let error = refused(database.url()).await;
    assert!(error.contains("at version 1, but no table `active_runs`"), "{error}");
}

#[tokio::test]
async fn sqlite_objects_of_others_with_our_names_are_named_at_once() {
    for (sql, named) in [
        ("create table everbell_jobs (id bigint)", "`everbell_jobs`"),
        ("create table everbell_migrations (name text)", "`everbell_migrations`"),
    ] {
        let folder = Folder::new();
        in_file(&folder.file(), sql.to_owned()).await;
        let error = refused(&format!("sqlite:{}", folder.file().display())).await;
        assert!(error.contains(named) && error.contains("everbell did not create"), "{error}");
    }
}

/// The address with another role, which exists until the database is dropped.
async fn role(database: &TestDatabase) -> (String, String) {
    let role = format!("{}_guest", database.name());
    run(
        database.url(),
        &format!("create role {role} login; revoke create on database {} from public", database.name()),
    )
    .await;
    let (_, rest) = database.url().split_once('@').unwrap();
    (format!("postgres://{role}@{rest}"), role)
}

#[tokio::test]
async fn a_role_that_may_not_create_a_schema_is_told_what_an_administrator_has_to_run() {
    let database = TestDatabase::empty().await;
    let (url, role) = role(&database).await;
    let error = refused(&url).await;
    let remedy = format!("create schema everbell authorization {role}");
    assert!(error.contains("permission denied for database") && error.contains(&remedy), "{error}");
    run(database.url(), &remedy).await;
    let store = connect(&url).await.unwrap();
    create(&*store, "mine", "0 * * * *").await;
    drop(store);
    run(database.url(), &format!("drop owned by {role}; drop role {role}")).await;
}

#[tokio::test]
async fn a_missing_table_or_column_is_no_lost_database() {
    let database = TestDatabase::create().await;
    let store = connect(database.url()).await.unwrap();
    run(database.url(), "alter table everbell.jobs rename column description to note; drop table everbell.gaps").await;
    let folder = Folder::new();
    let on_disk = SqliteStore::open(&folder.file()).await.unwrap();
    in_file(&folder.file(), "drop table everbell_gaps".to_owned()).await;
    let page = PageRequest { limit: 10, after: None };
    let filter = GapFilter::default();
    let errors = [
        store.list_gaps(&filter, &page).await.unwrap_err(),
        store.create_job(&job("late", "0 * * * *"), &audit(1)).await.unwrap_err(),
        on_disk.list_gaps(&filter, &page).await.unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, StoreError::Unavailable { reason: UnavailableReason::Schema, .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.starts_with("the schema of the database does not match this release: "), "{text}");
        assert!(text.contains("start the newest release"), "{text}");
        assert!(error.needs_operator().is_some(), "{error:?}");
    }
}

#[tokio::test]
async fn an_application_schedules_whatever_its_search_path_is() {
    for schema in ["everbell", "Other_1"] {
        let database = TestDatabase::empty().await;
        let options = ConnectOptions::default().schema(schema);
        let store = PostgresStore::connect_with(database.url(), &options).await.unwrap();
        let mut connection = PgConnection::connect(database.url()).await.unwrap();
        for (number, path) in ["app", "''", "app, pg_catalog, public"].into_iter().enumerate() {
            let setup = format!("create schema if not exists app; set search_path = {path}");
            sqlx::raw_sql(AssertSqlSafe(setup)).execute(&mut connection).await.unwrap();
            if number == 0 {
                sqlx::raw_sql(FOREIGN).execute(&mut connection).await.unwrap();
            }
            let mut tx = connection.begin().await.unwrap();
            let key = format!("job-{number}");
            store.create_job_in(&mut tx, &job(&key, "0 * * * *"), &audit(number as u128 + 1)).await.unwrap();
            let id = RunId::by_hand(at("00:30:00"), [number as u8; 10]);
            let request = RunNow { id, actor: "ana", payload: None, overlap: None, trace_context: None };
            let run_now = |view: &change::JobView| change::run_now(view, &request, at("00:30:00"));
            let job = JobRef::Key(JobKey::new(&key).unwrap());
            let runs = store.change_job_in(&mut tx, &job, &run_now, &audit(number as u128 + 101)).await.unwrap();
            assert_eq!(runs, [id]);
            tx.commit().await.unwrap();
            assert!(store.get_job(&job).await.is_ok());
        }
    }
}

#[tokio::test]
async fn a_connection_to_another_database_is_told_and_stays_usable() {
    let (database, other) = (TestDatabase::create().await, TestDatabase::empty().await);
    let store = PostgresStore::connect(database.url()).await.unwrap();
    let mut connection = PgConnection::connect(other.url()).await.unwrap();
    let mut tx = connection.begin().await.unwrap();
    let error = store.create_job_in(&mut tx, &job("lost", "0 * * * *"), &audit(1)).await.unwrap_err().to_string();
    assert!(error.contains("is the connection to the database of this store"), "{error}");
    assert!(!error.contains("not available") && !error.contains("release"), "{error}");
    let one: i32 = sqlx::query_scalar("select 1").fetch_one(&mut *tx).await.unwrap();
    assert_eq!(one, 1);
}
