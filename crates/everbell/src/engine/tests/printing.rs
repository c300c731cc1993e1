//! Output of runs is saved while they are at work.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use everbell_core::store::RunStore;
use everbell_core::{OutputSoFar, Target};

use super::lab::{Lab, action, job, ok};
use crate::Run;
use crate::engine::{Step, Wait};
use crate::targets::TargetOptions;

/// A lab with a target that hands its run to the test and ends when it is canceled.
fn lab() -> (Lab, Arc<Mutex<Vec<Run>>>) {
    let runs: Arc<Mutex<Vec<Run>>> = Arc::default();
    let given = Arc::clone(&runs);
    let talk = move |run: Run| {
        given.lock().unwrap().push(run.clone());
        async move {
            run.canceled().await;
            ok()
        }
    };
    let lab = Lab::with_targets(|targets, _| {
        targets.add(Target::new("talk").unwrap(), action(talk), TargetOptions::default());
    });
    (lab, runs)
}

async fn keep_at(lab: &mut Lab, time: &str) -> Wait {
    lab.set(time);
    lab.engine.output_saver.step().await.unwrap()
}

#[tokio::test]
async fn what_a_run_prints_is_kept_while_it_is_at_work() {
    let (mut lab, runs) = lab();
    lab.create(job("chatty", "0 * * * *", "talk")).await;
    assert_eq!(keep_at(&mut lab, "00:00").await, Wait::For(Duration::from_secs(1)));
    lab.turn_at("01:00").await;
    let run = runs.lock().unwrap()[0].clone();
    run.log("one");
    keep_at(&mut lab, "01:00:01").await;
    assert_eq!(lab.printed("chatty").await, None, "most runs are done before");
    keep_at(&mut lab, "01:00:02").await;
    assert_eq!(lab.printed("chatty").await.as_deref(), Some("one\n"));

    run.log("two");
    keep_at(&mut lab, "01:00:03").await;
    assert_eq!(lab.printed("chatty").await.as_deref(), Some("one\n"), "not all the time");
    keep_at(&mut lab, "01:00:04").await;
    assert_eq!(lab.printed("chatty").await.as_deref(), Some("one\ntwo\n"));
}

#[tokio::test]
async fn what_is_kept_already_is_not_written_again() {
    let (mut lab, runs) = lab();
    lab.create(job("chatty", "0 * * * *", "talk")).await;
    lab.turn_at("01:00").await;
    let run = runs.lock().unwrap()[0].clone();
    run.log("one");
    keep_at(&mut lab, "01:00:02").await;
    let mark = OutputSoFar { run_id: run.id(), attempt: 1, text: "a mark".to_owned() };
    lab.store.save_outputs(&[mark]).await.unwrap();
    keep_at(&mut lab, "01:00:10").await;
    assert_eq!(lab.printed("chatty").await.as_deref(), Some("a mark"));
    run.log("two");
    keep_at(&mut lab, "01:00:11").await;
    assert_eq!(lab.printed("chatty").await.as_deref(), Some("one\ntwo\n"));
}

#[tokio::test]
async fn who_waited_longest_has_the_first_turn() {
    let (mut lab, runs) = lab();
    let keys: Vec<String> = (0..40).map(|number| format!("job-{number}")).collect();
    for key in &keys {
        lab.create(job(key, "0 * * * *", "talk")).await;
    }
    lab.turn_at("01:00").await;
    for run in runs.lock().unwrap().iter() {
        run.log("one");
    }
    let mut kept = Vec::new();
    for time in ["01:00:02", "01:00:03"] {
        keep_at(&mut lab, time).await;
        for run in runs.lock().unwrap().iter() {
            run.log("more");
        }
        let mut seen = 0;
        for key in &keys {
            seen += usize::from(lab.printed(key).await.is_some());
        }
        kept.push(seen);
    }
    assert_eq!(kept, [32, 40]);
}

#[tokio::test]
async fn a_run_whose_instance_is_gone_keeps_what_was_heard_of_it() {
    let (mut lab, runs) = lab();
    lab.create(job("chatty", "0 * * * *", "talk")).await;
    lab.engine.heartbeat.step().await.unwrap();
    lab.turn_at("01:00").await;
    runs.lock().unwrap()[0].log("almost there");
    keep_at(&mut lab, "01:00:02").await;
    drop(lab.engine_instead());
    for time in ["01:01", "01:01:10"] {
        lab.set(time);
        lab.engine.reaper.step().await.unwrap();
    }
    assert_eq!(lab.runs("chatty").await, ["01:00:00 failed lost"]);
    assert_eq!(lab.printed("chatty").await.as_deref(), Some("almost there\n"));
}
