//! Handlers that get the bell that runs them.

use std::sync::Arc;
use std::time::Duration;

use everbell::client::Orgs;
use everbell::testing::TestBell;
use everbell::{EngineOptions, Event, Everbell, Jobs, Payload, Run, RunError, RunStatus, Runs, Schedule, State};
use everbell_store::memory::MemoryStore;

use crate::given::{Real, heard, nothing, within};

/// The first of a chain: asks for the second when it has succeeded.
async fn first(Payload(n): Payload<u64>, bell: Everbell, run: Run) -> Result<u64, RunError> {
    bell.jobs().by("first").run_now("second").payload(n + 1).await?;
    run.log(format!("at {}", bell.now()));
    Ok(n)
}

async fn second(Payload(n): Payload<u64>, jobs: Jobs, _: Runs, _: Orgs) -> Result<u64, RunError> {
    let key = format!("follow-up-{n}");
    jobs.create(Schedule::cron(key, "@daily").target("nothing")).await?;
    Ok(n)
}

fn app() -> everbell::Builder {
    let never = |key: &str, target: &str| Schedule::cron(key, "0 0 1 1 *").target(target).payload(1);
    let app = Everbell::builder().target("first", first).target("second", second).target("nothing", nothing);
    app.schedule(never("first", "first")).schedule(never("second", "second"))
}

#[tokio::test]
async fn a_handler_runs_and_creates_jobs_of_its_own_bell() {
    let mut test = TestBell::start(app(), "2027-06-01T00:00:00Z").await;
    test.jobs().run_now("first").payload(41).await.unwrap();
    test.drain().await;
    test.assert_ran("first").await.times(1).with_status(RunStatus::Succeeded);
    test.assert_ran("second").await.times(1).with_status(RunStatus::Succeeded).with_payload(&42);
    assert_eq!(test.jobs().get("follow-up-42").await.unwrap().version(), 1);
    let said: u64 = test.perform("second", 7).await.unwrap();
    assert_eq!(said, 7);
}

#[tokio::test]
async fn a_handler_that_holds_the_bell_neither_blocks_a_shutdown_nor_leaks() {
    async fn hold(bell: Everbell, run: Run, State(_kept): State<Arc<()>>) {
        run.canceled().await;
        drop(bell);
    }
    let kept = Arc::new(());
    let options = EngineOptions::default().shutdown_grace(Duration::ZERO).cancel_grace(Duration::from_secs(30));
    let app = Everbell::builder().state(Arc::clone(&kept)).target("hold", hold).options(options);
    let app = app.schedule(Schedule::cron("hold", "0 0 1 1 *").target("hold"));
    let app = app.store(Arc::new(MemoryStore::new())).clock(Arc::new(Real::default()));
    let bell = app.build().await.unwrap();
    let mut events = bell.events();
    bell.jobs().run_now("hold").await.unwrap();
    let started = async { drop(heard(&mut events, |event| matches!(event, Event::Started { .. })).await) };
    within(bell.run_until(started)).await.unwrap();
    drop((bell, events));
    assert_eq!(Arc::strong_count(&kept), 1, "nothing keeps the bell and its handlers alive");
}
