//! Connections of the application that jobs cannot be written through.

use std::time::Duration;

use everbell::{AppConnection, Everbell};
use everbell_store::testing::TestDatabase;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{PgPool, SqlitePool};

use crate::transactions::{App, Pool, double, folder, once};

#[tokio::test]
async fn a_connection_is_checked_on_postgres() {
    the_connection_is_checked(App::postgres().await).await;
}

#[tokio::test]
async fn a_connection_is_checked_on_sqlite() {
    the_connection_is_checked(App::sqlite().await).await;
}

async fn refused<C: AppConnection>(bell: &Everbell, connection: &mut C) -> String {
    let schedule = once("lost", bell.now() + Duration::from_hours(1));
    bell.jobs().create_in(connection, &schedule).await.unwrap_err().to_string()
}

async fn the_connection_is_checked(app: App) {
    let bell = &app.bell;
    let folder = folder();
    let options = SqliteConnectOptions::new().filename(folder.join("other.db")).create_if_missing(true);
    let other_file = SqlitePool::connect_with(options).await.unwrap();
    let empty = TestDatabase::empty().await;
    let other_database = PgPool::connect(empty.url()).await.unwrap();
    let mut sqlite = other_file.begin_with("begin immediate").await.unwrap();
    let mut postgres = other_database.begin().await.unwrap();
    let (in_sqlite, in_postgres) = (refused(bell, &mut sqlite).await, refused(bell, &mut postgres).await);
    let no_transaction = "connection: has no open transaction that sqlx knows of";
    match &app.pool {
        Pool::Postgres(pool) => {
            let own: String = sqlx::query_scalar("select current_database()").fetch_one(pool).await.unwrap();
            for (error, said) in [
                (&in_sqlite, "connection: is to SQLite, but this everbell uses the PostgreSQL database postgres://"),
                (&in_postgres, "connection: lacks the tables of everbell: "),
            ] {
                assert!(error.starts_with(said) && error.contains(&format!("/{own} with the schema")), "{error}");
            }
            assert!(in_postgres.contains("is the connection to the database of this store, postgres://"));
            let mut connection = pool.acquire().await.unwrap();
            assert!(refused(bell, &mut *connection).await.starts_with(no_transaction));
            sqlx::raw_sql("begin").execute(&mut *connection).await.unwrap();
            assert!(refused(bell, &mut *connection).await.starts_with(no_transaction), "a commit would end it");
            sqlx::raw_sql("rollback").execute(&mut *connection).await.unwrap();
        }
        Pool::Sqlite(pool) => {
            let said = "connection: is to PostgreSQL, but this everbell uses SQLite: ";
            assert!(in_postgres.starts_with(said) && in_postgres.ends_with("app.db"), "{in_postgres}");
            assert!(in_sqlite.starts_with("connection: lacks the tables of everbell: "), "{in_sqlite}");
            assert!(in_sqlite.contains("is the connection to the database of this store, "), "{in_sqlite}");
            let mut connection = pool.acquire().await.unwrap();
            assert!(refused(bell, &mut *connection).await.starts_with(no_transaction));
        }
    }
    assert_eq!(sqlx::query_scalar::<_, i64>("select 1").fetch_one(&mut *sqlite).await.unwrap(), 1);
    assert_eq!(sqlx::query_scalar::<_, i32>("select 1").fetch_one(&mut *postgres).await.unwrap(), 1);
    drop((sqlite, postgres));
    other_database.close().await;
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn a_database_in_memory_is_named() {
    let bell = Everbell::builder().database("sqlite::memory:").target("double", double).build().await.unwrap();
    let database = TestDatabase::empty().await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    let error = refused(&bell, &mut pool.begin().await.unwrap()).await;
    assert_eq!(error, "connection: is to PostgreSQL, but this everbell uses SQLite: a database in memory");
    pool.close().await;
}

/// sqlx would roll back all of it, and what follows would be written without a transaction.
#[tokio::test]
async fn a_transaction_that_has_failed_stays_a_transaction() {
    let app = App::postgres().await;
    let Pool::Postgres(pool) = &app.pool else { panic!("it is PostgreSQL") };
    let mut tx = pool.begin().await.unwrap();
    sqlx::query("select 1 / 0").execute(&mut *tx).await.unwrap_err();
    let at = app.bell.now() + Duration::from_hours(1);
    app.bell.jobs().create_in(&mut tx, &once("late", at)).await.unwrap_err();
    sqlx::query("insert into orders values (1)").execute(&mut *tx).await.expect_err("the transaction is aborted");
    tx.rollback().await.unwrap();
    let orders: i64 = sqlx::query_scalar("select count(*) from orders").fetch_one(pool).await.unwrap();
    assert_eq!(orders, 0);
}
