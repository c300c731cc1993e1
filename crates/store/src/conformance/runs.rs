//! Runs: get, cancel, insert.

use everbell_core::store::Canceled;
use everbell_core::{JobStatus, RunStatus};

use super::Fresh;
use super::given::{LOG, MAIL, assert_refused, at, audit, by_hand, job, trial};
use super::plain::Plain;
use super::world::{World, canceled, success};

pub async fn an_unknown_run_is_not_found(fresh: Fresh) {
    let world = World::new(&fresh);
    let id = by_hand(at("01:00"), "unknown");
    assert_refused(world.store.get_run(id).await, "not found");
    let entry = audit("run.cancel", "run", at("01:00"));
    assert_refused(world.store.cancel_run(id, "ana", at("01:00"), &entry).await, "not found");
    assert_eq!(world.actions(None).await, [""; 0]);
}

pub async fn a_pending_run_is_canceled_at_once(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    let id = world.plan(at("01:00")).await.runs[0].id;
    let now = at("01:00:05");
    let answer = world.store.cancel_run(id, "token:ops", now, &audit("run.cancel", "run:1", now)).await.unwrap();
    assert_eq!(answer, Canceled::AtOnce);
    let run = world.run(id).await;
    assert_eq!((run.status, run.finished_at, run.started_at), (RunStatus::Canceled, Some(now), None));
    let failure = run.failure.unwrap();
    assert_eq!((failure.code.as_str(), failure.message.as_str()), ("canceled", "canceled by token:ops"));
    assert_eq!((run.cancel_by, run.lease_until, run.held), (None, None, false));
    assert_eq!(world.actions(Some("run:1")).await, ["run.cancel"]);
    assert_eq!(world.plan(at("02:00")).await.runs[0].skipped, None, "nothing is in the way of the next slot");
}

pub async fn a_running_run_is_asked_to_stop(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    world.plan(at("01:00")).await;
    let claims = world.start(at("01:00")).await;
    let (id, now) = (claims[0].run.id, at("01:00:05"));
    for by in ["ana", "bo"] {
        let answer = world.store.cancel_run(id, by, now, &audit("run.cancel", "run:1", now)).await.unwrap();
        assert_eq!(answer, Canceled::Requested, "as often as somebody asks");
    }
    let run = world.run(id).await;
    assert_eq!((run.status, run.cancel_by.as_deref(), run.finished_at), (RunStatus::Running, Some("ana"), None));
    assert_eq!(run.lease_until, Some(claims[0].lease_until));
    assert_eq!(world.actions(Some("run:1")).await.len(), 2);
    world.finish(&claims, &canceled(), at("01:00:10")).await;
    assert_eq!(world.run(id).await.status, RunStatus::Canceled);
}

pub async fn a_run_that_has_ended_cannot_be_canceled(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    let ended = world.run_due(&success(), at("01:00")).await[0].run.id;
    world.plan(at("02:00")).await;
    let skipped = world.plan(at("03:00")).await.runs[0].id;
    for (id, status) in [(ended, RunStatus::Succeeded), (skipped, RunStatus::Skipped)] {
        let before = world.run(id).await;
        let entry = audit("run.cancel", "run", at("03:01"));
        let answer = world.store.cancel_run(id, "bo", at("03:01"), &entry).await.unwrap();
        assert_eq!(answer, Canceled::TooLate(status));
        assert_eq!(world.run(id).await, before);
    }
    assert_eq!(world.actions(Some("run")).await, [""; 0], "nothing was done");
}

pub async fn canceling_the_run_of_a_one_time_job_retires_it(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("once", "once 12:00")).await;
    let id = world.plan(at("12:00")).await.runs[0].id;
    world.store.cancel_run(id, "bo", at("12:01"), &audit("run.cancel", "run", at("12:01"))).await.unwrap();
    assert_eq!(world.get("once").await.job.state.status, JobStatus::Retired);
}

pub async fn a_trial_of_a_target_reads_back(fresh: Fresh) {
    let world = World::new(&fresh);
    let run = trial("one", MAIL, at("01:00:00.25"));
    world.store.insert_run(&run, &audit("target.try", "target:mail", at("01:00"))).await.unwrap();
    assert_eq!(world.run(run.id).await.plain(), run.clone().plain());
    assert_eq!(world.runs().await.plain(), [run.plain()]);
    assert_eq!(world.actions(Some("target:mail")).await, ["target.try"]);
}

pub async fn a_run_is_inserted_once(fresh: Fresh) {
    let world = World::new(&fresh);
    let run = trial("one", MAIL, at("01:00"));
    world.store.insert_run(&run, &audit("target.try", "target:mail", at("01:00"))).await.unwrap();
    let twin = trial("one", LOG, at("01:00"));
    let entry = audit("target.try", "target:log", at("01:00"));
    assert_refused(world.store.insert_run(&twin, &entry).await, "conflict");
    assert_eq!(world.run(run.id).await.target.as_str(), MAIL);
    assert_eq!(world.actions(None).await, ["target.try"]);
}
