//! Counts: how many jobs, active runs and due timers there are.

use everbell_core::store::{Counts, PlanDue, RunFilter};
use everbell_core::{JobStatus, Overlap};
use jiff::Timestamp;

use super::Fresh;
use super::given::{MAIL, at, audit, job, to, trial, with};
use super::world::{World, canceled, failure, success};

async fn counts(world: &World, now: &str) -> Counts {
    world.store.counts(at(now)).await.unwrap()
}

/// `<status> <kind> <number>` of each.
fn jobs(counts: &Counts) -> Vec<String> {
    let kind = |one_time| if one_time { "one_time" } else { "recurring" };
    counts.jobs.iter().map(|group| format!("{} {} {}", group.status, kind(group.one_time), group.jobs)).collect()
}

/// `<target> <status> <number>` of each.
fn active(counts: &Counts) -> Vec<String> {
    counts.active_runs.iter().map(|group| format!("{} {} {}", group.target, group.status, group.runs)).collect()
}

fn due(counts: &Counts) -> (u64, Option<Timestamp>) {
    (counts.due_timers, counts.oldest_due_at)
}

pub async fn nothing_is_counted_where_there_is_nothing(fresh: Fresh) {
    let world = World::new(&fresh);
    assert_eq!(counts(&world, "01:00").await, Counts::default());
}

pub async fn jobs_are_counted_by_status_and_kind(fresh: Fresh) {
    let world = World::new(&fresh);
    for key in ["a", "b", "c", "d"] {
        world.create(job(key, "0 * * * *")).await;
    }
    world.create(job("once", "once 02:00")).await;
    world.create(job("past", "once 03:00")).await;
    world.pause("b", at("00:10")).await;
    world.pause("past", at("00:10")).await;
    world.retire("c", at("00:10")).await;
    world.retire("d", at("00:10")).await;
    let expected =
        ["active recurring 1", "active one_time 1", "paused recurring 1", "paused one_time 1", "retired recurring 2"];
    assert_eq!(jobs(&counts(&world, "00:20").await), expected);
}

pub async fn a_job_that_cannot_fire_is_counted_while_it_lives(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("good", "0 * * * *")).await;
    world.create(to(job("bad", "0 * * * *"), MAIL)).await;
    let broken = |due: &everbell_core::store::Due, now| everbell_core::plan::Plan {
        error: Some("the zone is gone".to_owned()),
        ..super::given::core_plan(due, now)
    };
    let planned =
        world.store.plan_due(&PlanDue::new(at("01:00"), 10, &[super::given::target(MAIL)]), &broken).await.unwrap();
    assert_eq!(planned.errored.len(), 1);
    assert_eq!(counts(&world, "01:00").await.errored_jobs, 1);
    assert_eq!(world.get("bad").await.job.state.status, JobStatus::Active);
    world.retire("bad", at("01:10")).await;
    assert_eq!(counts(&world, "01:10").await.errored_jobs, 0);
}

pub async fn active_runs_are_counted_by_target_and_status(fresh: Fresh) {
    let world = World::new(&fresh);
    for key in ["a", "b", "c"] {
        world.create(with(job(key, "0 * * * *"), |values| values.overlap = Overlap::Queue)).await;
    }
    world.create(to(job("m", "0 * * * *"), MAIL)).await;
    world.plan(at("01:00")).await;
    assert_eq!(active(&counts(&world, "01:00").await), ["log pending 3", "mail pending 1"]);
    let claims = world.start(at("01:00")).await;
    assert_eq!(active(&counts(&world, "01:00").await), ["log running 3", "mail running 1"]);
    world.plan(at("02:00")).await;
    let entry = audit("target.try", "target:mail", at("02:00"));
    world.store.insert_run(&trial("try", MAIL, at("02:00")), &entry).await.unwrap();
    let expected = ["log pending 3", "log running 3", "mail pending 1", "mail running 1"];
    assert_eq!(active(&counts(&world, "02:00").await), expected, "also held ones, and those of no job");
    world.finish(&claims[..1], &success(), at("02:10")).await;
    world.finish(&claims[1..2], &failure(), at("02:10")).await;
    world.finish(&claims[2..], &canceled(), at("02:10")).await;
    assert_eq!(active(&counts(&world, "02:10").await), ["log pending 3", "mail pending 1"], "what has ended is not");
    assert_eq!(world.runs_like(&RunFilter::default()).await.len(), 9, "it is history");
}

pub async fn timers_that_are_due_are_counted_with_the_oldest(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    world.create(job("later", "30 * * * *")).await;
    world.create(job("paused", "0 * * * *")).await;
    world.pause("paused", at("00:10")).await;
    world.create_for("acme", job("orgs", "15 * * * *")).await;
    assert_eq!(due(&counts(&world, "00:14").await), (0, None));
    assert_eq!(due(&counts(&world, "00:15").await), (1, Some(at("00:15"))));
    assert_eq!(due(&counts(&world, "01:00").await), (3, Some(at("00:15"))));
    world.plan(at("01:00")).await;
    assert_eq!(due(&counts(&world, "01:00").await), (0, None));
}

pub async fn living_jobs_are_counted_by_target_and_status(fresh: Fresh) {
    let world = World::new(&fresh);
    assert_eq!(world.store.count_targets().await.unwrap(), []);
    for key in ["a", "b", "gone"] {
        world.create(job(key, "0 * * * *")).await;
    }
    world.create(to(job("m", "0 * * * *"), MAIL)).await;
    world.create(to(job("Z", "0 * * * *"), "Zed")).await;
    world.pause("b", at("00:10")).await;
    world.retire("gone", at("00:10")).await;
    let found = world.store.count_targets().await.unwrap();
    let shown: Vec<String> = found.iter().map(|of| format!("{} {} {}", of.target, of.status, of.jobs)).collect();
    assert_eq!(shown, ["Zed active 1", "log active 1", "log paused 1", "mail active 1"]);
}

pub async fn counting_changes_nothing(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    let before = world.get("hourly").await;
    assert_eq!(counts(&world, "05:00").await, counts(&world, "05:00").await);
    assert_eq!(world.get("hourly").await, before);
}
