//! Clocks that were ahead: timers come back from the future, and what is known about time is remembered.

use everbell_core::change::{self, Edit, JobView};
use everbell_core::plan::Missed;
use everbell_core::store::{ClockTrace, GapFilter, PlanDue, Rearmed, SlotOutcome};
use everbell_core::{CatchUp, JobStatus};
use jiff::Timestamp;

use super::Fresh;
use super::given::{at, audit, instance, job, job_at, job_id, with};
use super::world::{LEASE, World, success};

/// The time of a clock that is 400 days ahead.
const AHEAD: &str = "2027-12-20T05:00:00Z";

async fn rearm(world: &World, now: Timestamp, limit: u32) -> Rearmed {
    let entry = audit("timers.rearmed", &format!("database {now}"), now);
    world.store.rearm_timers(now, now + LEASE, limit, &entry).await.unwrap()
}

/// A job that ran at 01:00, and then under a clock that was ahead.
async fn went_ahead(fresh: &Fresh) -> World {
    let world = World::new(fresh);
    world.create(job("hourly", "0 * * * *")).await;
    world.run_due(&success(), at("01:00")).await;
    world.run_due(&success(), at(AHEAD)).await;
    assert_eq!(world.get("hourly").await.timer.unwrap().last_slot_at, at(AHEAD));
    world
}

pub async fn a_timer_comes_back_from_a_false_future_and_each_slot_has_one_outcome(fresh: Fresh) {
    let world = went_ahead(&fresh).await;
    let id = job_id("hourly", 1);
    assert_eq!(rearm(&world, at("02:30"), 100).await, Rearmed { timers: 1, gaps: 1, leases: 0 });
    let timer = world.get("hourly").await.timer.unwrap();
    assert_eq!((timer.last_slot_at, timer.next_run_at), (at("02:30"), Some(at("03:00"))));
    let gaps = world.gaps(&GapFilter::default()).await;
    assert_eq!(gaps.len(), 1);
    assert_eq!((gaps[0].first_slot_at, gaps[0].last_slot_at, gaps[0].slots), (at("02:00"), at("02:00"), 1));
    world.run_due(&success(), at("03:00")).await;
    let outcome = world.store.slot_outcome(id, None, at("03:00")).await.unwrap();
    assert!(matches!(outcome, Some(SlotOutcome::Run(_))), "{outcome:?}");
    assert_eq!(world.runs().await.len(), 3, "what ran ahead of its time stays");
    let entry = world.store.list_audit(None, &super::given::page(1)).await.unwrap().items.remove(0);
    assert_eq!(entry.action, "timers.rearmed");
    assert_eq!(entry.reason.as_deref(), Some("1 timers armed again, 1 gaps cut, 0 leases shortened"));
    assert_eq!(rearm(&world, at("03:10"), 100).await, Rearmed::default(), "there is nothing left to do");
}

pub async fn a_one_time_job_that_ran_in_a_false_future_is_not_armed_again(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("once", "once 12:00")).await;
    let ahead = at("12:00");
    world.plan(ahead).await;
    let claims = world.start(ahead).await;
    assert_eq!(claims.len(), 1);
    assert_eq!(rearm(&world, at("02:30"), 100).await.timers, 0);
    assert_eq!(world.get("once").await.timer.unwrap().next_run_at, None);
    world.finish(&claims, &success(), at("02:31")).await;
    let row = world.get("once").await;
    assert_eq!((row.job.state.status, row.timer.unwrap().next_run_at), (JobStatus::Retired, None));
}

pub async fn a_slot_that_ran_in_a_false_future_does_not_run_again(fresh: Fresh) {
    let world = went_ahead(&fresh).await;
    rearm(&world, at("02:30"), 100).await;
    let before = at("2027-12-20T04:30:00Z");
    world.store.plan_due(&PlanDue::new(before, 10, &super::world::targets()), &super::given::core_plan).await.unwrap();
    let claims = world.start(before).await;
    world.finish(&claims, &success(), before).await;
    let runs = world.runs().await.len();
    assert_eq!(world.plan(at(AHEAD)).await.runs.len(), 0, "its slot has its run");
    assert_eq!(world.runs().await.len(), runs);
}

pub async fn a_gap_that_lies_in_the_future_altogether_goes(fresh: Fresh) {
    let world = World::new(&fresh);
    for key in ["hourly", "other"] {
        world.create(with(job(key, "0 * * * *"), |values| values.catch_up = CatchUp::None)).await;
    }
    world.plan(at(AHEAD)).await;
    let gaps = world.gaps(&GapFilter::default()).await;
    assert_eq!((gaps.len(), gaps[0].first_slot_at, gaps[1].first_slot_at), (2, at("01:00"), at("01:00")));
    assert_eq!(rearm(&world, at("00:30"), 100).await, Rearmed { timers: 2, gaps: 2, leases: 0 });
    assert_eq!(world.gaps(&GapFilter::default()).await, []);
    assert_eq!(world.get("hourly").await.timer.unwrap().next_run_at, Some(at("01:00")));
}

pub async fn a_one_time_job_that_caught_up_in_a_false_future_is_not_armed_again(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("once", "once 03:00")).await;
    world.pause("once", at("01:00")).await;
    world.resume("once", Missed::RunOnce, at(AHEAD)).await;
    let slots: Vec<_> = world.runs().await.iter().map(|run| run.slot_at).collect();
    assert_eq!(slots, [Some(at("03:00"))], "its mark is beyond that, at the time of the resume");
    assert_eq!(rearm(&world, at("02:30"), 100).await.timers, 0);
    let claims = world.start(at(AHEAD)).await;
    world.finish(&claims, &success(), at(AHEAD)).await;
    let row = world.get("once").await;
    assert_eq!((claims.len(), row.status(), row.next_run_at()), (1, JobStatus::Retired, None));
}

pub async fn a_job_that_was_made_in_a_false_future_begins_now(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job_at("young", "0 * * * *", at(AHEAD))).await;
    assert_eq!(rearm(&world, at("02:30"), 100).await.timers, 1);
    assert_eq!(world.get("young").await.timer.unwrap().next_run_at, Some(at("03:00")));
    assert_eq!(rearm(&world, at("02:31"), 100).await.timers, 0);
}

pub async fn a_mark_that_an_operator_moved_stays(fresh: Fresh) {
    let world = went_ahead(&fresh).await;
    world.create(job("other", "0 * * * *")).await;
    rearm(&world, at("02:30"), 100).await;
    for key in ["hourly", "other"] {
        let now = at("02:40");
        world.try_change(key, now, |view| change::skip_next(view, 3, "ana", now)).await.unwrap();
    }
    assert_eq!(rearm(&world, at("02:45"), 100).await, Rearmed::default());
    assert_eq!(world.get("hourly").await.timer.unwrap().next_run_at, Some(at("06:00")));
}

pub async fn a_new_version_that_took_over_a_false_mark_comes_back_too(fresh: Fresh) {
    let world = went_ahead(&fresh).await;
    let now = at("02:30");
    let edit = || Edit { description: Some("better".to_owned()), ..Edit::default() };
    let change = |view: &JobView| change::new_version(view, edit(), job_id("hourly", 2), false, "ana", now);
    world.try_change("hourly", now, change).await.unwrap();
    assert_eq!(world.get("hourly").await.timer.unwrap().last_slot_at, at(AHEAD));
    assert_eq!(rearm(&world, at("02:31"), 100).await.timers, 1);
    assert_eq!(world.get("hourly").await.timer.unwrap().next_run_at, Some(at("03:00")));
}

pub async fn a_paused_job_comes_back_and_stays_paused(fresh: Fresh) {
    let world = went_ahead(&fresh).await;
    world.pause("hourly", at("02:20")).await;
    assert_eq!(rearm(&world, at("02:30"), 100).await.timers, 1);
    let row = world.get("hourly").await;
    assert_eq!((row.job.state.status, row.timer.unwrap().next_run_at), (JobStatus::Paused, None));
}

pub async fn timers_come_back_in_bounded_steps(fresh: Fresh) {
    let world = World::new(&fresh);
    for number in 0..5 {
        world.create(job_at(&format!("young-{number}"), "0 * * * *", at(AHEAD))).await;
    }
    let mut steps = Vec::new();
    for _ in 0..3 {
        steps.push(rearm(&world, at("02:30"), 2).await.timers);
    }
    assert_eq!(steps, [2, 2, 1]);
}

pub async fn who_died_in_a_false_future_is_noticed(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    world.store.heartbeat(&instance(1, at(AHEAD)), None, false).await.unwrap();
    world.plan(at(AHEAD)).await;
    assert_eq!(world.start(at(AHEAD)).await.len(), 1);
    let now = at("02:30");
    assert_eq!(rearm(&world, now, 100).await.leases, 1);
    assert_eq!(world.runs().await[0].lease_until, Some(now + LEASE));
    assert_eq!(world.store.list_instances().await.unwrap()[0].heartbeat_at, now);
    // It is of an older release: it has no lease of its own, and gets none.
    let beat = world.store.heartbeat(&instance(2, now), Some(now + LEASE), false).await.unwrap();
    assert!(beat.has_unleased);
    assert_eq!(world.store.expired_leases(at("02:31"), 10).await.unwrap().len(), 1);
}

pub async fn the_lease_of_an_instance_from_a_false_future_is_shortened(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    world.plan(at("02:00")).await;
    assert_eq!(world.start(at("02:00")).await.len(), 1);
    // Its run began before, and it was heard of since: only its lease is of a clock that was ahead.
    world.store.heartbeat(&instance(1, at(AHEAD)), Some(at(AHEAD) + LEASE), false).await.unwrap();
    world.store.heartbeat(&instance(1, at("02:29")), None, false).await.unwrap();
    let now = at("02:30");
    assert_eq!(world.store.expired_leases(at("02:31"), 10).await.unwrap(), []);
    assert_eq!(rearm(&world, now, 100).await.timers, 0);
    assert_eq!(world.runs().await[0].lease_until, Some(now + LEASE));
    assert_eq!(world.store.expired_leases(at("02:31"), 10).await.unwrap().len(), 1);
}

pub async fn the_trusted_time_is_remembered_and_may_go_back(fresh: Fresh) {
    let world = World::new(&fresh);
    assert_eq!(world.store.clock_trace().await.unwrap(), ClockTrace::default());
    for time in [at("03:00"), at("01:00")] {
        world.store.write_trusted_time(time).await.unwrap();
        assert_eq!(world.store.clock_trace().await.unwrap().trusted_at, Some(time));
    }
}

pub async fn the_youngest_entry_is_known(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    assert_eq!(world.store.clock_trace().await.unwrap().newest_at, Some(at("00:00")));
    world.run_due(&success(), at("01:00:03")).await;
    assert_eq!(world.store.clock_trace().await.unwrap().newest_at, Some(at("01:00:03")));
    let entry = audit("org.write", "orgs", at("01:30"));
    world.store.append_audit(&entry).await.unwrap();
    assert_eq!(world.store.clock_trace().await.unwrap().newest_at, Some(at("01:30")));
}
