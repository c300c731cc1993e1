//! Backfills of any length: which slots come next, and when. A small world runs them step by step, with crashes.

use std::collections::{BTreeMap, BTreeSet};

use everbell_core::backfill::{
    Backfill, BackfillOrder, BackfillSettings, BackfillStatus, ChunkInput, MAX_CHUNK, Rate, SlotRun,
};
use everbell_core::{ActiveRun, BackfillId, Definition, JobKey, RunId, RunStatus, Spec, Timer, Trigger};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use crate::given;

fn at(text: &str) -> Timestamp {
    format!("2026-11-15T{text}Z").parse().unwrap()
}

fn settings(parallel: u32) -> BackfillSettings {
    BackfillSettings { parallel: Some(parallel), ..BackfillSettings::default() }
}

fn backfill(from: Timestamp, to: Timestamp, settings: BackfillSettings) -> Backfill {
    let id = BackfillId::new(at("12:00:00"), [3; 10]);
    Backfill::new((id, JobKey::new("job").unwrap(), None), (from, to), settings, "ana", at("12:00:00"))
}

/// The runs of a job as a database knows them.
struct World {
    job: Definition,
    timer: Timer,
    runs: BTreeMap<Timestamp, SlotRun>,
    /// The order in which runs were created.
    created: Vec<Timestamp>,
    now: Timestamp,
}

impl World {
    fn new(schedule: &str) -> World {
        let job = given::job(schedule, "", at("00:00:00"));
        let timer = everbell_core::change::create(job.clone()).timer.unwrap();
        let timer = everbell_core::with!(Timer { last_slot_at: at("12:00:00"), ..timer });
        World { job, timer, runs: BTreeMap::new(), created: Vec::new(), now: at("12:00:00") }
    }

    fn spec(&self) -> &Spec {
        self.job.spec.as_ref().unwrap()
    }

    fn put(&mut self, slot: Timestamp, trigger: Trigger, status: RunStatus) {
        let id = RunId::for_slot(self.job.id, None, slot);
        self.runs.insert(slot, SlotRun { id, at: slot, trigger, status, attempt: 1 });
    }

    /// A step as a loop takes it: settle, look up, create.
    fn step(&mut self, backfill: &mut Backfill) {
        let found: Vec<SlotRun> = self.runs.values().cloned().collect();
        backfill.settle(&found);
        let slots = backfill.next_slots(self.spec(), MAX_CHUNK);
        let known = slots.iter().map(|slot| (*slot, self.runs.contains_key(slot))).collect();
        let active: Vec<ActiveRun> = self.runs.values().filter(|run| !run.status.is_terminal()).map(active).collect();
        let input = ChunkInput {
            job: &self.job,
            spec: self.job.spec.as_ref().unwrap(),
            timer: &self.timer,
            active: &active,
            known: &known,
            max_active: 10_000,
            now: self.now,
        };
        for run in backfill.next_chunk(&input) {
            let slot = run.slot_at.unwrap();
            assert!(!self.runs.contains_key(&slot), "{slot} would run twice");
            self.put(slot, run.trigger, RunStatus::Pending);
            self.created.push(slot);
        }
    }

    fn open(&self) -> usize {
        self.runs.values().filter(|run| !run.status.is_terminal()).count()
    }

    fn end(&mut self, slot: Timestamp, status: RunStatus) {
        self.runs.get_mut(&slot).unwrap().status = status;
    }
}

fn active(run: &SlotRun) -> ActiveRun {
    let backfill = matches!(run.trigger, Trigger::Backfill(_));
    ActiveRun { id: run.id, held: false, cancel_requested: false, backfill }
}

#[test]
fn a_year_of_minutes_is_counted_without_a_list() {
    let world = World::new("* * * * *");
    let year = backfill(at("00:00:00") - SignedDuration::from_hours(365 * 24), at("00:00:00"), settings(4));
    assert_eq!(year.slots_left(world.spec()), 525_601);
    assert_eq!(year.next_slots(world.spec(), 3).len(), 3);
    let newest = BackfillSettings { order: BackfillOrder::Newest, ..settings(4) };
    let newest = Backfill { settings: newest, ..year };
    assert_eq!(newest.next_slots(world.spec(), 2), [at("00:00:00"), at("00:00:00") - SignedDuration::from_mins(1)]);
}

#[test]
fn slots_after_the_mark_and_slots_that_were_not_looked_up_wait() {
    let mut world = World::new("0 * * * *");
    world.timer.last_slot_at = at("02:00:00");
    let mut ahead = backfill(at("01:00:00"), at("05:00:00"), settings(10));
    world.step(&mut ahead);
    assert_eq!(world.created, [at("01:00:00"), at("02:00:00")], "what lies behind the mark is still to be planned");
    let mut blind = backfill(at("03:00:00"), at("05:00:00"), settings(10));
    let known = BTreeMap::from([(at("03:00:00"), false)]);
    world.timer.last_slot_at = at("12:00:00");
    let input = ChunkInput {
        job: &world.job,
        spec: world.spec(),
        timer: &world.timer,
        active: &[],
        known: &known,
        max_active: 10_000,
        now: world.now,
    };
    assert_eq!(blind.next_chunk(&input).len(), 1);
    assert_eq!(blind.reached, Some(at("03:00:00")));
}

#[test]
fn backfills_without_a_limit_share_that_of_the_job() {
    let mut world = World::new("0 * * * *");
    let mut first = backfill(at("01:00:00"), at("03:00:00"), BackfillSettings::default());
    let mut second = Backfill { id: BackfillId::new(at("12:01:00"), [4; 10]), ..first.clone() };
    second.from = at("05:00:00");
    second.to = at("06:00:00");
    world.step(&mut first);
    world.step(&mut second);
    assert_eq!(world.created, [at("01:00:00")], "one at a time, as the job says");
    let mut own = Backfill { settings: settings(1), ..second.clone() };
    world.step(&mut own);
    assert_eq!(world.created, [at("01:00:00"), at("05:00:00")], "a limit of its own is never used up by others");
}

#[test]
fn the_end_is_estimated_from_the_speed_and_from_the_rate() {
    let mut world = World::new("0 * * * *");
    let mut one = backfill(at("01:00:00"), at("10:00:00"), settings(2));
    world.step(&mut one);
    assert_eq!(one.progress(&[], Some(world.spec()), world.now).done_at, None, "nothing ended yet");
    for slot in world.created.clone() {
        world.end(slot, RunStatus::Succeeded);
    }
    world.now = at("12:10:00");
    let found: Vec<SlotRun> = world.runs.values().cloned().collect();
    let progress = one.progress(&found, Some(world.spec()), world.now);
    assert_eq!((progress.left, progress.counts.succeeded, progress.per_hour), (8, 2, Some(12)));
    assert_eq!(progress.done_at, Some(at("12:50:00")));
    let limited = BackfillSettings { rate: Some("2/h".parse::<Rate>().unwrap()), ..settings(2) };
    let limited = Backfill { settings: limited, ..one };
    assert_eq!(
        limited.progress(&found, Some(world.spec()), world.now).done_at,
        Some(at("16:10:00")),
        "the rate is slower"
    );
}

proptest! {
    /// Whatever ends when, whoever stops in the middle and begins again from what was written: every slot of the range has one
    /// run, and never are more open than allowed.
    #[test]
    fn every_slot_runs_once(
        parallel in 1_u32..6,
        newest: bool,
        existing in proptest::collection::btree_set(0_i64..40, 0..15),
        moves in proptest::collection::vec(0_u8..12, 60..200),
    ) {
        let mut world = World::new("* * * * *");
        let slot = |minute: i64| at("06:00:00") + SignedDuration::from_mins(minute);
        for minute in &existing {
            world.put(slot(*minute), Trigger::Schedule("* * * * *".to_owned()), RunStatus::Succeeded);
        }
        let order = if newest { BackfillOrder::Newest } else { BackfillOrder::Oldest };
        let mut written = backfill(slot(0), slot(39), BackfillSettings { order, ..settings(parallel) });
        let moves = moves.into_iter().chain(std::iter::repeat_n([0_u8, 1], 200).flatten());
        for step in moves {
            match step {
                // A crash before the commit: nothing of the step is left.
                10 => {
                    let (mut lost, runs, created) = (written.clone(), world.runs.clone(), world.created.clone());
                    world.step(&mut lost);
                    (world.runs, world.created) = (runs, created);
                }
                // A pause withdraws what has not started.
                11 => {
                    let pending = world.runs.values().filter(|run| run.status == RunStatus::Pending);
                    let gone: Vec<RunId> = pending.map(|run| run.id).collect();
                    world.runs.retain(|_, run| !gone.contains(&run.id));
                    written.withdraw(&gone);
                }
                step if step % 2 == 0 => world.step(&mut written),
                step => {
                    let open = world.runs.values().filter(|run| !run.status.is_terminal());
                    let open: Vec<Timestamp> = open.map(|run| run.at).collect();
                    if let Some(slot) = open.get(step as usize % open.len().max(1)) {
                        world.end(*slot, if step == 3 { RunStatus::Failed } else { RunStatus::Succeeded });
                    }
                }
            }
            prop_assert!(world.open() <= parallel as usize);
        }
        world.step(&mut written);
        let ran: BTreeSet<Timestamp> = world.runs.keys().copied().collect();
        prop_assert_eq!(ran, (0..40).map(slot).collect::<BTreeSet<_>>());
        prop_assert_eq!(written.counts.created + written.counts.existing, 40);
        prop_assert_eq!(written.counts.existing, existing.len() as u64);
        prop_assert_eq!(written.counts.ended(), written.counts.created);
        prop_assert_eq!(written.slots_left(world.spec()), 0);
    }
}

#[test]
fn runs_are_created_in_the_order_that_was_asked_for() {
    for (order, first) in [(BackfillOrder::Oldest, "01:00:00"), (BackfillOrder::Newest, "05:00:00")] {
        let mut world = World::new("0 * * * *");
        let mut one = backfill(at("01:00:00"), at("05:00:00"), BackfillSettings { order, ..settings(1) });
        for _ in 0..5 {
            world.step(&mut one);
            let last = *world.created.last().unwrap();
            world.end(last, RunStatus::Succeeded);
        }
        assert_eq!(world.created[0], at(first));
        let mut sorted = world.created.clone();
        sorted.sort_unstable();
        if order == BackfillOrder::Newest {
            sorted.reverse();
        }
        assert_eq!(world.created, sorted);
        assert_eq!(one.status, BackfillStatus::Running, "the change of the job says when it is done");
    }
}
