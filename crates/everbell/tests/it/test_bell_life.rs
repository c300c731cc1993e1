//! `TestBell`: outages, slow handlers, skips and gaps, single handlers, and a real database.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use everbell::testing::{GapReason, RunSetup, TestBell};
use everbell::{
    Backoff, Builder, CatchUp, EngineOptions, Everbell, OnLost, Overlap, Payload, Run, RunError, RunStatus, Schedule,
    SqliteStore,
};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};

use crate::given::nothing;

async fn hang(run: Run) {
    run.canceled().await;
}

fn app() -> Builder {
    Everbell::builder().target("nothing", nothing).target("hang", hang)
}

fn hourly(key: &str) -> Schedule {
    Schedule::cron(key, "0 * * * *").target("nothing")
}

async fn start(schedule: Schedule) -> TestBell {
    TestBell::start(app().schedule(schedule), "2027-01-01T00:30:00Z").await
}

#[tokio::test]
#[should_panic(expected = "there is no job `nihgtly`; known: `nightly`, `hourly`")]
async fn a_misspelled_key_fails_the_test() {
    let app = app().schedule(hourly("hourly")).schedule(hourly("nightly"));
    let test = TestBell::start(app, "2027-01-01T00:30:00Z").await;
    test.assert_ran("nihgtly").await.times(0);
}

#[tokio::test]
#[should_panic(expected = "there is no job `a`; known: none")]
async fn a_misspelled_key_fails_a_question_for_gaps_too() {
    let test = TestBell::start(app(), "2027-01-01T00:30:00Z").await;
    test.assert_gaps("a").await.slots(0);
}

#[tokio::test]
async fn missed_slots_are_folded_caught_up_or_left_out_after_an_outage() {
    let app = app()
        .schedule(hourly("once").catch_up(CatchUp::Once))
        .schedule(hourly("all").catch_up(CatchUp::All))
        .schedule(hourly("skip").catch_up(CatchUp::None));
    let mut test = TestBell::start(app, "2027-01-01T00:30:00Z").await;
    test.down_for(Duration::from_hours(3)).await;
    assert_eq!(test.now().to_string(), "2027-01-01T03:30:00Z");
    test.assert_settled().await;
    let ran = test.assert_ran("once").await.times(1).at(["2027-01-01T03:00:00Z"]);
    assert!(ran.runs()[0].catch_up && ran.runs()[0].folded == 2);
    test.assert_gaps("once").await.slots(2).because(GapReason::Coalesced);
    test.assert_ran("all").await.times(3).with_status(RunStatus::Succeeded);
    test.assert_gaps("all").await.slots(0);
    test.assert_ran("skip").await.times(0);
    test.assert_gaps("skip").await.slots(3).because(GapReason::Missed);
}

#[tokio::test]
async fn a_slot_within_its_grace_is_on_time_and_a_later_one_is_not() {
    for (away, caught_up) in [(60, false), (62, true)] {
        let job = hourly("job").grace(Duration::from_mins(31));
        let mut test = start(job).await;
        test.down_for(Duration::from_mins(away)).await;
        let ran = test.assert_ran("job").await.times(1);
        assert_eq!(ran.runs()[0].catch_up, caught_up, "{away} minutes");
    }
}

#[tokio::test]
async fn a_crash_may_be_followed_by_an_outage() {
    let mut test = start(hourly("job").catch_up(CatchUp::None)).await;
    test.crash_during("job").await;
    test.down_for(Duration::from_hours(2)).await;
    // After its start, an instance gives every other one the time for a heartbeat before it ends their runs.
    test.advance_by(Duration::from_mins(2)).await;
    test.assert_settled().await;
    let ran = test.assert_ran("job").await;
    assert_eq!(ran.runs()[0].failure.as_ref().map(|failure| failure.code.as_str()), Some("lost"));
    test.advance_to("2027-01-01T04:30:00Z").await;
    assert_eq!(test.assert_ran("job").await.runs().last().unwrap().status, RunStatus::Succeeded);
}

#[tokio::test]
async fn a_crash_comes_while_the_handler_works() {
    let steps: Arc<Mutex<Vec<&str>>> = Arc::default();
    let seen = Arc::clone(&steps);
    let handler = move || {
        let seen = Arc::clone(&seen);
        async move {
            seen.lock().unwrap().push("begun");
            tokio::task::yield_now().await;
            seen.lock().unwrap().push("charged the card");
            std::future::pending::<()>().await;
        }
    };
    let job = Schedule::cron("job", "0 * * * *").target("work").timeout(Duration::from_mins(2));
    let mut test = TestBell::start(app().target("work", handler).schedule(job), "2027-01-01T00:30:00Z").await;
    test.crash_during("job").await;
    assert_eq!(*steps.lock().unwrap(), ["begun", "charged the card"]);
    test.advance_by(Duration::from_mins(2)).await;
    test.assert_ran("job").await.times(1).failed_with("lost");
    assert_eq!(steps.lock().unwrap().len(), 2, "it ended with its process");
}

#[tokio::test]
async fn a_restart_lets_handlers_finish_and_stops_those_that_do_not() {
    let options = EngineOptions::default().shutdown_grace(Duration::from_secs(20)).cancel_grace(Duration::from_secs(5));
    let job = Schedule::cron("hang", "0 * * * *").target("hang").timeout(Duration::from_hours(2));
    let mut test = TestBell::start(app().options(options).schedule(job), "2027-01-01T00:30:00Z").await;
    test.restart().await;
    assert_eq!(test.now().to_string(), "2027-01-01T00:30:00Z", "nothing had to be waited for");
    test.advance_to("2027-01-01T01:10:00Z").await;
    test.assert_ran("hang").await.times(1).with_status(RunStatus::Running);
    test.restart().await;
    assert_eq!(test.now().to_string(), "2027-01-01T01:10:20Z", "the grace passed");
    test.assert_ran("hang").await.failed_with("shutdown");
    test.advance_to("2027-01-01T02:00:00Z").await;
    test.assert_ran("hang").await.times(2);
}

#[tokio::test]
async fn a_restart_hands_over_a_run_that_may_be_retried() {
    let job = Schedule::cron("hang", "0 * * * *").target("hang").timeout(Duration::from_hours(2));
    let job = job.retry(2, Backoff::default()).on_lost(OnLost::Retry);
    let mut test = TestBell::start(app().schedule(job), "2027-01-01T00:30:00Z").await;
    test.advance_to("2027-01-01T01:10:00Z").await;
    test.restart().await;
    let ran = test.assert_ran("hang").await;
    let run = &ran.runs()[0];
    assert_eq!((run.status, run.attempt), (RunStatus::Running, 2), "the next instance has it");
    let earlier: Vec<_> = run.earlier_attempts.iter().map(|e| (e.attempt, e.code.as_str(), e.counts)).collect();
    assert_eq!(earlier, [(1, "shutdown", false)]);
}

#[tokio::test]
async fn time_waits_for_a_handler_that_takes_real_time() {
    async fn slow() {
        // More turns than the clock gives to tasks that are ready: it has to wait for the end.
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
    }
    let job = Schedule::cron("slow", "* * * * *").target("slow");
    let mut test =
        TestBell::start(Everbell::builder().target("slow", slow).schedule(job), "2027-01-01T00:00:00Z").await;
    test.advance_by(Duration::from_mins(2)).await;
    test.assert_ran("slow").await.times(2).with_status(RunStatus::Succeeded);
    test.assert_skipped("slow").await.times(0);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_sleeps_takes_no_time_under_a_paused_clock() {
    async fn slow() {
        tokio::time::sleep(Duration::from_mins(5)).await;
    }
    let job = Schedule::cron("slow", "* * * * *").target("slow");
    let mut test =
        TestBell::start(Everbell::builder().target("slow", slow).schedule(job), "2027-01-01T00:00:00Z").await;
    test.advance_by(Duration::from_mins(10)).await;
    test.assert_ran("slow").await.times(10).with_status(RunStatus::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_waits_for_a_socket_gets_real_time_under_a_paused_clock() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut connection, _) = listener.accept().unwrap();
            // Real time, in which nothing happens that Tokio could know of.
            std::thread::sleep(Duration::from_millis(100));
            std::io::Write::write_all(&mut connection, b"x").unwrap();
        }
    });
    let ask = move || async move {
        let mut connection = tokio::net::TcpStream::connect(address).await?;
        tokio::io::AsyncReadExt::read_u8(&mut connection).await
    };
    let job = Schedule::cron("ask", "* * * * *").target("ask");
    let mut test = TestBell::start(Everbell::builder().target("ask", ask).schedule(job), "2027-01-01T00:00:00Z").await;
    test.advance_by(Duration::from_mins(2)).await;
    test.assert_ran("ask").await.times(2).with_status(RunStatus::Succeeded);
    test.assert_skipped("ask").await.times(0);
    server.join().unwrap();
}

#[tokio::test]
async fn a_handler_of_the_test_clock_is_not_waited_for_longer_than_asked() {
    async fn naps(bell: Everbell) {
        bell.clock().sleep(Duration::from_secs(90)).await;
    }
    let job = Schedule::cron("naps", "* * * * *").target("naps").overlap(Overlap::Skip);
    let mut test =
        TestBell::start(Everbell::builder().target("naps", naps).schedule(job), "2027-01-01T00:00:00Z").await;
    test.handler_timeout(Duration::from_millis(50));
    test.advance_by(Duration::from_mins(4)).await;
    test.assert_ran("naps").await.times(2).at(["2027-01-01T00:01:00Z", "2027-01-01T00:03:00Z"]);
    let skipped = test.assert_skipped("naps").await.times(2).because("overlap");
    skipped.at(["2027-01-01T00:02:00Z", "2027-01-01T00:04:00Z"]);
}

#[tokio::test]
async fn a_short_wait_for_a_handler_is_as_short_as_asked() {
    async fn slow() {
        tokio::time::sleep(Duration::from_millis(900)).await;
    }
    let job = Schedule::cron("slow", "0 * * * *").target("slow");
    let mut test =
        TestBell::start(Everbell::builder().target("slow", slow).schedule(job), "2027-01-01T00:30:00Z").await;
    test.handler_timeout(Duration::from_millis(20));
    test.advance_to("2027-01-01T01:00:00Z").await;
    test.assert_ran("slow").await.times(1).with_status(RunStatus::Running);
}

#[tokio::test]
async fn only_a_time_without_an_instance_is_an_outage() {
    let mut test = start(hourly("job")).await;
    let outages = async |test: &TestBell| {
        let outages = test.bell().reports().outages(None, None).await.unwrap();
        let absences = outages.into_iter().map(|outage| outage.absence);
        absences.map(|absence| (absence.from.to_string(), absence.until.to_string())).collect::<Vec<_>>()
    };
    test.advance_by(Duration::from_hours(5)).await;
    test.restart().await;
    test.advance_by(Duration::from_hours(5)).await;
    assert_eq!(outages(&test).await, []);
    test.down_for(Duration::from_hours(2)).await;
    let down = ("2027-01-01T10:30:00Z".to_owned(), "2027-01-01T12:30:00Z".to_owned());
    assert_eq!(outages(&test).await, std::slice::from_ref(&down));
    test.advance_by(Duration::from_hours(3)).await;
    test.crash();
    test.down_for(Duration::from_hours(1)).await;
    test.advance_by(Duration::from_hours(1)).await;
    let crashed = ("2027-01-01T15:30:00Z".to_owned(), "2027-01-01T16:30:00Z".to_owned());
    assert_eq!(outages(&test).await, [crashed, down]);
}

#[tokio::test]
#[should_panic(
    expected = "job `job` was skipped 1 time(s), not 2:\n  2027-01-01T01:00:00Z skipped operator: skipped by ana"
)]
async fn a_wrong_expectation_shows_what_was_skipped() {
    let mut test = start(hourly("job")).await;
    test.jobs().by("ana").skip_next("job", 1).await.unwrap();
    test.advance_to("2027-01-01T01:30:00Z").await;
    test.assert_skipped("job").await.times(1).because("operator").times(2);
}

#[tokio::test]
#[should_panic(
    expected = "job `job` has 1 slot(s) without a run, not 2:\n  2027-01-01T01:00:00Z to 2027-01-01T01:00:00Z: 1 slot(s), paused"
)]
async fn a_wrong_expectation_shows_the_gaps() {
    let mut test = start(hourly("job")).await;
    test.jobs().pause("job", "why not").await.unwrap();
    test.advance_to("2027-01-01T01:30:00Z").await;
    test.jobs().resume("job").await.unwrap();
    test.assert_gaps("job").await.slots(1).because(GapReason::Paused).slots(2);
}

#[tokio::test]
async fn a_handler_can_be_called_for_an_org_a_slot_a_job_and_an_attempt() {
    async fn facts(run: Run, Payload(n): Payload<u8>) -> Result<String, RunError> {
        let text = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        let (org, date) = (text(run.org().map(ToString::to_string)), text(run.local_date().map(|d| d.to_string())));
        let slot = text(run.slot_utc().map(|slot| slot.to_string()));
        let job = text(run.job_key().map(|key| format!("{key}@{}", run.job_version().unwrap_or_default())));
        Ok(format!("{n} {org} {date} {slot} {job} {}", run.attempt()))
    }
    let job = Schedule::cron("job", "0 9 * * *").target("facts").payload(1).per_org();
    let app = Everbell::builder().target("facts", facts).schedule(job);
    let test = TestBell::start(app, "2027-01-01T00:00:00Z").await;
    test.org("acme", "Pacific/Auckland").await;
    let perform = async |setup| test.perform_with::<String>("facts", 7, setup).await.unwrap();
    assert_eq!(perform(RunSetup::new()).await, "7 - - - - 1");
    let whole = RunSetup::new().org("acme").slot("2027-01-05T20:00:00Z").job("job").attempt(3);
    assert_eq!(perform(whole).await, "7 acme 2027-01-06 2027-01-05T20:00:00Z job@1 3");
    let unknown = RunSetup::new().org("new").slot("2027-01-05T20:00:00Z");
    assert_eq!(perform(unknown).await, "7 new 2027-01-05 2027-01-05T20:00:00Z - 1");
}

#[tokio::test]
async fn code_with_its_own_transactions_runs_on_sqlite() {
    let folder = std::env::temp_dir().join(format!("everbell-test-bell-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("test.db");
    let store = Arc::new(SqliteStore::open(&file).await.unwrap());
    let backoff = Backoff::default();
    let mut test =
        TestBell::start_on(Arc::clone(&store) as _, app().schedule(hourly("job")), "2027-01-01T00:30:00Z").await;
    let mut connection = SqliteConnectOptions::new().filename(&file).connect().await.unwrap();
    for (key, commit) in [("kept", true), ("given-up", false)] {
        let at = "2027-01-01T02:15:00Z".parse().unwrap();
        let reminder = Schedule::once(key, at).target("nothing").retry(2, backoff);
        let mut tx = connection.begin_with("begin immediate").await.unwrap();
        test.jobs().by("ana").create_in(&mut tx, &reminder).await.unwrap();
        if commit { tx.commit().await.unwrap() } else { tx.rollback().await.unwrap() }
    }
    test.advance_to("2027-01-01T03:30:00Z").await;
    test.assert_ran("kept").await.times(1).at(["2027-01-01T02:15:00Z"]).with_status(RunStatus::Succeeded);
    test.assert_ran("job").await.times(3);
    assert!(test.jobs().get("given-up").await.is_err());
    test.down_for(Duration::from_hours(2)).await;
    test.assert_gaps("job").await.slots(1).because(GapReason::Coalesced);
    drop((test, connection, store));
    std::fs::remove_dir_all(&folder).unwrap();
}

async fn count(calls: everbell::State<Arc<Mutex<Vec<u64>>>>, Payload(user): Payload<u64>) {
    calls.0.lock().unwrap().push(user);
}

/// A program that writes to the inbox with SQL is tested like one that calls the library.
#[tokio::test]
async fn requests_of_the_inbox_are_played() {
    let folder = crate::transactions::folder();
    let file = folder.join("test.db");
    let store = Arc::new(SqliteStore::open(&file).await.unwrap());
    let calls = Arc::<Mutex<Vec<u64>>>::default();
    let app = Everbell::builder().target("count", count).state(Arc::clone(&calls));
    let mut test = TestBell::start_on(store, app, "2027-01-01T00:00:00Z").await;
    let mut connection = SqliteConnectOptions::new().filename(&file).connect().await.unwrap();
    let insert = "insert into everbell_inbox (target, payload, run_at, key, cron) values ";
    let mut ask = async |values: &'static str| {
        let sql = sqlx::AssertSqlSafe(format!("{insert}{values}"));
        sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    };
    ask("('count', '1', null, null, null), ('count', '2', '2027-01-01T06:00:00Z', 'later', null)").await;
    ask("('count', '3', null, 'daily', '0 8 * * *'), ('count', '\"four\"', null, null, null)").await;
    test.drain().await;
    assert_eq!(*calls.lock().unwrap(), [1]);
    let refused = test.jobs().refused_requests(10).await.unwrap();
    assert!(refused.len() == 1 && refused[0].reason.contains("cannot read the payload"), "{refused:?}");
    test.advance_to("2027-01-02T12:00:00Z").await;
    assert_eq!(*calls.lock().unwrap(), [1, 2, 3, 3]);
    test.assert_ran("later").await.times(1).at(["2027-01-01T06:00:00Z"]);
    test.assert_ran("daily").await.times(2).at(["2027-01-01T08:00:00Z", "2027-01-02T08:00:00Z"]);
    ask("('count', '5', null, null, null)").await;
    test.restart().await;
    assert_eq!(calls.lock().unwrap().last(), Some(&5));
    std::fs::remove_dir_all(folder).unwrap();
}
