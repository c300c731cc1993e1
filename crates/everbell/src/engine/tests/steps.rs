//! Effects of each step on jobs and runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use everbell_core::change;
use everbell_core::plan::{Missed, RunNow};
use everbell_core::store::{Canceled, ClusterStore, JobStore, RunStore};
use everbell_core::{Backoff, CatchUp, JobStatus, Overlap, Pause, RunId, RunStatus, Unschedulable};
use everbell_store::conformance::faults::Faulty;
use everbell_store::memory::FaultPoint;

use super::lab::{Lab, action, at, entry, error, job, ok, tail, with};
use crate::clock::Clock;
use crate::engine::{Engine, Step, Wait};
use crate::events::Event;
use crate::targets::TargetOptions;

#[tokio::test]
async fn without_schedules_nothing_happens_and_the_next_look_is_a_poll_away() {
    let mut lab = Lab::new();
    assert_eq!(lab.engine.planner.step().await.unwrap(), Wait::For(Duration::from_secs(5)));
    assert_eq!(lab.engine.claimer.step().await.unwrap(), Wait::For(Duration::from_secs(5)));
    assert_eq!(lab.engine.recorder.step().await.unwrap(), Wait::ForSignal);
    assert_eq!(lab.heard(), [""; 0]);
}

#[tokio::test]
async fn the_planner_sleeps_until_the_next_fire() {
    let mut lab = Lab::new();
    lab.create(job("soon", "*/3 * * * * *", "log")).await;
    assert_eq!(lab.engine.planner.step().await.unwrap(), Wait::For(Duration::from_secs(3)));
    lab.create(job("late", "0 12 * * *", "log")).await;
    lab.set("00:00:02");
    assert_eq!(lab.engine.planner.step().await.unwrap(), Wait::For(Duration::from_secs(1)));
}

#[tokio::test]
async fn a_slot_that_becomes_due_during_a_look_is_looked_for_at_once() {
    let mut lab = Lab::new();
    lab.create(job("hourly", "0 * * * *", "log")).await;
    let clock = Arc::clone(&lab.clock);
    let slow = move |_| {
        if clock.now() == at("00:59:59") {
            clock.set(at("01:00"));
        }
        None
    };
    lab.engine = lab.engine_on(Arc::new(Faulty::new(Arc::clone(&lab.store) as _, slow)));
    lab.engine.planner.step().await.unwrap();
    lab.set("00:59:59");
    assert_eq!(lab.engine.planner.step().await.unwrap(), Wait::For(Duration::ZERO));
    lab.engine.planner.step().await.unwrap();
    assert_eq!(lab.runs("hourly").await.len(), 1);
}

#[tokio::test]
async fn a_due_slot_runs_and_a_future_one_does_not() {
    let mut lab = Lab::new();
    lab.create(job("hourly", "0 * * * *", "log")).await;
    lab.create(job("noon", "0 12 * * *", "log")).await;
    lab.turn_at("00:59:59").await;
    assert_eq!(lab.runs("hourly").await, [""; 0]);
    lab.turn_at("01:00").await;
    assert_eq!(lab.runs("hourly").await, ["01:00:00 succeeded"]);
    assert_eq!(lab.runs("noon").await, [""; 0]);
    assert_eq!(lab.heard(), ["Fired", "Started", "Finished"]);
    lab.turn_at("01:00:10").await;
    assert_eq!(lab.log.lock().unwrap().as_slice(), ["log 01:00:00"], "and only once");
}

#[tokio::test]
async fn three_missed_hours_become_one_run() {
    let mut lab = Lab::new();
    lab.create(job("hourly", "0 * * * *", "log")).await;
    lab.turn_at("03:30").await;
    let runs = lab.records("hourly").await;
    assert_eq!(lab.runs("hourly").await, ["03:00:00 succeeded"]);
    assert!(runs[0].catch_up && runs[0].folded == 2);
    assert_eq!(lab.heard(), ["Fired", "Gap", "Started", "Finished"]);
    lab.turn_at("04:00").await;
    assert_eq!(lab.runs("hourly").await, ["03:00:00 succeeded", "04:00:00 succeeded"]);
}

#[tokio::test]
async fn every_missed_slot_runs_in_order_when_that_is_wanted() {
    let mut lab = Lab::new();
    lab.create(with(job("all", "0 * * * *", "log"), |values| values.catch_up = CatchUp::All)).await;
    lab.turn_at("03:30").await;
    assert_eq!(lab.log.lock().unwrap().as_slice(), ["log 01:00:00", "log 02:00:00", "log 03:00:00"]);
}

#[tokio::test]
async fn a_failure_a_panic_and_a_broken_schedule_stop_nobody_else() {
    let mut lab = Lab::new();
    let broken = Unschedulable {
        expression: Some("0 * * * *".to_owned()),
        timezone: "Mars/Olympus".to_owned(),
        reason: "no such zone".to_owned(),
        ..Unschedulable::default()
    };
    let mut errored = change::create(job("errored", "0 * * * *", "log"));
    Arc::make_mut(&mut errored.definition).spec = Err(broken);
    lab.store.create_job(&errored, &entry("job.create", at("00:00"))).await.unwrap();
    lab.create(job("fails", "0 * * * *", "fail")).await;
    lab.create(job("panics", "0 * * * *", "panic")).await;
    lab.create(job("good", "0 * * * *", "log")).await;
    lab.turn_at("01:00").await;
    assert_eq!(lab.runs("fails").await, ["01:00:00 failed handler_error"]);
    assert_eq!(lab.runs("panics").await, ["01:00:00 failed panic"]);
    assert_eq!(lab.records("panics").await[0].failure.as_ref().unwrap().message, "boom");
    assert_eq!(lab.runs("good").await, ["01:00:00 succeeded"]);
    assert_eq!(lab.runs("errored").await, [""; 0]);
    assert_eq!(lab.job("errored").await.job.state.error.as_deref(), Some("no such zone"));
    assert!(lab.heard().contains(&"Errored".to_owned()));
}

#[tokio::test]
async fn a_paused_job_does_not_run_and_a_resumed_one_goes_on_from_now() {
    let mut lab = Lab::new();
    lab.create(job("hourly", "0 * * * *", "log")).await;
    let pause = |at| Pause { reason: "smtp is down".to_owned(), by: "ana".to_owned(), at, until: None };
    lab.change("hourly", |view| change::pause(view, pause(at("00:10")))).await.unwrap();
    lab.turn_at("02:10").await;
    assert_eq!(lab.runs("hourly").await, [""; 0]);
    lab.change("hourly", |view| change::resume(view, Missed::Skip, "ana", at("02:10"))).await.unwrap();
    lab.turn_at("02:20").await;
    assert_eq!(lab.runs("hourly").await, [""; 0], "what was paused stays a gap");
    lab.turn_at("03:00").await;
    assert_eq!(lab.runs("hourly").await, ["03:00:00 succeeded"]);
}

#[tokio::test]
async fn a_pause_that_is_over_ends_by_itself() {
    let mut lab = Lab::new();
    lab.create(job("hourly", "0 * * * *", "log")).await;
    let pause = |at, until| Pause { reason: "smtp is down".to_owned(), by: "ana".to_owned(), at, until: Some(until) };
    lab.change("hourly", |view| change::pause(view, pause(at("00:10"), at("00:10:20")))).await.unwrap();
    lab.set("00:10");
    assert_eq!(lab.engine.resumer.step().await.unwrap(), Wait::For(Duration::from_secs(20)), "it knows when");
    lab.change("hourly", |view| change::pause(view, pause(at("00:10"), at("02:30")))).await.unwrap();
    lab.set("00:10:20");
    assert_eq!(lab.engine.resumer.step().await.unwrap(), Wait::For(Duration::from_mins(1)), "paused again");
    lab.set("02:30");
    lab.engine.resumer.step().await.unwrap();
    lab.turn().await;
    assert_eq!(lab.runs("hourly").await, [""; 0]);
    assert_eq!(lab.job("hourly").await.job.state.status, JobStatus::Active);
    assert_eq!(lab.heard(), ["Resumed", "Gap"]);
    lab.turn_at("03:00").await;
    assert_eq!(lab.runs("hourly").await, ["03:00:00 succeeded"]);
}

#[tokio::test]
async fn only_targets_that_are_served_are_planned() {
    let mut lab = Lab::new();
    lab.create(job("foreign", "0 * * * *", "elsewhere")).await;
    lab.turn_at("01:00").await;
    assert_eq!(lab.runs("foreign").await, [""; 0]);
    assert_eq!(
        lab.job("foreign").await.timer.unwrap().next_run_at,
        Some(at("01:00")),
        "due, for any instance that serves it"
    );
}

#[tokio::test]
async fn a_drained_instance_takes_no_more_work() {
    let mut lab = Lab::new();
    lab.create(job("hourly", "0 * * * *", "log")).await;
    lab.engine.heartbeat.step().await.unwrap();
    let id = lab.engine.shared.instance;
    lab.store.drain_instance(id, true, &entry("instance.drain", at("00:01"))).await.unwrap();
    lab.set("01:00");
    lab.engine.heartbeat.step().await.unwrap();
    lab.turn().await;
    assert_eq!(lab.runs("hourly").await, [""; 0]);
    assert_eq!(lab.heard(), ["Draining"]);
    lab.store.drain_instance(id, false, &entry("instance.drain", at("01:00"))).await.unwrap();
    lab.set("01:00:10");
    lab.engine.heartbeat.step().await.unwrap();
    lab.turn().await;
    assert_eq!(lab.runs("hourly").await, ["01:00:00 succeeded"]);
}

#[tokio::test]
async fn an_overlapping_slot_is_skipped_and_a_run_by_hand_too() {
    let mut lab = Lab::new();
    lab.create(with(job("long", "* * * * *", "wait"), |values| values.timeout = Duration::from_hours(1))).await;
    lab.turn_at("00:01").await;
    lab.turn_at("00:02").await;
    let request = RunNow {
        id: RunId::by_hand(at("00:02"), tail("x")),
        actor: "ana",
        payload: None,
        overlap: None,
        trace_context: None,
    };
    let changed = lab.change("long", |view| change::run_now(view, &request, at("00:02"))).await.unwrap();
    assert_eq!(changed.runs[0].skip.as_ref().unwrap().as_str(), "overlap");
    let forced = RunNow { id: RunId::by_hand(at("00:02"), tail("y")), overlap: Some(Overlap::Allow), ..request };
    lab.change("long", |view| change::run_now(view, &forced, at("00:02"))).await.unwrap();
    lab.turn().await;
    let mut runs = lab.runs("long").await;
    runs.sort();
    let wanted = ["00:01:00 running", "00:02:00 running", "00:02:00 skipped overlap", "00:02:00 skipped overlap"];
    assert_eq!(runs, wanted);
}

#[tokio::test]
async fn a_failed_run_is_tried_again_after_its_backoff() {
    let tries = |run: crate::Run| async move { if run.attempt() < 3 { error("not yet") } else { ok() } };
    let mut lab = Lab::with_targets(|targets, _| {
        targets.add("flaky".parse_target(), action(tries), TargetOptions::default());
    });
    let backoff = Backoff { initial: Duration::from_secs(10), max: Duration::from_mins(1) };
    let policies = |values: &mut everbell_core::PolicyValues| (values.max_attempts, values.backoff) = (3, backoff);
    lab.create(with(job("flaky", "0 * * * *", "flaky"), policies)).await;
    lab.turn_at("01:00").await;
    assert_eq!(lab.runs("flaky").await, ["01:00:00 pending handler_error"]);
    assert_eq!(lab.engine.claimer.step().await.unwrap(), Wait::For(Duration::from_secs(5)), "polls meanwhile");
    lab.set("01:00:07");
    assert_eq!(lab.engine.claimer.step().await.unwrap(), Wait::For(Duration::from_secs(3)), "knows when");
    lab.turn_at("01:00:10").await;
    lab.turn_at("01:00:30").await;
    assert_eq!(lab.runs("flaky").await, ["01:00:00 succeeded"]);
    assert_eq!(lab.records("flaky").await[0].attempt, 3);
    let wanted = ["Fired", "Started", "Retrying", "Started", "Retrying", "Started", "Finished"];
    assert_eq!(lab.heard(), wanted);
}

#[tokio::test]
async fn failures_in_a_row_pause_the_job() {
    let mut lab = Lab::new();
    lab.create(with(job("fails", "0 * * * *", "fail"), |values| values.pause_after_failures = Some(2))).await;
    lab.turn_at("01:00").await;
    assert_eq!(lab.job("fails").await.job.state.status, JobStatus::Active);
    lab.turn_at("02:00").await;
    let state = lab.job("fails").await.job.state;
    let pause = state.pause.unwrap();
    assert_eq!((state.status, pause.by.as_str()), (JobStatus::Paused, "everbell"));
    assert_eq!(pause.reason, "paused after 2 failures in a row");
    assert!(lab.heard().contains(&"Paused".to_owned()));
    lab.turn_at("03:00").await;
    assert_eq!(lab.runs("fails").await.len(), 2);
}

#[tokio::test]
async fn a_target_has_its_own_limit_and_an_instance_one_for_all() {
    let wait = |run: crate::Run| async move {
        run.canceled().await;
        ok()
    };
    let mut lab = Lab::with_targets(|targets, _| {
        targets.add("two".parse_target(), action(wait), TargetOptions::default().concurrency(2));
    });
    for n in 0..3 {
        lab.create(job(&format!("two-{n}"), "0 * * * *", "two")).await;
    }
    lab.create(job("other", "0 * * * *", "log")).await;
    lab.turn_at("01:00").await;
    let mut running = 0;
    for n in 0..3 {
        running += usize::from(lab.runs(&format!("two-{n}")).await == ["01:00:00 running"]);
    }
    assert_eq!(running, 2);
    assert_eq!(lab.runs("other").await, ["01:00:00 succeeded"], "a full target hides no other");
}

#[tokio::test]
async fn local_times_stay_across_daylight_saving_month_ends_and_leap_days() {
    for (schedule, from, slots) in [
        ("30 2 * * * in Europe/Berlin", "2027-03-27T12:00:00Z", ["2027-03-28T01:00:00Z", "2027-03-29T00:30:00Z"]),
        ("0 8 31 * *", "2027-01-15T00:00:00Z", ["2027-01-31T08:00:00Z", "2027-03-31T08:00:00Z"]),
        ("0 0 29 2 *", "2027-06-01T00:00:00Z", ["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"]),
    ] {
        let mut lab = Lab::new();
        lab.clock.set(at(from));
        let mut definition = job("j", schedule, "log");
        definition.created_at = at(from);
        lab.create(definition).await;
        for slot in slots {
            assert_eq!(lab.job("j").await.timer.unwrap().next_run_at, Some(at(slot)), "{schedule}");
            lab.turn_at(slot).await;
        }
        let ran: Vec<String> = lab.records("j").await.iter().map(|run| run.scheduled_at.to_string()).collect();
        assert_eq!(ran, slots);
    }
}

#[tokio::test]
async fn the_idempotency_key_is_the_same_on_every_instance() {
    let mut keys = Vec::new();
    for _ in 0..2 {
        let mut lab = Lab::new();
        lab.create(job("hourly", "0 * * * *", "log")).await;
        lab.turn_at("01:00").await;
        keys.push(lab.records("hourly").await[0].idempotency_key());
    }
    assert_eq!(keys[0], format!("schedule:hourly:{}", at("01:00").as_second()));
    assert_eq!(keys[0], keys[1]);
}

#[tokio::test]
async fn outcomes_wait_for_the_database_and_are_recorded_once() {
    for point in [FaultPoint::Before, FaultPoint::After] {
        let mut lab = Lab::new();
        lab.create(job("hourly", "0 * * * *", "log")).await;
        lab.set("01:00");
        lab.engine.planner.step().await.unwrap();
        lab.engine.claimer.step().await.unwrap();
        lab.settle().await;
        lab.store.fail_next(point);
        assert!(lab.engine.recorder.step().await.unwrap_err().is_transient());
        assert!(!lab.engine.shared.inflight.is_empty(), "still held");
        lab.engine.recorder.step().await.unwrap();
        assert!(lab.engine.shared.inflight.is_empty());
        assert_eq!(lab.runs("hourly").await, ["01:00:00 succeeded"]);
        assert_eq!(lab.heard(), ["Fired", "Started", "Finished"], "{point:?}");
    }
}

/// Its handler fails at 01:00, and its cancellation is asked for before that is written at 01:00:05.
#[tokio::test]
async fn a_run_that_is_canceled_instead_of_retried_is_reported_so_even_if_the_answer_was_lost() {
    for lost_answer in [false, true] {
        let mut lab = Lab::new();
        lab.create(with(job("hourly", "0 * * * *", "fail"), |values| values.max_attempts = 3)).await;
        lab.set("01:00");
        lab.engine.planner.step().await.unwrap();
        lab.engine.claimer.step().await.unwrap();
        lab.settle().await;
        let id = lab.records("hourly").await[0].id;
        lab.set("01:00:05");
        let asked = lab.store.cancel_run(id, "ana", at("01:00:05"), &entry("run.cancel", at("01:00:05"))).await;
        assert_eq!(asked.unwrap(), Canceled::Requested);
        lab.heard();
        if lost_answer {
            lab.store.fail_next(FaultPoint::After);
            assert!(lab.engine.recorder.step().await.unwrap_err().is_transient());
        }
        lab.engine.recorder.step().await.unwrap();
        let mut told = Vec::new();
        while let Ok(event) = lab.events.try_recv() {
            told.push(match &*event {
                Event::Finished { status, took, .. } => format!("{status} after {took:?}"),
                other => format!("{other:?}"),
            });
        }
        assert_eq!(told, ["canceled after 0ns"], "lost answer: {lost_answer}");
        let run = lab.records("hourly").await.remove(0);
        assert_eq!((run.status, run.finished_at), (RunStatus::Canceled, Some(at("01:00"))), "when its handler ended");
    }
}

#[tokio::test]
async fn an_outcome_that_cannot_be_recorded_takes_no_other_with_it() {
    let lab = Lab::new();
    lab.create(job("one", "0 * * * *", "log")).await;
    lab.create(job("two", "0 * * * *", "log")).await;
    lab.set("01:00");
    // The group is refused, and so is the first of the two alone; then the database takes what it gets.
    let refusals = Arc::new(AtomicU32::new(0));
    let left = Arc::clone(&refusals);
    let store = Faulty::new(Arc::clone(&lab.store) as _, move |_| {
        let refuses = left.load(Ordering::Relaxed) > 0;
        left.fetch_sub(u32::from(refuses), Ordering::Relaxed);
        refuses.then_some(FaultPoint::Refused)
    });
    let crate::engine::Shared { clock, targets, options, events, .. } = &*lab.engine.shared;
    let (clock, events) = (Arc::clone(clock), events.clone());
    let mut engine = Engine::new(Arc::new(store), clock, targets.clone(), options.clone(), events);
    engine.planner.step().await.unwrap();
    engine.claimer.step().await.unwrap();
    lab.settle().await;
    refusals.store(2, Ordering::Relaxed);
    engine.recorder.step().await.unwrap();
    let mut ended = [lab.runs("one").await, lab.runs("two").await].concat();
    ended.sort();
    assert_eq!(ended, ["01:00:00 failed handler_error", "01:00:00 succeeded"]);
    let records = [lab.records("one").await, lab.records("two").await].concat();
    let failed = records.iter().find_map(|run| run.failure.as_ref()).unwrap();
    assert!(failed.message.starts_with("its outcome could not be recorded: "), "{}", failed.message);
    assert!(engine.shared.inflight.is_empty());
}

/// A label without ceremony.
trait ParseTarget {
    fn parse_target(&self) -> everbell_core::Target;
}

impl ParseTarget for str {
    fn parse_target(&self) -> everbell_core::Target {
        everbell_core::Target::new(self).unwrap()
    }
}
