//! Leases: which instance holds a run, and what happens when heartbeats stop.

use std::time::Duration;

use everbell_core::settle::{Outcome, Settling, settle};
use everbell_core::store::{Canceled, LeaseReport, Recorded};
use everbell_core::{Backoff, OnLost, RunStatus};

use super::Fresh;
use super::given::{LOG, at, audit, instance_id, job, trial, with};
use super::world::{LEASE, World, failure, success};

async fn two_instances(world: &World) -> [everbell_core::store::Claim; 2] {
    for key in ["a", "b"] {
        world.create(job(key, "0 1 * * *")).await;
    }
    world.plan(at("01:00")).await;
    let one = world.start_on(1, at("01:00"), 1).await.remove(0);
    let two = world.start_on(2, at("01:00"), 1).await.remove(0);
    [one, two]
}

pub async fn an_instance_extends_its_own_leases(fresh: Fresh) {
    let world = World::new(&fresh);
    let [one, two] = two_instances(&world).await;
    let (now, until) = (at("01:00:20"), at("01:00:50"));
    let reports = world.store.extend_leases(instance_id(1), now, until).await.unwrap();
    assert_eq!(reports, [LeaseReport { run: one.run.id, attempt: 1, cancel_by: None }]);
    assert_eq!(world.run(one.run.id).await.lease_until, Some(until));
    assert_eq!(world.run(two.run.id).await.lease_until, Some(two.lease_until), "not those of others");
    assert_eq!(world.store.extend_leases(instance_id(3), now, until).await.unwrap(), []);
}

pub async fn a_lease_that_ran_out_is_not_extended(fresh: Fresh) {
    let world = World::new(&fresh);
    let [one, _] = two_instances(&world).await;
    let just_after = at("01:00:30.000001");
    let reports = world.store.extend_leases(instance_id(1), just_after, at("01:02")).await.unwrap();
    assert_eq!(reports, [], "a run that is missing is lost");
    assert_eq!(world.run(one.run.id).await.lease_until, Some(one.lease_until));
    let last_moment = at("01:00:30");
    let reports = world.store.extend_leases(instance_id(1), last_moment, at("01:02")).await.unwrap();
    assert_eq!(reports.len(), 1, "it holds until its last moment");
}

pub async fn the_leases_of_an_instance_are_listed(fresh: Fresh) {
    let world = World::new(&fresh);
    let [one, two] = two_instances(&world).await;
    let of = async |number, limit| {
        let leases = world.store.leases_of(instance_id(number), limit).await.unwrap();
        leases.into_iter().map(|run| (run.id, run.attempt, run.status)).collect::<Vec<_>>()
    };
    assert_eq!(of(1, 10).await, [(one.run.id, 1, RunStatus::Running)]);
    assert_eq!(of(2, 10).await, [(two.run.id, 1, RunStatus::Running)]);
    assert_eq!((of(3, 10).await, of(1, 0).await), (vec![], vec![]));
    world.finish(&[one], &success(), at("01:00:10")).await;
    assert_eq!(of(1, 10).await, []);
}

pub async fn a_late_request_never_shortens_a_lease(fresh: Fresh) {
    let world = World::new(&fresh);
    let [one, _] = two_instances(&world).await;
    for (now, until) in [("01:00:20", "01:00:50"), ("01:00:15", "01:00:45")] {
        assert_eq!(world.store.extend_leases(instance_id(1), at(now), at(until)).await.unwrap().len(), 1);
        assert_eq!(world.run(one.run.id).await.lease_until, Some(at("01:00:50")));
    }
}

pub async fn what_has_ended_is_not_reported(fresh: Fresh) {
    let world = World::new(&fresh);
    let [one, _] = two_instances(&world).await;
    world.finish(&[one], &success(), at("01:00:10")).await;
    assert_eq!(world.store.extend_leases(instance_id(1), at("01:00:20"), at("01:01")).await.unwrap(), []);
}

pub async fn a_heartbeat_learns_what_is_to_be_stopped(fresh: Fresh) {
    let world = World::new(&fresh);
    let [one, _] = two_instances(&world).await;
    let entry = audit("run.cancel", "run", at("01:00:10"));
    let asked = world.store.cancel_run(one.run.id, "ana", at("01:00:10"), &entry).await.unwrap();
    assert_eq!(asked, Canceled::Requested);
    let reports = world.store.extend_leases(instance_id(1), at("01:00:20"), at("01:01")).await.unwrap();
    assert_eq!(reports, [LeaseReport { run: one.run.id, attempt: 1, cancel_by: Some("ana".to_owned()) }]);
}

pub async fn a_second_attempt_is_reported_with_its_number(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(with(job("flaky", "0 1 * * *"), |values| values.max_attempts = 2)).await;
    let first = world.run_due(&failure(), at("01:00")).await;
    assert_eq!(world.store.extend_leases(instance_id(1), at("01:00:05"), at("01:01")).await.unwrap(), []);
    world.start_on(2, at("01:10"), 1).await;
    assert_eq!(world.store.extend_leases(instance_id(1), at("01:10:05"), at("01:11")).await.unwrap(), []);
    let reports = world.store.extend_leases(instance_id(2), at("01:10:05"), at("01:11")).await.unwrap();
    assert_eq!(reports, [LeaseReport { run: first[0].run.id, attempt: 2, cancel_by: None }]);
}

pub async fn leases_that_ran_out_are_found_oldest_first(fresh: Fresh) {
    let world = World::new(&fresh);
    for (number, key) in ["a", "b", "c"].into_iter().enumerate() {
        let minute = 3 - number;
        world.create(job(key, &format!("{minute} 1 * * *"))).await;
    }
    let mut started = Vec::new();
    for minute in ["01:01", "01:02", "01:03"] {
        world.plan(at(minute)).await;
        started.push(world.start(at(minute)).await.remove(0).run.id);
    }
    let found = async |now: &str, limit| {
        let expired = world.store.expired_leases(at(now), limit).await.unwrap();
        expired.iter().map(|settling| settling.id).collect::<Vec<_>>()
    };
    assert_eq!(found("01:01:30", 10).await, [], "it ends at this very moment");
    assert_eq!(found("01:01:30.000001", 10).await, started[..1]);
    assert_eq!(found("01:10", 10).await, started);
    assert_eq!(found("01:10", 2).await, started[..2], "no more than the limit");
}

pub async fn an_expired_lease_tells_what_settle_must_know(fresh: Fresh) {
    let world = World::new(&fresh);
    let backoff = Backoff { initial: Duration::from_secs(7), max: Duration::from_mins(7) };
    let definition = with(job("flaky", "0 1 * * *"), |values| {
        values.max_attempts = 5;
        values.backoff = backoff;
        values.on_lost = OnLost::Retry;
    });
    world.create(definition.clone()).await;
    world.plan(at("01:00")).await;
    let id = world.start(at("01:00")).await[0].run.id;
    let expired = world.store.expired_leases(at("02:00"), 10).await.unwrap();
    let policies = &definition.policies;
    assert_eq!(expired, [Settling::new(id, RunStatus::Running, 1, Some(policies))]);
    assert_eq!((expired[0].max_attempts, expired[0].backoff, expired[0].on_lost), (5, backoff, OnLost::Retry));
}

pub async fn a_lost_trial_of_a_target_is_found_too(fresh: Fresh) {
    let world = World::new(&fresh);
    let run = trial("one", LOG, at("01:00"));
    world.store.insert_run(&run, &audit("target.try", "target:log", at("01:00"))).await.unwrap();
    world.start(at("01:00")).await;
    let expired = world.store.expired_leases(at("02:00"), 10).await.unwrap();
    assert_eq!((expired.len(), expired[0].id, expired[0].max_attempts), (1, run.id, 1));
}

pub async fn a_lost_run_is_settled_once(fresh: Fresh) {
    let world = World::new(&fresh);
    let [one, two] = two_instances(&world).await;
    let now = at("01:10");
    let expired = world.store.expired_leases(now, 10).await.unwrap();
    assert_eq!(expired.len(), 2);
    let lost: Vec<_> = expired.iter().filter_map(|run| settle(run, Outcome::Lost(None), now)).collect();
    let recorded = world.store.record(&lost, now).await.unwrap();
    assert_eq!(recorded, vec![Recorded::Applied { consecutive_failures: 1 }; 2]);
    let again = world.store.record(&lost, now).await.unwrap();
    assert_eq!(again, [Recorded::LeaseLost, Recorded::LeaseLost], "another reaper was faster");
    let run = world.run(one.run.id).await;
    assert_eq!((run.status, run.failure.unwrap().code.as_str()), (RunStatus::Failed, "lost"));
    assert_eq!(world.finish(&[one, two], &success(), now).await, [Recorded::LeaseLost, Recorded::LeaseLost]);
    assert_eq!(world.store.expired_leases(now, 10).await.unwrap(), []);
}

pub async fn an_extended_lease_is_not_expired(fresh: Fresh) {
    let world = World::new(&fresh);
    two_instances(&world).await;
    world.store.extend_leases(instance_id(1), at("01:00:20"), at("01:00:20") + LEASE).await.unwrap();
    let expired = world.store.expired_leases(at("01:00:40"), 10).await.unwrap();
    assert_eq!(expired.len(), 1, "only the other instance was not heard of");
}
