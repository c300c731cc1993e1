//! Several servers in one address, and servers that refuse: what is used, and what the caller is told.

use std::collections::BTreeSet;
use std::time::Duration;

use everbell_core::store::{ClusterStore, JobFilter, JobStore, StoreError, UnavailableReason};
use everbell_store::postgres::PostgresStore;
use everbell_store::testing::{OwnServer, TestDatabase};
use everbell_store::{ConnectOptions, with_deadline};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use tokio::time::Instant;

use super::postgres_proxy::Proxy;
use super::sqlite_world::{at, audit, create, job, plan_due};

async fn execute(url: &str, sql: String) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    connection.execute(AssertSqlSafe(sql)).await.unwrap();
}

/// `127.0.0.1:PORT` of a proxy.
fn host(proxy: &Proxy) -> &str {
    proxy.url().split_once('@').unwrap().1.split_once('/').unwrap().0
}

fn reason(error: &StoreError) -> Option<UnavailableReason> {
    if let StoreError::Unavailable { reason, .. } = error { Some(*reason) } else { None }
}

/// A server of its own that has a database of the same name as the shared one.
async fn second_server(database: &TestDatabase) -> (OwnServer, String) {
    let server = tokio::task::spawn_blocking(OwnServer::start).await.unwrap();
    execute(server.url(), format!("create database {}", database.name())).await;
    let url = server.url().replace("/postgres?", &format!("/{}?", database.name()));
    (server, url)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_next_server_is_used_when_one_becomes_read_only() {
    let database = TestDatabase::create().await;
    let (own, own_url) = second_server(&database).await;
    // Both have the schema, as a standby would.
    drop(PostgresStore::connect(database.url()).await.unwrap());
    let (first, second) = (Proxy::start(&own_url).await, Proxy::start(database.url()).await);
    // Nobody listens on port 1.
    let hosts = format!("127.0.0.1:1,{},{}", host(&first), host(&second));
    let url = format!("postgres://postgres@{hosts}/{}?sslmode=disable", database.name());
    let store = PostgresStore::connect(&url).await.unwrap();
    create(&store, "one", "0 * * * *").await;
    let of_first = PostgresStore::connect(&own_url).await.unwrap();
    assert_eq!(of_first.list_jobs(&JobFilter::default(), &first_page()).await.unwrap().items.len(), 1);

    execute(own.url(), "alter system set default_transaction_read_only = on".to_owned()).await;
    execute(own.url(), "select pg_reload_conf()".to_owned()).await;
    let of_second = PostgresStore::connect(database.url()).await.unwrap();
    // Each of the first server's sessions reads its new settings when it gets to it, so some changes may still reach it.
    let moved = async {
        for number in 0.. {
            let new = job(&format!("two-{number}"), "0 * * * *");
            if let Err(error) = store.create_job(&new, &audit(new.definition.id.as_uuid().as_u128())).await {
                assert!(error.is_transient(), "{error}");
            }
            if !of_second.list_jobs(&JobFilter::default(), &first_page()).await.unwrap().items.is_empty() {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_mins(1), moved).await.expect("the second server accepts changes");

    let only_first = format!("postgres://postgres@{}/{}", host(&first), database.name());
    let only_first = format!("{only_first}?sslmode=disable&target_session_attrs=read-write");
    let error = PostgresStore::connect(&only_first).await.unwrap_err();
    assert_eq!(reason(&error), Some(UnavailableReason::ReadOnly), "{error}");
    assert!(error.to_string().contains("no server of the address accepts changes"), "{error}");
}

fn first_page() -> everbell_core::store::PageRequest {
    everbell_core::store::PageRequest { limit: 10, after: None }
}

#[tokio::test]
async fn who_meets_a_lock_is_told_so_in_time() {
    let database = TestDatabase::create().await;
    let store = PostgresStore::connect(database.url()).await.unwrap();
    create(&store, "one", "0 * * * *").await;
    let mut other = PgConnection::connect(database.url()).await.unwrap();
    let mut tx = other.begin().await.unwrap();
    tx.execute("lock table everbell.timers in share mode").await.unwrap();
    let new = job("two", "0 * * * *");
    let error = store.create_job(&new, &audit(2)).await.unwrap_err();
    assert_eq!(reason(&error), Some(UnavailableReason::Locked), "{error}");
    tx.rollback().await.unwrap();
    store.create_job(&new, &audit(2)).await.unwrap();
}

#[tokio::test]
async fn one_budget_is_for_all_verbs_of_a_request() {
    let database = TestDatabase::create().await;
    let proxy = Proxy::start(database.url()).await;
    let store = PostgresStore::connect(proxy.url()).await.unwrap();
    while !store.status().await.unwrap().notes.is_empty() {
        tokio::task::yield_now().await;
    }
    proxy.silence_after(0);
    let budget = Duration::from_secs(2);
    let began = Instant::now();
    let verbs = async {
        let read = store.counts(at("01:00:00")).await.unwrap_err();
        (read, store.create_job(&job("one", "0 * * * *"), &audit(1)).await.unwrap_err())
    };
    let (read, write) = with_deadline(began + budget, verbs).await;
    // Each of them alone would have 10 s.
    assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
    let Some(UnavailableReason::TimedOut(after)) = reason(&read) else { panic!("{read:?}") };
    assert!(after >= Duration::from_millis(1_900) && after < Duration::from_secs(9), "{after:?}");
    assert!(matches!(reason(&write), Some(UnavailableReason::TimedOut(_))), "{write}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_instance_has_six_connections_at_most() {
    let database = TestDatabase::create().await;
    let store = std::sync::Arc::new(PostgresStore::connect(database.url()).await.unwrap());
    create(&*store, "one", "0 * * * *").await;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let store = std::sync::Arc::clone(&store);
        calls.spawn(async move {
            store.counts(at("01:00:00")).await.unwrap();
            plan_due(&*store, at("01:00:00"), 10).await.unwrap();
        });
    }
    while let Some(call) = calls.join_next().await {
        call.unwrap();
    }
    let mut other = PgConnection::connect(database.url()).await.unwrap();
    let sql = "select pid from pg_stat_activity where datname = current_database() and application_name = 'everbell'";
    let pids: BTreeSet<i32> = sqlx::query_scalar(sql).fetch_all(&mut other).await.unwrap().into_iter().collect();
    assert!((2..=6).contains(&pids.len()), "{pids:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_without_connections_is_shared_and_named() {
    let database = TestDatabase::create().await;
    drop(PostgresStore::connect(database.url()).await.unwrap());
    let role = format!("small_{}", database.name());
    // Four: one listens, one is for the loops, and two are shared by everybody else.
    execute(
        database.url(),
        format!(
            "create role {role} login connection limit 4; grant usage on schema everbell to {role};
             grant all on all tables in schema everbell to {role}"
        ),
    )
    .await;
    let url = database.url().replace("postgres@localhost", &format!("{role}@localhost"));
    let mut options = ConnectOptions::default();
    options.max_connections = Some(12);
    let store = std::sync::Arc::new(PostgresStore::connect_with(&url, &options).await.unwrap());
    while !store.status().await.unwrap().notes.is_empty() {
        tokio::task::yield_now().await;
    }
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..30 {
        let store = std::sync::Arc::clone(&store);
        calls.spawn(async move {
            let mut refused = None;
            for _ in 0..3 {
                refused = store.counts(at("01:00:00")).await.err().or(refused);
            }
            refused
        });
    }
    while let Some(call) = calls.join_next().await {
        let refused = call.unwrap();
        assert!(refused.is_none(), "those that there are serve everybody: {refused:?}");
    }
    let notes = store.status().await.unwrap().notes;
    assert!(notes.iter().any(|note| note.contains("refuses some now: raise max_connections")), "{notes:?}");
    drop(store);
    execute(database.url(), format!("drop owned by {role}; drop role {role}")).await;
}
