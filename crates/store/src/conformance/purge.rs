//! Deleting jobs: finished one-time jobs go with their history, and a purge deletes all of a job.

use everbell_core::change::{self, Edit};
use everbell_core::org::OverrideWrite;
use everbell_core::plan::Missed;
use everbell_core::store::{AuditEntry, GapFilter, JobFilter, PurgedJob, StoreResult};
use everbell_core::{Definition, Dependency, JobKey, JobStatus};

use super::Fresh;
use super::given::{assert_refused, at, audit, job, job_id, json, org_id, with};
use super::prune::prune;
use super::world::{World, by_key, failure, success};

const TOMORROW: &str = "2026-11-16T12:00:00Z";

async fn purge(world: &World, key: &str, limit: u32) -> StoreResult<PurgedJob> {
    let entry = audit("job.purge", &format!("job:{key}"), at("20:00"));
    world.store.purge_job(&JobKey::new(key).unwrap(), limit, PurgedJob::default(), &entry).await
}

async fn keys(world: &World) -> Vec<String> {
    world.keys(&JobFilter::default()).await
}

/// The next version of a key whose last one is retired.
fn again(before: &everbell_core::store::JobRow, definition: Definition) -> change::NewJob {
    let last = &before.job.definition;
    let version = last.version + 1;
    let id = job_id(last.key.as_str(), version);
    change::create(everbell_core::with!(Definition { id, version, supersedes: Some(last.id), ..definition }))
        .following(&before.job.state)
}

pub async fn a_finished_one_time_job_goes_with_its_last_run(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("good", "once 01:00")).await;
    world.create(job("bad", "once 02:00")).await;
    world.create(job("ahead", "once 09:00")).await;
    world.create(job("hourly", "0 * * * *")).await;
    world.run_due(&success(), at("01:00")).await;
    world.run_due(&failure(), at("02:00")).await;
    assert_eq!(prune(&world, at("01:00"), 100).await.unwrap().jobs, 0, "its run is not old");
    let pruned = prune(&world, at("01:30"), 100).await.unwrap();
    assert_eq!((pruned.runs, pruned.jobs), (2, 1), "a run of each");
    assert_eq!(keys(&world).await, ["ahead", "bad", "hourly"]);
    assert_refused(world.store.get_job(&by_key("good")).await, "not found");
    let pruned = prune(&world, at(TOMORROW), 100).await.unwrap();
    assert_eq!((pruned.runs, pruned.jobs), (2, 1));
    assert_eq!(keys(&world).await, ["ahead", "hourly"], "one that has not fired stays, and so does a recurring one");
    assert_eq!(prune(&world, at(TOMORROW), 100).await.unwrap().jobs, 0);
    assert_eq!(world.plan(at("09:00")).await.runs.len(), 2, "they go on");
}

pub async fn a_retired_one_time_job_without_a_run_goes(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("never", "once 09:00")).await;
    world.retire("never", at("01:00")).await;
    world.create(job("skipped", "once 02:00")).await;
    world.pause("skipped", at("01:00")).await;
    world.resume("skipped", Missed::Skip, at("03:00")).await;
    assert_eq!(prune(&world, at("01:00"), 100).await.unwrap().jobs, 0);
    assert_eq!(prune(&world, at("02:30"), 100).await.unwrap().jobs, 0, "its gap is kept");
    let pruned = prune(&world, at("04:00"), 100).await.unwrap();
    assert_eq!((pruned.gaps, pruned.jobs), (1, 1));
    assert_eq!(keys(&world).await, ["never"], "a program that declares it would create it again, and it would fire");
    assert_eq!(prune(&world, at("10:00"), 100).await.unwrap().jobs, 1);
    assert_eq!(keys(&world).await, [""; 0]);
}

pub async fn a_finished_job_stays_while_it_is_referred_to(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("first", "once 01:00")).await;
    let within = std::time::Duration::from_hours(1);
    let dependency = Dependency { job_key: JobKey::new("first").unwrap(), within };
    world.create(with(job("second", "0 5 * * *"), |values| values.depends_on = Some(dependency))).await;
    world.run_due(&success(), at("01:00")).await;
    assert_eq!(prune(&world, at(TOMORROW), 100).await.unwrap().jobs, 0);
    world.retire("second", at("02:00")).await;
    assert_eq!(prune(&world, at(TOMORROW), 100).await.unwrap().jobs, 1);
    assert_eq!(keys(&world).await, ["second"]);
}

pub async fn finished_versions_of_a_key_go_one_by_one(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("again", "once 01:00")).await;
    world.run_due(&success(), at("01:00")).await;
    let first = world.get("again").await;
    let second = world.insert(&again(&first, job("again", "once 05:00"))).await;
    assert_eq!(second.job.definition.supersedes, Some(first.job.definition.id));
    assert_eq!(prune(&world, at("02:00"), 100).await.unwrap().jobs, 1);
    let second = world.get("again").await;
    assert_eq!((second.job.definition.version, second.job.definition.supersedes), (2, None));
    world.run_due(&success(), at("05:00")).await;
    assert_eq!(world.get("again").await.job.state.status, JobStatus::Retired);
    assert_eq!(prune(&world, at(TOMORROW), 100).await.unwrap().jobs, 1);
    // Prepared before the prune: the version before it is gone when it is written.
    let third = world.insert(&again(&second, job("again", "once 09:00"))).await;
    assert_eq!((third.job.definition.version, third.job.definition.supersedes), (3, None));
}

pub async fn a_one_time_version_of_a_recurring_job_stays(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("edited", "0 5 * * *")).await;
    let spec = job("any", "once 02:00").spec.unwrap();
    let edit = Edit { spec: Some(spec), ..Edit::default() };
    let decide = |view: &change::JobView| {
        change::new_version(view, edit.clone(), job_id("edited", 2), false, "ana", at("00:30"))
    };
    world.try_change("edited", at("00:30"), decide).await.unwrap();
    world.run_due(&success(), at("02:00")).await;
    assert_eq!(prune(&world, at(TOMORROW), 100).await.unwrap().jobs, 0);
    assert_eq!(keys(&world).await, ["edited", "edited"]);
}

pub async fn no_more_finished_jobs_go_than_the_limit_the_oldest_first(fresh: Fresh) {
    let world = World::new(&fresh);
    for hour in 1..=5 {
        world.create(job(&format!("job-{hour}"), &format!("once 0{hour}:00"))).await;
    }
    for hour in 1..=5 {
        world.run_due(&success(), at(&format!("0{hour}:00"))).await;
    }
    let mut left = Vec::new();
    for _ in 0..3 {
        prune(&world, at(TOMORROW), 2).await.unwrap();
        left.push(keys(&world).await.len());
    }
    assert_eq!(left, [3, 1, 0]);
}

pub async fn a_purged_job_leaves_nothing_but_the_trail(fresh: Fresh) {
    let world = World::new(&fresh);
    let secret = everbell_core::with!(Definition { payload: json(r#"{"name":"Ana"}"#), ..job("private", "0 * * * *") });
    world.create(secret).await;
    world.create(job("other", "0 * * * *")).await;
    world.run_due(&failure(), at("01:00")).await;
    world.pause("private", at("01:30")).await;
    world.resume("private", Missed::Skip, at("03:30")).await;
    let facts = Some(json(r#"{"payload":"Ana"}"#));
    let told = AuditEntry { before: facts.clone(), after: facts.clone(), ..audit("x", "job:private", at("03:40")) };
    world.store.append_audit(&told).await.unwrap();
    let other = AuditEntry { after: facts.clone(), ..audit("x", "job:other", at("03:40")) };
    world.store.append_audit(&other).await.unwrap();
    // One that waits goes too.
    world.plan(at("04:00")).await;
    let before = world.runs().await.len();
    assert_eq!(purge(&world, "private", 100).await.unwrap(), PurgedJob::last(1, 2, 1));
    assert_refused(world.store.get_job(&by_key("private")).await, "not found");
    assert_refused(purge(&world, "private", 100).await, "not found");
    assert_eq!(keys(&world).await, ["other"]);
    assert_eq!(world.runs().await.len(), before - 2, "those of others stay");
    assert_eq!(world.gaps(&GapFilter { job_id: Some(job_id("private", 1)), ..GapFilter::default() }).await, []);
    let trail = world.store.list_audit(Some("job:private"), &super::given::page(100)).await.unwrap().items;
    assert_eq!(trail[0].action, "job.purge");
    assert!(trail.iter().all(|entry| entry.before.is_none() && entry.after.is_none()), "{trail:?}");
    let trail = world.store.list_audit(Some("job:other"), &super::given::page(100)).await.unwrap().items;
    assert!(trail.iter().any(|entry| entry.after == facts), "{trail:?}");
    assert_eq!(world.start(at("04:00")).await.len(), 1, "of the other job");
    assert_eq!(world.plan(at("09:00")).await.timers, 1);
    let new = world
        .create(everbell_core::with!(Definition { id: job_id("private", 7), ..job("private", "0 * * * *") }))
        .await;
    assert_eq!((new.job.definition.version, new.last_run), (1, None), "the key is free");
}

pub async fn a_job_whose_run_is_at_work_is_not_purged(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("busy", "once 01:00")).await;
    world.plan(at("01:00")).await;
    let claims = world.start(at("01:00")).await;
    assert_refused(purge(&world, "busy", 100).await, "conflict");
    assert_eq!(world.get("busy").await.job.state.status, JobStatus::Active, "it is as it was");
    assert_eq!(world.actions(Some("job:busy")).await, ["job.create"]);
    world.finish(&claims, &success(), at("01:10")).await;
    assert_eq!(purge(&world, "busy", 100).await.unwrap(), PurgedJob::last(1, 1, 0));
}

pub async fn a_long_history_is_purged_in_steps(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("long", "0 * * * *")).await;
    for hour in 1..=5 {
        world.run_due(&success(), at(&format!("0{hour}:00"))).await;
    }
    assert_eq!(purge(&world, "long", 3).await.unwrap(), PurgedJob::some(3, 0));
    let row = world.get("long").await;
    assert_eq!(row.job.state.status, JobStatus::Retired, "it never fires again");
    assert_eq!(row.timer.and_then(|timer| timer.next_run_at), None);
    assert_eq!(world.plan(at("12:00")).await.timers, 0);
    assert_eq!(purge(&world, "long", 3).await.unwrap(), PurgedJob::last(1, 2, 0));
    assert_eq!(world.actions(Some("job:long")).await, ["job.purge", "job.create"], "one entry");
}

pub async fn a_purge_takes_versions_orgs_and_overrides_along(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create_for("acme", job("brief", "0 8 * * *")).await;
    let write = OverrideWrite { job_key: JobKey::new("brief").unwrap(), enabled: false, expression: None };
    let entry = audit("org.override", "org:acme", at("00:20"));
    world.store.write_override(&org_id("acme"), &write, &entry).await.unwrap();
    let decide = |view: &change::JobView| {
        change::new_version(view, Edit::default(), job_id("brief", 2), false, "ana", at("00:30"))
    };
    world.try_change("brief", at("00:30"), decide).await.unwrap();
    let purged = purge(&world, "brief", 100).await.unwrap();
    assert_eq!((purged.versions, purged.finished), (2, true));
    world.reconcile_orgs(at("00:40")).await;
    assert_eq!(world.plan(at("09:00")).await.timers, 0);
    assert!(world.store.get_org(&org_id("acme")).await.is_ok(), "the org stays");
    world
        .create(super::given::per_org(everbell_core::with!(Definition {
            id: job_id("brief", 9),
            ..job("brief", "0 8 * * *")
        })))
        .await;
    world.reconcile_orgs(at("00:50")).await;
    assert_eq!(world.plan(at("08:00")).await.runs.len(), 1, "no override of it is left");
}
