//! The private server of the tests themselves.

use everbell_store::testing::{POSTGRES_URL_VARIABLE, TestDatabase, postgres_log, postgres_url};
use sqlx::{Connection, PgConnection};

async fn connect(url: &str) -> PgConnection {
    PgConnection::connect(url).await.expect("connect")
}

async fn exists(server: &str, name: &str) -> bool {
    let mut connection = connect(server).await;
    let sql = "select exists (select from pg_database where datname = $1)";
    sqlx::query_scalar(sql).bind(name).fetch_one(&mut connection).await.expect("look")
}

#[tokio::test]
async fn two_databases_are_separate() {
    let (one, other) = (TestDatabase::create().await, TestDatabase::create().await);
    assert_ne!(one.url(), other.url());
    let (mut in_one, mut in_other) = (connect(one.url()).await, connect(other.url()).await);
    sqlx::query("create table bells (id int)").execute(&mut in_one).await.expect("create in the first");
    sqlx::query("create table bells (id text)").execute(&mut in_other).await.expect("create in the second");
    let name: String = sqlx::query_scalar("select current_database()::text").fetch_one(&mut in_one).await.expect("ask");
    assert_eq!(name, one.name());
}

#[tokio::test]
async fn a_dropped_database_is_gone_although_somebody_is_connected() {
    let database = TestDatabase::empty_on(&postgres_url()).await;
    let (server, name) = (database.server_url().to_owned(), database.name().to_owned());
    let mut connection = connect(database.url()).await;
    assert!(exists(&server, &name).await);
    drop(database);
    assert!(!exists(&server, &name).await);
    sqlx::query("select 1").execute(&mut connection).await.expect_err("the database is gone");
}

#[tokio::test]
async fn a_database_is_dropped_also_after_a_panic() {
    let database = TestDatabase::empty_on(&postgres_url()).await;
    let (server, name) = (database.server_url().to_owned(), database.name().to_owned());
    let failed = tokio::spawn(async move {
        let _kept_until_the_panic = database;
        panic!("a test that fails");
    });
    failed.await.expect_err("it panicked");
    assert!(!exists(&server, &name).await);
}

#[tokio::test]
async fn the_private_server_keeps_a_log() {
    let database = TestDatabase::create().await;
    let is_given = std::env::var_os(POSTGRES_URL_VARIABLE).is_some();
    assert!(is_given || postgres_log(database.url()).is_some());
}
