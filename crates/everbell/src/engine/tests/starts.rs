//! Runs that start with their plan: when they do, and what comes before them.

use std::sync::Arc;
use std::time::Duration;

use everbell_core::change;
use everbell_core::plan::RunNow;
use everbell_core::{RunId, Target};
use everbell_store::conformance::faults::{Faulty, KeptBack};

use super::lab::{Lab, action, at, job, options, tail};
use crate::clock::Clock;
use crate::engine::{Engine, Heartbeat, Planner, Shared, Step, Wait};
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

/// Puts an engine with so many places into the lab.
fn with_places(lab: &mut Lab, places: u32) {
    let Shared { targets, events, .. } = &*lab.engine.shared;
    let (store, clock) = (Arc::clone(&lab.store) as _, Arc::clone(&lab.clock) as _);
    lab.engine = Engine::new(store, clock, targets.clone(), options().concurrency(places), events.clone());
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
async fn a_target_without_room_does_not_delay_the_others() {
    let mut lab = Lab::with_targets(|targets, _| {
        let wait = |run: crate::Run| async move {
            run.canceled().await;
            super::lab::ok()
        };
        let one = TargetOptions { concurrency: Some(1), ..TargetOptions::default() };
        assert!(targets.add(Target::new("narrow").unwrap(), action(wait), one));
    });
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
        lab.engine.shared.claims.note_dropped();
        heartbeat.step().await.unwrap();
    }
    lab.turn().await;
    assert_eq!(lab.runs("hourly").await, ["01:00:00 succeeded"]);
    assert_eq!(lab.log.lock().unwrap().len(), 1);
    assert_eq!(lab.records("hourly").await[0].attempt, 2, "fenced by the attempt");
}
