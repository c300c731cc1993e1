//! The newest runs of many jobs.

use everbell_core::store::{RecentRuns, RunSummary};
use everbell_core::{JobKey, Overlap, RunStatus};

use super::Fresh;
use super::given::{MAIL, at, audit, by_hand, job, job_id, trial, with};
use super::world::{World, failure, success};

fn recent_runs(keys: &[&str], each: u32) -> RecentRuns {
    RecentRuns::new(keys.iter().map(|key| JobKey::new(key).unwrap()).collect(), each).unwrap()
}

/// Returns the recent runs as `<job>@<hour>`.
async fn seen(world: &World, recent_runs: &RecentRuns) -> Vec<String> {
    let name = |run: &RunSummary| format!("{}@{}", run.job_key, run.scheduled_at.strftime("%H"));
    world.store.recent_runs(recent_runs).await.unwrap().iter().map(name).collect()
}

/// Two jobs with five runs each, and another.
async fn crowd(world: &World) {
    for key in ["a", "b", "c"] {
        world.create(job(key, "0 * * * *")).await;
    }
    for hour in ["01:00", "02:00", "03:00", "04:00", "05:00"] {
        world.run_due(&success(), at(hour)).await;
    }
}

pub async fn nothing_is_seen_of_jobs_that_nobody_has(fresh: Fresh) {
    let world = World::new(&fresh);
    assert_eq!(world.store.recent_runs(&recent_runs(&[], 5)).await.unwrap(), []);
    assert_eq!(world.store.recent_runs(&recent_runs(&["never", "it's"], 5)).await.unwrap(), []);
    world.create(job("new", "0 * * * *")).await;
    assert_eq!(world.store.recent_runs(&recent_runs(&["new", "never"], 5)).await.unwrap(), [], "it has no run yet");
}

pub async fn the_newest_runs_of_each_job_are_seen(fresh: Fresh) {
    let world = World::new(&fresh);
    crowd(&world).await;
    assert_eq!(seen(&world, &recent_runs(&["b", "a"], 2)).await, ["a@05", "a@04", "b@05", "b@04"]);
    assert_eq!(seen(&world, &recent_runs(&["c", "c"], 1)).await, ["c@05"], "a key counts once");
    assert_eq!(seen(&world, &recent_runs(&["a"], 1_000)).await, ["a@05", "a@04", "a@03", "a@02", "a@01"]);
    assert_eq!(seen(&world, &recent_runs(&["a", "b", "c"], 5)).await.len(), 15);
}

pub async fn runs_of_every_version_are_seen(fresh: Fresh) {
    let world = World::new(&fresh);
    crowd(&world).await;
    let (id, now) = (job_id("a", 2), at("05:30"));
    let edit = everbell_core::change::Edit::default;
    let change =
        |view: &everbell_core::change::JobView| everbell_core::change::new_version(view, edit(), id, true, "ana", now);
    world.try_change("a", now, change).await.unwrap();
    world.run_due(&success(), at("06:00")).await;
    world.run_due(&success(), at("07:00")).await;
    let found = world.store.recent_runs(&recent_runs(&["a"], 3)).await.unwrap();
    let versions: Vec<_> = found.iter().map(|run| (run.job_id, run.job_version)).collect();
    assert_eq!(versions, [(id, 2), (id, 2), (job_id("a", 1), 1)]);
    assert_eq!(seen(&world, &recent_runs(&["a"], 4)).await, ["a@07", "a@06", "a@05", "a@04"]);
}

pub async fn a_glimpse_is_what_the_run_is(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(with(job("many", "0 * * * *"), |values| values.overlap = Overlap::Skip)).await;
    world.create(with(job("retried", "0 1 * * *"), |values| values.max_attempts = 3)).await;
    world.run_due(&failure(), at("01:00")).await;
    world.run_due(&success(), at("02:00")).await;
    world.plan(at("03:00")).await;
    world.start(at("03:00:02")).await;
    world.plan(at("04:00")).await;
    world.run_now("many", "by hand", at("04:30")).await;
    let found = world.store.recent_runs(&recent_runs(&["many", "retried"], 10)).await.unwrap();
    assert_eq!(found.len(), world.runs().await.len());
    for glimpse in &found {
        let run = world.run(glimpse.id).await;
        assert_eq!(Some(glimpse), RunSummary::from_run(&run).as_ref());
        assert_eq!((glimpse.fire_lag(), glimpse.duration()), (run.fire_lag(), run.duration()));
    }
    let status: Vec<RunStatus> = found.iter().map(|run| run.status).collect();
    for wanted in [RunStatus::Succeeded, RunStatus::Failed, RunStatus::Running, RunStatus::Skipped] {
        assert!(status.contains(&wanted), "{wanted} is not among {status:?}");
    }
}

pub async fn recent_runs_may_lie_between_two_times(fresh: Fresh) {
    let world = World::new(&fresh);
    crowd(&world).await;
    let both = || recent_runs(&["a", "b"], 2);
    assert_eq!(seen(&world, &both().from(at("05:00"))).await, ["a@05", "b@05"], "from is part of it");
    assert_eq!(seen(&world, &both().from(at("05:00:00.000000001"))).await, [""; 0]);
    assert_eq!(seen(&world, &both().to(at("02:00"))).await, ["a@01", "b@01"], "to is not");
    assert_eq!(seen(&world, &both().to(at("02:00:00.0000001"))).await, ["a@02", "a@01", "b@02", "b@01"]);
    let between = both().from(at("02:00")).to(at("05:00"));
    assert_eq!(seen(&world, &between).await, ["a@04", "a@03", "b@04", "b@03"], "the newest of those");
    assert_eq!(seen(&world, &both().from(at("03:00")).to(at("03:00"))).await, [""; 0]);
    let ever = both().from(jiff::Timestamp::MIN).to(jiff::Timestamp::MAX);
    assert_eq!(seen(&world, &ever).await.len(), 4);
}

pub async fn runs_of_the_same_time_are_seen_in_the_order_of_ids(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(with(job("busy", "0 1 * * *"), |values| values.overlap = Overlap::Queue)).await;
    world.plan(at("01:00")).await;
    for name in ["one", "two", "three", "four"] {
        world.run_now("busy", name, at("01:00")).await;
    }
    let mut ids: Vec<_> = world.runs().await.iter().map(|run| run.id).collect();
    ids.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(ids.len(), 5);
    assert!(ids.contains(&by_hand(at("01:00"), "three")));
    for each in 1..=5 {
        let found = world.store.recent_runs(&recent_runs(&["busy"], each)).await.unwrap();
        assert_eq!(found.iter().map(|run| run.id).collect::<Vec<_>>(), ids[..each as usize]);
    }
}

pub async fn runs_of_no_job_are_not_seen(fresh: Fresh) {
    let world = World::new(&fresh);
    crowd(&world).await;
    let run = trial("try", MAIL, at("06:00"));
    world.store.insert_run(&run, &audit("target.try", "target:mail", at("06:00"))).await.unwrap();
    assert_eq!(seen(&world, &recent_runs(&["a"], 1)).await, ["a@05"]);
}
