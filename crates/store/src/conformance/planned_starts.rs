//! `plan_due` for an instance that has room: which runs start with their plan.

use std::time::Duration;

use everbell_core::store::{Claim, PlanDue, Planned, Recorded, StartRuns};
use everbell_core::{CatchUp, JobStatus, Overlap, RunStatus};
use jiff::Timestamp;

use super::Fresh;
use super::given::{LOG, MAIL, at, core_plan, instance_id, job, target, to, with};
use super::world::{LEASE, World, room, success, targets};

/// Plans everything that is due, and starts as much as there is room for.
async fn plan_and_start(world: &World, now: Timestamp, of: &[(&str, u32)], limit: u32) -> Planned {
    let (targets, room) = (targets(), room(of));
    let start = StartRuns { instance: instance_id(1), targets: &room, limit, now, lease_until: now + LEASE };
    let request = PlanDue { start: Some(start), ..PlanDue::new(now, 1_000, &targets) };
    world.store.plan_due(&request, &core_plan).await.unwrap()
}

fn keys(claims: &[Claim]) -> Vec<&str> {
    claims.iter().map(|claim| claim.job.as_ref().unwrap().key.as_str()).collect()
}

pub async fn a_run_starts_with_its_plan_as_if_it_were_claimed(fresh: Fresh) {
    let world = World::new(&fresh);
    let row = world.create(job("hourly", "0 * * * *")).await;
    // Finer than a database keeps.
    let now = at("01:00:02") + Duration::from_nanos(1_234);
    let planned = plan_and_start(&world, now, &[(LOG, 5)], 10).await;
    let [claim] = &planned.claims[..] else { panic!("{planned:?}") };
    let now = at("01:00:02") + Duration::from_micros(1);
    assert_eq!(planned.runs.len(), 1);
    assert!(planned.all_started());
    assert_eq!((claim.run.status, claim.run.attempt), (RunStatus::Running, 1));
    assert_eq!(claim.run.claimed, Some((now, instance_id(1))));
    assert_eq!((claim.run.created_at, claim.run.started_at), (now, Some(now)));
    assert_eq!((claim.lease_until, claim.run.lease_until), (now + LEASE, Some(now + LEASE)));
    assert_eq!(claim.job, Some(row.job.definition));
    assert_eq!(world.run(claim.run.id).await, claim.run, "and so it is stored");
    assert_eq!(world.start_on(2, now, 10).await, [], "it is taken");
    assert_eq!(world.get("hourly").await.last_run.map(|run| run.id), Some(claim.run.id));

    assert_eq!(
        world.finish(&planned.claims, &success(), at("01:01")).await,
        [Recorded::Applied { consecutive_failures: 0 }]
    );
    assert_eq!(world.run(claim.run.id).await.status, RunStatus::Succeeded);
}

pub async fn without_room_new_runs_are_pending(fresh: Fresh) {
    let world = World::new(&fresh);
    for key in ["log-1", "log-2", "log-3"] {
        world.create(job(key, "0 1 * * *")).await;
    }
    world.create(to(job("mail", "0 1 * * *"), MAIL)).await;
    let planned = plan_and_start(&world, at("01:00"), &[(LOG, 2)], 10).await;
    assert_eq!((planned.runs.len(), planned.claims.len()), (4, 2));
    assert!(!planned.all_started());
    assert!(planned.claims.is_sorted_by_key(Claim::start_order), "{planned:?}");
    assert!(keys(&planned.claims).iter().all(|key| key.starts_with("log")));
    let later = world.start_on(2, at("01:00"), 10).await;
    assert_eq!(later.len(), 2, "for another instance, or for later: {later:?}");
    assert!(keys(&later).contains(&"mail"));
}

pub async fn those_start_first_that_would_be_claimed_first(fresh: Fresh) {
    let world = World::new(&fresh);
    for (key, minute, priority) in [("late", 30, 0), ("early", 10, 0), ("urgent", 50, 3), ("patient", 5, -1)] {
        let schedule = format!("{minute} 1 * * *");
        world.create(with(job(key, &schedule), |values| values.priority = priority)).await;
    }
    let planned = plan_and_start(&world, at("02:00"), &[(LOG, 10)], 2).await;
    assert_eq!(keys(&planned.claims), ["urgent", "early"], "no more than the limit");
    assert_eq!(keys(&world.start(at("02:00")).await), ["late", "patient"]);
}

pub async fn where_a_job_has_a_priority_more_are_planned_than_start(fresh: Fresh) {
    let world = World::new(&fresh);
    let urgent = |key, schedule: &str| with(job(key, schedule), |values| values.priority = 3);
    for minute in 1..=3 {
        world.create(job(&format!("plain-{minute}"), &format!("{minute} 1 * * *"))).await;
    }
    world.create(to(urgent("elsewhere", "0 1 * * *"), MAIL)).await;
    world.create(urgent("retired", "0 1 * * *")).await;
    world.retire("retired", at("00:30")).await;
    let look = async |limit_by_priority| {
        let (targets, room) = ([target(LOG)], room(&[(LOG, 1)]));
        let now = at("02:00");
        let start = StartRuns { instance: instance_id(1), targets: &room, limit: 1, now, lease_until: now + LEASE };
        let request = PlanDue { limit_by_priority, start: Some(start), ..PlanDue::new(now, 1, &targets) };
        world.store.plan_due(&request, &core_plan).await.unwrap()
    };
    let planned = look(10).await;
    assert_eq!(
        (planned.timers, planned.by_priority),
        (1, false),
        "those of other targets and of retired jobs do not count"
    );
    assert_eq!(keys(&planned.claims), ["plain-1"]);

    world.create(urgent("urgent", "50 1 * * *")).await;
    world.create(with(job("patient", "0 1 * * *"), |values| values.priority = -1)).await;
    let planned = look(3).await;
    assert_eq!((planned.timers, planned.by_priority), (3, true), "the oldest, and no more than this limit");
    assert_eq!(keys(&planned.claims), ["plain-2"]);
    let planned = look(3).await;
    assert_eq!((planned.timers, keys(&planned.claims)), (1, vec!["urgent"]));
    assert_eq!(keys(&world.start(at("02:00")).await), ["plain-3", "patient"]);
    assert!(!look(3).await.by_priority, "nothing is due");
}

pub async fn a_run_that_is_skipped_or_held_does_not_start(fresh: Fresh) {
    let world = World::new(&fresh);
    let overlap = |overlap| move |values: &mut everbell_core::PolicyValues| values.overlap = overlap;
    world.create(with(job("skips", "0 * * * *"), overlap(Overlap::Skip))).await;
    world.create(with(job("queues", "0 * * * *"), overlap(Overlap::Queue))).await;
    let first = plan_and_start(&world, at("01:00"), &[(LOG, 10)], 10).await;
    assert_eq!(first.claims.len(), 2);
    let second = plan_and_start(&world, at("02:00"), &[(LOG, 10)], 10).await;
    assert_eq!((second.runs.len(), second.claims.len()), (2, 0), "{second:?}");
    world.finish(&first.claims, &success(), at("02:01")).await;
    assert_eq!(keys(&world.start(at("02:01")).await), ["queues"]);
}

pub async fn of_many_slots_that_are_caught_up_those_start_that_may_run_together(fresh: Fresh) {
    let world = World::new(&fresh);
    let all = |values: &mut everbell_core::PolicyValues| {
        (values.catch_up, values.overlap) = (CatchUp::All, Overlap::Queue);
    };
    world.create(with(job("all", "0 * * * *"), all)).await;
    let planned = plan_and_start(&world, at("03:30"), &[(LOG, 10)], 10).await;
    assert_eq!(planned.runs.len(), 3);
    let slots: Vec<_> = planned.claims.iter().map(|claim| claim.run.scheduled_at).collect();
    assert_eq!(slots, [at("01:00")], "the others wait for it");
}

pub async fn a_slot_that_has_its_run_starts_no_second_one(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    let first = plan_and_start(&world, at("01:00"), &[(LOG, 10)], 10).await;
    let again = |due: &everbell_core::store::Due, _: Timestamp| {
        // As if the timer had never moved.
        let timer = everbell_core::with!(everbell_core::Timer {
            next_run_at: Some(at("01:00")),
            last_slot_at: at("00:00"),
            ..due.timer.clone()
        });
        everbell_core::store::Due { timer, active: Vec::new(), ..due.clone() }.plan(at("01:00"))
    };
    let (targets, room) = (targets(), room(&[(LOG, 10)]));
    let now = at("02:00");
    let start = StartRuns { instance: instance_id(2), targets: &room, limit: 10, now, lease_until: now + LEASE };
    let request = PlanDue { start: Some(start), ..PlanDue::new(now, 10, &targets) };
    let second = world.store.plan_due(&request, &again).await.unwrap();
    assert_eq!((second.timers, second.runs.len(), second.claims.len()), (1, 0, 0));
    let [claim] = &first.claims[..] else { panic!("{first:?}") };
    assert_eq!(world.run(claim.run.id).await.claimed, claim.run.claimed, "it stays with the first");
}

pub async fn a_one_time_job_that_started_with_its_plan_is_retired_at_its_end(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("once", "once 01:00")).await;
    let planned = plan_and_start(&world, at("01:00"), &[(LOG, 10)], 10).await;
    assert_eq!(planned.claims.len(), 1);
    assert_eq!(world.get("once").await.job.state.status, JobStatus::Active);
    world.finish(&planned.claims, &success(), at("01:01")).await;
    assert_eq!(world.get("once").await.job.state.status, JobStatus::Retired);
}
