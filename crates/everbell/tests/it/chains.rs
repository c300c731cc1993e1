//! Jobs that start when others end.

use std::sync::{Arc, Mutex};

use everbell::testing::{GapReason, TestBell};
use everbell::{ChainOn, Everbell, ParentJob, ParentJobs, Run, RunError, RunStatus, Schedule};

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

#[tokio::test]
async fn a_handler_reads_the_runs_that_its_job_waited_for() {
    let seen: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
    let seen_by_report = Arc::clone(&seen);
    let report = move |run: Run| {
        let read = |before: &everbell::RunRecord| before.result.as_ref().map(ToString::to_string).unwrap_or_default();
        assert_eq!(run.upstream().map(|run| run.id), run.upstreams().first().map(|run| run.id));
        seen_by_report.lock().unwrap().push(run.upstreams().iter().map(read).collect());
        std::future::ready(())
    };
    let parents = ParentJobs::new(["orders", "prices"]).within(std::time::Duration::from_hours(2));
    // Declared before the jobs that it starts after.
    let builder = Everbell::builder()
        .target("orders", async |_: Run| Ok::<_, RunError>("orders"))
        .target("prices", async |run: Run| {
            if run.slot_utc().is_some_and(|slot| slot.as_second() % 7200 == 0) {
                Ok("prices")
            } else {
                Err(RunError::fail("broken", "no prices"))
            }
        })
        .target("report", report)
        .schedule(Schedule::after_all("report", parents).target("report"))
        .schedule(Schedule::cron("orders", "0 * * * *").target("orders"))
        .schedule(Schedule::cron("prices", "0 * * * *").target("prices"));
    let mut test = TestBell::start(builder, "2027-01-01T00:30:00Z").await;
    test.advance_to("2027-01-01T02:30:00Z").await;
    test.drain().await;
    let mut results = seen.lock().unwrap().clone();
    for both in &mut results {
        both.sort();
    }
    assert_eq!(results, [["\"orders\"", "\"prices\""]], "at two, when both have succeeded");
    test.advance_to("2027-01-01T03:30:00Z").await;
    // The wait for the run of one o'clock is over.
    test.assert_gaps("report").await.slots(1).because(GapReason::Incomplete);
}
