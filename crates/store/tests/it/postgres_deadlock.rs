//! Two who record the same runs may wait for each other. The one that the server sends away records again. Who keeps
//! what runs print never waits.

use everbell_core::OutputSoFar;
use everbell_core::store::{Recorded, RunStore, StoreError};
use everbell_store::postgres::PostgresStore;
use everbell_store::testing::TestDatabase;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::sqlite_world::{at, create, finish, plan_due, start};

/// Sends away whoever ends runs, so many times, as the server does with one of two who wait for each other. A sequence
/// counts, because it forgets nothing when a transaction is undone.
async fn send_away(database: &TestDatabase, times: u32) {
    let sql = format!(
        "create sequence ends;
         create function send_away() returns trigger language plpgsql as $$
         begin
           if nextval('ends') <= {times} then
             raise exception 'deadlock detected' using errcode = 'deadlock_detected';
           end if;
           return null;
         end $$;
         create trigger send_away before delete on everbell.active_runs execute function send_away()"
    );
    let mut connection = PgConnection::connect(database.url()).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
}

#[tokio::test]
async fn outcomes_are_recorded_again_after_a_deadlock() {
    let database = TestDatabase::create().await;
    let store = PostgresStore::connect(database.url()).await.unwrap();
    create(&store, "one", "0 * * * *").await;
    create(&store, "two", "0 * * * *").await;
    plan_due(&store, at("01:00:00"), 10).await.unwrap();
    let claims = start(&store, 1, at("01:00:00"), 10).await.unwrap();
    assert_eq!(claims.len(), 2);
    send_away(&database, 4).await;
    let recorded = finish(&store, &claims, at("01:00:01")).await.unwrap();
    assert_eq!(recorded, vec![Recorded::Applied { consecutive_failures: 0 }; 2]);
}

#[tokio::test]
async fn a_deadlock_that_comes_each_time_is_told_and_nothing_was_recorded() {
    let database = TestDatabase::create().await;
    let store = PostgresStore::connect(database.url()).await.unwrap();
    create(&store, "one", "0 * * * *").await;
    plan_due(&store, at("01:00:00"), 10).await.unwrap();
    let claims = start(&store, 1, at("01:00:00"), 10).await.unwrap();
    send_away(&database, 5).await;
    let refused = finish(&store, &claims, at("01:00:01")).await.unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable { maybe_done: false, .. }), "{refused:?}");
    assert!(refused.to_string().contains("try again"), "{refused}");
    let recorded = finish(&store, &claims, at("01:00:02")).await.unwrap();
    assert_eq!(recorded, [Recorded::Applied { consecutive_failures: 0 }]);
}

#[tokio::test]
async fn what_somebody_is_writing_about_keeps_nobody_waiting() {
    let database = TestDatabase::create().await;
    let store = PostgresStore::connect(database.url()).await.unwrap();
    create(&store, "one", "0 * * * *").await;
    create(&store, "two", "0 * * * *").await;
    plan_due(&store, at("01:00:00"), 10).await.unwrap();
    let claims = start(&store, 1, at("01:00:00"), 10).await.unwrap();
    let (held, free) = (claims[0].run.id, claims[1].run.id);
    let mut other = PgConnection::connect(database.url()).await.unwrap();
    let mut tx = other.begin().await.unwrap();
    let lock =
        sqlx::query("update everbell.active_runs set lease_until = lease_until where run_id = $1").bind(held.as_uuid());
    lock.execute(&mut *tx).await.unwrap();
    let outputs = [held, free].map(|run| OutputSoFar::new(run, 1, "so far\n").unwrap());
    assert_eq!(store.save_outputs(&outputs).await.unwrap(), [free]);
    tx.rollback().await.unwrap();
    assert_eq!(store.save_outputs(&outputs[..1]).await.unwrap(), [held]);
}
