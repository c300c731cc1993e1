//! The lease of an instance, which covers every run that it holds, and what an instance hears in return for a heartbeat.

use everbell_core::change;
use everbell_core::settle::{Next, Outcome, Transition, settle};
use everbell_core::store::{Beat, Claim, LeaseReport};
use everbell_core::{Failure, FailureCode, OnLost, RunStatus};
use jiff::Timestamp;

use super::Fresh;
use super::given::{MAIL, at, audit, instance, instance_id, job, to, with};
use super::world::{LEASE, World, failure, success};

/// Runs of two jobs on the first instance, started at 01:00, and one of a third job on the second instance.
async fn three_runs(world: &World) -> (Vec<Claim>, Claim) {
    for key in ["a", "b", "c"] {
        world.create(job(key, "0 1 * * *")).await;
    }
    world.plan(at("01:00")).await;
    let first = world.start_on(1, at("01:00"), 2).await;
    (first, world.start_on(2, at("01:00"), 1).await.remove(0))
}

async fn beat(world: &World, number: u8, now: &str) -> Beat {
    let now = at(now);
    world.store.heartbeat(&instance(number, now), Some(now + LEASE), false).await.unwrap()
}

/// A heartbeat of a release that extends the lease of each run instead.
async fn beat_of_old(world: &World, number: u8, now: &str) -> Beat {
    world.store.heartbeat(&instance(number, at(now)), None, false).await.unwrap()
}

async fn expired(world: &World, now: &str) -> Vec<everbell_core::RunId> {
    world.store.expired_leases(at(now), 10).await.unwrap().iter().map(|run| run.id).collect()
}

async fn reap(world: &World, now: Timestamp) -> usize {
    let expired = world.store.expired_leases(now, 10).await.unwrap();
    let lost: Vec<Transition> = expired.iter().filter_map(|run| settle(run, Outcome::Lost(None), now)).collect();
    world.store.record(&lost, now).await.unwrap().len()
}

pub async fn a_heartbeat_renews_the_lease_on_every_run_of_its_instance(fresh: Fresh) {
    let world = World::new(&fresh);
    let (first, other) = three_runs(&world).await;
    beat(&world, 1, "01:00:20").await;
    for claim in &first {
        assert_eq!(world.run(claim.run.id).await.lease_until, Some(at("01:00:50")));
    }
    assert_eq!(world.run(other.run.id).await.lease_until, Some(at("01:00:30")), "not those of others");
    let listed = world.runs().await;
    assert_eq!(listed.iter().filter(|run| run.lease_until == Some(at("01:00:50"))).count(), 2, "also in lists");
    assert_eq!(world.get("a").await.last_run.unwrap().lease_until, Some(at("01:00:50")), "also with the job");
    assert_eq!(expired(&world, "01:00:40").await, [other.run.id]);
    world.finish(&first, &success(), at("01:00:40")).await;
    assert_eq!(world.run(first[0].run.id).await.lease_until, None, "what has ended has none");
}

pub async fn the_later_lease_of_a_run_and_its_instance_counts(fresh: Fresh) {
    let world = World::new(&fresh);
    beat(&world, 1, "00:59:40").await;
    let (first, other) = three_runs(&world).await;
    assert_eq!(world.run(first[0].run.id).await.lease_until, Some(at("01:00:30")));
    assert_eq!(expired(&world, "01:00:20").await, [], "that of the instance has ended, those of its runs have not");
    beat(&world, 1, "01:01").await;
    assert_eq!(expired(&world, "01:01:20").await, [other.run.id], "those of the runs have ended");
    assert_eq!(expired(&world, "01:01:30").await.len(), 1, "it holds until its last moment");
    let all = expired(&world, "01:01:30.000001").await;
    assert_eq!((all.len(), all[0]), (3, other.run.id), "the one that ended first comes first");
}

pub async fn a_late_heartbeat_never_shortens_the_lease_of_an_instance(fresh: Fresh) {
    let world = World::new(&fresh);
    let (first, _) = three_runs(&world).await;
    beat(&world, 1, "01:00:20").await;
    beat(&world, 1, "01:00:15").await;
    assert_eq!(world.run(first[0].run.id).await.lease_until, Some(at("01:00:50")));
    beat_of_old(&world, 1, "01:00:25").await;
    assert_eq!(world.run(first[0].run.id).await.lease_until, Some(at("01:00:50")), "nor one without a lease");
}

pub async fn a_lost_run_is_a_loss_of_its_runner(fresh: Fresh) {
    let world = World::new(&fresh);
    for (number, now) in [(1, "00:59"), (2, "00:59")] {
        assert_eq!(beat(&world, number, now).await.losses, 0);
    }
    world
        .create(with(job("again", "0 1 * * *"), |values| (values.max_attempts, values.on_lost) = (5, OnLost::Retry)))
        .await;
    world.create(job("once", "0 1 * * *")).await;
    world.plan(at("01:00")).await;
    let losses = async |now: &str| (beat(&world, 1, now).await.losses, beat(&world, 2, now).await.losses);

    let claims = world.start_on(1, at("01:00"), 2).await;
    assert_eq!(reap(&world, at("01:00:31")).await, 2, "one fails, and one is tried again");
    assert_eq!(losses("01:00:32").await, (1, 0), "which counts once if they are recorded together");

    // Its own outcomes are no losses, and neither is a claim that it gives back.
    let again = world.start_on(2, at("01:05"), 1).await.remove(0);
    assert!(claims.iter().any(|claim| claim.run.id == again.run.id), "the one that is tried again");
    let back =
        Next::Retry { not_before: at("01:05"), failure: Failure::new(FailureCode::LOST, "never started"), ended: None };
    let (run_id, attempt) = (again.run.id, again.run.attempt);
    let back = Transition { run_id, attempt, from: RunStatus::Running, to: back, output: None };
    world.store.record(&[back], at("01:05")).await.unwrap();
    let third = world.start_on(2, at("01:05"), 1).await;
    world.finish(&third, &failure(), at("01:05:10")).await;
    assert_eq!(losses("01:05:11").await, (1, 0));

    // One that was recorded before is not lost again.
    let waits: Vec<Transition> = third
        .iter()
        .filter_map(|claim| settle(&super::given::settling(claim), Outcome::Lost(None), at("01:06")))
        .collect();
    world.store.record(&waits, at("01:06")).await.unwrap();
    assert_eq!(losses("01:06:01").await, (1, 0));
    assert_eq!(world.start_on(2, at("01:30"), 1).await.len(), 1);
    assert_eq!(reap(&world, at("01:31")).await, 1);
    assert_eq!(losses("01:31:01").await, (1, 1));
}

pub async fn a_heartbeat_reports_which_runs_to_cancel(fresh: Fresh) {
    let world = World::new(&fresh);
    let (first, other) = three_runs(&world).await;
    assert_eq!(beat(&world, 1, "01:00:05").await.to_cancel, []);
    for run in [first[1].run.id, other.run.id] {
        world.store.cancel_run(run, "ana", at("01:00:10"), &audit("run.cancel", "run", at("01:00:10"))).await.unwrap();
    }
    let asked = LeaseReport { run: first[1].run.id, attempt: 1, cancel_by: Some("ana".to_owned()) };
    assert_eq!(beat(&world, 1, "01:00:15").await.to_cancel, std::slice::from_ref(&asked), "its own, and no others");
    assert_eq!(beat(&world, 1, "01:00:16").await.to_cancel, [asked], "until they have ended");
    world.finish(&first, &success(), at("01:00:17")).await;
    assert_eq!(beat(&world, 1, "01:00:20").await.to_cancel, []);
}

pub async fn a_lost_run_that_was_to_be_canceled_is_not_reported_to_its_old_runner(fresh: Fresh) {
    let world = World::new(&fresh);
    world
        .create(with(job("again", "0 1 * * *"), |values| (values.max_attempts, values.on_lost) = (5, OnLost::Retry)))
        .await;
    world.plan(at("01:00")).await;
    let run = world.start_on(1, at("01:00"), 1).await.remove(0).run.id;
    world.store.cancel_run(run, "ana", at("01:00:10"), &audit("run.cancel", "run", at("01:00:10"))).await.unwrap();
    reap(&world, at("01:00:31")).await;
    assert_eq!(world.run(run).await.status, RunStatus::Canceled, "instead of retried");
    assert_eq!(beat(&world, 1, "01:00:32").await.to_cancel, []);
}

pub async fn an_instance_is_new_until_it_is_known(fresh: Fresh) {
    let world = World::new(&fresh);
    assert!(beat(&world, 1, "00:01").await.is_new);
    assert!(!beat(&world, 1, "00:02").await.is_new);
    assert!(beat(&world, 2, "00:02").await.is_new, "another one is not known by that");
    world.store.remove_instances(at("00:10")).await.unwrap();
    assert!(beat(&world, 1, "00:11").await.is_new, "it was forgotten");
}

pub async fn a_heartbeat_notices_that_the_lease_of_another_instance_has_ended(fresh: Fresh) {
    let world = World::new(&fresh);
    assert!(!beat(&world, 1, "00:01").await.has_lapsed);
    beat(&world, 2, "00:01:05").await;
    assert!(!beat(&world, 1, "00:01:35").await.has_lapsed, "it holds until its last moment");
    assert!(beat(&world, 1, "00:01:35.000001").await.has_lapsed);
    assert!(!beat(&world, 2, "00:02").await.has_lapsed, "its own does not count, though it had ended");
    assert!(!beat(&world, 1, "00:02").await.has_lapsed, "it was renewed");
    assert!(beat(&world, 1, "00:03").await.has_lapsed);
    world.store.leave(instance_id(2), at("23:00"), at("23:00")).await.unwrap();
    assert!(!beat(&world, 1, "00:03:05").await.has_lapsed, "it has left");
}

/// A rolling upgrade: instances of the release before know the leases of runs only.
pub async fn runs_of_an_instance_without_a_lease_count_by_their_own(fresh: Fresh) {
    let world = World::new(&fresh);
    let (first, other) = three_runs(&world).await;
    assert!(!beat(&world, 1, "01:00:10").await.has_unleased);
    let old = beat_of_old(&world, 2, "01:00:10").await;
    assert_eq!((old.is_new, old.has_unleased, old.has_lapsed), (true, false, false));
    let seen = beat(&world, 1, "01:00:20").await;
    assert_eq!((seen.has_unleased, seen.has_lapsed), (true, false));
    assert_eq!(world.run(other.run.id).await.lease_until, Some(at("01:00:30")), "its heartbeat alone renews nothing");
    let until = at("01:00:20") + LEASE;
    assert_eq!(world.store.extend_leases(instance_id(2), at("01:00:20"), until).await.unwrap().len(), 1);
    assert_eq!(expired(&world, "01:00:45").await, [], "the old instance has extended its leases");
    assert_eq!(expired(&world, "01:00:51").await.len(), 3);

    // For the old instance, the new one extends the leases of its runs, which ended long ago but for that of the instance.
    beat(&world, 1, "01:10").await;
    let reports = world.store.extend_leases(instance_id(1), at("01:10"), at("01:10:30")).await.unwrap();
    assert_eq!(reports.iter().map(|report| report.run).collect::<Vec<_>>(), sorted(&first));
    // Nothing but their own leases is left of it then.
    world.finish(&[other], &success(), at("01:10")).await;
    assert_eq!(expired(&world, "01:10:30").await, []);
    assert_eq!(expired(&world, "01:10:31").await.len(), 2);
}

pub async fn a_heartbeat_that_looks_sees_work_for_its_targets(fresh: Fresh) {
    let world = World::new(&fresh);
    let look = async |now: &str| {
        let beat = world.store.heartbeat(&instance(1, at(now)), None, true).await.unwrap();
        beat.work.map(|work| (work.is_due, work.is_pending))
    };
    assert_eq!(look("00:01").await, Some((false, false)));
    world.create(job("hourly", "0 * * * *")).await;
    world.create(to(job("mails", "0 * * * *"), MAIL)).await;
    assert_eq!(look("00:59:59.999999").await, Some((false, false)), "not yet");
    assert_eq!(look("01:00").await, Some((true, false)));
    world.plan(at("01:00")).await;
    assert_eq!(look("01:00").await, Some((false, true)), "it has become a run");
    let claims = world.start(at("01:00")).await;
    assert_eq!(claims.len(), 2);
    assert_eq!(look("01:00").await, Some((false, false)), "which has started");
    world.finish(&claims, &success(), at("01:00")).await;
    world.try_change("hourly", at("01:30"), |view| change::retire(view, "ana", at("01:30"))).await.unwrap();
    assert_eq!(look("02:00").await, Some((false, false)), "the other job has a target that it does not serve");
    assert_eq!(world.plan(at("02:00")).await.runs.len(), 1);
    assert_eq!(look("02:00").await, Some((false, false)), "nor its run");
    assert_eq!(beat(&world, 1, "02:00").await.work, None, "without a look");
}

pub async fn the_runs_that_an_instance_holds_are_listed_however_old_their_leases_are(fresh: Fresh) {
    let world = World::new(&fresh);
    let (first, other) = three_runs(&world).await;
    let held = async |number| {
        let held = world.store.held_runs(instance_id(number)).await.unwrap();
        held.into_iter().map(|report| report.run).collect::<Vec<_>>()
    };
    assert_eq!((held(1).await, held(2).await, held(3).await), (sorted(&first), vec![other.run.id], vec![]));
    world.store.cancel_run(other.run.id, "ana", at("05:00"), &audit("run.cancel", "run", at("05:00"))).await.unwrap();
    let report = LeaseReport { run: other.run.id, attempt: 1, cancel_by: Some("ana".to_owned()) };
    assert_eq!(world.store.held_runs(instance_id(2)).await.unwrap(), [report]);
    assert_eq!(reap(&world, at("06:00")).await, 3);
    assert_eq!((held(1).await, held(2).await), (vec![], vec![]));
}

pub async fn an_instance_that_holds_runs_is_known_until_they_are_settled(fresh: Fresh) {
    let world = World::new(&fresh);
    let known = async || world.store.list_instances().await.unwrap().len();
    three_runs(&world).await;
    for number in [1, 2, 3] {
        beat(&world, number, "01:00:10").await;
    }
    world.store.leave(instance_id(1), at("23:00"), at("23:00")).await.unwrap();
    assert_eq!(world.store.remove_instances(at("02:00")).await.unwrap(), 1, "the third holds none");
    assert_eq!(known().await, 2);
    assert!(beat(&world, 4, "02:00").await.has_lapsed, "so that the others look for their runs");
    assert_eq!(reap(&world, at("02:00")).await, 3);
    world.store.leave(instance_id(1), at("23:00"), at("23:00")).await.unwrap();
    assert_eq!(world.store.remove_instances(at("02:00")).await.unwrap(), 1);
    assert_eq!(known().await, 1);
}

fn sorted(claims: &[Claim]) -> Vec<everbell_core::RunId> {
    let mut runs: Vec<_> = claims.iter().map(|claim| claim.run.id).collect();
    runs.sort();
    runs
}
