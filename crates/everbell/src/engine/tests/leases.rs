//! Timeouts, cancellation, leases and the orderly end.

use std::time::Duration;

use everbell_core::store::{ClusterStore, CounterStore, RunStore, StoreError};
use everbell_core::{FailureCode, Target};
use everbell_store::memory::FaultPoint;

use super::lab::{Lab, action, at, entry, job, ok, with};
use crate::engine::{Step, Wait};
use crate::targets::TargetOptions;

/// A job that waits until it is canceled, started at 01:00.
async fn waiting() -> Lab {
    let mut lab = Lab::new();
    lab.create(job("long", "0 * * * *", "wait")).await;
    lab.engine.heartbeat.step().await.unwrap();
    lab.turn_at("01:00").await;
    assert_eq!(lab.runs("long").await, ["01:00:00 running"]);
    lab
}

#[tokio::test]
async fn a_run_that_takes_too_long_is_stopped() {
    let mut lab = waiting().await;
    lab.turn_at("01:14:59").await;
    assert_eq!(lab.runs("long").await, ["01:00:00 running"]);
    lab.turn_at("01:15").await;
    assert_eq!(lab.runs("long").await, ["01:00:00 failed timeout"]);
}

#[tokio::test]
async fn a_target_may_be_stricter_than_the_job() {
    let strict = TargetOptions::default().timeout(Duration::from_secs(10));
    let mut lab = Lab::with_targets(|targets, _| {
        let wait = |run: crate::Run| async move {
            run.canceled().await;
            ok()
        };
        targets.add(Target::new("strict").unwrap(), action(wait), strict);
    });
    lab.create(job("strict", "0 * * * *", "strict")).await;
    lab.turn_at("01:00").await;
    lab.turn_at("01:00:10").await;
    assert_eq!(lab.runs("strict").await, ["01:00:00 failed timeout"]);
}

#[tokio::test]
async fn a_handler_that_does_not_listen_is_dropped_after_its_grace() {
    let mut lab = Lab::with_targets(|targets, _| {
        let deaf = |run: crate::Run| async move {
            run.log("began");
            std::future::pending().await
        };
        targets.add(Target::new("deaf").unwrap(), action(deaf), TargetOptions::default());
    });
    lab.create(job("deaf", "0 * * * *", "deaf")).await;
    lab.turn_at("01:00").await;
    lab.turn_at("01:15").await;
    assert_eq!(lab.runs("deaf").await, ["01:00:00 running"], "it has its grace");
    lab.turn_at("01:15:10").await;
    assert_eq!(lab.runs("deaf").await, ["01:00:00 failed timeout"]);
    assert_eq!(lab.printed("deaf").await.as_deref(), Some("began\n"));
}

#[tokio::test]
async fn a_cancellation_reaches_the_handler_with_the_next_heartbeat() {
    let mut lab = waiting().await;
    let id = lab.records("long").await[0].id;
    let asked = lab.store.cancel_run(id, "ana", at("01:00:02"), &entry("run.cancel", at("01:00:02"))).await;
    assert_eq!(asked.unwrap(), everbell_core::store::Canceled::Requested);
    lab.set("01:00:02");
    lab.engine.heartbeat.step().await.unwrap();
    lab.settle().await;
    lab.turn().await;
    assert_eq!(lab.runs("long").await, ["01:00:00 canceled canceled"]);
    assert_eq!(lab.records("long").await[0].failure.as_ref().unwrap().message, "canceled by ana");
}

#[tokio::test]
async fn a_run_that_was_canceled_between_two_attempts_does_not_start_again() {
    let mut lab = Lab::new();
    lab.create(with(job("flaky", "0 * * * *", "wait"), |values| values.max_attempts = 3)).await;
    lab.turn_at("01:00").await;
    let id = lab.records("flaky").await[0].id;
    lab.store.cancel_run(id, "ana", at("01:15"), &entry("run.cancel", at("01:15"))).await.unwrap();
    // The timeout comes before the heartbeat that would notice.
    lab.turn_at("01:15").await;
    lab.turn_at("01:16").await;
    assert_eq!(lab.runs("flaky").await, ["01:00:00 canceled canceled"]);
}

#[tokio::test]
async fn heartbeats_extend_leases_and_woken_ones_keep_their_distance() {
    let mut lab = waiting().await;
    let lease = |run: &everbell_core::Run| run.lease_until.unwrap();
    assert_eq!(lease(&lab.records("long").await[0]), at("01:01:00"));
    lab.set("01:00:05");
    assert_eq!(lab.engine.heartbeat.step().await.unwrap(), Wait::For(Duration::from_secs(5)));
    assert_eq!(lease(&lab.records("long").await[0]), at("01:01:05"));
    lab.set("01:00:05.500");
    assert_eq!(lab.engine.heartbeat.step().await.unwrap(), Wait::For(Duration::from_millis(500)), "woken too early");
    let instances = lab.store.list_instances().await.unwrap();
    assert_eq!((instances.len(), instances[0].heartbeat_at), (1, at("01:00:05")));
    assert_eq!(instances[0].targets.len(), 4);
}

#[tokio::test]
async fn a_lost_run_says_whose_lease_ran_out_and_when() {
    let mut lab = waiting().await;
    lab.engine.heartbeat.step().await.unwrap();
    let mut other = lab.engine_beside();
    lab.set("01:01");
    other.reaper.step().await.unwrap();
    let lease_until = lab.records("long").await[0].lease_until.unwrap();
    lab.set("01:01:10");
    other.reaper.step().await.unwrap();
    let failure = lab.records("long").await[0].failure.clone().unwrap();
    let details: serde_json::Value = serde_json::from_str(failure.details.unwrap().as_str()).unwrap();
    let instance = lab.engine.shared.instance.to_string();
    let expected = serde_json::json!({ "host": "lab", "instanceId": instance, "leaseUntil": lease_until.to_string() });
    assert_eq!((failure.code, details), (FailureCode::LOST, expected));
}

#[tokio::test]
async fn a_lost_lease_stops_the_handler_and_its_outcome_is_not_recorded() {
    let mut lab = waiting().await;
    let mut other = lab.engine_beside();
    lab.set("01:01");
    assert_eq!(other.reaper.step().await.unwrap(), Wait::For(Duration::from_secs(10)), "it waits for heartbeats first");
    lab.set("01:01:10");
    other.reaper.step().await.unwrap();
    assert_eq!(lab.runs("long").await, ["01:00:00 failed lost"]);
    lab.engine.heartbeat.step().await.unwrap();
    lab.settle().await;
    lab.turn().await;
    assert_eq!(lab.runs("long").await, ["01:00:00 failed lost"]);
    assert!(lab.heard().ends_with(&["Reaped".to_owned(), "LeaseLost".to_owned()]));
    assert!(lab.engine.shared.inflight.is_empty());
}

#[tokio::test]
async fn after_an_outage_leases_that_ran_out_are_extended_before_anybody_reaps_them() {
    let mut lab = waiting().await;
    lab.engine.reaper.step().await.unwrap();
    let mut other = lab.engine_beside();
    lab.set("01:05");
    lab.store.fail_next(FaultPoint::Before);
    assert!(lab.engine.reaper.step().await.is_err());
    lab.engine.reaper.step().await.unwrap();
    other.reaper.step().await.unwrap();
    lab.engine.heartbeat.step().await.unwrap();
    lab.set("01:05:10");
    lab.engine.reaper.step().await.unwrap();
    other.reaper.step().await.unwrap();
    assert_eq!(lab.runs("long").await, ["01:00:00 running"]);
    assert_eq!(lab.records("long").await[0].lease_until, Some(at("01:06")));
}

#[tokio::test]
async fn pending_runs_of_a_dead_instance_are_taken_by_a_live_one() {
    let mut lab = Lab::new();
    lab.create(job("hourly", "0 * * * *", "log")).await;
    lab.set("01:00");
    let mut other = lab.engine_beside();
    other.planner.step().await.unwrap();
    drop(other);
    assert_eq!(lab.runs("hourly").await, ["01:00:00 pending"]);
    lab.engine.claimer.step().await.unwrap();
    lab.settle().await;
    lab.engine.recorder.step().await.unwrap();
    assert_eq!(lab.runs("hourly").await, ["01:00:00 succeeded"]);
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_given_back_and_runs() {
    let mut lab = Lab::new();
    lab.create(job("hourly", "0 * * * *", "log")).await;
    lab.engine.heartbeat.step().await.unwrap();
    lab.set("01:00");
    lab.engine.planner.step().await.unwrap();
    lab.store.fail_next(FaultPoint::After);
    let error = lab.engine.claimer.step().await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { maybe_done: true, .. }));
    assert_eq!(lab.runs("hourly").await, ["01:00:00 running"], "leased, and nobody works on it");
    for time in ["01:00:05", "01:00:10"] {
        lab.set(time);
        lab.engine.heartbeat.step().await.unwrap();
    }
    lab.turn().await;
    assert_eq!(lab.runs("hourly").await, ["01:00:00 succeeded"]);
    assert_eq!(lab.log.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn dead_instances_are_forgotten() {
    let mut lab = Lab::new();
    let mut other = lab.engine_beside();
    other.heartbeat.step().await.unwrap();
    drop(other);
    for time in ["00:09", "00:11"] {
        lab.set(time);
        lab.engine.heartbeat.step().await.unwrap();
        lab.engine.reaper.step().await.unwrap();
    }
    lab.set("00:11:10");
    lab.engine.reaper.step().await.unwrap();
    assert_eq!(lab.store.list_instances().await.unwrap().len(), 1);
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn runs_of_a_killed_process_of_this_machine_do_not_wait_for_their_lease() {
    let lab = waiting().await;
    let mut other = lab.engine_beside();
    let dead = |process: String| {
        everbell_core::with!(everbell_core::store::Instance {
            process: Some(process),
            ..lab.engine.shared.instance(at("01:00"))
        })
    };
    let own = lab.engine.shared.instance(at("01:00")).process.unwrap();
    let started: u64 = own.rsplit_once(' ').unwrap().1.parse().unwrap();
    let gone = dead(own.replace(&format!(" {started}"), &format!(" {}", started + 1)));
    // A process of another container cannot be judged.
    lab.store.heartbeat(&dead(format!("x{}", gone.process.as_ref().unwrap())), None, false).await.unwrap();
    for time in ["01:00:01", "01:00:08"] {
        lab.set(time);
        other.reaper.step().await.unwrap();
        assert_eq!(lab.runs("long").await, ["01:00:00 running"]);
    }
    lab.store.heartbeat(&gone, None, false).await.unwrap();
    for (time, run) in
        [("01:00:12", "01:00:00 running"), ("01:00:17", "01:00:00 running"), ("01:00:18", "01:00:00 failed lost")]
    {
        lab.set(time);
        other.reaper.step().await.unwrap();
        assert_eq!(lab.runs("long").await, [run], "{time}: its programs get the time to end");
    }
    assert!(lab.store.list_instances().await.unwrap().is_empty(), "and it is forgotten");
    // Where an instance can be cut off, others may be on other machines, and only the lease decides.
    lab.store.set_can_partition(true);
    lab.store.heartbeat(&gone, None, false).await.unwrap();
    for time in ["01:00:30", "01:00:40"] {
        lab.set(time);
        other.reaper.step().await.unwrap();
        assert_eq!(lab.store.list_instances().await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn old_history_is_pruned() {
    let mut lab = Lab::new();
    lab.create(job("hourly", "0 * * * *", "log")).await;
    lab.turn_at("01:00").await;
    assert_eq!(lab.engine.pruner.step().await.unwrap(), Wait::For(Duration::from_mins(1)), "not at once");
    lab.set("01:01");
    assert_eq!(lab.engine.pruner.step().await.unwrap(), Wait::For(Duration::from_mins(10)));
    assert_eq!(lab.runs("hourly").await.len(), 1);
    lab.clock.set(at("2027-05-15T00:00:00Z"));
    lab.engine.pruner.step().await.unwrap();
    assert_eq!(lab.runs("hourly").await, [""; 0]);
}

#[tokio::test]
async fn hours_are_counted_in_the_background() {
    let mut lab = Lab::new();
    lab.create(job("hourly", "0 * * * *", "log")).await;
    for time in ["01:00", "02:00"] {
        lab.turn_at(time).await;
    }
    lab.set("03:10");
    assert_eq!(lab.engine.counter.step().await.unwrap(), Wait::For(Duration::from_mins(1)), "not at once");
    let runs = async |lab: &Lab| {
        let counted = lab.store.read_counters(at("00:00"), at("04:00"), None).await.unwrap();
        counted.iter().map(|(_, counters)| counters.runs()).sum::<u64>()
    };
    for expected in [1, 2] {
        assert_eq!(lab.engine.counter.step().await.unwrap(), Wait::For(Duration::from_millis(200)));
        assert_eq!(runs(&lab).await, expected, "an hour at a time");
    }
    assert_eq!(lab.engine.counter.step().await.unwrap(), Wait::For(Duration::from_mins(5)), "nothing is left");
    lab.clock.set(at("2027-05-15T00:00:00Z"));
    lab.engine.counter.step().await.unwrap();
    assert_eq!(runs(&lab).await, 2, "hours that the retention covers are not counted again");
}

#[tokio::test]
async fn an_orderly_end_waits_for_handlers_then_stops_them_and_leaves_nothing_running() {
    let mut lab = waiting().await;
    let (store, clock) = (lab.store.clone(), lab.clock.clone());
    lab.engine.shared.events.listen();
    let engine = lab.engine_instead();
    let stopping = tokio::spawn(engine.run_until(async {}));
    for second in 1..200 {
        clock.set(at("01:00") + jiff::SignedDuration::from_secs(second));
        lab.settle().await;
        if stopping.is_finished() {
            break;
        }
    }
    stopping.await.unwrap().unwrap();
    let run = store.get_run(lab.records("long").await[0].id).await.unwrap();
    assert_eq!(run.failure.unwrap().code, FailureCode::SHUTDOWN);
    assert_eq!(run.finished_at, Some(at("01:00:31")), "after the grace");
    assert!(store.list_instances().await.unwrap().is_empty(), "and it said goodbye");
}
