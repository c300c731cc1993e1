//! Instances in the background, lists as streams, and options.

use std::sync::Arc;
use std::time::Duration;

use everbell::client::TargetStatus;
use everbell::{
    EngineOptions, Event, Everbell, JobFilter, PageRequest, Run, RunFilter, RunStatus, Schedule, StoreError,
};
use everbell_store::memory::MemoryStore;

use crate::given::{Manual, Real, Stored, at, daily, heard, nothing, within};

/// Waits until it is asked to stop, and then succeeds... but what it returns after that does not count.
async fn patient(run: Run) {
    run.canceled().await;
}

fn app() -> everbell::Builder {
    let never = Schedule::cron("job", "0 0 1 1 *").target("nothing");
    let app = Everbell::builder().target("nothing", nothing).target("patient", patient).schedule(never);
    let app = app.schedule(Schedule::cron("patient", "0 0 1 1 *").target("patient"));
    let options = EngineOptions::default().shutdown_grace(Duration::from_millis(10));
    app.options(options).store(Arc::new(MemoryStore::new())).clock(Arc::new(Real::default()))
}

#[tokio::test]
async fn an_instance_runs_in_the_background_until_it_is_shut_down() {
    let bell = app().build().await.unwrap();
    let mut events = bell.events();
    let running = bell.start();
    let asked = bell.jobs().run_now("job").await.unwrap().run().id;
    heard(&mut events, |event| matches!(event, Event::Finished { .. })).await;
    within(running.shutdown()).await.unwrap();
    assert_eq!(bell.runs().get(asked).await.unwrap().status, RunStatus::Succeeded);
    assert!(bell.instances().await.unwrap().is_empty(), "it deregistered");
}

#[tokio::test]
async fn a_dropped_handle_shuts_the_instance_down_in_order() {
    let bell = app().build().await.unwrap();
    let mut events = bell.events();
    let running = bell.start();
    let asked = bell.jobs().run_now("patient").await.unwrap().run().id;
    heard(&mut events, |event| matches!(event, Event::Started { .. })).await;
    drop(running);
    heard(&mut events, |event| matches!(event, Event::Finished { .. })).await;
    let run = bell.runs().get(asked).await.unwrap();
    assert_eq!(run.failure.unwrap().code.as_str(), "shutdown", "it was asked to stop, and that is recorded");
}

#[tokio::test]
async fn the_end_of_an_instance_can_be_awaited_beside_other_things() {
    let bell = app().build().await.unwrap();
    let mut running = bell.start();
    let other = heard_round(&bell);
    tokio::select! {
        ended = running.ended() => panic!("it ended by itself: {ended:?}"),
        () = other => {}
    }
    within(running.shutdown()).await.unwrap();
}

async fn heard_round(bell: &Everbell) {
    let mut events = bell.events();
    bell.jobs().run_now("job").await.unwrap();
    heard(&mut events, |event| matches!(event, Event::Finished { .. })).await;
}

#[tokio::test]
async fn a_stream_reads_every_page() {
    let (stored, clock) = (Stored::memory(), Manual::new("12:00"));
    let schedules = (0..450).map(|n| daily(&format!("job-{n:03}")));
    let bell = at(&stored, &clock).target("nothing", nothing).schedules(schedules).build().await.unwrap();
    let mut rows = bell.jobs().stream(JobFilter::default());
    let mut keys = Vec::new();
    while let Some(row) = rows.next().await {
        keys.push(row.unwrap().key().to_string());
    }
    assert_eq!((keys.len(), keys[0].as_str(), keys[449].as_str()), (450, "job-000", "job-449"));
    assert!(rows.next().await.is_none() && rows.unreadable().is_empty());
    for key in &keys[..3] {
        bell.jobs().run_now(key).await.unwrap();
    }
    let runs = bell.runs().stream(RunFilter::default()).page_rows(2).all().await.unwrap();
    let newest_first: Vec<_> = runs.iter().map(|run| run.job_key.as_ref().unwrap().as_str()).collect();
    assert_eq!(newest_first, ["job-002", "job-001", "job-000"]);
    let page = bell.jobs().list(&JobFilter::default(), &PageRequest::default()).await.unwrap();
    assert_eq!(page.items.len(), 100);
}

#[tokio::test]
async fn options_are_set_by_name() {
    let second = Duration::from_secs(1);
    let options = EngineOptions::default().concurrency(8).poll(second).lease(12 * second, 3 * second).batch(7);
    let options = options.retention(None).audit_retention(Some(3_600 * second)).max_pending_runs(5).linger(second);
    let options = options.roles(["worker"]).host("here").shutdown_grace(second).cancel_grace(second);
    assert_eq!((options.concurrency, options.poll, options.batch, options.linger), (8, second, 7, second));
    assert_eq!((options.lease.duration, options.lease.heartbeat), (12 * second, 3 * second));
    assert_eq!((options.retention, options.audit_retention), (None, Some(3_600 * second)));
    assert_eq!(
        (options.max_pending_runs, options.roles.join(","), options.host.as_str()),
        (5, "worker".to_owned(), "here")
    );
    assert_eq!((options.shutdown_grace, options.cancel_grace), (second, second));
    assert_eq!(options.problems(), []);
}

async fn scheduling_needs_no_live_worker(stored: Stored) {
    let clock = Manual::new("12:00");
    let refused = |answer| match answer {
        Err(StoreError::Invalid(invalid)) => invalid.to_string(),
        other => panic!("this must be refused: {other:?}"),
    };
    // A program that serves nothing refuses what it does not know...
    let web = at(&stored, &clock).build().await.unwrap();
    assert_eq!(refused(web.jobs().create(daily("a")).await), "target: unknown target `nothing`; known: none");
    // ...and schedules what it knows, declared or not.
    let knowing = at(&stored, &clock).knows("nothing").knows("mail").schedule(daily("declared")).build().await.unwrap();
    assert_eq!(knowing.jobs().create(daily("a")).await.unwrap().version(), 1);
    let status = knowing.jobs().check_target("nothing").await.unwrap();
    assert_eq!(status, TargetStatus::Unserved, "no live instance serves it");
    let said = refused(knowing.jobs().create(Schedule::cron("b", "@daily").target("mial")).await);
    assert_eq!(said, "target: unknown target `mial`; known: `mail`, `nothing`");
    // A target that a job has is known to every program.
    assert_eq!(web.jobs().create(daily("c")).await.unwrap().version(), 1);
    let worker = at(&stored, &clock).target("nothing", nothing).build().await.unwrap();
    assert_eq!(worker.jobs().check_target("nothing").await.unwrap(), TargetStatus::Served);
    let bad = at(&stored, &clock).knows(" ").build().await.unwrap_err();
    assert_eq!(bad.to_string(), "target ` `: must not begin or end with white space");
}

crate::given::on_every_store!(scheduling_needs_no_live_worker);

/// With its first poll it takes the only connection that writes, which the engine needs to begin.
#[tokio::test]
async fn a_shutdown_future_may_write_to_the_database_before_the_engine_has_begun() {
    let bell = Everbell::builder().database("sqlite::memory:").target("nothing", nothing).build().await.unwrap();
    let steps = async {
        bell.jobs().enqueue("nothing", &()).await.unwrap();
    };
    within(bell.run_until(steps)).await.unwrap();
}
