//! Runs that start with their plan: when they do, and what comes before them.

use std::sync::Arc;
use std::time::Duration;

use everbell_core::change;
use everbell_core::plan::RunNow;
use everbell_core::{Overlap, RunId, Target};
use everbell_store::conformance::faults::{Faulty, KeptBack};
use tokio::sync::Notify;

use super::lab::{Lab, action, at, job, options, tail, with};
use crate::clock::Clock;
use crate::engine::{Engine, EngineOptions, Heartbeat, Planner, Shared, Step, Wait};
use crate::run_signals::Stop;
use crate::targets::TargetOptions;

/// A lab whose claimer has seen that nothing is pending.
async fn lab_that_has_looked(jobs: &[&str], target: &str) -> Lab {
    let mut lab = Lab::new();
    for key in jobs {
        lab.create(job(key, "0 * * * *", target)).await;
    }
    lab.engine.heartbeat.step().await.unwrap();
    lab.engine.claimer.step().await.unwrap();
    lab
}

/// Puts an engine with this many places into the lab.
pub(super) fn with_places(lab: &mut Lab, places: u32) {
    with_options(lab, options().concurrency(places));
}

fn with_options(lab: &mut Lab, options: EngineOptions) {
    let Shared { targets, events, .. } = &*lab.engine.shared;
    let (store, clock) = (Arc::clone(&lab.store) as _, Arc::clone(&lab.clock) as _);
    lab.engine = Engine::new(store, clock, targets.clone(), options, events.clone());
}

/// Whether a loop was woken since the last call.
async fn was_woken(signal: &Notify) -> bool {
    tokio::select! {
        biased;
        () = signal.notified() => true,
        () = std::future::ready(()) => false,
    }
}

#[tokio::test]
async fn a_slot_starts_with_its_plan_and_the_claimer_has_nothing_to_do() {
    let mut lab = lab_that_has_looked(&["hourly"], "log").await;
    lab.set("01:00");
    lab.engine.planner.step().await.unwrap();
    assert_eq!(lab.runs("hourly").await, ["01:00:00 running"]);
    lab.settle().await;
    lab.engine.recorder.step().await.unwrap();
    assert_eq!(lab.runs("hourly").await, ["01:00:00 succeeded"]);
    assert_eq!(lab.heard(), ["Fired", "Started", "Finished"]);
}

#[tokio::test]
async fn a_run_that_waits_comes_before_new_slots() {
    let mut lab = Lab::new();
    lab.create(job("hourly", "0 * * * *", "log")).await;
    lab.create(job("asked", "0 12 * * *", "log")).await;
    with_places(&mut lab, 1);
    lab.engine.claimer.step().await.unwrap();
    lab.set("01:00");
    let id = RunId::by_hand(at("00:59"), tail("x"));
    let request = RunNow { id, actor: "ana", payload: None, overlap: None, trace_context: None };
    lab.change("asked", |view| change::run_now(view, &request, at("00:59"))).await.unwrap();
    // As the relay does when it hears of a change.
    lab.engine.shared.claims.note_pending();
    lab.engine.planner.step().await.unwrap();
    assert_eq!(lab.runs("hourly").await, ["01:00:00 pending"], "the only place is for the other");
    lab.engine.claimer.step().await.unwrap();
    assert_eq!(lab.runs("asked").await, ["00:59:00 running"]);
    lab.settle().await;
    lab.turn().await;
    assert_eq!(lab.log.lock().unwrap().as_slice(), ["log 00:59:00", "log 01:00:00"]);
}

#[tokio::test]
async fn a_backlog_waits_for_room_but_not_for_long() {
    let keys: Vec<String> = (0..6).map(|number| format!("job-{number}")).collect();
    let mut lab = Lab::new();
    for key in &keys {
        lab.create(job(key, "0 * * * *", "wait")).await;
    }
    with_places(&mut lab, 2);
    lab.engine.claimer.step().await.unwrap();
    lab.set("01:00");
    assert_eq!(lab.engine.planner.step().await.unwrap(), Wait::No);
    let count = async |lab: &Lab| {
        let mut counts = (0, 0);
        for key in &keys {
            for run in lab.runs(key).await {
                counts.0 += usize::from(run.ends_with("running"));
                counts.1 += usize::from(run.ends_with("pending"));
            }
        }
        counts
    };
    assert_eq!(count(&lab).await, (2, 0), "no more than there is room for");
    assert_eq!(lab.engine.planner.step().await.unwrap(), Wait::For(Duration::from_secs(1)));
    assert_eq!(count(&lab).await, (2, 0));
    // Two starts have earned it a little more than a second.
    lab.set("01:00:02");
    lab.engine.planner.step().await.unwrap();
    assert_eq!(count(&lab).await, (2, 4), "every slot has its run, although there is no room");
}

#[tokio::test]
async fn second_planner_starts_slots_while_the_first_is_behind_and_leaves_none_pending() {
    let mut lab = Lab::new();
    let keys = ["a", "b", "c", "d", "e"];
    for key in keys {
        lab.create(job(key, "0 * * * *", "wait")).await;
    }
    with_options(&mut lab, options().concurrency(3).batch(1));
    lab.store.set_can_partition(true);
    lab.engine.claimer.step().await.unwrap();
    lab.set("01:00");
    let count = async |lab: &Lab, status: &str| {
        let mut count = 0;
        for key in keys {
            count += lab.runs(key).await.iter().filter(|run| run.ends_with(status)).count();
        }
        count
    };
    assert_eq!(lab.engine.second_planner.step().await.unwrap(), Wait::ForSignal);
    assert_eq!(count(&lab, "running").await, 0, "no one is behind");
    assert_eq!(lab.engine.planner.step().await.unwrap(), Wait::No);
    assert!(was_woken(&lab.engine.shared.signals.plan_aside).await);
    for started in [2, 3] {
        assert_eq!(lab.engine.second_planner.step().await.unwrap(), Wait::No);
        assert_eq!(count(&lab, "running").await, started);
    }
    assert_eq!(lab.engine.second_planner.step().await.unwrap(), Wait::ForSignal);
    assert_eq!((count(&lab, "running").await, count(&lab, "pending").await), (3, 0), "there is no room");
    lab.settle().await;
    let working = lab.engine.shared.inflight.working();
    lab.engine.shared.inflight.stop(working[0], &Stop::Shutdown);
    lab.settle().await;
    lab.engine.recorder.step().await.unwrap();
    assert!(was_woken(&lab.engine.shared.signals.plan_aside).await, "there is room again");
}

#[tokio::test]
async fn a_handler_that_has_ended_makes_room_before_its_outcome_is_recorded() {
    let mut lab = Lab::new();
    for key in ["a", "b"] {
        lab.create(job(key, "0 * * * *", "log")).await;
    }
    with_places(&mut lab, 1);
    lab.engine.claimer.step().await.unwrap();
    lab.set("01:00");
    lab.engine.planner.step().await.unwrap();
    lab.settle().await;
    lab.engine.planner.step().await.unwrap();
    lab.settle().await;
    assert_eq!(lab.log.lock().unwrap().len(), 2, "the second begins while the first is not recorded");
    assert_eq!([lab.runs("a").await, lab.runs("b").await].concat(), ["01:00:00 running"; 2]);
    lab.turn().await;
    assert_eq!([lab.runs("a").await, lab.runs("b").await].concat(), ["01:00:00 succeeded"; 2]);
}

#[tokio::test]
async fn no_more_runs_start_while_very_many_outcomes_wait() {
    let mut lab = Lab::new();
    for number in 0..8 {
        lab.create(job(&format!("job-{number}"), "0 * * * *", "log")).await;
    }
    with_options(&mut lab, options().concurrency(1).batch(1));
    lab.engine.claimer.step().await.unwrap();
    lab.set("01:00");
    for _ in 0..10 {
        lab.engine.planner.step().await.unwrap();
        lab.settle().await;
    }
    assert_eq!(lab.log.lock().unwrap().len(), 5, "one at work, and four batches that wait");
    lab.engine.recorder.step().await.unwrap();
    lab.engine.planner.step().await.unwrap();
    lab.settle().await;
    assert_eq!(lab.log.lock().unwrap().len(), 6);
}

#[tokio::test]
async fn planner_is_woken_when_half_of_the_places_are_free() {
    let mut lab = Lab::new();
    for number in 0..6 {
        lab.create(job(&format!("job-{number}"), "0 * * * *", "wait")).await;
    }
    with_places(&mut lab, 4);
    lab.engine.claimer.step().await.unwrap();
    lab.set("01:00");
    lab.engine.planner.step().await.unwrap();
    assert_eq!(lab.engine.planner.step().await.unwrap(), Wait::For(Duration::from_secs(1)), "no room");
    let Shared { inflight, signals, .. } = &*lab.engine.shared;
    let working = inflight.working();
    assert_eq!(working.len(), 4);
    let mut woken = Vec::new();
    for attempt in working {
        lab.settle().await;
        inflight.stop(attempt, &Stop::Shutdown);
        lab.settle().await;
        woken.push(was_woken(&signals.plan).await);
    }
    assert_eq!(woken, [false, true, false, false], "once, when there is room for two");
}

#[tokio::test]
async fn claimer_looks_at_once_only_if_a_run_may_have_waited() {
    let mut lab = lab_that_has_looked(&["hourly"], "log").await;
    lab.create(with(job("queued", "30 1 * * *", "log"), |policies| policies.overlap = Overlap::Queue)).await;
    let runs_at = async |lab: &mut Lab, time: &str| {
        lab.set(time);
        lab.engine.planner.step().await.unwrap();
        lab.settle().await;
        was_woken(&lab.engine.shared.signals.claim).await;
        lab.engine.recorder.step().await.unwrap();
    };
    runs_at(&mut lab, "01:00").await;
    assert!(!was_woken(&lab.engine.shared.signals.claim).await, "no run waits for one that skips others");
    let Wait::For(left) = lab.engine.recorder.step().await.unwrap() else { panic!("it will look") };
    assert!(!left.is_zero() && left <= Duration::from_millis(100), "{left:?}");
    lab.set("01:00:01");
    assert_eq!(lab.engine.recorder.step().await.unwrap(), Wait::ForSignal);
    assert!(was_woken(&lab.engine.shared.signals.claim).await, "a run by hand may wait all the same");
    runs_at(&mut lab, "01:30").await;
    assert!(was_woken(&lab.engine.shared.signals.claim).await, "the next one may wait");
    assert_eq!(lab.engine.recorder.step().await.unwrap(), Wait::ForSignal);
}

#[tokio::test]
async fn a_target_without_room_does_not_delay_the_others() {
    let mut lab = lab_with_a_narrow_target();
    for key in ["a", "b"] {
        lab.create(job(key, "0 * * * *", "narrow")).await;
    }
    lab.create(job("other", "1 1 * * *", "log")).await;
    lab.engine.claimer.step().await.unwrap();
    lab.set("01:00");
    while lab.engine.planner.step().await.unwrap() == Wait::No {}
    // It is woken because a run is pending, and sees that those of other targets are not.
    lab.engine.claimer.step().await.unwrap();
    lab.set("01:01");
    lab.engine.planner.step().await.unwrap();
    assert_eq!(lab.runs("other").await, ["01:01:00 running"]);
    let mut narrow = [lab.runs("a").await, lab.runs("b").await].concat();
    narrow.sort();
    assert_eq!(narrow, ["01:00:00 pending", "01:00:00 running"]);
}

#[tokio::test]
async fn a_late_answer_to_a_plan_starts_nothing_and_its_run_starts_once() {
    let mut lab = Lab::new();
    lab.create(job("hourly", "0 * * * *", "log")).await;
    let clock = Arc::clone(&lab.clock);
    let keep_back = move |_| -> Option<KeptBack> {
        let clock = Arc::clone(&clock);
        let late = clock.now() == at("01:00");
        late.then(|| Box::pin(async move { clock.sleep(Duration::from_secs(8)).await }) as _)
    };
    let store = Faulty::new(Arc::clone(&lab.store) as _, |_| None).keeping_back(keep_back).and_plans();
    lab.engine = lab.engine_on(Arc::new(store));
    let mut heartbeat = Heartbeat::new(&lab.engine.shared);
    heartbeat.step().await.unwrap();
    lab.engine.claimer.step().await.unwrap();
    lab.set("01:00");
    let mut planner = Planner::new(&lab.engine.shared);
    let plan = tokio::spawn(async move {
        planner.step().await.unwrap();
        planner
    });
    lab.settle().await;
    assert_eq!(lab.runs("hourly").await, ["01:00:00 running"], "leased, and the answer is on its way");
    lab.set("01:00:04");
    heartbeat.step().await.unwrap();
    assert_eq!(lab.runs("hourly").await, ["01:00:00 running"], "not given back while it is on its way");
    lab.set("01:00:08");
    plan.await.unwrap();
    assert!(lab.log.lock().unwrap().is_empty(), "the answer came too late");
    for time in ["01:00:10", "01:00:12"] {
        lab.set(time);
        heartbeat.step().await.unwrap();
    }
    lab.turn().await;
    assert_eq!(lab.runs("hourly").await, ["01:00:00 succeeded"]);
    assert_eq!(lab.log.lock().unwrap().len(), 1);
    assert_eq!(lab.records("hourly").await[0].attempt, 2, "fenced by the attempt");
}

/// A lab with a target of one place, whose handlers wait until they are canceled.
fn lab_with_a_narrow_target() -> Lab {
    Lab::with_targets(|targets, _| {
        let wait = |run: crate::Run| async move {
            run.canceled().await;
            super::lab::ok()
        };
        let one = TargetOptions { concurrency: Some(1), ..TargetOptions::default() };
        assert!(targets.add(Target::new("narrow").unwrap(), action(wait), one));
    })
}

#[tokio::test]
async fn runs_of_a_target_that_a_look_has_filled_may_still_wait() {
    let mut lab = lab_with_a_narrow_target();
    let (narrow, log) = (Target::new("narrow").unwrap(), Target::new("log").unwrap());
    for key in ["a", "b"] {
        lab.create(job(key, "0 * * * *", "narrow")).await;
    }
    lab.set("01:00");
    lab.engine.planner.step().await.unwrap();
    lab.engine.claimer.step().await.unwrap();
    let claims = &lab.engine.shared.claims;
    assert!(claims.may_wait(&narrow) && !claims.may_wait(&log), "one of two has started");
    lab.engine.claimer.step().await.unwrap();
    let claims = &lab.engine.shared.claims;
    assert!(claims.may_wait(&narrow) && !claims.may_wait(&log), "and it was not asked for again");
}

#[tokio::test]
async fn the_end_of_a_run_wakes_the_claimer_for_what_it_held_back() {
    let mut lab = lab_that_has_looked(&[], "log").await;
    let queue = |values: &mut everbell_core::PolicyValues| {
        (values.overlap, values.timeout) = (everbell_core::Overlap::Queue, Duration::from_hours(5));
    };
    lab.create(with(job("queued", "0 * * * *", "wait"), queue)).await;
    lab.turn_at("01:00").await;
    lab.turn_at("02:00").await;
    assert_eq!(lab.runs("queued").await, ["01:00:00 running", "02:00:00 pending"]);
    let shared = Arc::clone(&lab.engine.shared);
    // It sleeps: what it could start it has seen.
    lab.engine.claimer.step().await.unwrap();
    drop(tokio::time::timeout(Duration::ZERO, shared.signals.claim.notified()).await);
    shared.inflight.stop_all(&crate::run_signals::Stop::Canceled { by: "ana".to_owned() });
    lab.settle().await;
    lab.engine.recorder.step().await.unwrap();
    let woken = tokio::time::timeout(Duration::ZERO, shared.signals.claim.notified()).await;
    assert!(woken.is_ok(), "its place is free");
    lab.engine.claimer.step().await.unwrap();
    assert_eq!(lab.runs("queued").await, ["01:00:00 canceled canceled", "02:00:00 running"]);
}

#[tokio::test]
async fn two_plans_at_once_start_every_run_once() {
    let mut lab = Lab::new();
    lab.store.set_can_partition(true);
    let keys: Vec<String> = (0..600).map(|number| format!("job-{number}")).collect();
    for key in &keys {
        lab.create(job(key, "0 1 * * *", "log")).await;
    }
    with_places(&mut lab, 1_000);
    lab.engine.heartbeat.step().await.unwrap();
    lab.engine.claimer.step().await.unwrap();
    lab.set("01:00");
    let mut steps = 1;
    while lab.engine.planner.step().await.unwrap() == Wait::No {
        steps += 1;
    }
    assert_eq!(steps, 3, "50, two times 200, and the rest");
    lab.settle().await;
    lab.turn().await;
    assert_eq!(lab.log.lock().unwrap().len(), 600);
    assert_eq!(lab.runs("job-599").await, ["01:00:00 succeeded"]);
}

#[tokio::test]
async fn a_planner_that_lost_the_race_for_a_slot_looks_again_soon() {
    let mut lab = lab_that_has_looked(&["hourly"], "log").await;
    let mut other = lab.engine_beside();
    lab.engine.planner.step().await.unwrap();
    lab.set("01:00");
    other.planner.step().await.unwrap();
    // The other one may not have committed yet, so the next fire of its job may be unknown here.
    let mut waits = Vec::new();
    for _ in 0..4 {
        waits.push(lab.engine.planner.step().await.unwrap());
    }
    let soon = [50, 100, 150].map(|millis| Wait::For(Duration::from_millis(millis)));
    assert_eq!(waits[..3], soon);
    assert!(!soon.contains(&waits[3]), "then it sleeps as always: {waits:?}");
    lab.set("02:00");
    lab.engine.planner.step().await.unwrap();
    assert_eq!(lab.runs("hourly").await.len(), 2, "and plans the next one itself");
}
