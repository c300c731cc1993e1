//! An instance that has nothing to do hardly asks its database, and is woken all the same.

use std::sync::Arc;
use std::time::Duration;

use everbell::{Everbell, Schedule};
use everbell_store::testing::TestDatabase;
use sqlx::{Connection, PgConnection};
use tokio::sync::Notify;

/// How long statements are counted.
const WATCHED: Duration = Duration::from_secs(16);
/// The least seconds between two transactions of an idle instance, on average.
const SECONDS_EACH: u32 = 2;

/// The transactions of the database so far. Sessions report them with a delay, which is part of the allowance.
async fn transactions(connection: &mut PgConnection) -> i64 {
    let query = "select xact_commit + xact_rollback from pg_stat_database where datname = current_database()";
    sqlx::query_scalar(query).fetch_one(connection).await.unwrap()
}

#[tokio::test]
async fn an_idle_instance_hardly_asks_and_is_woken_at_once() {
    let database = TestDatabase::create().await;
    let started = Arc::new(Notify::new());
    let noted = Arc::clone(&started);
    let handler = move || {
        noted.notify_one();
        async {}
    };
    let bell = Everbell::builder().database(database.url()).target("noop", handler).build().await.unwrap();
    let jobs = bell.jobs();
    jobs.create(Schedule::cron("yearly", "0 0 1 1 *").target("noop")).await.unwrap();
    let mut connection = PgConnection::connect(database.url()).await.unwrap();
    bell.run_until(async {
        // Until the first looks are over, after which the loops know that there is nothing to do.
        tokio::time::sleep(Duration::from_secs(12)).await;
        let allowed = i64::from(WATCHED.as_secs() as u32 / SECONDS_EACH) + 6;
        let mut made = i64::MAX;
        // An idle session reports what it did up to ten seconds later, so only the second window is free of the start.
        for _ in 0..2 {
            if made > allowed {
                let before = transactions(&mut connection).await;
                tokio::time::sleep(WATCHED).await;
                made = transactions(&mut connection).await - before;
            }
        }
        assert!(made <= allowed, "{made} transactions in {WATCHED:?}, at most {allowed} are allowed");
        let other = Everbell::builder().database(database.url()).target("noop", || async {}).build().await.unwrap();
        other.jobs().run_now("yearly").await.unwrap();
        // Long before any loop would look by itself.
        tokio::time::timeout(Duration::from_secs(3), started.notified()).await.expect("a notification wakes it");
    })
    .await
    .unwrap();
}
