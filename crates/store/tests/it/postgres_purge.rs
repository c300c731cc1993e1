//! A purge that has to wait for others.

use std::time::Duration;

use everbell_core::change;
use everbell_core::plan::RunNow;
use everbell_core::store::{ClusterStore, JobRef, JobStore, PurgedJob, RunStore};
use everbell_core::{JobKey, RunId};
use everbell_store::postgres::PostgresStore;
use everbell_store::testing::TestDatabase;
use sqlx::{Connection, PgConnection};

use super::sqlite_world::{at, audit, create, start};

/// Waits until a session of this database waits for a lock.
async fn until_one_waits(connection: &mut PgConnection) {
    let sql = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    let waiting = async {
        while sqlx::query_scalar::<_, i64>(sql).fetch_one(&mut *connection).await.unwrap() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("the purge waits");
}

#[tokio::test]
async fn a_run_that_is_asked_for_while_a_purge_waits_goes_with_its_job() {
    let database = TestDatabase::create().await;
    let store = PostgresStore::connect(database.url()).await.unwrap();
    create(&store, "private", "0 * * * *").await;
    let mut connection = PgConnection::connect(database.url()).await.unwrap();
    // Without a timer, as a job for each org has none at first: the purge meets the other one at the job only.
    sqlx::raw_sql("delete from everbell.timers").execute(&mut connection).await.unwrap();

    let key = JobKey::new("private").unwrap();
    let mut application = PgConnection::connect(database.url()).await.unwrap();
    let mut tx = application.begin().await.unwrap();
    let request = RunNow {
        id: RunId::by_hand(at("00:10:00"), [7; 10]),
        actor: "ana",
        payload: None,
        overlap: None,
        trace_context: None,
    };
    let decide = |view: &change::JobView| change::run_now(view, &request, at("00:10:00"));
    store.change_job_in(&mut tx, &JobRef::Key(key.clone()), &decide, &audit(1)).await.unwrap();
    let commit = async {
        until_one_waits(&mut connection).await;
        tx.commit().await.unwrap();
    };
    let entry = audit(2);
    let (purged, ()) = tokio::join!(store.purge_job(&key, 100, PurgedJob::default(), &entry), commit);
    let purged = purged.unwrap();
    assert_eq!((purged.versions, purged.runs, purged.finished), (1, 1, true));
    assert!(store.get_run(request.id).await.is_err());
    assert_eq!(start(&store, 1, at("00:20:00"), 10).await.unwrap().len(), 0);
    assert_eq!(store.expired_leases(at("23:00:00"), 10).await.unwrap(), [], "a run at work without a job");
}
