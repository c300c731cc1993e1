//! Jobs that are enqueued in a transaction of the application.

use std::time::Duration;

use everbell::client::{EnqueueOutcome, Enqueued};
use everbell::{AppConnection, Event, Everbell, JobKey, TraceContext};

use crate::given::{heard, trail};
use crate::transactions::{App, Pool};

fn trace() -> TraceContext {
    TraceContext::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", None).unwrap()
}

/// Keeps, replaces and refuses within the transaction, which stays usable.
async fn enqueue_one<C: AppConnection>(bell: &Everbell, tx: &mut C) -> Enqueued {
    let later = bell.now() + Duration::from_hours(1);
    let request = || bell.jobs().enqueue("double", &3_u32).key("one");
    let first = request().at(later).in_tx(tx).await.unwrap();
    assert_eq!((first.outcome, first.job.version()), (EnqueueOutcome::Created, 1));
    let refused = request().in_tx(tx).await.unwrap_err();
    assert!(refused.is_conflict(), "{refused}");
    let kept = request().keep().in_tx(tx).await.unwrap();
    assert_eq!((kept.outcome, kept.job.version()), (EnqueueOutcome::Kept, 1));
    let refused = bell.jobs().enqueue("double", "text").in_tx(tx).await.unwrap_err();
    assert!(refused.to_string().contains("cannot read the payload"), "{refused}");
    let replaced = request().replace().trace_context(trace()).in_tx(tx).await.unwrap();
    assert_eq!((replaced.outcome, replaced.job.version()), (EnqueueOutcome::Replaced, 2));
    replaced
}

/// Several at once, within the transaction. A refusal leaves it usable.
async fn enqueue_several<C: AppConnection>(bell: &Everbell, tx: &mut C) -> Vec<JobKey> {
    let refused = bell.jobs().enqueue_many("double", ["text"]).in_tx(tx).await.unwrap_err();
    assert!(refused.to_string().contains("cannot read the payload"), "{refused}");
    assert_eq!(bell.jobs().enqueue_many("double", Vec::<u32>::new()).in_tx(tx).await.unwrap(), []);
    let keys = bell.jobs().enqueue_many("double", 1..=3_u32).in_tx(tx).await.unwrap();
    assert!(keys.len() == 3 && keys.is_sorted(), "{keys:?}");
    assert!(bell.jobs().get(&keys[0]).await.is_err(), "nobody else sees it before the commit");
    keys
}

async fn check_several(app: &App) {
    let bell = &app.bell;
    let (mut events, running) = (bell.events(), bell.start());
    let (given_up, kept) = match &app.pool {
        Pool::Postgres(pool) => {
            let mut tx = pool.begin().await.unwrap();
            let given_up = enqueue_several(bell, &mut tx).await;
            tx.rollback().await.unwrap();
            let mut tx = pool.begin().await.unwrap();
            let kept = enqueue_several(bell, &mut tx).await;
            tx.commit().await.unwrap();
            (given_up, kept)
        }
        Pool::Sqlite(pool) => {
            let mut tx = pool.begin_with("begin immediate").await.unwrap();
            let given_up = enqueue_several(bell, &mut tx).await;
            tx.rollback().await.unwrap();
            let mut tx = pool.begin_with("begin immediate").await.unwrap();
            let kept = enqueue_several(bell, &mut tx).await;
            tx.commit().await.unwrap();
            (given_up, kept)
        }
    };
    let mut left = kept;
    while !left.is_empty() {
        let event = heard(&mut events, |event| matches!(event, Event::Finished { .. })).await;
        if let Event::Finished { run, .. } = &*event {
            left.retain(|key| run.job.as_ref() != Some(key));
        }
    }
    for key in &given_up {
        assert!(bell.jobs().get(key).await.is_err(), "{key} was rolled back");
    }
    let trail = trail(&**bell.store()).await;
    let own: Vec<&String> = trail.iter().filter(|line| line.contains("job.enqueue_many")).collect();
    assert!(own.len() == 1 && own[0].contains(r#""jobs":3"#), "{trail:?}");
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn many_jobs_are_enqueued_with_the_commit_on_postgresql() {
    Box::pin(check_several(&App::postgres().await)).await;
}

#[tokio::test]
async fn many_jobs_are_enqueued_with_the_commit_on_sqlite() {
    Box::pin(check_several(&App::sqlite().await)).await;
}

async fn check(app: &App) {
    let bell = &app.bell;
    let (mut events, running) = (bell.events(), bell.start());
    let (given_up, kept) = match &app.pool {
        Pool::Postgres(pool) => {
            let mut tx = pool.begin().await.unwrap();
            let given_up = bell.jobs().enqueue("double", &4_u32).in_tx(&mut tx).await.unwrap();
            tx.rollback().await.unwrap();
            let mut tx = pool.begin().await.unwrap();
            let kept = enqueue_one(bell, &mut tx).await;
            tx.commit().await.unwrap();
            (given_up, kept)
        }
        Pool::Sqlite(pool) => {
            let mut tx = pool.begin().await.unwrap();
            let given_up = bell.jobs().enqueue("double", &4_u32).in_tx(&mut tx).await.unwrap();
            tx.rollback().await.unwrap();
            let mut tx = pool.begin().await.unwrap();
            let kept = enqueue_one(bell, &mut tx).await;
            tx.commit().await.unwrap();
            (given_up, kept)
        }
    };
    heard(&mut events, |event| matches!(event, Event::Finished { run, .. } if run.job.as_ref() == Some(kept.key())))
        .await;
    let ran = bell.jobs().get(kept.key()).await.unwrap().last_run.unwrap();
    assert_eq!(ran.trace_context, Some(trace()), "it continues the trace of the transaction");
    assert!(bell.jobs().get(given_up.key()).await.is_err(), "it was rolled back");
    let trail = trail(&**bell.store()).await;
    let own: Vec<&String> = trail.iter().filter(|line| line.contains(" job:one ")).collect();
    assert!(own.len() == 2 && own.iter().any(|line| line.contains("job.enqueue")), "{trail:?}");
    running.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_job_is_enqueued_with_the_commit_on_postgresql() {
    Box::pin(check(&App::postgres().await)).await;
}

#[tokio::test]
async fn a_job_is_enqueued_with_the_commit_on_sqlite() {
    Box::pin(check(&App::sqlite().await)).await;
}
