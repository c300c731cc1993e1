//! Jobs as a queue: due at once, replaced, many together.

use everbell_core::change::NewJob;
use everbell_core::enqueue;
use everbell_core::store::{GapFilter, JobFilter, StartRuns, StoreResult};
use everbell_core::{Definition, GapReason, JobStatus, Overlap, RunStatus};
use jiff::Timestamp;

use super::Fresh;
use super::given::{LOG, MAIL, assert_refused, at, audit, instance_id, job_at, job_id, json, to, with};
use super::world::{LEASE, World, failure, room, success};

/// A job that is due at `run_at`, enqueued at `now`.
fn due(key: &str, run_at: &str, now: &str) -> Definition {
    let definition = with(job_at(key, &format!("once {run_at}"), at(now)), |values| values.overlap = Overlap::Queue);
    everbell_core::with!(Definition { payload: json(&format!(r#"{{"at":"{run_at}"}}"#)), ..definition })
}

async fn replace(world: &World, key: &str, id: u32, run_at: &str, now: &str) {
    let definition = everbell_core::with!(Definition { id: job_id(key, id), ..due(key, run_at, now) });
    let now = at(now);
    world.try_change(key, now, |view| enqueue::replace(view, definition.clone(), "ana", now)).await.unwrap();
}

async fn create(world: &World, jobs: &[NewJob], now: Timestamp) -> StoreResult<()> {
    world.store.create_jobs(jobs, &audit("job.enqueue_many", "target:log", now)).await
}

fn many(count: u32) -> Vec<NewJob> {
    (0..count).map(|n| enqueue::create(due(&format!("job-{n:05}"), "01:00", "01:00"))).collect()
}

pub async fn an_enqueued_job_is_due_at_once(fresh: Fresh) {
    let world = World::new(&fresh);
    let row = world.insert(&enqueue::create(due("now", "01:00", "01:00"))).await;
    assert_eq!(row.timer.as_ref().and_then(|timer| timer.next_run_at), Some(at("01:00")));
    assert_eq!(world.plan(at("00:59")).await.runs.len(), 0);
    let claims = world.run_due(&success(), at("01:00")).await;
    assert_eq!((claims.len(), claims[0].run.slot_at), (1, Some(at("01:00"))));
    assert_eq!(world.get("now").await.job.state.status, JobStatus::Retired);
    assert_eq!(world.plan(at("02:00")).await.timers, 0, "once");
}

pub async fn a_replaced_job_fires_as_the_new_one_only(fresh: Fresh) {
    let world = World::new(&fresh);
    world.insert(&enqueue::create(due("one", "05:00", "01:00"))).await;
    replace(&world, "one", 2, "03:00", "02:00").await;
    let row = world.get("one").await;
    assert_eq!((row.job.definition.version, row.next_run_at()), (2, Some(at("03:00"))));
    let claims = world.run_due(&success(), at("05:00")).await;
    let payloads: Vec<_> = claims.iter().map(|claim| claim.run.payload.as_str().to_owned()).collect();
    assert_eq!(payloads, [r#"{"at":"03:00"}"#]);
    assert_eq!(world.gaps(&GapFilter::default()).await, []);
    assert_eq!(world.keys(&JobFilter { status: vec![JobStatus::Active], ..JobFilter::default() }).await, [""; 0]);
}

pub async fn a_run_that_has_not_started_is_replaced(fresh: Fresh) {
    let world = World::new(&fresh);
    world.insert(&enqueue::create(due("planned", "01:00", "01:00"))).await;
    world.plan(at("01:00")).await;
    replace(&world, "planned", 2, "02:00", "01:30").await;
    // One whose time has come, and that no planner has seen.
    world.insert(&enqueue::create(due("unplanned", "01:00", "01:00"))).await;
    replace(&world, "unplanned", 2, "02:00", "01:30").await;
    let gaps = world.gaps(&GapFilter::default()).await;
    assert_eq!(gaps.len(), 1);
    assert_eq!((gaps[0].first_slot_at, gaps[0].reason), (at("01:00"), GapReason::Coalesced));
    assert_eq!(world.start(at("01:30")).await, []);
    let claims = world.run_due(&success(), at("02:00")).await;
    assert_eq!(claims.len(), 2);
    let mut statuses: Vec<_> = world.runs().await.iter().map(|run| run.status).collect();
    statuses.sort_by_key(|status| status.as_str());
    assert_eq!(statuses, [RunStatus::Canceled, RunStatus::Succeeded, RunStatus::Succeeded]);
}

pub async fn the_new_one_waits_for_a_replaced_one_at_work(fresh: Fresh) {
    let world = World::new(&fresh);
    world.insert(&enqueue::create(due("busy", "01:00", "01:00"))).await;
    world.plan(at("01:00")).await;
    let claims = world.start(at("01:00")).await;
    replace(&world, "busy", 2, "01:10", "01:10").await;
    // Replaced once more before it could start.
    world.plan(at("01:11")).await;
    replace(&world, "busy", 3, "01:12", "01:12").await;
    world.plan(at("01:12")).await;
    assert_eq!(world.start(at("01:12")).await, [], "the first one is at work");
    world.finish(&claims, &success(), at("01:20")).await;
    let next = world.start(at("01:20")).await;
    assert_eq!(next.iter().map(|claim| claim.run.payload.as_str()).collect::<Vec<_>>(), [r#"{"at":"01:12"}"#]);
    world.finish(&next, &success(), at("01:21")).await;
    assert_eq!(world.get("busy").await.job.state.status, JobStatus::Retired);
}

pub async fn a_replaced_job_stays_paused(fresh: Fresh) {
    let world = World::new(&fresh);
    world.insert(&enqueue::create(due("held", "05:00", "01:00"))).await;
    world.pause("held", at("01:30")).await;
    replace(&world, "held", 2, "03:00", "02:00").await;
    let row = world.get("held").await;
    assert_eq!((row.job.state.status, row.next_run_at()), (JobStatus::Paused, None));
    assert_eq!(world.plan(at("04:00")).await.timers, 0);
}

pub async fn many_jobs_are_created_together(fresh: Fresh) {
    let world = World::new(&fresh);
    let jobs = many(2_345);
    create(&world, &jobs, at("01:00")).await.unwrap();
    let rows = world.jobs_in_pages(&JobFilter::default(), 1_000).await;
    assert_eq!(rows.len(), 2_345);
    for (row, new) in rows.iter().zip(&jobs).step_by(100) {
        assert_eq!((&row.job.definition, &row.job.state), (&new.definition, &new.state));
        assert_eq!(row.timer, new.timer);
    }
    assert_eq!(world.actions(None).await, ["job.enqueue_many"], "one entry");
    let planned: u32 = [world.plan(at("01:00")).await.timers, world.plan(at("01:00")).await.timers].iter().sum();
    assert_eq!(planned, 2_000);
}

pub async fn many_jobs_are_created_all_or_none(fresh: Fresh) {
    let world = World::new(&fresh);
    world.insert(&enqueue::create(due("job-00777", "02:00", "01:00"))).await;
    assert_refused(create(&world, &many(1_500), at("01:00")).await, "conflict");
    let mut twice = many(3);
    twice.push(NewJob { ..twice[1].clone() });
    assert_refused(create(&world, &twice, at("01:00")).await, "conflict");
    assert_eq!(world.keys(&JobFilter::default()).await, ["job-00777"]);
    assert_eq!(world.actions(None).await, ["job.create"]);
    let later = everbell_core::with!(Definition { version: 2, ..due("later", "01:00", "01:00") });
    assert_refused(create(&world, &[enqueue::create(later)], at("01:00")).await, "invalid");
    create(&world, &[], at("01:00")).await.unwrap();
}

pub async fn more_jobs_than_the_bound_are_refused(fresh: Fresh) {
    let world = World::new(&fresh);
    let error = create(&world, &many(10_001), at("01:00")).await.unwrap_err();
    assert!(error.to_string().contains("at most 10000"), "{error}");
    assert_eq!(world.keys(&JobFilter::default()).await, [""; 0]);
}

/// A job of a priority, due at `run_at`.
async fn ranked(world: &World, key: &str, priority: i32, run_at: &str) {
    let definition = with(due(key, run_at, "00:30"), |values| {
        values.priority = priority;
        values.max_attempts = 2;
    });
    world.insert(&enqueue::create(definition)).await;
}

/// Starts runs one by one, and returns the keys of their jobs.
async fn started(world: &World, now: &str, count: u32) -> Vec<String> {
    let mut keys = Vec::new();
    for _ in 0..count {
        keys.extend(
            world.start_some(at(now), 1).await.iter().map(|claim| claim.run.job_key.clone().unwrap().to_string()),
        );
    }
    keys
}

pub async fn a_higher_priority_starts_first(fresh: Fresh) {
    let world = World::new(&fresh);
    for (key, priority, run_at) in [
        ("low", -1, "01:00"),
        ("none-1", 0, "01:01"),
        ("high-2", 5, "01:05"),
        ("top", 100, "01:06"),
        ("none-2", 0, "01:02"),
        ("high-1", 5, "01:04"),
        ("lowest", -100, "00:50"),
    ] {
        ranked(&world, key, priority, run_at).await;
    }
    world.plan(at("01:10")).await;
    assert_eq!(
        started(&world, "01:10", 8).await,
        ["top", "high-1", "high-2", "none-1", "none-2", "low", "lowest"],
        "equal ones in the order of their time"
    );
}

pub async fn runs_that_start_together_are_the_most_urgent_ones(fresh: Fresh) {
    let world = World::new(&fresh);
    for n in 0..6 {
        ranked(&world, &format!("none-{n}"), 0, "01:00").await;
        ranked(&world, &format!("high-{n}"), 1, "01:01").await;
        ranked(&world, &format!("low-{n}"), -1, "01:00").await;
    }
    world.plan(at("01:10")).await;
    let count = |claims: Vec<everbell_core::store::Claim>, name: &str| {
        claims.iter().filter(|claim| claim.run.job_key.as_ref().unwrap().as_str().starts_with(name)).count()
    };
    let first = world.start_some(at("01:10"), 8).await;
    assert_eq!(first.len(), 8);
    assert_eq!((count(first.clone(), "high"), count(first, "none")), (6, 2));
    let second = world.start_some(at("01:10"), 8).await;
    assert_eq!((count(second.clone(), "none"), count(second, "low")), (4, 4));
    assert_eq!(world.start(at("01:10")).await.len(), 2);
}

pub async fn priorities_respect_the_room_of_each_target(fresh: Fresh) {
    let world = World::new(&fresh);
    for n in 0..3 {
        for (name, priority, label) in [("log-high", 9, LOG), ("log-none", 0, LOG), ("mail-low", -9, MAIL)] {
            let definition = with(due(&format!("{name}-{n}"), "01:00", "00:30"), |values| values.priority = priority);
            world.insert(&enqueue::create(to(definition, label))).await;
        }
    }
    world.plan(at("01:10")).await;
    let targets = room(&[(LOG, 4), (MAIL, 2)]);
    let (now, lease_until) = (at("01:10"), at("01:10") + LEASE);
    let request = StartRuns { instance: instance_id(1), targets: &targets, limit: 5, now, lease_until };
    let claims = world.store.start_runs(&request).await.unwrap();
    let keys: Vec<_> = claims.iter().map(|claim| claim.run.job_key.as_ref().unwrap().as_str()).collect();
    let count = |name: &str| keys.iter().filter(|key| key.starts_with(name)).count();
    assert_eq!((count("log-high"), count("log-none"), count("mail-low")), (3, 1, 1), "{keys:?}");
}

pub async fn a_retry_keeps_its_priority(fresh: Fresh) {
    let world = World::new(&fresh);
    ranked(&world, "high", 7, "01:00").await;
    ranked(&world, "none", 0, "00:40").await;
    world.plan(at("01:00")).await;
    let claims = world.start_some(at("01:00"), 1).await;
    world.finish(&claims, &failure(), at("01:00")).await;
    assert_eq!(started(&world, "02:00", 2).await, ["high", "none"]);
    let row = world.get("high").await;
    assert_eq!(row.job.definition.policies.priority, 7);
}
