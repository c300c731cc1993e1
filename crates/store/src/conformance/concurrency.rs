//! Concurrent callers: every claim goes to one of them, and none waits for rows that others hold.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use everbell_core::change::{self, JobView};
use everbell_core::store::{Claim, JobFilter, PlanDue, Recorded, Store, StoreError, UnavailableReason};
use everbell_core::{CatchUp, Definition, Overlap, RunStatus};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::Fresh;
use super::checkers::assert_sound;
use super::given::{at, audit, core_plan, job, job_id, kind, with};
use super::world::{World, by_key, pause_of, settled, success, targets};

/// More would only measure how many connections a server allows.
const CONNECTIONS: usize = 8;

/// Runs `work` in this many concurrent tasks, on several connections, and returns their answers.
async fn at_once<T, F>(fresh: &Fresh, workers: usize, work: impl Fn(usize, World) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let mut stores: Vec<Arc<dyn Store>> = Vec::new();
    for _ in 0..workers.min(CONNECTIONS) {
        stores.push(fresh.reconnect().await);
    }
    let barrier = Arc::new(Barrier::new(workers));
    let mut tasks = JoinSet::new();
    for worker in 0..workers {
        let barrier = Arc::clone(&barrier);
        let work = work(worker, World { store: Arc::clone(&stores[worker % stores.len()]) });
        tasks.spawn(async move {
            barrier.wait().await;
            work.await
        });
    }
    tasks.join_all().await
}

pub async fn ten_workers_and_one_due_timer(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    for hour in ["01:00", "02:00", "03:00", "04:00", "05:00"] {
        let planned = at_once(&fresh, 10, |_, world| async move { world.plan(at(hour)).await }).await;
        let timers: u32 = planned.iter().map(|planned| planned.timers).sum();
        let runs: usize = planned.iter().map(|planned| planned.runs.len()).sum();
        assert_eq!((timers, runs), (1, 1), "exactly one gets it at {hour}");
        let claims = world.start(at(hour)).await;
        world.finish(&claims, &success(), at(hour)).await;
    }
    assert_eq!(world.runs().await.len(), 5);
    assert_sound(&*world.store).await;
}

pub async fn fifty_workers_and_a_thousand_due_timers(fresh: Fresh) {
    let world = World::new(&fresh);
    for number in 0..1_000 {
        world.create(job(&format!("job-{number}"), &format!("{} 1 * * *", number % 60))).await;
    }
    let work = |_, world: World| async move {
        let mut ids = Vec::new();
        loop {
            match world.store.plan_due(&PlanDue::new(at("02:00"), 20, &targets()), &core_plan).await {
                Ok(planned) if planned.timers == 0 => return ids,
                Ok(planned) => ids.extend(planned.runs.iter().map(|run| run.id)),
                // Fifty wait for a few connections. On a slow machine the last may have waited too long: like a planner, it
                // asks again.
                Err(StoreError::Unavailable { reason: UnavailableReason::TimedOut(_), .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    };
    let ids: Vec<_> = at_once(&fresh, 50, work).await.concat();
    let distinct: BTreeSet<_> = ids.iter().copied().collect();
    assert_eq!(distinct.len(), ids.len(), "no two got the same");
    let runs = world.runs().await;
    let planned: BTreeSet<_> = runs.iter().map(|run| run.id).collect();
    assert!(distinct.is_subset(&planned), "what a worker got is there");
    let jobs: BTreeSet<_> = runs.iter().map(|run| run.job_id).collect();
    assert_eq!((runs.len(), jobs.len()), (1_000, 1_000), "each once");
    assert_eq!(world.plan(at("02:00")).await.timers, 0, "none is left");
}

pub async fn eight_claimers_and_five_hundred_pending_runs(fresh: Fresh) {
    let world = World::new(&fresh);
    world
        .create(with(job("all", "* * * * *"), |values| {
            values.overlap = Overlap::Allow;
            values.catch_up = CatchUp::All;
            // Two more are on time.
            values.catch_up_limit = 498;
        }))
        .await;
    assert_eq!(world.plan(at("10:00")).await.runs.len(), 500);
    let work = |worker: usize, world: World| async move {
        let mut claims: Vec<Claim> = Vec::new();
        loop {
            let more = world.start_on(worker as u8, at("10:00"), 10).await;
            if more.is_empty() {
                return claims;
            }
            claims.extend(more);
        }
    };
    let claims = at_once(&fresh, 8, work).await.concat();
    let distinct: BTreeSet<_> = claims.iter().map(|claim| claim.run.id).collect();
    assert_eq!((claims.len(), distinct.len()), (500, 500), "disjoint, and none is left");
    assert!(claims.iter().all(|claim| claim.run.attempt == 1));
    for claim in claims.iter().take(20) {
        assert_eq!(world.run(claim.run.id).await, claim.run, "the instance that got it has it");
    }
}

pub async fn one_of_many_creates_a_key(fresh: Fresh) {
    let world = World::new(&fresh);
    let work = |worker: usize, world: World| async move {
        let definition =
            everbell_core::with!(Definition { id: job_id("daily", worker as u32), ..job("daily", "0 9 * * *") });
        let entry = audit("job.create", "job:daily", at("00:00"));
        world.store.create_job(&change::create(definition), &entry).await.map(|_| ()).map_err(|error| kind(&error))
    };
    let answers = at_once(&fresh, 8, work).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1, "{answers:?}");
    assert!(answers.iter().all(|answer| matches!(answer, Ok(()) | Err("conflict"))), "{answers:?}");
    assert_eq!(world.jobs_in_pages(&JobFilter::default(), 10).await.len(), 1);
    assert_eq!(world.actions(None).await.len(), 1);
}

pub async fn one_of_many_changes_a_revision(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("daily", "0 9 * * *")).await;
    let work = |_, world: World| async move {
        let pause = |view: &JobView| change::pause(view, pause_of(at("01:00")));
        let entry = audit("job.pause", "job:daily", at("01:00"));
        let answer = world.store.change_job(&by_key("daily"), Some(1), &pause, &entry).await;
        answer.map(|_| ()).map_err(|error| kind(&error))
    };
    let answers = at_once(&fresh, 8, work).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1, "{answers:?}");
    assert!(answers.iter().all(|answer| matches!(answer, Ok(()) | Err("stale"))), "{answers:?}");
    assert_eq!(world.get("daily").await.job.state.revision, 2);
}

pub async fn one_of_many_records_an_outcome(fresh: Fresh) {
    let world = World::new(&fresh);
    for number in 0..20 {
        world.create(job(&format!("job-{number}"), "0 1 * * *")).await;
    }
    world.plan(at("01:00")).await;
    let claims = Arc::new(world.start(at("01:00")).await);
    let work = |worker: usize, world: World| {
        let claims = Arc::clone(&claims);
        async move {
            let outcome = if worker.is_multiple_of(2) { success() } else { super::world::failure() };
            let mut batch: Vec<_> = claims.iter().map(|claim| settled(claim, &outcome, at("01:01"))).collect();
            // Each in another order: no two may deadlock.
            batch.rotate_left(worker * 3);
            let recorded = world.store.record(&batch, at("01:01")).await.unwrap();
            recorded.iter().filter(|recorded| **recorded != Recorded::LeaseLost).count()
        }
    };
    let applied: usize = at_once(&fresh, 6, work).await.iter().sum();
    assert_eq!(applied, 20, "each once");
    let failed = world.runs().await.iter().filter(|run| run.status == RunStatus::Failed).count();
    let rows = world.jobs_in_pages(&JobFilter::default(), 100).await;
    let counted: u32 = rows.iter().map(|row| row.job.state.consecutive_failures).sum();
    assert_eq!(counted as usize, failed, "and what failed was counted once");
}

pub async fn runs_by_hand_at_once_obey_overlap(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("daily", "0 9 * * *")).await;
    let work = |worker: usize, world: World| async move {
        world.run_now("daily", &format!("run-{worker}"), at("01:00")).await.runs.remove(0).status
    };
    let statuses = at_once(&fresh, 8, work).await;
    let pending = statuses.iter().filter(|status| **status == RunStatus::Pending).count();
    let skipped = statuses.iter().filter(|status| **status == RunStatus::Skipped).count();
    assert_eq!((pending, skipped), (1, 7), "one at a time");
}

pub async fn held_runs_start_one_at_a_time_however_many_ask(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(with(job("all", "0 * * * *"), |values| values.catch_up = CatchUp::All)).await;
    assert_eq!(world.plan(at("12:30")).await.runs.len(), 12);
    for _ in 0..12 {
        let work = |worker: usize, world: World| async move { world.start_on(worker as u8, at("12:30"), 5).await };
        let claims = at_once(&fresh, 6, work).await.concat();
        assert_eq!(claims.len(), 1, "{claims:?}");
        world.finish(&claims, &success(), at("12:31")).await;
    }
    assert_eq!(world.start(at("12:31")).await, []);
}

pub async fn a_lease_is_extended_or_lost_but_not_both(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    world.plan(at("01:00")).await;
    world.start(at("01:00")).await;
    // At the same time the owner wakes up late, and two reapers settle the run.
    let work = |worker: usize, world: World| async move {
        let now = at("01:05");
        if worker == 0 {
            let id = super::given::instance_id(1);
            return world.store.extend_leases(id, now, at("01:06")).await.unwrap().len();
        }
        let expired = world.store.expired_leases(now, 10).await.unwrap();
        let lost = expired
            .iter()
            .filter_map(|run| everbell_core::settle::settle(run, everbell_core::settle::Outcome::Lost(None), now));
        let recorded = world.store.record(&lost.collect::<Vec<_>>(), now).await.unwrap();
        recorded.iter().filter(|recorded| **recorded != Recorded::LeaseLost).count()
    };
    let answers = at_once(&fresh, 3, work).await;
    assert_eq!(answers.iter().sum::<usize>(), 1, "{answers:?}");
    assert_eq!(world.runs().await[0].status, RunStatus::Failed);
}
