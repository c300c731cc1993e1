//! Clocks that are set, forward and back, while an instance is at work.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use everbell_core::store::{AccessStore, ClusterStore};
use everbell_core::{FailureCode, OnLost, PolicyValues, Target};

use super::lab::{Lab, action, at, job, with};
use crate::clock::DatabaseClock;
use crate::clock::tests::Machine;
use crate::engine::{Engine, Shared, Step, Wait};
use crate::targets::TargetOptions;

const FAR_AHEAD: &str = "2027-12-20T00:30:00Z";

#[tokio::test]
async fn a_step_forward_leaves_living_runs_to_their_instance() {
    let mut lab = Lab::new();
    lab.create(job("long", "0 * * * *", "wait")).await;
    lab.engine.heartbeat.step().await.unwrap();
    lab.turn_at("01:00").await;
    let mut other = lab.engine_beside();
    other.reaper.step().await.unwrap();
    lab.set("01:00:15");
    lab.engine.heartbeat.step().await.unwrap();
    lab.clock.step_to(at("01:15"));
    // The clock of a lab is shared, and only the other instance has noticed.
    other.anchor.step().await.unwrap();
    assert_eq!(other.reaper.step().await.unwrap(), Wait::For(Duration::from_mins(1)));
    assert_eq!(lab.runs("long").await, ["01:00:00 running"]);
    assert_eq!(lab.store.list_instances().await.unwrap().len(), 1, "and it is not forgotten");
    lab.set("01:15:05");
    lab.engine.heartbeat.step().await.unwrap();
    lab.set("01:16");
    other.reaper.step().await.unwrap();
    assert_eq!(lab.runs("long").await, ["01:00:00 running"], "its lease was extended meanwhile");
}

/// A handler of an instance that is cut off goes on for 55 s after its last heartbeat, whatever the time of day is. A run that
/// is ended earlier lets the next one of its job begin beside it.
#[tokio::test]
async fn a_step_forward_takes_no_run_from_an_instance_that_is_cut_off_while_its_handler_may_be_at_work() {
    for policies in
        [(|_| {}) as fn(&mut PolicyValues), |values| (values.on_lost, values.max_attempts) = (OnLost::Retry, 2)]
    {
        let mut lab = Lab::with_targets(|targets, _| {
            let deaf = |_| std::future::pending();
            targets.add(Target::new("deaf").unwrap(), action(deaf), TargetOptions::default());
        });
        lab.store.set_can_partition(true);
        lab.create(with(job("long", "0 * * * *", "deaf"), policies)).await;
        let mut other = lab.engine_beside();
        other.reaper.step().await.unwrap();
        lab.turn_at("01:00").await;
        lab.engine.heartbeat.step().await.unwrap();
        lab.clock.step_to(at("02:30"));
        other.anchor.step().await.unwrap();
        let mut second = 0;
        while lab.engine.shared.inflight.is_working() {
            other.reaper.step().await.unwrap();
            assert_eq!(lab.runs("long").await, ["01:00:00 running"], "after {second} s");
            second += 1;
            lab.clock.set(at("02:30") + Duration::from_secs(second));
            lab.settle().await;
        }
        assert_eq!(second, 55, "it was stopped by its own clock");
        lab.set("02:31");
        other.reaper.step().await.unwrap();
        assert_ne!(lab.runs("long").await[0], "01:00:00 running", "then its lease is over");
    }
}

#[tokio::test]
async fn a_reaper_that_missed_a_step_back_takes_no_run() {
    let mut lab = Lab::new();
    lab.create(job("long", "0 * * * *", "wait")).await;
    let machine = Machine::default();
    lab.store.set_now(at("01:00"));
    let clock = Arc::new(DatabaseClock::start_on(machine.clone(), &*lab.store).await.unwrap());
    let Shared { targets, options, events, .. } = &*lab.engine.shared;
    let mut frozen = Engine::new(Arc::clone(&lab.store) as _, clock, targets.clone(), options.clone(), events.clone());
    frozen.anchor.step().await.unwrap();
    frozen.reaper.step().await.unwrap();
    // It stands still for two minutes, in which the database's clock is set back by one.
    lab.turn_at("01:00").await;
    lab.engine.heartbeat.step().await.unwrap();
    machine.monotonic.store(120, Ordering::Relaxed);
    lab.store.set_now(at("01:00:30"));
    frozen.reaper.step().await.unwrap();
    assert_eq!(lab.runs("long").await, ["01:00:00 running"]);
}

#[tokio::test]
async fn a_clock_that_was_ahead_costs_neither_fires_nor_history() {
    let mut lab = Lab::new();
    lab.create(job("hourly", "0 * * * *", "log")).await;
    lab.engine.anchor.step().await.unwrap();
    lab.engine.pruner.step().await.unwrap();
    lab.turn_at("01:00").await;
    lab.clock.step_to(at(FAR_AHEAD));
    lab.engine.anchor.step().await.unwrap();
    lab.turn().await;
    lab.set("2027-12-20T00:40:00Z");
    lab.engine.pruner.step().await.unwrap();
    lab.turn_at("2027-12-20T01:00:00Z").await;
    let ahead = lab.runs("hourly").await;
    assert_eq!(ahead.len(), 3, "the first one is not pruned: {ahead:?}");

    lab.clock.step_to(at("02:10"));
    lab.engine.anchor.step().await.unwrap();
    let timer = lab.job("hourly").await.timer.unwrap();
    assert_eq!((timer.last_slot_at, timer.next_run_at), (at("02:10"), Some(at("03:00"))));
    lab.turn_at("03:00").await;
    let runs = lab.runs("hourly").await;
    assert!(runs.contains(&"03:00:00 succeeded".to_owned()), "{runs:?}");
    lab.set("03:20");
    lab.engine.pruner.step().await.unwrap();
    assert_eq!(lab.runs("hourly").await.len(), 4);
    let heard = lab.heard();
    for event in ["ClockStepped", "PruningHeld", "TimersRearmed"] {
        assert!(heard.contains(&event.to_owned()), "{event}: {heard:?}");
    }
    let audit =
        lab.store.list_audit(None, &everbell_core::store::PageRequest { limit: 10, after: None }).await.unwrap();
    assert!(audit.items.iter().any(|entry| entry.action == "timers.rearmed" && entry.actor == "everbell"));
}

#[tokio::test]
async fn a_start_after_a_clock_was_ahead_brings_timers_back() {
    let mut lab = Lab::new();
    lab.clock.step_to(at(FAR_AHEAD));
    lab.create(job("hourly", "0 * * * *", "log")).await;
    lab.turn_at("2027-12-20T01:00:00Z").await;
    lab.clock.step_to(at("02:10"));
    let mut restarted = lab.engine_beside();
    restarted.anchor.step().await.unwrap();
    restarted.pruner.step().await.unwrap();
    assert_eq!(lab.job("hourly").await.timer.unwrap().next_run_at, Some(at("03:00")));
    assert!(lab.heard().contains(&"FutureEntries".to_owned()));
}

#[tokio::test]
async fn a_pending_run_of_a_false_future_does_not_hold_up_its_job() {
    let mut lab = Lab::new();
    lab.create(job("hourly", "0 * * * *", "log")).await;
    lab.clock.step_to(at("2027-12-20T01:00:00Z"));
    lab.engine.planner.step().await.unwrap();
    lab.clock.step_to(at("02:10"));
    lab.engine.anchor.step().await.unwrap();
    assert_eq!(lab.runs("hourly").await, ["01:00:00 canceled canceled"]);
    lab.turn_at("03:00").await;
    assert!(lab.runs("hourly").await.contains(&"03:00:00 succeeded".to_owned()));
}

#[tokio::test]
async fn a_step_back_neither_lengthens_a_timeout_nor_a_duration() {
    let mut lab = Lab::new();
    lab.create(with(job("long", "0 * * * *", "wait"), |values| values.timeout = Duration::from_secs(8))).await;
    lab.turn_at("01:00").await;
    lab.clock.step_to(at("00:10"));
    lab.engine.anchor.step().await.unwrap();
    lab.set("00:10:08");
    lab.settle().await;
    lab.engine.recorder.step().await.unwrap();
    let run = lab.records("long").await.remove(0);
    assert_eq!(run.failure.as_ref().map(|failure| failure.code.clone()), Some(FailureCode::TIMEOUT));
    assert_eq!(run.duration(), Some(Duration::from_secs(8)));
}

#[tokio::test]
async fn instance_that_was_frozen_while_the_clock_was_set_back_starts_nothing_early() {
    let mut lab = Lab::new();
    lab.create(job("hourly", "0 * * * *", "log")).await;
    lab.store.set_now(at("00:30"));
    let machine = Machine::default();
    let clock = Arc::new(DatabaseClock::start_on(machine.clone(), &*lab.store).await.unwrap());
    let Shared { targets, options, events, .. } = &*lab.engine.shared;
    let mut frozen = Engine::new(Arc::clone(&lab.store) as _, clock, targets.clone(), options.clone(), events.clone());
    frozen.anchor.step().await.unwrap();
    // An hour passes in which it stands still, and the database's clock is set back by half of it.
    machine.monotonic.store(3_600, Ordering::Relaxed);
    lab.store.set_now(at("00:59"));
    frozen.planner.step().await.unwrap();
    assert_eq!(lab.runs("hourly").await, [""; 0], "its slot is a minute away");
    // Another instance has planned the slot when the clock was right.
    lab.set("01:00");
    lab.engine.planner.step().await.unwrap();
    machine.monotonic.store(7_200, Ordering::Relaxed);
    lab.store.set_now(at("00:59:30"));
    frozen.claimer.step().await.unwrap();
    lab.settle().await;
    assert_eq!(lab.runs("hourly").await, ["01:00:00 pending"]);
}

#[tokio::test]
async fn a_step_back_that_another_loop_notices_wakes_the_one_that_brings_timers_back() {
    let mut lab = Lab::new();
    lab.create(job("hourly", "0 * * * *", "log")).await;
    lab.clock.step_to(at(FAR_AHEAD));
    lab.engine.anchor.step().await.unwrap();
    lab.turn_at("2027-12-20T01:00:00Z").await;
    let shared = Arc::clone(&lab.engine.shared);
    drop(tokio::time::timeout(Duration::ZERO, shared.signals.anchor.notified()).await);
    lab.clock.step_to(at("02:10"));
    shared.anchor().await.unwrap();
    let woken = tokio::time::timeout(Duration::ZERO, shared.signals.anchor.notified()).await;
    assert!(woken.is_ok(), "it would sleep for minutes");
    lab.engine.anchor.step().await.unwrap();
    assert_eq!(lab.job("hourly").await.timer.unwrap().next_run_at, Some(at("03:00")));
}
