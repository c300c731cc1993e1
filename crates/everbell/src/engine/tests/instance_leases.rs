//! The lease of the instance: one request for each heartbeat, and what makes it look closer.

use std::sync::Arc;
use std::time::Duration;

use everbell_core::settle::{Outcome, settle};
use everbell_core::store::{ClusterStore, RunStore};
use everbell_store::conformance::faults::Faulty;
use jiff::SignedDuration;

use super::lab::{Lab, at, job};
use crate::engine::{Engine, Step, Wait};

const HEARTBEAT: Duration = Duration::from_secs(5);

/// A lab whose instance counts its calls to the store, with the run of `long` at work since 01:00. Instances can be cut off.
async fn counted() -> (Lab, Arc<Faulty>) {
    let mut lab = Lab::new();
    lab.store.set_can_partition(true);
    let counting = Arc::new(Faulty::new(Arc::clone(&lab.store) as _, |_| None));
    lab.engine = lab.engine_on(Arc::clone(&counting) as _);
    lab.create(job("long", "0 * * * *", "wait")).await;
    lab.set("01:00");
    lab.engine.heartbeat.step().await.unwrap();
    lab.turn().await;
    assert_eq!(lab.runs("long").await, ["01:00:00 running"]);
    (lab, counting)
}

fn set_after(lab: &Lab, seconds: i64) {
    lab.clock.set(at("01:00") + SignedDuration::from_secs(seconds));
}

/// The calls that the next heartbeat makes, this many seconds after 01:00.
async fn calls_of_a_beat(lab: &mut Lab, counting: &Faulty, seconds: i64) -> u32 {
    set_after(lab, seconds);
    let before = counting.calls();
    assert_eq!(lab.engine.heartbeat.step().await.unwrap(), Wait::For(HEARTBEAT));
    lab.settle().await;
    counting.calls() - before
}

/// Reaps what `other` finds; it had its patience.
async fn reap(other: &mut Engine) {
    other.heartbeat.step().await.unwrap();
    other.reaper.step().await.unwrap();
}

#[tokio::test]
async fn a_heartbeat_is_one_request_and_compares_once_a_minute() {
    let (mut lab, counting) = counted().await;
    let mut calls = Vec::new();
    for beat in 1..=13 {
        calls.push(calls_of_a_beat(&mut lab, &counting, 5 * beat).await);
    }
    assert_eq!(calls, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1]);
    assert_eq!(lab.runs("long").await, ["01:00:00 running"]);
}

#[tokio::test]
async fn light_heartbeats_keep_a_run_from_the_reaper_and_its_handler_at_work() {
    let (mut lab, counting) = counted().await;
    let mut other = lab.engine_beside();
    for beat in 1..=60 {
        calls_of_a_beat(&mut lab, &counting, 5 * beat).await;
        reap(&mut other).await;
    }
    assert_eq!(lab.runs("long").await, ["01:00:00 running"], "after five minutes");
    assert!(lab.engine.shared.inflight.is_working(), "it was not fenced");
    assert_eq!(lab.records("long").await[0].lease_until, Some(at("01:06")));
    // And when they stop, others take it within a lease and a heartbeat.
    for seconds in (305..=370).step_by(5) {
        set_after(&lab, seconds);
        reap(&mut other).await;
        let expected = if seconds > 360 { "01:00:00 failed lost" } else { "01:00:00 running" };
        assert_eq!(lab.runs("long").await, [expected], "{seconds} s");
    }
}

#[tokio::test]
async fn a_run_that_others_have_taken_is_noticed_with_the_next_heartbeat() {
    let (mut lab, counting) = counted().await;
    assert_eq!(calls_of_a_beat(&mut lab, &counting, 5).await, 1);
    // As a reaper does that has read the leases before the last heartbeat.
    let held = lab.store.leases_of(lab.engine.shared.instance, 10).await.unwrap();
    let lost: Vec<_> = held.iter().filter_map(|run| settle(run, Outcome::Lost(None), at("01:00:06"))).collect();
    lab.store.record(&lost, at("01:00:06")).await.unwrap();
    assert_eq!(calls_of_a_beat(&mut lab, &counting, 10).await, 2, "it asks which ones are its own");
    lab.turn().await;
    assert!(lab.engine.shared.inflight.is_empty(), "the handler was stopped");
    assert_eq!(lab.runs("long").await, ["01:00:00 failed lost"]);
    assert_eq!(calls_of_a_beat(&mut lab, &counting, 15).await, 2, "its run may have been left behind");
    assert_eq!(calls_of_a_beat(&mut lab, &counting, 20).await, 2, "or may be leased by a claim that was given up");
    assert_eq!(calls_of_a_beat(&mut lab, &counting, 35).await, 1);
}

#[tokio::test]
async fn a_comparison_that_failed_is_made_up_for() {
    let lab = Lab::new();
    let calls = std::sync::atomic::AtomicU32::new(0);
    // Two questions about the heartbeats of others come first. The heartbeat itself is answered, the comparison is not.
    let faulty = Arc::new(Faulty::new(Arc::clone(&lab.store) as _, move |_| {
        let call = calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        (call == 3).then_some(everbell_store::memory::FaultPoint::Before)
    }));
    let mut other = lab.engine_on(Arc::clone(&faulty) as _);
    assert!(other.heartbeat.step().await.is_err());
    assert_eq!(faulty.calls(), 4);
    other.heartbeat.step().await.unwrap();
    assert_eq!(faulty.calls(), 8, "the questions, a heartbeat, and the comparison");
}

#[tokio::test]
async fn a_heartbeat_after_one_that_failed_compares() {
    let mut lab = Lab::new();
    let is_down = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let down = Arc::clone(&is_down);
    let faulty = Arc::new(Faulty::new(Arc::clone(&lab.store) as _, move |_| {
        down.load(std::sync::atomic::Ordering::Relaxed).then_some(everbell_store::memory::FaultPoint::Before)
    }));
    lab.engine = lab.engine_on(Arc::clone(&faulty) as _);
    set_after(&lab, 0);
    lab.engine.heartbeat.step().await.unwrap();
    assert_eq!(calls_of_a_beat(&mut lab, &faulty, 5).await, 1);
    is_down.store(true, std::sync::atomic::Ordering::Relaxed);
    set_after(&lab, 10);
    assert!(lab.engine.heartbeat.step().await.is_err());
    is_down.store(false, std::sync::atomic::Ordering::Relaxed);
    // Well before its runs are fenced: only the failure is a reason.
    assert_eq!(calls_of_a_beat(&mut lab, &faulty, 15).await, 2, "the database may be another one");
    assert_eq!(calls_of_a_beat(&mut lab, &faulty, 20).await, 1);
}

#[tokio::test]
async fn beside_an_instance_of_an_older_release_every_heartbeat_extends_the_leases_of_runs() {
    let (mut lab, counting) = counted().await;
    let old = everbell_core::with!(everbell_core::store::Instance {
        id: everbell_core::InstanceId::new(at("00:30"), [7; 10]),
        ..lab.engine.shared.instance(at("01:00"))
    });
    lab.store.heartbeat(&old, None, false).await.unwrap();
    for beat in 1..=3 {
        assert_eq!(calls_of_a_beat(&mut lab, &counting, 5 * beat).await, 2, "beat {beat}");
    }
    lab.store.leave(old.id, at("01:01"), at("01:01")).await.unwrap();
    assert_eq!(calls_of_a_beat(&mut lab, &counting, 20).await, 1, "it has left");
}

/// Whether a signal is set, which is taken by that.
async fn is_signaled(signal: &tokio::sync::Notify) -> bool {
    tokio::select! {
        biased;
        () = signal.notified() => true,
        () = std::future::ready(()) => false,
    }
}

#[tokio::test]
async fn heartbeats_look_for_work_while_nothing_is_in_flight() {
    let mut lab = Lab::new();
    let poll = Wait::For(Duration::from_secs(5));
    assert_eq!(lab.engine.planner.step().await.unwrap(), poll, "before the first heartbeat");
    lab.engine.heartbeat.step().await.unwrap();
    let resting = Wait::For(Duration::from_mins(1));
    assert_eq!(lab.engine.planner.step().await.unwrap(), resting);
    assert_eq!(lab.engine.claimer.step().await.unwrap(), resting);

    // A job of another instance whose notification is lost.
    lab.create(job("long", "0 1 * * *", "wait")).await;
    let signals = |lab: &Lab| Arc::clone(&lab.engine.shared);
    lab.set("00:59:55");
    lab.engine.heartbeat.step().await.unwrap();
    assert!(!is_signaled(&signals(&lab).signals.plan).await);
    lab.set("01:00");
    lab.engine.heartbeat.step().await.unwrap();
    assert!(is_signaled(&signals(&lab).signals.plan).await, "a timer is due");
    // So that its run does not start with its plan.
    lab.engine.shared.claims.note_pending();
    lab.engine.planner.step().await.unwrap();
    assert!(is_signaled(&signals(&lab).signals.claim).await);
    lab.set("01:00:05");
    lab.engine.heartbeat.step().await.unwrap();
    assert!(is_signaled(&signals(&lab).signals.claim).await, "a run is pending");

    // Once it is at work, the loops look by themselves.
    lab.turn().await;
    assert_eq!(lab.runs("long").await, ["01:00:00 running"]);
    lab.set("01:00:10");
    lab.engine.heartbeat.step().await.unwrap();
    assert!(is_signaled(&signals(&lab).signals.plan).await, "they are woken for that");
    assert_eq!(lab.engine.planner.step().await.unwrap(), poll);
    assert_eq!(lab.engine.claimer.step().await.unwrap(), poll);
}

#[tokio::test]
async fn the_clock_is_asked_seldom_while_nothing_is_due_and_nothing_in_flight() {
    let mut lab = Lab::new();
    lab.create(job("long", "0 1 * * *", "wait")).await;
    lab.engine.anchor.step().await.unwrap();
    lab.set("00:00:01");
    assert_eq!(lab.engine.anchor.step().await.unwrap(), Wait::For(Duration::from_secs(1)), "the planner did not look");
    lab.engine.planner.step().await.unwrap();
    lab.set("00:00:02");
    assert_eq!(lab.engine.anchor.step().await.unwrap(), Wait::For(Duration::from_secs(15)));
    lab.set("00:59:30");
    assert_eq!(lab.engine.anchor.step().await.unwrap(), Wait::For(Duration::from_secs(1)), "soon something is due");
    lab.turn_at("01:00").await;
    assert!(is_signaled(&lab.engine.shared.signals.anchor).await, "a run has started");
    assert_eq!(lab.engine.anchor.step().await.unwrap(), Wait::For(Duration::from_secs(1)), "it is in flight");
}

#[tokio::test]
async fn the_reaper_rests_while_all_others_are_alive() {
    let (mut lab, counting) = counted().await;
    let mut other = lab.engine_beside();
    let mut asked = Vec::new();
    for beat in 1..=40 {
        set_after(&lab, 5 * beat);
        if beat < 25 {
            other.heartbeat.step().await.unwrap();
        }
        lab.engine.heartbeat.step().await.unwrap();
        let before = counting.calls();
        lab.engine.reaper.step().await.unwrap();
        if counting.calls() > before {
            asked.push(beat);
        }
    }
    // Patient at first, then every 40 s, and always once the other is silent for a lease.
    assert_eq!(asked, [1, 2, 3, 11, 19, 27, 35, 37, 38, 39, 40]);
}
