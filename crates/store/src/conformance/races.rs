//! Operators against the planner, many rounds: no slot is lost or doubled, and nothing fires that must not.

use std::collections::BTreeSet;

use everbell_core::change::{self, Edit, JobView};
use everbell_core::plan::{Missed, RunNow};
use everbell_core::store::{Changed, JobFilter, Planned, PurgedJob, StoreError, StoreResult};
use everbell_core::{JobKey, JobStatus, Overlap, RunStatus};
use jiff::{SignedDuration, Timestamp};

use super::Fresh;
use super::checkers::{Snapshot, assert_sound};
use super::dice::Dice;
use super::given::{at, audit, by_hand, job, job_id, org, org_id, per_org, with};
use super::world::{World, by_key, success};

const ROUNDS: u32 = 40;

fn minute(number: u32) -> Timestamp {
    at("00:00").checked_add(SignedDuration::from_mins(i64::from(number))).unwrap()
}

/// Plans and acts at the same time, on two connections; the order is up to the dice and the database.
async fn race<F>(worlds: &[World; 2], seed: u64, now: Timestamp, act: impl FnOnce(World) -> F) -> (Planned, Changed)
where
    F: Future<Output = Changed> + Send + 'static,
{
    let planner = worlds[0].clone();
    let planning = tokio::spawn(async move {
        Dice::new(seed).dawdle().await;
        planner.plan(now).await
    });
    let acting = act(worlds[1].clone());
    let acting = tokio::spawn(async move {
        Dice::new(!seed).dawdle().await;
        acting.await
    });
    (planning.await.unwrap(), acting.await.unwrap())
}

async fn two_worlds(fresh: &Fresh) -> [World; 2] {
    [World::new(fresh), World { store: fresh.reconnect().await }]
}

/// Ends what is active, so that overlap does not decide the next round.
async fn finish_all(world: &World, now: Timestamp) {
    let claims = world.start(now).await;
    world.finish(&claims, &success(), now).await;
}

pub async fn a_pause_that_races_with_the_planner(fresh: Fresh) {
    let worlds = two_worlds(&fresh).await;
    let world = &worlds[0];
    world.create(job("minutely", "* * * * *")).await;
    for round in 0..ROUNDS {
        let now = minute(round * 3 + 1);
        race(&worlds, u64::from(round), now, |world| async move { world.pause("minutely", now).await }).await;
        let state = world.get("minutely").await.job.state;
        assert_eq!(state.status, JobStatus::Paused);
        let later = minute(round * 3 + 2);
        let planned = world.plan(later).await;
        assert_eq!((planned.timers, planned.runs.len()), (0, 0), "round {round}: it fired after the pause");
        finish_all(world, later).await;
        world.resume("minutely", Missed::Skip, later).await;
        world.plan(minute(round * 3 + 3)).await;
        finish_all(world, minute(round * 3 + 3)).await;
    }
    assert_sound(&*world.store).await;
}

pub async fn a_retirement_that_races_with_the_planner(fresh: Fresh) {
    let worlds = two_worlds(&fresh).await;
    let world = &worlds[0];
    for round in 0..ROUNDS {
        let key = format!("job-{round}");
        world.create(job(&key, "* * * * *")).await;
        let now = minute(1);
        let retired = key.clone();
        let (planned, changed) =
            race(&worlds, u64::from(round), now, |world| async move { world.retire(&retired, now).await }).await;
        let ran = planned.runs.len() + changed.runs.len();
        assert_eq!(ran, 1, "round {round}: the slot that was due fires once, by the one or the other");
        assert_eq!(world.plan(minute(5)).await.timers, 0);
    }
    assert_sound(&*world.store).await;
}

pub async fn new_versions_that_race_with_the_planner(fresh: Fresh) {
    let worlds = two_worlds(&fresh).await;
    let world = &worlds[0];
    world.create(job("minutely", "* * * * *")).await;
    for round in 0..ROUNDS {
        let now = minute(round + 1);
        let id = job_id("minutely", round + 2);
        race(&worlds, u64::from(round), now, |world| async move {
            let edit = || Edit { description: Some(format!("round {round}")), ..Edit::default() };
            let change = |view: &JobView| change::new_version(view, edit(), id, true, "ana", now);
            world.try_change("minutely", now, change).await.unwrap()
        })
        .await;
        let living = JobFilter { status: vec![JobStatus::Active], ..JobFilter::default() };
        let living = world.jobs_in_pages(&living, 10).await;
        assert_eq!((living.len(), living[0].job.definition.id), (1, id), "round {round}");
        finish_all(world, now).await;
    }
    assert_sound(&*world.store).await;
    // Over all versions together: every minute once, in whichever version it fell.
    let snapshot = Snapshot::read(&*world.store).await;
    let slots: Vec<Timestamp> = snapshot.runs.iter().filter_map(|run| run.slot_at).collect();
    let distinct: BTreeSet<Timestamp> = slots.iter().copied().collect();
    assert_eq!(slots.len(), distinct.len(), "no minute fired in two versions");
    let expected: BTreeSet<Timestamp> = (1..=ROUNDS).map(minute).collect();
    assert_eq!(distinct, expected, "and none was lost");
}

pub async fn runs_by_hand_that_race_with_the_planner(fresh: Fresh) {
    let worlds = two_worlds(&fresh).await;
    let world = &worlds[0];
    world.create(job("minutely", "* * * * *")).await;
    for round in 0..ROUNDS {
        let now = minute(round + 1);
        race(&worlds, u64::from(round), now, |world| async move {
            world.run_now("minutely", &format!("round-{round}"), now).await
        })
        .await;
        // The planner may have found the timer locked: then the slot is still due.
        world.plan(now).await;
        let runs = world.runs().await;
        let active = runs.iter().filter(|run| run.status == RunStatus::Pending).count();
        let skipped = runs.iter().filter(|run| run.status == RunStatus::Skipped).count();
        assert_eq!((active, skipped), (1, round as usize + 1), "round {round}: one goes, the other is skipped");
        finish_all(world, now).await;
    }
    assert_sound(&*world.store).await;
}

pub async fn reschedules_that_race_with_the_planner(fresh: Fresh) {
    let worlds = two_worlds(&fresh).await;
    let world = &worlds[0];
    world.create(with(job("minutely", "* * * * *"), |values| values.overlap = Overlap::Allow)).await;
    for round in 0..ROUNDS {
        let now = minute(round * 2 + 1);
        let moved = now.checked_add(SignedDuration::from_secs(30)).unwrap();
        race(&worlds, u64::from(round), now, |world| async move {
            let change = |view: &JobView| change::reschedule(view, moved, "ana", now);
            world.try_change("minutely", now, change).await.unwrap()
        })
        .await;
        world.plan(moved).await;
        world.plan(minute(round * 2 + 2)).await;
        finish_all(world, minute(round * 2 + 2)).await;
    }
    assert_sound(&*world.store).await;
}

/// Deletes a job, at about the same time as something else happens.
fn purge(world: &World, key: &str, seed: u64, now: Timestamp) -> tokio::task::JoinHandle<StoreResult<PurgedJob>> {
    let (world, key) = (world.clone(), JobKey::new(key).unwrap());
    tokio::spawn(async move {
        Dice::new(seed).dawdle().await;
        let entry = audit("job.purge", &format!("job:{key}"), now);
        world.store.purge_job(&key, 100, PurgedJob::default(), &entry).await
    })
}

pub async fn a_purge_that_races_with_the_start_of_a_run(fresh: Fresh) {
    let worlds = two_worlds(&fresh).await;
    let world = &worlds[0];
    for round in 0..ROUNDS {
        let key = format!("job-{round}");
        let now = minute(round + 1);
        world.create(job(&key, &format!("once {now}"))).await;
        world.plan(now).await;
        let purging = purge(&worlds[1], &key, !u64::from(round), now);
        Dice::new(u64::from(round)).dawdle().await;
        let claims = world.start(now).await;
        match purging.await.unwrap() {
            Ok(purged) => {
                assert!(purged.finished, "round {round}");
                assert_eq!((claims.len(), world.runs().await.len()), (0, 0), "round {round}: its run went with it");
            }
            Err(StoreError::Conflict { .. }) => {
                assert_eq!(claims.len(), 1, "round {round}: it is refused because of the run");
                assert_eq!(world.get(&key).await.job.state.status, JobStatus::Active);
                world.finish(&claims, &success(), now).await;
                purge(world, &key, 0, now).await.unwrap().unwrap();
            }
            Err(other) => panic!("round {round}: {other}"),
        }
        let left = world.store.expired_leases(at("2027-01-01T00:00:00Z"), 10).await.unwrap();
        assert_eq!(left, [], "round {round}: a run at work without a job");
    }
}

/// For an org that has no timer yet: only the job itself is between such a run and a purge.
pub async fn a_purge_that_races_with_a_run_by_hand(fresh: Fresh) {
    let worlds = two_worlds(&fresh).await;
    let world = &worlds[0];
    world.put(&[org("acme", "UTC")], at("00:00")).await;
    for round in 0..ROUNDS {
        let (key, now) = (format!("job-{round}"), minute(round + 1));
        world.create(per_org(job(&key, "0 8 * * *"))).await;
        let purging = purge(&worlds[1], &key, !u64::from(round), now);
        Dice::new(u64::from(round)).dawdle().await;
        let request =
            RunNow { id: by_hand(now, &key), actor: "ana", payload: None, overlap: None, trace_context: None };
        let decide = |view: &JobView| change::run_now(view, &request, now);
        let entry = audit("job.run_now", &format!("job:{key}"), now);
        let asked = world.store.change_org_job(&by_key(&key), &org_id("acme"), None, &decide, &entry).await;
        // It may be gone between the commit and the answer.
        assert!(matches!(asked, Ok(_) | Err(StoreError::NotFound { .. })), "round {round}: {asked:?}");
        let purged = purging.await.unwrap().unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert!(purged.finished, "round {round}");
        assert_eq!((world.start(now).await.len(), world.runs().await.len()), (0, 0), "round {round}");
        let left = world.store.expired_leases(at("2027-01-01T00:00:00Z"), 10).await.unwrap();
        assert_eq!(left, [], "round {round}: a run at work without a job");
    }
}
