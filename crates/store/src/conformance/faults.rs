//! A store that fails on demand, a small engine that copes with it, and what must be true afterwards.

mod engine;
mod faulty;

use everbell_core::CatchUp;

use super::Fresh;
use super::checkers::{Snapshot, assert_sound};
use super::dice::Dice;
use super::given::{at, job, job_at, with};
use super::world::World;
use crate::memory::FaultPoint;

pub use faulty::{Fault, Faulty, KeptBack};

use engine::Engine;

const POINTS: [FaultPoint; 2] = [FaultPoint::Before, FaultPoint::After];

async fn some_jobs(world: &World) {
    world.create(with(job("all", "* * * * *"), |values| values.catch_up = CatchUp::All)).await;
    world.create(with(job("flaky", "*/2 * * * *"), |values| values.max_attempts = 3)).await;
    world.create(job("every", "@every 45s")).await;
    world.create(job("once", "once 00:07")).await;
}

/// Nothing lost, nothing doubled, nothing left over.
async fn assert_whole(world: &World, context: &str) {
    let snapshot = Snapshot::read(&*world.store).await;
    let mut complaints = snapshot.complaints();
    complaints.extend(snapshot.unfinished_runs());
    assert!(complaints.is_empty(), "{context}: {} complaint(s):\n{}", complaints.len(), complaints.join("\n"));
}

pub async fn a_failure_before_the_verb_changes_nothing_and_one_after_it_everything(fresh: Fresh) {
    let world = World::new(&fresh);
    for (number, point) in POINTS.into_iter().enumerate() {
        let faulty = Faulty::once(fresh.store(), Fault { at: 0, point });
        let key = format!("job-{number}");
        let new = everbell_core::change::create(job(&key, "@hourly"));
        let entry = super::given::audit("job.create", &key, at("00:00"));
        let error = everbell_core::store::JobStore::create_job(&faulty, &new, &entry).await.unwrap_err();
        let is_there = world.store.get_job(&super::world::by_key(&key)).await.is_ok();
        assert_eq!(is_there, point == FaultPoint::After);
        let maybe = matches!(error, everbell_core::store::StoreError::Unavailable { maybe_done: true, .. });
        assert_eq!(maybe, point == FaultPoint::After);
        assert!(error.is_transient());
    }
}

pub async fn an_engine_whose_nth_call_fails_loses_and_doubles_nothing(fresh: Fresh) {
    let world = World::new(&fresh);
    let mut base = at("00:00");
    for call in 0..30 {
        for point in POINTS {
            let key = format!("job-{call}-{point:?}");
            world.create(with(job_at(&key, "* * * * *", base), |values| values.max_attempts = 2)).await;
            let faulty = Faulty::once(fresh.store(), Fault { at: call, point });
            let mut engine = Engine::new(faulty, u64::from(call));
            base = engine.run(base, 6).await;
            base = Engine::new(fresh.store(), 0).drain(base).await;
            world.retire(&key, base).await;
            base = Engine::new(fresh.store(), 0).drain(base).await;
        }
    }
    assert_whole(&world, "one failure each").await;
}

pub async fn an_engine_over_a_flaky_store_loses_and_doubles_nothing(fresh: Fresh) {
    let world = World::new(&fresh);
    some_jobs(&world).await;
    let mut now = at("00:00");
    for seed in 0..6 {
        let mut dice = Dice::new(seed);
        let odds = 2 + dice.below(6);
        let faulty = Faulty::new(fresh.store(), move |call| {
            let mut dice = Dice::new(seed ^ (u64::from(call) << 20));
            dice.one_in(odds).then(|| POINTS[dice.below(2)])
        });
        now = Engine::new(faulty, seed).run(now, 25).await;
        assert_sound(&*world.store).await;
    }
    Engine::new(fresh.store(), 0).drain(now).await;
    assert_whole(&world, "many failures").await;
}

pub async fn two_engines_over_flaky_connections_lose_and_double_nothing(fresh: Fresh) {
    let world = World::new(&fresh);
    some_jobs(&world).await;
    let mut tasks = tokio::task::JoinSet::new();
    for seed in 0..3_u64 {
        let store = fresh.reconnect().await;
        tasks.spawn(async move {
            let faulty = Faulty::new(store, move |call| {
                let mut dice = Dice::new(seed ^ (u64::from(call) << 20));
                dice.one_in(5).then(|| POINTS[dice.below(2)])
            });
            Engine::new(faulty, seed).run(at("00:00"), 60).await
        });
    }
    let ends = tasks.join_all().await;
    Engine::new(fresh.store(), 9).drain(ends.into_iter().max().unwrap()).await;
    assert_whole(&world, "several engines").await;
}

/// For stores that can fail from inside: between the statements of a verb, and at its commit.
pub async fn a_failure_inside_of_a_verb_loses_and_doubles_nothing(fresh: Fresh) {
    let world = World::new(&fresh);
    let mut base = at("00:00");
    for call in 0..40 {
        for point in POINTS {
            let Some(store) = fresh.failing(Fault { at: call, point }).await else { return };
            let key = format!("job-{call}-{point:?}");
            world.create(with(job_at(&key, "* * * * *", base), |values| values.max_attempts = 2)).await;
            base = Engine::new(store, u64::from(call)).run(base, 4).await;
            base = Engine::new(fresh.store(), 0).drain(base).await;
            world.retire(&key, base).await;
            base = Engine::new(fresh.store(), 0).drain(base).await;
        }
    }
    assert_whole(&world, "failures inside").await;
}
