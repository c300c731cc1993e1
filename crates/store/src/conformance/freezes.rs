//! Freezes: slots inside them are gaps, and nothing is caught up.

use everbell_core::freeze::Freeze;
use everbell_core::store::{GapFilter, StoreError};
use everbell_core::{Definition, GapReason, JobKey};
use uuid::Uuid;

use super::Fresh;
use super::given::{at, audit, job};
use super::world::World;

fn freeze(number: u128, from: &str, until: &str) -> Freeze {
    Freeze::new(
        Uuid::from_u128(number),
        at(from),
        at(until),
        "release 'weekend' é".to_owned(),
        "ana".to_owned(),
        at("00:00"),
    )
}

async fn add(world: &World, freeze: &Freeze) {
    world.store.add_freeze(freeze, &audit("freeze.add", "freeze", at("00:00"))).await.unwrap();
}

/// Every gap but those of slots that were planned together.
async fn gaps(world: &World) -> Vec<(GapReason, u64)> {
    let all = world.gaps(&GapFilter::default()).await;
    let all = all.iter().map(|gap| (gap.reason, gap.slots));
    all.filter(|(reason, _)| *reason != GapReason::Coalesced).collect()
}

pub async fn a_freeze_reads_back_as_it_was_written(fresh: Fresh) {
    let world = World::new(&fresh);
    let full = everbell_core::with!(Freeze {
        label: Some(("env".to_owned(), Some("prod".to_owned()))),
        except: vec![JobKey::new("backup").unwrap()],
        ..freeze(1, "02:00", "04:00")
    });
    let other = everbell_core::with!(Freeze { label: Some(("team".to_owned(), None)), ..freeze(2, "01:00", "03:00") });
    add(&world, &full).await;
    add(&world, &other).await;
    assert_eq!(world.store.freezes(at("00:30")).await.unwrap(), [other, full.clone()], "the earliest first");
    assert_eq!(world.store.freezes(at("03:00")).await.unwrap(), [full]);
    assert_eq!(world.store.freezes(at("04:00")).await.unwrap(), []);
    assert_eq!(world.actions(Some("freeze")).await, ["freeze.add", "freeze.add"]);
}

pub async fn slots_inside_a_freeze_are_gaps_and_are_not_caught_up(fresh: Fresh) {
    let world = World::new(&fresh);
    let labels = [("env".to_owned(), "prod".to_owned())].into();
    world.create(everbell_core::with!(Definition { labels, ..job("frozen", "*/10 * * * *") })).await;
    world.create(job("free", "*/10 * * * *")).await;
    let only_prod = everbell_core::with!(Freeze {
        label: Some(("env".to_owned(), Some("prod".to_owned()))),
        ..freeze(1, "01:00", "02:00")
    });
    add(&world, &only_prod).await;
    assert_eq!(world.plan(at("00:50")).await.runs.len(), 2);
    let keys = async |now: &str| {
        let planned = world.plan(at(now)).await;
        planned.runs.iter().map(|run| run.job.key.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(keys("01:00").await, ["free"], "the first instant is frozen");
    assert_eq!(gaps(&world).await, [(GapReason::Frozen, 1)]);
    assert_eq!(
        world.get("frozen").await.timer.unwrap().next_run_at,
        Some(at("01:10")),
        "nothing has to be armed again"
    );
    // No scheduler was running for a while: the slots of the freeze are accounted for all the same.
    assert_eq!(keys("02:00:30").await.len(), 2);
    let of_frozen: u64 =
        gaps(&world).await.iter().filter(|(reason, _)| *reason == GapReason::Frozen).map(|(_, slots)| slots).sum();
    assert_eq!(of_frozen, 6, "01:00 to 01:50");
    assert_eq!(keys("02:10").await.len(), 2);
}

pub async fn slots_of_a_freeze_that_are_planned_one_by_one_are_one_gap(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("minutely", "*/10 * * * *")).await;
    add(&world, &freeze(1, "01:00", "02:00")).await;
    add(&world, &freeze(2, "02:30", "03:00")).await;
    let frozen = async || {
        let all = world.gaps(&GapFilter { reason: Some(GapReason::Frozen), ..GapFilter::default() }).await;
        let all = all.into_iter().map(|gap| (gap.first_slot_at, gap.last_slot_at, gap.slots));
        all.collect::<Vec<_>>()
    };
    let planned = async |now: &str| {
        let planned = world.plan(at(now)).await;
        (planned.runs.len(), planned.gaps.iter().map(|(_, gap)| gap.slots).sum::<u64>())
    };
    world.plan(at("00:50")).await;
    for now in ["01:00", "01:10", "01:20"] {
        assert_eq!(planned(now).await, (0, 1), "{now}: what is new is reported");
    }
    assert_eq!(frozen().await, [(at("01:00"), at("01:20"), 3)]);
    assert_eq!(planned("01:40").await, (0, 2), "two at once");
    let first = (at("01:00"), at("01:40"), 5);
    assert_eq!(frozen().await, [first]);
    // A job that begins, or that is paused for a while, inside of the freeze.
    world.create(everbell_core::with!(Definition { created_at: at("01:42"), ..job("new", "*/10 * * * *") })).await;
    world.plan(at("01:50")).await;
    let first = (at("01:00"), at("01:50"), 6);
    assert_eq!(frozen().await, [(at("01:50"), at("01:50"), 1), first]);
    assert_eq!(planned("02:00").await.0, 2);
    for (now, runs) in [("02:10", 2), ("02:20", 2), ("02:30", 0), ("02:40", 0), ("02:50", 0), ("03:00", 2)] {
        assert_eq!(planned(now).await.0, runs, "{now}");
    }
    let second = (at("02:30"), at("02:50"), 3);
    assert_eq!(frozen().await, [second, second, (at("01:50"), at("01:50"), 1), first], "each freeze has its own");
}

pub async fn an_excepted_job_fires(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("backup", "0 * * * *")).await;
    world.create(job("other", "0 * * * *")).await;
    add(
        &world,
        &everbell_core::with!(Freeze { except: vec![JobKey::new("backup").unwrap()], ..freeze(1, "00:30", "05:00") }),
    )
    .await;
    let planned = world.plan(at("01:00")).await;
    assert_eq!(planned.runs.iter().map(|run| run.job.key.as_str()).collect::<Vec<_>>(), ["backup"]);
}

pub async fn a_one_time_job_waits_until_the_end(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("once", "once 01:00")).await;
    world.create(job("early", "once 01:30")).await;
    add(&world, &freeze(1, "00:30", "03:00")).await;
    assert_eq!(world.plan(at("01:30")).await.runs.len(), 0);
    assert_eq!(gaps(&world).await, []);
    assert_eq!(world.get("once").await.timer.unwrap().next_run_at, Some(at("03:00")));
    // It ends early: those that waited are due.
    let entry = audit("freeze.end", "freeze", at("02:00"));
    let ended = world.store.end_freeze(Uuid::from_u128(1), &entry).await.unwrap();
    assert_eq!(ended.ended, Some((at("02:00"), entry.actor.clone())));
    assert_eq!(world.plan(at("02:00")).await.runs.len(), 2);
    assert_eq!(gaps(&world).await, []);
    let again = world.store.end_freeze(Uuid::from_u128(1), &entry).await;
    assert!(matches!(again, Err(StoreError::Invalid(_))), "{again:?}");
    let missing = world.store.end_freeze(Uuid::from_u128(9), &entry).await;
    assert!(matches!(missing, Err(StoreError::NotFound { .. })), "{missing:?}");
    assert_eq!(world.store.freezes(at("02:00")).await.unwrap(), []);
}

pub async fn slots_fire_again_when_a_freeze_is_ended(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    add(&world, &freeze(1, "00:30", "09:00")).await;
    assert_eq!(world.plan(at("01:00")).await.runs.len(), 0);
    let entry = audit("freeze.end", "freeze", at("01:30"));
    world.store.end_freeze(Uuid::from_u128(1), &entry).await.unwrap();
    assert_eq!(world.plan(at("02:00")).await.runs.len(), 1);
    assert_eq!(gaps(&world).await, [(GapReason::Frozen, 1)]);
    // A run by hand is not stopped, and neither is what waits.
    add(&world, &freeze(2, "02:30", "09:00")).await;
    let changed = world.run_now("hourly", "by-hand", at("03:00")).await;
    assert_eq!(changed.runs.len(), 1);
}
