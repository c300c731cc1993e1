//! Answers that come late, and instances that cannot renew their leases: what handlers see of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use everbell_core::store::StoreError;
use everbell_core::{OnLeaseLoss, Overlap, Target};
use everbell_store::conformance::faults::{Faulty, KeptBack};
use everbell_store::memory::FaultPoint;

use super::lab::{Lab, action, at, error, job, options, with};
use crate::clock::Clock;
use crate::engine::{Claimer, Engine, Heartbeat, Shared, Step};
use crate::targets::TargetOptions;

/// An instance whose first answer to a claim is delayed by this many seconds.
fn engine_with_a_late_answer(lab: &Lab, seconds: u64) -> Engine {
    let (clock, claims) = (Arc::clone(&lab.clock), AtomicU32::new(0));
    let keep_back = move |_| -> Option<KeptBack> {
        let clock = Arc::clone(&clock);
        let first = claims.fetch_add(1, Ordering::Relaxed) == 0;
        first.then(|| Box::pin(async move { clock.sleep(Duration::from_secs(seconds)).await }) as _)
    };
    lab.engine_on(Arc::new(Faulty::new(Arc::clone(&lab.store) as _, |_| None).keeping_back(keep_back)))
}

/// A job that is due at 01:00, and a claim of its run that is under way.
async fn claim_under_way(seconds: u64) -> (Lab, Heartbeat, tokio::task::JoinHandle<(Claimer, Option<StoreError>)>) {
    let mut lab = Lab::new();
    lab.create(job("hourly", "0 * * * *", "log")).await;
    lab.engine = engine_with_a_late_answer(&lab, seconds);
    let mut heartbeat = Heartbeat::new(&lab.engine.shared);
    heartbeat.step().await.unwrap();
    lab.set("01:00");
    lab.engine.planner.step().await.unwrap();
    let mut claimer = Claimer::new(&lab.engine.shared);
    let claim = tokio::spawn(async move {
        let error = claimer.step().await.err();
        (claimer, error)
    });
    lab.settle().await;
    assert_eq!(lab.runs("hourly").await, ["01:00:00 running"], "leased, and the answer is on its way");
    (lab, heartbeat, claim)
}

/// How often the handler began.
fn starts(lab: &Lab) -> usize {
    lab.log.lock().unwrap().len()
}

async fn beat_each_second(lab: &Lab, heartbeat: &mut Heartbeat, seconds: std::ops::RangeInclusive<i64>) {
    for second in seconds {
        lab.clock.set(at("01:00") + jiff::SignedDuration::from_secs(second));
        lab.settle().await;
        // As one does that is woken while its instance has something to cancel.
        lab.engine.shared.claims.note_dropped();
        heartbeat.step().await.unwrap();
        lab.settle().await;
    }
}

#[tokio::test]
async fn a_claim_under_way_is_not_given_back_however_often_the_heart_beats() {
    let (mut lab, mut heartbeat, claim) = claim_under_way(3).await;
    beat_each_second(&lab, &mut heartbeat, 1..=2).await;
    assert_eq!(lab.runs("hourly").await, ["01:00:00 running"]);
    beat_each_second(&lab, &mut heartbeat, 3..=4).await;
    assert!(claim.await.unwrap().1.is_none());
    lab.turn().await;
    assert_eq!(lab.runs("hourly").await, ["01:00:00 succeeded"]);
    assert_eq!((starts(&lab), lab.records("hourly").await[0].attempt), (1, 1));
}

#[tokio::test]
async fn an_answer_that_is_late_starts_nothing_and_its_run_starts_once() {
    let (mut lab, mut heartbeat, claim) = claim_under_way(14).await;
    beat_each_second(&lab, &mut heartbeat, 1..=6).await;
    let (mut claimer, error) = claim.await.unwrap();
    assert!(matches!(error, Some(StoreError::Unavailable { maybe_done: true, .. })), "{error:?}");
    assert_eq!(lab.runs("hourly").await, ["01:00:00 pending lost"], "given back, with the reason");
    claimer.step().await.unwrap();
    beat_each_second(&lab, &mut heartbeat, 7..=20).await;
    lab.turn().await;
    assert_eq!(lab.runs("hourly").await, ["01:00:00 succeeded"]);
    assert_eq!((starts(&lab), lab.records("hourly").await[0].attempt), (1, 2), "fenced by the attempt");
}

#[tokio::test]
async fn an_instance_that_stood_still_drops_the_answer_that_waited_for_it() {
    let (mut lab, mut heartbeat, claim) = claim_under_way(50).await;
    // Both the answer and the end of the wait are there when it goes on; others have ended the run.
    let mut other = lab.engine_beside();
    other.reaper.step().await.unwrap();
    lab.set("01:01:10");
    other.reaper.step().await.unwrap();
    lab.settle().await;
    assert!(claim.await.unwrap().1.is_some());
    heartbeat.step().await.unwrap();
    lab.turn().await;
    assert_eq!(lab.runs("hourly").await, ["01:00:00 failed lost"]);
    assert_eq!(starts(&lab), 0, "no handler begins after the end of its run");
}

#[tokio::test]
async fn a_handler_that_would_begin_at_the_end_of_its_lease_does_not() {
    let mut lab = Lab::new();
    lab.create(job("hourly", "0 * * * *", "log")).await;
    lab.engine.heartbeat.step().await.unwrap();
    lab.set("01:00");
    lab.engine.planner.step().await.unwrap();
    lab.engine.claimer.step().await.unwrap();
    // Between the answer and the first moment of the handler.
    lab.set("01:00:45");
    lab.settle().await;
    lab.engine.recorder.step().await.unwrap();
    assert_eq!((starts(&lab), lab.runs("hourly").await), (0, vec!["01:00:00 running".to_owned()]));
    lab.engine.heartbeat.step().await.unwrap();
    lab.turn().await;
    assert_eq!(lab.runs("hourly").await, ["01:00:00 succeeded"]);
    assert_eq!(starts(&lab), 1);
}

/// The job `long` at work since 01:00 on an instance whose heart does not beat any more, and which is patient with handlers.
async fn cut_off(target: &str, can_partition: bool, policies: impl FnOnce(&mut everbell_core::PolicyValues)) -> Lab {
    let mut lab = Lab::with_targets(|targets, _| {
        let deaf = |run: crate::Run| async move {
            run.log("began");
            std::future::pending().await
        };
        targets.add(Target::new("deaf").unwrap(), action(deaf), TargetOptions::default());
        let stopped = |run: crate::Run| async move {
            run.canceled().await;
            error("stopped half-way")
        };
        targets.add(Target::new("stopped").unwrap(), action(stopped), TargetOptions::default());
    });
    lab.store.set_can_partition(can_partition);
    lab.create(with(job("long", "0 * * * *", target), policies)).await;
    let mut patient = options();
    patient.cancel_grace = Duration::from_mins(10);
    let Shared { targets, events, .. } = &*lab.engine.shared;
    let (store, clock) = (Arc::clone(&lab.store) as _, Arc::clone(&lab.clock) as _);
    lab.engine = Engine::new(store, clock, targets.clone(), patient, events.clone());
    lab.engine.heartbeat.step().await.unwrap();
    lab.turn_at("01:00").await;
    assert_eq!(lab.runs("long").await, ["01:00:00 running"]);
    lab
}

/// Whether a handler is at work.
fn works(lab: &Lab) -> bool {
    lab.engine.shared.inflight.is_working()
}

#[tokio::test]
async fn an_instance_that_cannot_renew_its_lease_stops_the_handler_before_others_may_start() {
    let mut lab = cut_off("stopped", true, |_| {}).await;
    lab.set("01:00:44");
    lab.settle().await;
    assert!(works(&lab));
    lab.set("01:00:45");
    lab.settle().await;
    assert!(!works(&lab));
    lab.turn_at("01:00:50").await;
    assert_eq!(lab.runs("long").await, ["01:00:00 failed fenced"], "if nobody was first");
    let failure = lab.records("long").await[0].failure.clone().unwrap();
    assert_eq!(failure.message, "its instance could not renew its lease");
}

#[tokio::test]
async fn a_fenced_run_is_tried_again_if_the_job_allows_it() {
    let mut lab = cut_off("wait", true, |values| values.max_attempts = 2).await;
    lab.turn_at("01:00:45").await;
    assert_eq!(lab.runs("long").await, ["01:00:00 pending fenced"]);
    lab.turn_at("01:00:55").await;
    assert_eq!(lab.runs("long").await, ["01:00:00 running"]);
    assert_eq!(lab.records("long").await[0].attempt, 2);
}

#[tokio::test]
async fn a_handler_that_does_not_listen_is_gone_before_the_lease_ends() {
    let mut lab = cut_off("deaf", true, |_| {}).await;
    for (time, at_work) in [("01:00:45", true), ("01:00:54", true), ("01:00:55", false)] {
        lab.set(time);
        lab.settle().await;
        assert_eq!(works(&lab), at_work, "{time}");
    }
    lab.turn().await;
    assert_eq!(lab.runs("long").await, ["01:00:00 failed fenced"]);
}

#[tokio::test]
async fn a_renewed_lease_moves_the_fence() {
    let mut lab = cut_off("wait", true, |_| {}).await;
    lab.set("01:00:40");
    lab.engine.heartbeat.step().await.unwrap();
    lab.set("01:01:24");
    lab.settle().await;
    assert!(works(&lab));
    // A heartbeat without an answer renews nothing, also if the database has heard it.
    lab.store.fail_next(FaultPoint::After);
    assert!(lab.engine.heartbeat.step().await.is_err());
    lab.set("01:01:25");
    lab.settle().await;
    assert!(!works(&lab));
}

#[tokio::test]
async fn nothing_is_stopped_where_no_instance_can_be_cut_off() {
    let mut lab = cut_off("wait", false, |_| {}).await;
    lab.set("01:05");
    lab.settle().await;
    assert!(works(&lab));
    lab.engine.heartbeat.step().await.unwrap();
    lab.turn().await;
    assert_eq!(lab.runs("long").await, ["01:00:00 running"]);
}

#[tokio::test]
async fn a_job_may_continue_and_its_outcome_is_only_told() {
    for policies in [
        (|values| values.on_lease_loss = Some(OnLeaseLoss::Continue)) as fn(&mut everbell_core::PolicyValues),
        |values| values.overlap = Overlap::Allow,
    ] {
        let mut lab = cut_off("wait", true, policies).await;
        let mut other = lab.engine_beside();
        other.reaper.step().await.unwrap();
        lab.set("01:01:10");
        other.reaper.step().await.unwrap();
        assert_eq!(lab.runs("long").await, ["01:00:00 failed lost"]);
        lab.engine.heartbeat.step().await.unwrap();
        lab.settle().await;
        assert!(works(&lab), "neither for the clock nor for what it hears");
        lab.turn_at("01:15").await;
        assert_eq!(lab.runs("long").await, ["01:00:00 failed lost"], "its timeout still holds");
        assert!(!works(&lab) && lab.heard().contains(&"LeaseLost".to_owned()));
    }
}
