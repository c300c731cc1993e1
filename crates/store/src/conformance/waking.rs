//! `woken` and `status`: what loops hear, and what a store says about itself.

use std::future::Future;
use std::time::Duration;

use super::Fresh;
use super::given::{LOG, at, audit, job, trial};
use super::world::World;

/// The longest wait: a wake-up that does not come by then never does.
const WAKE_TIMEOUT: Duration = Duration::from_secs(20);

/// Waits for a wake-up that begins before `action` and must come because of it.
async fn assert_wakes<T>(world: &World, what: &str, action: impl Future<Output = T>) {
    let woken = async { tokio::time::timeout(WAKE_TIMEOUT, world.store.woken()).await };
    // In this order: the waiting has begun when the action does.
    let (woken, _) = tokio::join!(biased; woken, action);
    assert!(woken.is_ok(), "{what} woke no loop");
}

pub async fn a_new_job_wakes(fresh: Fresh) {
    let world = World::new(&fresh);
    assert_wakes(&world, "a new job", world.create(job("hourly", "0 * * * *"))).await;
}

pub async fn a_change_of_a_job_wakes(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    assert_wakes(&world, "a run by hand", world.run_now("hourly", "one", at("00:10"))).await;
    world.pause("hourly", at("00:20")).await;
    assert_wakes(&world, "a resumed job", world.resume("hourly", everbell_core::plan::Missed::Skip, at("00:30"))).await;
}

pub async fn a_planned_run_wakes(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    assert_wakes(&world, "a planned run", world.plan(at("01:00"))).await;
}

pub async fn an_inserted_run_and_its_cancellation_wake(fresh: Fresh) {
    let world = World::new(&fresh);
    let run = trial("one", LOG, at("01:00"));
    let entry = audit("target.try", "target:log", at("01:00"));
    assert_wakes(&world, "an inserted run", world.store.insert_run(&run, &entry)).await;
    world.start(at("01:00")).await;
    let entry = audit("run.cancel", "run", at("01:01"));
    assert_wakes(&world, "a cancellation", world.store.cancel_run(run.id, "ana", at("01:01"), &entry)).await;
}

pub async fn everybody_who_waits_is_woken(fresh: Fresh) {
    let world = World::new(&fresh);
    let woken = || async { tokio::time::timeout(WAKE_TIMEOUT, world.store.woken()).await.is_ok() };
    let (one, two, three, _) =
        tokio::join!(biased; woken(), woken(), woken(), world.create(job("hourly", "0 * * * *")));
    assert!(one && two && three);
}

pub async fn a_store_tells_what_it_is(fresh: Fresh) {
    let world = World::new(&fresh);
    let status = world.store.status().await.unwrap();
    assert!(!status.product.is_empty());
}
