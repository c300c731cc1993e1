//! Runs whose instance is lost or shuts down, of jobs that retry them and of jobs that do not.

use std::time::Duration;

use everbell_core::store::{Canceled, RunStore};
use everbell_core::{EarlierAttempt, FailureCode, OnLeaseLoss, OnLost, PolicyValues, Target};

use super::lab::{Lab, action, at, entry, job, ok, with};
use crate::engine::{Engine, Step};
use crate::events::Event;
use crate::targets::TargetOptions;

/// The job `long` at work since 01:00 on the lab's own instance. Its handler prints its attempt and stops when it is
/// asked to.
async fn at_work(policies: impl FnOnce(&mut PolicyValues)) -> Lab {
    let mut lab = Lab::with_targets(|targets, _| {
        let talk = |run: crate::Run| async move {
            run.log(format!("attempt {} of {}", run.attempt(), run.idempotency_key()));
            run.canceled().await;
            ok()
        };
        targets.add(Target::new("talk").unwrap(), action(talk), TargetOptions::default());
    });
    lab.create(with(job("long", "0 * * * *", "talk"), policies)).await;
    lab.engine.heartbeat.step().await.unwrap();
    lab.turn_at("01:00").await;
    assert_eq!(lab.runs("long").await, ["01:00:00 running"]);
    lab
}

fn retrying(values: &mut PolicyValues) {
    values.max_attempts = 2;
    values.on_lost = OnLost::Retry;
}

/// Another instance notices at 01:01:10 that the lab's own has not been heard of.
async fn reaped(lab: &Lab) -> Engine {
    let mut other = lab.engine_beside();
    lab.set("01:01");
    other.reaper.step().await.unwrap();
    lab.set("01:01:10");
    other.reaper.step().await.unwrap();
    other
}

/// Another instance takes the run over after the backoff, and its handler begins.
async fn taken_over(lab: &Lab, other: &mut Engine) {
    lab.set("01:01:20");
    other.claimer.step().await.unwrap();
    lab.settle().await;
    let run = &lab.records("long").await[0];
    assert_eq!((run.attempt, run.claimed.unwrap().1), (2, other.shared.instance));
}

fn earlier(lab_run: &everbell_core::Run) -> Vec<String> {
    lab_run.earlier_attempts.iter().map(EarlierAttempt::to_string).collect()
}

#[tokio::test]
async fn a_lost_run_is_retried_after_the_backoff_if_its_job_says_so() {
    let mut lab = at_work(retrying).await;
    drop(lab.engine_instead());
    lab.heard();
    let mut other = reaped(&lab).await;
    assert_eq!(lab.runs("long").await, ["01:00:00 pending lost"]);
    let mut retries = Vec::new();
    while let Ok(event) = lab.events.try_recv() {
        retries.extend(if let Event::Reaped { retry_at, .. } = &*event { Some(*retry_at) } else { None });
    }
    assert_eq!(retries, [Some(at("01:01:20"))]);
    assert_eq!(other.shared.signals.next_retry(at("01:01:10")), Some(at("01:01:20")), "and it looks again then");
    other.claimer.step().await.unwrap();
    assert_eq!(lab.runs("long").await, ["01:00:00 pending lost"], "not before");
    taken_over(&lab, &mut other).await;
    assert_eq!(earlier(&lab.records("long").await[0]), ["attempt 1 was lost"]);
    // The second of two attempts is the last.
    drop(other);
    for time in ["01:02:20", "01:02:30"] {
        lab.set(time);
        lab.engine.reaper.step().await.unwrap();
    }
    assert_eq!(lab.runs("long").await, ["01:00:00 failed lost"]);
    let run = &lab.records("long").await[0];
    assert_eq!(run.attempts_in_words().as_deref(), Some("attempt 1 was lost, attempt 2 was lost"));
}

#[tokio::test]
async fn a_lost_run_that_was_asked_to_stop_is_canceled_without_a_wait() {
    let mut lab = at_work(retrying).await;
    let id = lab.records("long").await[0].id;
    let asked = lab.store.cancel_run(id, "ana", at("01:00"), &entry("run.cancel", at("01:00"))).await.unwrap();
    assert_eq!(asked, Canceled::Requested);
    drop(lab.engine_instead());
    lab.heard();
    reaped(&lab).await;
    assert_eq!(lab.runs("long").await, ["01:00:00 canceled canceled"]);
    assert_eq!(earlier(&lab.records("long").await[0]), ["attempt 1 was lost"]);
    assert_eq!(lab.heard(), ["Finished"], "it has neither failed nor will it be retried");
}

#[tokio::test]
async fn a_lost_run_is_not_retried_by_default_however_many_attempts_it_has() {
    let mut lab = at_work(|values| values.max_attempts = 5).await;
    drop(lab.engine_instead());
    reaped(&lab).await;
    assert_eq!(lab.runs("long").await, ["01:00:00 failed lost"]);
}

#[tokio::test]
async fn an_instance_that_was_frozen_records_nothing_of_a_run_that_others_retry() {
    for (on_lease_loss, stops) in [(OnLeaseLoss::Stop, true), (OnLeaseLoss::Continue, false)] {
        let mut lab = at_work(|values| {
            retrying(values);
            values.on_lease_loss = Some(on_lease_loss);
        })
        .await;
        let mut other = reaped(&lab).await;
        taken_over(&lab, &mut other).await;
        let id = lab.records("long").await[0].id;
        // It goes on where it was: its output, its heartbeat, and then its outcome.
        lab.engine.output_saver.step().await.unwrap();
        assert_eq!(lab.store.get_run(id).await.unwrap().output, None, "the output is of another attempt");
        lab.engine.heartbeat.step().await.unwrap();
        lab.settle().await;
        assert_eq!(lab.engine.shared.inflight.is_working(), !stops);
        lab.engine.shared.inflight.stop_all(&crate::run_signals::Stop::Shutdown);
        lab.settle().await;
        lab.heard();
        lab.engine.recorder.step().await.unwrap();
        assert_eq!(lab.heard(), ["LeaseLost"]);
        let run = &lab.records("long").await[0];
        assert_eq!((lab.runs("long").await, run.attempt), (vec!["01:00:00 running".to_owned()], 2));
        assert_eq!(earlier(run), ["attempt 1 was lost"], "the end of the old attempt is not written twice");

        // The attempt that took over ends as if the other had never been.
        other.shared.inflight.stop_all(&crate::run_signals::Stop::Canceled { by: "ana".to_owned() });
        lab.settle().await;
        other.recorder.step().await.unwrap();
        assert_eq!(lab.runs("long").await, ["01:00:00 canceled canceled"]);
        let output = lab.printed("long").await.unwrap();
        assert_eq!(output, format!("attempt 2 of schedule:long:{}\n", at("01:00").as_second()));
    }
}

/// Shuts the lab's own instance down at 01:00; its handler does not end by itself.
async fn shut_down(lab: &mut Lab) {
    let engine = lab.engine_instead();
    let stopping = tokio::spawn(engine.run_until(async {}));
    let begun = lab.engine.shared.now();
    for second in 1..200 {
        lab.clock.set(begun + Duration::from_secs(second));
        lab.settle().await;
        if stopping.is_finished() {
            break;
        }
    }
    stopping.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_run_that_a_shutdown_stops_is_taken_over_at_once_and_uses_up_no_attempt() {
    let mut lab = at_work(retrying).await;
    for stop in 1..=3 {
        shut_down(&mut lab).await;
        let run = lab.records("long").await.remove(0);
        assert_eq!((run.attempt, run.failure.unwrap().code), (stop, FailureCode::SHUTDOWN));
        let last = run.earlier_attempts.last().unwrap();
        assert_eq!(last.ended_at, run.started_at.unwrap() + Duration::from_secs(31), "after the grace");
        assert!(!last.counts);
        lab.turn().await;
        let run = lab.records("long").await.remove(0);
        assert_eq!((run.attempt, run.attempts_used()), (stop + 1, 1), "without a wait");
    }
    // Both attempts of the job are still there: this one is lost, the next one fails for good.
    drop(lab.engine_instead());
    let begun = lab.engine.shared.now();
    for seconds in [61, 80, 100] {
        lab.clock.set(begun + Duration::from_secs(seconds));
        lab.engine.reaper.step().await.unwrap();
        lab.turn().await;
    }
    let run = lab.records("long").await.remove(0);
    assert_eq!((run.attempt, run.attempts_used()), (5, 2));
    lab.clock.set(lab.engine.shared.now() + Duration::from_mins(15));
    lab.turn().await;
    assert_eq!(lab.runs("long").await[0], "01:00:00 failed timeout");
}

#[tokio::test]
async fn a_shutdown_uses_up_an_attempt_of_a_job_whose_lost_runs_fail() {
    let mut lab = at_work(|values| values.max_attempts = 2).await;
    shut_down(&mut lab).await;
    let run = lab.records("long").await.remove(0);
    assert_eq!((lab.runs("long").await, run.attempts_used()), (vec!["01:00:00 pending shutdown".to_owned()], 1));
    assert_eq!(run.next_attempt_at, Some(at("01:00:41")), "after the backoff");
    lab.turn_at("01:00:41").await;
    shut_down(&mut lab).await;
    assert_eq!(lab.runs("long").await, ["01:00:00 failed shutdown"]);
}
