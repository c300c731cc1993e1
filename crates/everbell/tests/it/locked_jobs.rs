//! A transaction of the application that holds a job locked.

use std::sync::Arc;
use std::time::Duration;

use everbell::{Everbell, RunError, RunId, RunStatus, Schedule, State};
use everbell_store::testing::TestDatabase;
use sqlx::{Connection, PgConnection};
use tokio::sync::Semaphore;

use crate::given::within;

/// Handlers wait for a permit, and fail.
#[derive(Clone)]
struct Permits(Arc<Semaphore>);

async fn fail(State(permits): State<Permits>) -> Result<(), RunError> {
    permits.0.acquire().await?.forget();
    Err(RunError::fail("no", "never"))
}

async fn until(bell: &Everbell, runs: &[RunId], status: RunStatus) {
    for run in runs {
        while bell.runs().get(*run).await.unwrap().status != status {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

#[tokio::test]
async fn outcomes_of_other_jobs_do_not_wait_for_a_job_that_is_locked() {
    let database = TestDatabase::create().await;
    let permits = Permits(Arc::new(Semaphore::new(0)));
    let daily = |key: &str| Schedule::cron(key, "@yearly").target("fail");
    let bell = Everbell::builder().database(database.url()).state(permits.clone()).target("fail", fail);
    let bell = bell.schedule(daily("a")).schedule(daily("b")).schedule(daily("c")).build().await.unwrap();
    let steps = async {
        let mut runs = Vec::new();
        for key in ["a", "b", "c"] {
            runs.push(bell.jobs().run_now(key).await.unwrap().run().id);
        }
        until(&bell, &runs, RunStatus::Running).await;
        let mut application = PgConnection::connect(database.url()).await.unwrap();
        let mut tx = application.begin().await.unwrap();
        let sql = "select revision from everbell.jobs where job_key = 'a' for update";
        sqlx::raw_sql(sql).execute(&mut *tx).await.unwrap();
        permits.0.add_permits(3);
        until(&bell, &runs[1..], RunStatus::Failed).await;
        // Further ones do not even wait for the lock once.
        let later = bell.jobs().run_now("b").await.unwrap().run().id;
        let locked = bell.jobs().run_now("c").await.unwrap().run().id;
        permits.0.add_permits(2);
        until(&bell, &[later, locked], RunStatus::Failed).await;
        assert_eq!(bell.runs().get(runs[0]).await.unwrap().status, RunStatus::Running, "its job is locked");
        tx.rollback().await.unwrap();
        until(&bell, &runs, RunStatus::Failed).await;
    };
    within(bell.run_until(steps)).await.unwrap();
    for (key, failures) in [("a", 1), ("b", 2), ("c", 2)] {
        assert_eq!(bell.jobs().get(key).await.unwrap().job.state.consecutive_failures, failures, "{key}");
    }
}
