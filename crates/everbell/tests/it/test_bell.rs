//! `everbell::testing`, as a user of the library sees it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use everbell::testing::TestBell;
use everbell::{Backoff, Builder, CatchUp, Everbell, Payload, Run, RunError, RunStatus, Schedule, State};

#[derive(Clone, Default)]
struct Mails(Arc<AtomicU32>);

async fn send(Payload(count): Payload<u32>, State(mails): State<Mails>) -> Result<u32, RunError> {
    if count == 0 {
        return Err(RunError::fail("no_recipients", "nobody to write to").fatal());
    }
    Ok(mails.0.fetch_add(count, Ordering::Relaxed) + count)
}

async fn hang(run: Run) {
    run.canceled().await;
}

async fn third_time(run: Run) -> Result<(), RunError> {
    if run.attempt() < 3 { Err(RunError::fail("not_yet", "later")) } else { Ok(()) }
}

async fn nothing() {}

fn app() -> Builder {
    Everbell::builder()
        .state(Mails::default())
        .target("send", send)
        .target("hang", hang)
        .target("third-time", third_time)
        .target("nothing", nothing)
}

#[tokio::test]
async fn local_time_stays_when_the_clocks_change() {
    let briefing = Schedule::cron("briefing", "0 8 * * *").tz("Europe/Paris").target("send").payload(3);
    let mut test = TestBell::start(app().schedule(briefing), "2027-03-27T00:00:00Z").await;
    test.advance_to("2027-03-29T12:00:00Z").await;
    let times = ["2027-03-27T07:00:00Z", "2027-03-28T06:00:00Z", "2027-03-29T06:00:00Z"];
    test.assert_ran("briefing").await.times(3).at(times).with_payload(&3).with_status(RunStatus::Succeeded);
    assert_eq!(test.next_fires("briefing", 1).await, ["2027-03-30T08:00:00+02:00[Europe/Paris]"]);
}

#[tokio::test]
async fn a_year_passes_at_once() {
    let daily = Schedule::cron("daily", "30 2 * * *").tz("America/New_York").target("nothing");
    let mut test = TestBell::start(app().schedule(daily), "2027-01-01T12:00:00Z").await;
    test.advance_to("2028-01-01T12:00:00Z").await;
    test.assert_ran("daily").await.times(365);
}

#[tokio::test]
async fn jobs_run_in_the_order_of_their_slots() {
    let minutely = Schedule::cron("b", "* * * * *").target("nothing");
    let other = Schedule::cron("a", "*/2 * * * *").target("nothing");
    let mut test = TestBell::start(app().schedule(minutely).schedule(other), "2027-01-01T00:00:00Z").await;
    let mut events = test.bell().events();
    test.advance_by(Duration::from_mins(4)).await;
    let mut fired = Vec::new();
    while let Some(event) = events.try_recv() {
        if let everbell::Event::Fired { job, slot, .. } = &*event {
            fired.push(format!("{}{}", job.key, slot.unwrap().strftime("%M")));
        }
    }
    assert_eq!(fired.len(), 6);
    let minutes: Vec<&str> = fired.iter().map(|text| &text[1..]).collect();
    assert_eq!(minutes, ["01", "02", "02", "03", "04", "04"]);
}

#[tokio::test]
async fn a_handler_can_be_called_alone() {
    let test = TestBell::start(app(), "2027-01-01T00:00:00Z").await;
    assert_eq!(test.perform::<u32>("send", 3).await, Ok(3));
    assert_eq!(test.perform::<u32>("send", 4).await, Ok(7));
    let error = test.perform::<u32>("send", 0).await.unwrap_err();
    assert_eq!((error.code().as_str(), error.is_retryable()), ("no_recipients", false));
    let error = test.perform::<u32>("send", "three").await.unwrap_err();
    assert_eq!(error.code().as_str(), "invalid_payload");
}

#[tokio::test]
async fn what_is_asked_for_runs_in_a_drain() {
    let job = Schedule::cron("mails", "0 0 1 1 *").target("send").payload(5);
    let mut test = TestBell::start(app().schedule(job), "2027-06-01T00:00:00Z").await;
    test.jobs().run_now("mails").await.unwrap();
    test.jobs().run_now("mails").payload(0).force().await.unwrap();
    let drained = test.drain().await;
    assert_eq!((drained.succeeded, drained.failed), (1, 1));
    assert_eq!(test.drain().await.succeeded, 0);
}

#[tokio::test]
async fn a_hanging_handler_meets_its_timeout_and_a_failing_one_its_retries() {
    let hangs = Schedule::cron("hangs", "0 * * * *").target("hang").timeout(Duration::from_secs(90));
    let backoff = Backoff { initial: Duration::from_secs(10), max: Duration::from_mins(1) };
    let retries = Schedule::cron("retries", "0 * * * *").target("third-time").retry(3, backoff);
    let mut test = TestBell::start(app().schedule(hangs).schedule(retries), "2027-01-01T00:30:00Z").await;
    test.advance_to("2027-01-01T01:30:00Z").await;
    let ran = test.assert_ran("hangs").await.times(1).failed_with("timeout");
    assert_eq!(ran.runs()[0].finished_at.unwrap().to_string(), "2027-01-01T01:01:30Z", "to the second");
    let ran = test.assert_ran("retries").await.times(1).with_status(RunStatus::Succeeded);
    assert_eq!(ran.runs()[0].finished_at.unwrap().to_string(), "2027-01-01T01:00:30Z");
    test.assert_settled().await;
}

#[tokio::test]
async fn a_crash_is_noticed_and_the_schedule_goes_on() {
    let job = Schedule::cron("mails", "*/10 * * * *").target("send").payload(1).catch_up(CatchUp::Once);
    let mut test = TestBell::start(app().schedule(job), "2027-01-01T00:00:00Z").await;
    test.crash_during("mails").await;
    test.advance_by(Duration::from_mins(2)).await;
    test.assert_settled().await;
    test.assert_ran("mails").await.times(1).failed_with("lost");
    test.advance_to("2027-01-01T00:20:00Z").await;
    let ran = test.assert_ran("mails").await.times(2);
    assert_eq!(ran.runs()[1].status, RunStatus::Succeeded);
}

#[tokio::test]
async fn a_pause_ends_at_its_time() {
    let job = Schedule::cron("mails", "0 * * * *").target("send").payload(1);
    let mut test = TestBell::start(app().schedule(job), "2027-01-01T00:30:00Z").await;
    let until = "2027-01-01T03:30:00Z".parse().unwrap();
    test.jobs().pause("mails", "the mail server is down").until(until).await.unwrap();
    test.advance_to("2027-01-01T05:30:00Z").await;
    test.assert_ran("mails").await.times(2).at(["2027-01-01T04:00:00Z", "2027-01-01T05:00:00Z"]);
}

#[tokio::test]
#[should_panic(expected = "job `mails` ran 1 time(s), not 2:\n  2027-01-01T01:00:00Z succeeded with 1")]
async fn a_wrong_expectation_shows_what_happened() {
    let job = Schedule::cron("mails", "0 * * * *").target("send").payload(1);
    let mut test = TestBell::start(app().schedule(job), "2027-01-01T00:30:00Z").await;
    test.advance_to("2027-01-01T01:30:00Z").await;
    test.assert_ran("mails").await.times(2);
}
