//! Jobs that start when others end.

use std::sync::{Arc, Mutex};

use everbell::testing::TestBell;
use everbell::{ChainOn, Everbell, ParentJob, Run, RunError, RunStatus, Schedule};

/// The run before each handler's, as it saw it: status and result.
type ParentRuns = Arc<Mutex<Vec<(String, Option<String>)>>>;

fn noting(seen: &ParentRuns) -> impl Fn(Run) -> std::future::Ready<()> + Clone + Send + Sync + 'static {
    let seen = Arc::clone(seen);
    move |run: Run| {
        let before = run.upstream().expect("a run before");
        let result = before.result.as_ref().map(ToString::to_string);
        seen.lock().unwrap().push((before.status.to_string(), result));
        std::future::ready(())
    }
}

#[tokio::test]
async fn a_handler_reads_the_run_that_started_it() {
    let (loaded, alarmed) = (ParentRuns::default(), ParentRuns::default());
    // Declared before the job that they start after.
    let builder = Everbell::builder()
        .target("extract", async |run: Run| {
            if run.slot_utc().is_some_and(|slot| slot.as_second() % 7200 == 0) {
                Ok(7)
            } else {
                Err(RunError::fail("broken", "no rows"))
            }
        })
        .target("load", noting(&loaded))
        .target("alarm", noting(&alarmed))
        .schedule(Schedule::after("alarm", ParentJob::new("extract").on(ChainOn::Failure)).target("alarm"))
        .schedule(Schedule::after("load", "extract").target("load"))
        .schedule(Schedule::cron("extract", "0 * * * *").target("extract"));
    let mut test = TestBell::start(builder, "2027-01-01T00:30:00Z").await;
    test.advance_to("2027-01-01T02:30:00Z").await;
    test.drain().await;
    assert_eq!(*loaded.lock().unwrap(), [("succeeded".to_owned(), Some("7".to_owned()))]);
    assert_eq!(*alarmed.lock().unwrap(), [("failed".to_owned(), None)]);
    test.assert_ran("load").await.times(1).with_status(RunStatus::Succeeded);
    let load = test.assert_ran("load").await.runs()[0].clone();
    let everbell::core::Trigger::After(before) = load.trigger else { panic!("{load:?}") };
    let extract = test.runs().get(before).await.unwrap();
    let started = test.runs().started_by(&extract).await.unwrap();
    assert_eq!(started.iter().map(|run| run.id).collect::<Vec<_>>(), [load.id]);
}
