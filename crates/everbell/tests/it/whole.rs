//! A whole program: schedules fire, handlers run, and everything ends in order.

use std::sync::Arc;
use std::time::Duration;

use everbell::core::store::LeaseTerms;
use everbell::{EngineOptions, Event, Everbell, Payload, Run, RunError, RunFilter, RunStatus, Schedule, TargetOptions};

use crate::given::{Real, Stored, heard, page, within};

async fn double(Payload(number): Payload<u32>) -> Result<u32, RunError> {
    number.checked_mul(2).ok_or_else(|| RunError::fail("too_large", number).fatal())
}

async fn tick(run: Run) {
    run.progress(1.0, "ticked");
}

fn options() -> EngineOptions {
    let mut options = EngineOptions::default();
    options.poll = Duration::from_millis(500);
    options.lease = LeaseTerms { duration: Duration::from_secs(6), heartbeat: Duration::from_secs(2) };
    options.shutdown_grace = Duration::from_secs(5);
    options
}

async fn whole(stored: Stored, in_memory: bool) {
    let mut builder = Everbell::builder()
        .store(Arc::clone(&stored.store))
        .options(options())
        .target("double", double)
        .target_with("tick", tick, TargetOptions::default().concurrency(2).timeout(Duration::from_secs(10)))
        .schedule(Schedule::every("ticking", Duration::from_secs(1)).target("tick"))
        .schedule(Schedule::cron("doubling", "0 0 1 1 *").target("double").payload(21));
    if in_memory {
        builder = builder.clock(Arc::new(Real::default()));
    }
    let bell = builder.build().await.unwrap();
    let (mut events, watching) = (bell.events(), bell.clone());
    let asked = bell.jobs().by("ana").run_now("doubling").await.unwrap().run().id;
    let story = async {
        heard(&mut events, |event| matches!(event, Event::Finished { run, .. } if run.id == asked)).await;
        let done = watching.runs().get(asked).await.unwrap();
        assert_eq!((done.status, done.result.unwrap().as_str()), (RunStatus::Succeeded, "42"));

        for _ in 0..2 {
            heard(&mut events, |event| matches!(event, Event::Fired { job, .. } if job.key.as_str() == "ticking"))
                .await;
            let ticked = |event: &Event| matches!(event, Event::Finished { run, .. } if run.target.as_str() == "tick");
            heard(&mut events, ticked).await;
        }
        // It has been heard of by now, so a target can be tried.
        let tried = watching.runs().try_target("double", u32::MAX).await.unwrap().id;
        let failed = heard(&mut events, |event| matches!(event, Event::Finished { run, .. } if run.id == tried)).await;
        assert!(
            matches!(&*failed, Event::Finished { code: Some(code), .. } if code.as_str() == "too_large"),
            "{failed:?}"
        );
        assert!(watching.targets().await.unwrap().unserved.is_empty());
    };
    within(bell.run_until(story)).await.unwrap();

    let ticks = RunFilter { job_key: Some(everbell::JobKey::new("ticking").unwrap()), ..RunFilter::default() };
    let ticks = bell.runs().list(&ticks, &page()).await.unwrap().items;
    assert!(ticks.len() >= 2, "{ticks:?}");
    assert!(ticks.iter().all(|run| run.status.is_terminal() || run.status == RunStatus::Pending), "{ticks:?}");

    // It may be started again.
    let mut events = bell.events();
    let again = async { drop(heard(&mut events, |event| matches!(event, Event::Finished { .. })).await) };
    within(bell.run_until(again)).await.unwrap();
}

#[tokio::test]
async fn a_program_in_memory() {
    whole(Stored::memory(), true).await;
}

#[tokio::test]
async fn a_program_on_sqlite() {
    whole(Stored::sqlite().await, false).await;
}

#[tokio::test]
async fn a_program_on_postgres() {
    whole(Stored::postgres().await, false).await;
}
