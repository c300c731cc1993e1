//! Requests that a handler can make when it fails.

use std::sync::Arc;
use std::time::Duration;

use everbell_core::store::{AccessStore, PageRequest};
use everbell_core::{JobStatus, Pause, Target, change};
use tokio::sync::Notify;

use super::lab::{Lab, action, at, job, with};
use crate::error::RunError;
use crate::targets::TargetOptions;

#[tokio::test]
async fn a_handler_can_put_off_its_next_attempt() {
    let busy = |_| async { RunError::fail("busy", "come back").retry_after(Duration::from_mins(5)).into_outcome() };
    let mut lab = Lab::with_targets(|targets, _| {
        targets.add(Target::new("busy").unwrap(), action(busy), TargetOptions::default());
    });
    lab.create(with(job("patient", "0 1 * * *", "busy"), |values| values.max_attempts = 2)).await;
    lab.turn_at("01:00").await;
    lab.turn_at("01:04:59").await;
    assert_eq!(lab.records("patient").await[0].attempt, 1);
    lab.turn_at("01:05").await;
    assert_eq!(lab.runs("patient").await, ["01:00:00 failed busy"]);
    assert_eq!(lab.records("patient").await[0].attempt, 2);
}

#[tokio::test]
async fn a_handler_can_pause_its_job() {
    let gone =
        |_| async { RunError::fail("gone", "nobody is there").pausing("nobody is there any more").into_outcome() };
    let mut lab = Lab::with_targets(|targets, _| {
        targets.add(Target::new("gone").unwrap(), action(gone), TargetOptions::default());
    });
    lab.create(with(job("orphan", "0 * * * *", "gone"), |values| {
        values.max_attempts = 3;
        values.pause_after_failures = Some(1);
    }))
    .await;
    lab.turn_at("01:00").await;
    assert_eq!(lab.runs("orphan").await, ["01:00:00 failed gone"], "it is not tried again");
    assert_eq!(lab.heard(), ["Fired", "Started", "Finished", "Paused"]);
    let state = lab.job("orphan").await.job.state;
    let pause = state.pause.unwrap();
    assert_eq!((state.status, pause.by.as_str()), (JobStatus::Paused, "everbell"));
    assert_eq!(pause.reason, "nobody is there any more");
    let trail = lab.store.list_audit(None, &PageRequest { limit: 1, after: None }).await.unwrap().items;
    assert_eq!((trail[0].actor.as_str(), trail[0].action.as_str()), ("everbell", "job.pause"));
    assert_eq!(
        (trail[0].object.as_str(), trail[0].reason.as_deref()),
        ("job:orphan", Some("nobody is there any more"))
    );
    lab.turn_at("02:00").await;
    assert_eq!(lab.runs("orphan").await.len(), 1);
}

#[tokio::test]
async fn a_pause_that_somebody_made_meanwhile_keeps_its_reason() {
    let go = Arc::new(Notify::new());
    let told = Arc::clone(&go);
    let gone = move |_| {
        let go = Arc::clone(&told);
        async move {
            go.notified().await;
            RunError::fail("gone", "nobody is there").pausing("nobody is there any more").into_outcome()
        }
    };
    let mut lab = Lab::with_targets(|targets, _| {
        targets.add(Target::new("gone").unwrap(), action(gone), TargetOptions::default());
    });
    lab.create(job("orphan", "0 * * * *", "gone")).await;
    lab.turn_at("01:00").await;
    let pause = Pause { reason: "holidays".to_owned(), by: "ana".to_owned(), at: at("01:00:01"), until: None };
    lab.change("orphan", |view| change::pause(view, pause.clone())).await.unwrap();
    go.notify_one();
    lab.turn_at("01:00:02").await;
    assert_eq!(lab.runs("orphan").await, ["01:00:00 failed gone"]);
    assert_eq!(lab.job("orphan").await.job.state.pause.unwrap().reason, "holidays");
    assert!(!lab.heard().contains(&"Paused".to_owned()));
}
