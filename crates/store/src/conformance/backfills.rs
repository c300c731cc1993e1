//! Backfills of any length: rows with a cursor, steps, changes, and the runs of their slots.

use std::collections::BTreeMap;

use everbell_core::backfill::{Backfill, BackfillOrder, BackfillSettings, BackfillStatus, MAX_CHUNK, SlotRun};
use everbell_core::change::{self, BackfillFacts, JobChange, JobView};
use everbell_core::store::{Changed, PruneBefore, StoreError, StoreResult};
use everbell_core::{BackfillId, Invalid, JobKey, OrgId, RunId, RunStatus, Trigger};
use jiff::Timestamp;

use super::Fresh;
use super::given::{at, job, job_at, kind, org_id};
use super::world::{World, by_key, success};

/// A backfill of `hourly` from 01:00 to 05:00, two at a time.
fn request(number: u8) -> Backfill {
    let settings = BackfillSettings { parallel: Some(2), ..BackfillSettings::default() };
    request_of(number, settings, None)
}

fn request_of(number: u8, settings: BackfillSettings, org: Option<OrgId>) -> Backfill {
    let id = BackfillId::new(at("06:10"), [number; 10]);
    let owner = (id, JobKey::new("hourly").unwrap(), org);
    Backfill::new(owner, (at("01:00"), at("05:00")), settings, "ana", at("06:10"))
}

/// A world with the job `hourly`, whose first slots are past.
async fn hourly(fresh: &Fresh) -> World {
    let world = World::new(fresh);
    world.create(job_at("hourly", "0 * * * *", at("06:05"))).await;
    world
}

/// Facts about the next slots and the open runs of a backfill.
async fn facts(world: &World, stored: &Backfill) -> (Vec<SlotRun>, BTreeMap<Timestamp, bool>) {
    let row = world.get("hourly").await;
    let ids: Vec<RunId> = stored.open.iter().map(|open| open.id).collect();
    let runs = world.store.look_up_runs(&ids).await.unwrap();
    let mut settled = stored.clone();
    settled.settle(&runs);
    let slots = settled.next_slots(row.job.definition.spec.as_ref().unwrap(), MAX_CHUNK);
    let found = world.store.runs_of_slots(&stored.job_key, stored.org.as_ref(), &slots).await.unwrap();
    let mut known: BTreeMap<Timestamp, bool> = slots.into_iter().map(|slot| (slot, false)).collect();
    known.extend(found.into_iter().map(|run| (run.at, true)));
    (runs, known)
}

async fn begin(world: &World, backfill: &Backfill) -> StoreResult<Changed> {
    let (runs, slots) = facts(world, backfill).await;
    let facts = BackfillFacts { runs: &runs, slots: &slots, max_active: 1_000 };
    let now = at("06:10");
    let decide = |view: &JobView| change::begin_backfill(view, backfill.clone(), &facts, now);
    match &backfill.org {
        None => world.try_change("hourly", now, decide).await,
        Some(org) => {
            let entry = super::given::audit("job.backfill", "job:hourly", now);
            world.store.change_org_job(&by_key("hourly"), org, None, &decide, &entry).await
        }
    }
}

/// A step of a backfill, by what was read of it.
async fn step(world: &World, stored: &Backfill, now: Timestamp) -> StoreResult<Changed> {
    let (runs, slots) = facts(world, stored).await;
    let facts = BackfillFacts { runs: &runs, slots: &slots, max_active: 1_000 };
    let decide = |view: &JobView| change::advance_backfill(view, stored, &facts, now);
    world.store.advance_backfill(&by_key("hourly"), stored.org.as_ref(), &decide, now).await
}

async fn change_it(
    world: &World,
    stored: &Backfill,
    decide: impl Fn(&JobView, &Backfill) -> Result<JobChange, Invalid> + Send + Sync,
) -> StoreResult<Changed> {
    world.try_change("hourly", at("06:20"), |view| decide(view, stored)).await
}

async fn stored(world: &World, backfill: &Backfill) -> Backfill {
    world.store.get_backfill(backfill.id).await.unwrap()
}

/// Runs everything that is pending, and returns the slots.
async fn run_all(world: &World, now: Timestamp) -> Vec<Timestamp> {
    let claims = world.start(now).await;
    world.finish(&claims, &success(), now).await;
    claims.iter().filter_map(|claim| claim.run.slot_at).collect()
}

pub async fn a_backfill_goes_on_where_it_stopped_and_runs_each_slot_once(fresh: Fresh) {
    let world = hourly(&fresh).await;
    let asked = request(1);
    let begun = begin(&world, &asked).await.unwrap();
    assert_eq!(begun.runs.len(), 2, "as many as may be open at once");
    assert!(begun.runs.iter().all(|run| run.trigger == Trigger::Backfill(asked.id) && !run.held));
    let first = stored(&world, &asked).await;
    assert_eq!((first.revision, first.open.len(), first.counts.created), (1, 2, 2));
    assert_eq!(first.reached, Some(at("02:00")));
    assert_eq!(world.store.open_backfills(None, 10).await.unwrap(), std::slice::from_ref(&first));

    let waits = step(&world, &first, at("06:11")).await.unwrap_err();
    assert_eq!(kind(&waits), "invalid", "nothing ended: {waits}");
    let mut slots = run_all(&world, at("06:12")).await;
    while !slots.is_empty() {
        let before = stored(&world, &asked).await;
        step(&world, &before, at("06:13")).await.unwrap();
        // A second instance that read the same is late, and writes nothing.
        let late = step(&world, &before, at("06:13")).await.unwrap_err();
        assert!(["conflict", "invalid"].contains(&kind(&late)), "{late}");
        let more = run_all(&world, at("06:14")).await;
        if more.is_empty() {
            break;
        }
        slots.extend(more);
    }
    assert_eq!(slots, ["01:00", "02:00", "03:00", "04:00", "05:00"].map(at));
    let done = stored(&world, &asked).await;
    assert_eq!((done.status, done.counts.created, done.counts.succeeded), (BackfillStatus::Done, 5, 5));
    assert_eq!(world.store.open_backfills(None, 10).await.unwrap(), []);
    assert_eq!(world.store.backfills_of(&asked.job_key, 10).await.unwrap(), [done]);
    assert_eq!(world.actions(None).await, ["job.change", "job.create"], "steps write no entries");
}

pub async fn a_backfill_that_was_changed_meanwhile_is_a_conflict_and_writes_nothing(fresh: Fresh) {
    let world = hourly(&fresh).await;
    let asked = request(1);
    begin(&world, &asked).await.unwrap();
    let read = stored(&world, &asked).await;
    change_it(&world, &read, |view, own| change::pause_backfill(view, own, at("06:20"))).await.unwrap();
    run_all(&world, at("06:21")).await;
    let paused = stored(&world, &asked).await;
    let late = step(&world, &read, at("06:22")).await.unwrap_err();
    assert_eq!(kind(&late), "conflict", "{late}");
    assert_eq!(stored(&world, &asked).await, paused);
    assert_eq!(world.runs().await, [], "withdrawn by the pause, and not created again by the late step");
    let twice = begin(&world, &asked).await.unwrap_err();
    assert_eq!(kind(&twice), "conflict", "{twice}");
}

pub async fn a_paused_backfill_withdraws_its_runs_and_creates_them_again(fresh: Fresh) {
    let world = hourly(&fresh).await;
    let asked = request(1);
    begin(&world, &asked).await.unwrap();
    let at_work = world.start_some(at("06:15"), 1).await;
    assert_eq!(at_work[0].run.slot_at, Some(at("01:00")));
    let read = stored(&world, &asked).await;
    let paused = change_it(&world, &read, |view, own| change::pause_backfill(view, own, at("06:20"))).await.unwrap();
    assert_eq!(paused.pending, 1, "the one that had not started");
    let left: Vec<_> = world.runs().await.into_iter().map(|run| (run.slot_at, run.status)).collect();
    assert_eq!(left, [(Some(at("01:00")), RunStatus::Running)]);
    let read = stored(&world, &asked).await;
    assert_eq!((read.status, read.again.clone(), read.counts.created), (BackfillStatus::Paused, vec![at("02:00")], 1));
    assert!(read.is_open(), "one run is still to be counted");
    world.finish(&at_work, &success(), at("06:21")).await;
    step(&world, &read, at("06:22")).await.unwrap();
    let counted = stored(&world, &asked).await;
    assert!(!counted.is_open() && counted.counts.succeeded == 1);

    change_it(&world, &counted, |view, own| change::resume_backfill(view, own, at("06:20"))).await.unwrap();
    step(&world, &stored(&world, &asked).await, at("06:23")).await.unwrap();
    assert_eq!(run_all(&world, at("06:24")).await, [at("02:00"), at("03:00")], "the withdrawn one first");
    let last = world.get("hourly").await.last_run.and_then(|run| run.slot_at);
    assert_eq!(last, Some(at("03:00")));
}

pub async fn the_range_of_a_stopped_backfill_can_be_requested_again(fresh: Fresh) {
    let world = hourly(&fresh).await;
    let asked = request(1);
    begin(&world, &asked).await.unwrap();
    let read = stored(&world, &asked).await;
    let stop = |view: &JobView, own: &Backfill| change::stop_backfill(view, own, &[], at("06:20"));
    assert_eq!(change_it(&world, &read, stop).await.unwrap().pending, 2);
    assert_eq!(world.runs().await, []);
    assert_eq!(world.get("hourly").await.last_run, None, "the job has no run that is gone");
    let stopped = stored(&world, &asked).await;
    assert_eq!((stopped.status, stopped.is_open()), (BackfillStatus::Stopped, false));
    assert_eq!(kind(&change_it(&world, &stopped, stop).await.unwrap_err()), "invalid");
    let newest = BackfillSettings { order: BackfillOrder::Newest, ..request(2).settings };
    let again = request_of(2, newest, None);
    begin(&world, &again).await.unwrap();
    let mut slots = run_all(&world, at("06:24")).await;
    slots.sort_unstable();
    assert_eq!(slots, [at("04:00"), at("05:00")], "the newest first");
}

pub async fn slots_that_have_a_run_of_any_version_are_left_out(fresh: Fresh) {
    let world = hourly(&fresh).await;
    let one = Backfill { to: at("02:00"), ..request(1) };
    begin(&world, &one).await.unwrap();
    run_all(&world, at("06:12")).await;
    let edit = |view: &JobView| {
        let edit = change::Edit { description: Some("again".to_owned()), ..change::Edit::default() };
        change::new_version(view, edit, super::given::job_id("hourly", 2), false, "ana", at("06:13"))
    };
    world.try_change("hourly", at("06:13"), edit).await.unwrap();
    let found = world.store.runs_of_slots(&one.job_key, None, &[at("02:00"), at("03:00")]).await.unwrap();
    let [run] = &found[..] else { panic!("{found:?}") };
    assert_eq!((run.at, run.status, run.attempt), (at("02:00"), RunStatus::Succeeded, 1));
    assert!(one.owns(run));
    let asked = request(2);
    begin(&world, &asked).await.unwrap();
    assert_eq!(run_all(&world, at("06:24")).await, [at("03:00"), at("04:00")]);
    assert_eq!(stored(&world, &asked).await.counts.existing, 2);
    for too_many in [
        world.store.look_up_runs(&vec![run.id; 1_001]).await.is_err(),
        world.store.runs_of_slots(&one.job_key, None, &vec![at("01:00"); 1_001]).await.is_err(),
    ] {
        assert!(too_many);
    }
}

pub async fn a_pause_holds_runs_of_a_backfill_unless_it_goes_on_then(fresh: Fresh) {
    let world = hourly(&fresh).await;
    let waits = Backfill { to: at("02:00"), ..request(1) };
    begin(&world, &waits).await.unwrap();
    let goes_on = BackfillSettings { paused_ok: true, ..request(2).settings };
    let goes_on = Backfill { from: at("03:00"), ..request_of(2, goes_on, None) };
    begin(&world, &goes_on).await.unwrap();
    world.pause("hourly", at("06:12")).await;
    assert_eq!(run_all(&world, at("06:13")).await, [at("03:00"), at("04:00")]);
    step(&world, &stored(&world, &goes_on).await, at("06:14")).await.unwrap();
    assert_eq!(run_all(&world, at("06:15")).await, [at("05:00")]);
    let waiting = step(&world, &stored(&world, &waits).await, at("06:16")).await.unwrap_err();
    assert_eq!(kind(&waiting), "invalid", "{waiting}");
    world.resume("hourly", everbell_core::plan::Missed::Skip, at("06:17")).await;
    assert_eq!(run_all(&world, at("06:18")).await, [at("01:00"), at("02:00")]);
}

pub async fn a_backfill_stops_when_its_job_is_retired_and_goes_with_it(fresh: Fresh) {
    let world = hourly(&fresh).await;
    let asked = request(1);
    begin(&world, &asked).await.unwrap();
    run_all(&world, at("06:12")).await;
    world.retire("hourly", at("06:13")).await;
    step(&world, &stored(&world, &asked).await, at("06:14")).await.unwrap();
    let stopped = stored(&world, &asked).await;
    assert_eq!(
        (stopped.status, stopped.stopped_because.as_deref()),
        (BackfillStatus::Stopped, Some("the job was retired"))
    );
    assert_eq!(stopped.counts.succeeded, 2);
    // Not before it is as old as the history that is kept.
    world.store.prune(PruneBefore::all(at("06:14")), 10).await.unwrap();
    assert_eq!(stored(&world, &asked).await, stopped);
    let other = world.store.open_backfills(Some(&JobKey::new("other").unwrap()), 10).await.unwrap();
    assert_eq!(other, []);
    world.store.prune(PruneBefore::all(at("06:15")), 10).await.unwrap();
    let gone = world.store.get_backfill(asked.id).await.unwrap_err();
    assert!(matches!(gone, StoreError::NotFound { .. }), "{gone}");
    for limit in [0, 1_001] {
        assert!(world.store.open_backfills(None, limit).await.is_err(), "{limit}");
        assert!(world.store.backfills_of(&asked.job_key, limit).await.is_err(), "{limit}");
    }
}

pub async fn a_backfill_of_an_org_runs_for_it_alone(fresh: Fresh) {
    let world = World::new(&fresh);
    let definition = job("hourly", "0 * * * *");
    let definition = everbell_core::with!(everbell_core::Definition { created_at: at("06:05"), ..definition });
    world.create_for("acme", definition).await;
    let asked = request_of(1, request(1).settings, Some(org_id("acme")));
    let begun = begin(&world, &asked).await.unwrap();
    assert!(begun.runs.len() == 2 && begun.runs.iter().all(|run| run.org == Some(org_id("acme"))), "{begun:?}");
    run_all(&world, at("06:12")).await;
    step(&world, &stored(&world, &asked).await, at("06:13")).await.unwrap();
    assert_eq!(run_all(&world, at("06:14")).await, [at("03:00"), at("04:00")]);
    assert_eq!(stored(&world, &asked).await.org, Some(org_id("acme")));
}
