//! Runs in the hands of their remote sides.

use std::time::Duration;

use everbell_core::handover::{Handover, Progress, Remote};
use everbell_core::settle::{Outcome, Then};
use everbell_core::store::{AddedOutput, Canceled, Claim, Recorded, RemoteUpdate};
use everbell_core::{Failure, FailureCode, InstanceId, MAX_OUTPUT_BYTES, OutputSoFar, RunId, RunStatus};
use jiff::Timestamp;

use super::Fresh;
use super::given::{at, audit, instance, instance_id, job, with};
use super::world::{LEASE, World, success};

const REMOTE_LEASE: Duration = Duration::from_mins(5);

/// A job of two attempts, whose run at 01:00 is at work on the first instance.
async fn running(world: &World) -> Claim {
    world.create(with(job("render", "0 * * * *"), |values| values.max_attempts = 2)).await;
    world.plan(at("01:00")).await;
    world.store.heartbeat(&instance(1, at("01:00")), Some(at("01:00") + LEASE), false).await.unwrap();
    world.start(at("01:00")).await.remove(0)
}

fn handover(claim: &Claim) -> Handover {
    let (run, attempt) = (claim.run.id, claim.run.attempt);
    Handover { run, attempt, lease: REMOTE_LEASE, deadline: at("03:00") }
}

/// A run that was handed over at 01:01.
async fn handed_over(world: &World) -> Claim {
    let claim = running(world).await;
    let handover = handover(&claim);
    assert!(world.store.hand_over(&handover, handover.lease_until(at("01:01")), Some("202\n")).await.unwrap());
    claim
}

fn sign_of_life(claim: &Claim, lease_until: Option<Timestamp>) -> RemoteUpdate {
    RemoteUpdate { run: claim.run.id, attempt: claim.run.attempt, lease_until, progress: None, output: None }
}

async fn held(world: &World, before: &str) -> Vec<RunId> {
    let held = world.store.remote_runs(at(before), 10).await.unwrap();
    held.iter().map(|run| run.settling.id).collect()
}

pub async fn a_run_that_was_handed_over_belongs_to_no_instance(fresh: Fresh) {
    let world = World::new(&fresh);
    let claim = handed_over(&world).await;
    let run = world.run(claim.run.id).await;
    assert_eq!((run.status, run.claimed), (RunStatus::Running, Some((at("01:00"), InstanceId::REMOTE))));
    assert_eq!(run.lease_until, Some(at("01:06")), "longer than that of its instance");
    assert_eq!(run.remote, Some(Remote { lease: REMOTE_LEASE, deadline: at("03:00"), progress: None }));
    assert_eq!(run.output.as_deref(), Some("202\n"));
    assert_eq!(world.runs().await[0].claimed, run.claimed, "also in lists");
    assert_eq!(world.store.held_runs(instance_id(1)).await.unwrap(), []);
    assert_eq!(world.store.leases_of(instance_id(1), 10).await.unwrap(), []);
    world.store.leave(instance_id(1), at("01:02"), at("01:02")).await.unwrap();
    assert_eq!(world.store.list_instances().await.unwrap(), [], "nothing keeps it");
    assert_eq!(world.store.expired_leases(at("02:00"), 10).await.unwrap(), [], "its silence is judged elsewhere");
    assert_eq!((held(&world, "01:06").await, held(&world, "01:06:01").await), (vec![], vec![claim.run.id]));
    let held = world.store.remote_runs(at("05:00"), 10).await.unwrap().remove(0);
    assert_eq!((held.lease_until, held.lease, held.deadline), (at("01:06"), REMOTE_LEASE, at("03:00")));
    assert_eq!((held.started_at, held.cancel_by), (Some(at("01:00")), None));
    assert_eq!((held.settling.attempt, held.settling.max_attempts), (1, 2));
    assert_eq!(world.plan(at("02:00")).await.runs.len(), 1, "the next slot sees it");
    assert_eq!(world.start(at("02:00")).await.len(), 0, "and is skipped because of it");
}

pub async fn only_the_attempt_at_work_is_handed_over(fresh: Fresh) {
    let world = World::new(&fresh);
    let claim = running(&world).await;
    let own = handover(&claim);
    let until = at("01:06");
    assert!(!world.store.hand_over(&Handover { attempt: 2, ..own }, until, None).await.unwrap());
    let other = Handover { run: RunId::from_uuid(uuid::Uuid::max()), ..own };
    assert!(!world.store.hand_over(&other, until, None).await.unwrap());
    assert_eq!(world.run(claim.run.id).await.remote, None);
    assert!(world.store.hand_over(&own, until, None).await.unwrap());
    let progress = Progress::new(Some(0.5), Some("half")).unwrap();
    let update = RemoteUpdate { progress: Some(progress.clone()), ..sign_of_life(&claim, Some(at("01:10"))) };
    assert!(world.store.update_remote(&update).await.unwrap());
    assert!(world.store.hand_over(&own, until, Some("late\n")).await.unwrap(), "again");
    let run = world.run(claim.run.id).await;
    assert_eq!((run.lease_until, run.output), (Some(at("01:10")), None), "what its remote side said stays");
    assert_eq!(run.remote.and_then(|remote| remote.progress), Some(progress));
    world.finish(std::slice::from_ref(&claim), &success(), at("01:07")).await;
    assert!(!world.store.hand_over(&own, until, None).await.unwrap(), "it has ended");
}

pub async fn signs_of_life_of_a_remote_side_are_written(fresh: Fresh) {
    let world = World::new(&fresh);
    let claim = running(&world).await;
    let update = sign_of_life(&claim, Some(at("01:10")));
    assert!(!world.store.update_remote(&update).await.unwrap(), "an instance holds it");
    let own = handover(&claim);
    assert!(world.store.hand_over(&own, own.lease_until(at("01:01")), None).await.unwrap());
    assert!(world.store.update_remote(&update).await.unwrap());
    assert!(world.store.update_remote(&sign_of_life(&claim, Some(at("01:08")))).await.unwrap());
    assert!(world.store.update_remote(&sign_of_life(&claim, None)).await.unwrap());
    assert_eq!(world.run(claim.run.id).await.lease_until, Some(at("01:10")), "no lease becomes shorter");
    assert!(!world.store.update_remote(&RemoteUpdate { attempt: 2, ..update.clone() }).await.unwrap());

    for (done, message) in [(Some(0.25), Some("first “part”")), (None, Some("second")), (Some(1.0), None)] {
        let progress = Progress::new(done, message).unwrap();
        let update = RemoteUpdate { progress: Some(progress.clone()), ..sign_of_life(&claim, None) };
        assert!(world.store.update_remote(&update).await.unwrap());
        let remote = world.run(claim.run.id).await.remote.unwrap();
        assert_eq!(remote.progress, Some(progress), "all of it is replaced");
    }

    let adds = async |before: Option<&str>, text: &str| {
        let output = AddedOutput::new(before, text);
        world.store.update_remote(&RemoteUpdate { output, ..sign_of_life(&claim, None) }).await.unwrap()
    };
    assert!(adds(None, "one").await);
    assert!(!adds(None, "lost").await, "somebody else has added to it");
    assert!(adds(Some("one\n"), "two\n").await);
    assert_eq!(world.run(claim.run.id).await.output.as_deref(), Some("one\ntwo\n"));
    let late = OutputSoFar::new(claim.run.id, 1, "of the instance\n").unwrap();
    assert_eq!(world.store.save_outputs(&[late]).await.unwrap(), [], "it is not the instance's any more");
    let long = "x".repeat(MAX_OUTPUT_BYTES);
    assert!(adds(Some("one\ntwo\n"), &long).await);
    assert_eq!(world.run(claim.run.id).await.output.map(|output| output.len()), Some(MAX_OUTPUT_BYTES));
    let remote = world.run(claim.run.id).await.remote.unwrap();
    assert_eq!(remote.progress.and_then(|progress| progress.permille), Some(1_000), "that stays");
}

pub async fn a_run_that_was_handed_over_ends_and_is_retried_like_any_other(fresh: Fresh) {
    let world = World::new(&fresh);
    let first = handed_over(&world).await;
    let failure = Failure::new(FailureCode::new("no_disk").unwrap(), "no disk");
    let failed = Outcome::Failed { failure, then: Then::RETRY };
    let recorded = world.finish(std::slice::from_ref(&first), &failed, at("01:05")).await;
    assert_eq!(recorded, [Recorded::Applied { consecutive_failures: 0 }]);
    assert_eq!(held(&world, "05:00").await, [], "it waits for its next attempt");
    assert_eq!(world.run(first.run.id).await.remote, None);
    world.store.heartbeat(&instance(1, at("01:30")), Some(at("01:30") + LEASE), false).await.unwrap();
    let second = world.start(at("01:30")).await.remove(0);
    assert_eq!((second.run.id, second.run.attempt), (first.run.id, 2));
    assert_eq!(held(&world, "05:00").await, [], "an instance holds it");
    let run = world.run(second.run.id).await;
    assert_eq!((run.remote, run.claimed), (None, Some((at("01:30"), instance_id(1)))));
    assert!(!world.store.update_remote(&sign_of_life(&first, Some(at("02:00")))).await.unwrap(), "the fence");
    assert!(!world.store.update_remote(&sign_of_life(&second, Some(at("02:00")))).await.unwrap());
    let own = Handover { deadline: at("03:30"), ..handover(&second) };
    assert!(world.store.hand_over(&own, own.lease_until(at("01:31")), None).await.unwrap());
    assert_eq!(world.finish(&[first], &success(), at("01:32")).await, [Recorded::LeaseLost], "too late");
    world.finish(std::slice::from_ref(&second), &success(), at("01:40")).await;
    let run = world.run(second.run.id).await;
    assert_eq!((run.status, &run.remote, run.lease_until), (RunStatus::Succeeded, &None, None));
    assert!(run.is_handed_over(), "its remote side has ended it");
    assert_eq!(held(&world, "05:00").await, []);
}

pub async fn a_remote_side_is_asked_to_stop(fresh: Fresh) {
    let world = World::new(&fresh);
    let claim = handed_over(&world).await;
    let entry = audit("run.cancel", "run", at("01:02"));
    let answer = world.store.cancel_run(claim.run.id, "ana", at("01:02"), &entry).await.unwrap();
    assert_eq!(answer, Canceled::Requested);
    let held = world.store.remote_runs(at("05:00"), 10).await.unwrap();
    assert_eq!(held[0].cancel_by.as_deref(), Some("ana"));
    let beat = world.store.heartbeat(&instance(1, at("01:02:10")), Some(at("01:03")), false).await.unwrap();
    assert_eq!(beat.to_cancel, [], "it is not the business of the instance");
    let silence = held[0].expire(at("01:06:01"), REMOTE_LEASE).unwrap();
    let transition = everbell_core::settle::settle(&held[0].settling, silence, at("01:06:01")).unwrap();
    assert_eq!(world.store.record(&[transition], at("01:06:01")).await.unwrap().len(), 1);
    assert_eq!(world.run(claim.run.id).await.status, RunStatus::Canceled);
}

pub async fn runs_of_remote_sides_are_listed_by_when_they_end(fresh: Fresh) {
    let world = World::new(&fresh);
    for key in ["a", "b", "c"] {
        world.create(job(key, "0 1 * * *")).await;
    }
    world.plan(at("01:00")).await;
    let claims = world.start(at("01:00")).await;
    let times = [("01:30", "03:00"), ("02:00", "01:10"), ("01:20", "03:00")];
    for (claim, (lease_until, deadline)) in claims.iter().zip(times) {
        let handover = Handover { deadline: at(deadline), ..handover(claim) };
        assert!(world.store.hand_over(&handover, at(lease_until), None).await.unwrap());
    }
    let order = [claims[1].run.id, claims[2].run.id, claims[0].run.id];
    assert_eq!(held(&world, "05:00").await, order, "the lease or the deadline, whichever is first");
    assert_eq!(held(&world, "01:20").await, order[..1]);
    assert_eq!(world.store.remote_runs(at("05:00"), 2).await.unwrap().len(), 2);
}

pub async fn a_wrong_clock_takes_no_time_from_a_remote_side(fresh: Fresh) {
    let world = World::new(&fresh);
    let claim = handed_over(&world).await;
    let rearm = async |now: &str| {
        let entry = audit("timers.rearm", "timers", at(now));
        world.store.rearm_timers(at(now), at(now) + LEASE, 10, &entry).await.unwrap()
    };
    assert_eq!(rearm("01:02").await.leases, 0);
    assert_eq!(world.run(claim.run.id).await.lease_until, Some(at("01:06")));
    assert!(world.store.update_remote(&sign_of_life(&claim, Some(at("02:59")))).await.unwrap());
    assert_eq!(rearm("01:03").await.leases, 1, "that sign of life was given in the future");
    assert_eq!(world.run(claim.run.id).await.lease_until, Some(at("01:08:30")));
}

pub async fn all_instances_share_the_key_of_run_tokens(fresh: Fresh) {
    let world = World::new(&fresh);
    assert_eq!(world.store.run_token_key(&[1; 32]).await.unwrap(), [1; 32]);
    assert_eq!(world.store.run_token_key(&[2; 32]).await.unwrap(), [1; 32]);
}
