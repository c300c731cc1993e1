//! The store, the instances, and what happens to them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use everbell_core::change;
use everbell_core::store::{JobFilter, JobStore, PageRequest, StoreResult};
use everbell_core::{JobId, RunId, RunStatus};
use everbell_store::conformance::checkers::Snapshot;
use everbell_store::conformance::dice::Dice;
use everbell_store::conformance::faults::Faulty;
use everbell_store::memory::{FaultPoint, MemoryStore};
use jiff::{SignedDuration, Timestamp};
use tokio::task::JoinHandle;

use super::super::lab::{at, entry, job, options, with};
use super::diary::Diary;
use super::handlers::{Handlers, TARGETS, late_answers};
use super::operator;
use super::policies::policies;
use crate::clock::Clock;
use crate::engine::{Claimer, Engine, Planner, SecondPlanner, Step, Wait};
use crate::events::Events;
use crate::run_signals::Stop;
use crate::targets::Serving;
use crate::testing::ManualClock;

/// Invariants that hold at every moment, or over time.
#[derive(Default)]
pub(super) struct Witnesses {
    /// The high-water marks as they were seen last.
    marks: BTreeMap<JobId, Timestamp>,
    /// How runs ended, when that was seen first.
    ended: BTreeMap<RunId, (RunStatus, Option<Timestamp>)>,
    complaints: Vec<String>,
}

impl Witnesses {
    /// Complains about changes that must not happen.
    fn look(&mut self, snapshot: &Snapshot, steps: bool) {
        for row in &snapshot.jobs {
            let (id, mark) = (row.job.definition.id, row.timer.as_ref().map(|timer| timer.last_slot_at));
            let Some(mark) = mark else { continue };
            let before = self.marks.insert(id, mark);
            // After a clock was ahead, it goes back to now.
            if !steps && before.is_some_and(|before| before > mark) {
                self.complaints.push(format!("the mark of {id} went back to {mark}"));
            }
        }
        for run in snapshot.runs.iter().filter(|run| run.status.is_terminal()) {
            let now = (run.status, run.finished_at);
            let before = *self.ended.entry(run.id).or_insert(now);
            if before != now {
                self.complaints.push(format!("run {} was {before:?} and is {now:?}", run.id));
            }
        }
    }

    pub(super) fn complaints(&mut self, snapshot: &Snapshot, diary: &Diary, steps: bool) -> Vec<String> {
        self.look(snapshot, steps);
        let unheard = snapshot
            .runs
            .iter()
            .filter(|run| run.status == RunStatus::Succeeded && !diary.has_begun((run.id, run.attempt)));
        let unheard = unheard.map(|run| format!("run {} succeeded without a handler", run.id));
        std::mem::take(&mut self.complaints).into_iter().chain(diary.complaints()).chain(unheard).collect()
    }
}

struct Instance {
    number: u64,
    engine: Engine,
    /// Steps of the planner, the second planner and the claimer, whose answers may be on their way.
    under_way: [Option<JoinHandle<StoreResult<Wait>>>; 3],
    /// Cut off from the database, while others are not.
    cut: Arc<AtomicBool>,
    clock: Arc<ManualClock>,
    /// How far its clock is off.
    offset: SignedDuration,
    /// How far the clock of the database has been stepped since this instance asked for it last.
    unnoticed: SignedDuration,
    /// Stands still until then: neither its loops nor its clock go on.
    frozen_until: Option<Timestamp>,
}

impl Drop for Instance {
    fn drop(&mut self) {
        for under_way in self.under_way.iter().flatten() {
            under_way.abort();
        }
    }
}

async fn step_of(mut step: impl Step) -> StoreResult<Wait> {
    step.step().await
}

pub(super) struct World {
    pub(super) store: Arc<MemoryStore>,
    pub(super) witnesses: Witnesses,
    pub(super) dice: Dice,
    pub(super) now: Timestamp,
    pub(super) diary: Arc<Diary>,
    instances: Vec<Option<Instance>>,
    born: u64,
    faults: Arc<Faults>,
    /// Whether the clock of the database is stepped, forward and back.
    pub(super) steps: bool,
    /// How long ago it was.
    since_step: SignedDuration,
}

/// The last of the numbers from which a step is chosen.
const REAPER: usize = 11;

/// Whether calls of the store fail.
#[derive(Default)]
pub(super) struct Faults {
    /// All of them.
    outage: AtomicBool,
    /// None of them.
    pub(super) mended: AtomicBool,
}

impl World {
    pub(super) async fn new(seed: u64, steps: bool) -> World {
        let mut dice = Dice::new(seed);
        let store = Arc::new(MemoryStore::new());
        store.set_can_partition(true);
        let schedules = ["* * * * *", "*/20 * * * * *", "@every 45s", "*/2 * * * *", "once 00:07"];
        for number in 0..6 {
            let target = dice.pick(&TARGETS).unwrap();
            let schedule = dice.pick(&schedules).unwrap();
            let policies = policies(&mut dice);
            let new = with(job(&format!("job-{number}"), schedule, target), policies);
            store.create_job(&change::create(new), &entry("job.create", at("00:00"))).await.unwrap();
        }
        let mut world = World {
            store,
            witnesses: Witnesses::default(),
            diary: Arc::default(),
            born: 0,
            now: at("00:00"),
            instances: Vec::new(),
            faults: Arc::default(),
            steps,
            since_step: SignedDuration::ZERO,
            dice,
        };
        for _ in 0..3 {
            let instance = world.instance();
            world.instances.push(Some(instance));
        }
        world
    }

    fn instance(&mut self) -> Instance {
        self.born += 1;
        let number = self.born;
        let odds = 20 + self.dice.below(200);
        let seed = self.dice.roll() ^ number;
        let offset = SignedDuration::from_millis(self.dice.below(4_000) as i64 - 2_000);
        let clock = Arc::new(ManualClock::new(self.now + offset));
        let (faults, cut) = (Arc::clone(&self.faults), Arc::new(AtomicBool::new(false)));
        let is_cut = Arc::clone(&cut);
        let store = Faulty::new(Arc::clone(&self.store) as _, move |call| {
            let mut dice = Dice::new(seed ^ (u64::from(call) << 20));
            if faults.mended.load(Ordering::Relaxed) {
                return None;
            }
            if faults.outage.load(Ordering::Relaxed) || is_cut.load(Ordering::Relaxed) {
                return Some(FaultPoint::Before);
            }
            dice.one_in(odds).then(|| if dice.one_in(2) { FaultPoint::Before } else { FaultPoint::After })
        });
        let store = store.keeping_back(late_answers(&clock, &self.faults, seed)).and_plans();
        let handlers = Handlers { clock: &clock, diary: &self.diary, store: &self.store, instance: number, seed };
        let targets = handlers.targets();
        let events = Events::new(Vec::new());
        let engine = Engine::new(Arc::new(store), Arc::clone(&clock) as _, Serving::new(targets), options(), events);
        Instance {
            number,
            engine,
            under_way: [None, None, None],
            cut,
            clock,
            offset,
            unnoticed: SignedDuration::ZERO,
            frozen_until: None,
        }
    }

    /// One thing happens.
    pub(super) async fn act(&mut self) {
        if self.steps && self.dice.one_in(80) {
            self.step_clock();
        }
        if self.steps && self.dice.one_in(6) {
            let number = self.dice.below(self.instances.len());
            self.anchor(number).await;
        }
        match self.dice.below(100) {
            0 => self.crash(),
            1 => self.freeze(),
            2 => self.faults.outage.store(true, Ordering::Relaxed),
            3..=6 => self.heal(),
            7 => self.cut(),
            8..=11 => operator::act(self).await,
            12 => self.shut_down().await,
            13..=30 => {
                let seconds = self.dice.below(12) as i64;
                self.pass(SignedDuration::from_secs(seconds)).await;
            }
            _ => self.step().await,
        }
        for _ in 0..self.dice.below(12) {
            tokio::task::yield_now().await;
        }
        if self.dice.one_in(10) {
            let snapshot = Snapshot::read(&*self.store).await;
            self.witnesses.look(&snapshot, self.steps);
        }
    }

    /// Time passes, and everything that waited for it happens.
    async fn pass(&mut self, time: SignedDuration) {
        self.now += time;
        self.since_step += time;
        for instance in self.instances.iter_mut().flatten() {
            if instance.frozen_until.is_some_and(|until| until > self.now) {
                continue;
            }
            instance.frozen_until = None;
            instance.clock.set(self.now + instance.offset - instance.unnoticed);
        }
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        // Only now: an instance that goes on has to be given a moment to notice what time it is.
        for instance in self.instances.iter().flatten().filter(|instance| instance.frozen_until.is_none()) {
            self.diary.thaw(instance.number);
        }
    }

    /// The clock of the database is wrong from now on, or right again. Instances notice when they ask for it.
    fn step_clock(&mut self) {
        let by = *self.dice.pick(&[-3_600, -300, -60, -10, 10, 60, 300, 3_600]).unwrap();
        let by = SignedDuration::from_secs(by);
        self.now += by;
        self.since_step = SignedDuration::ZERO;
        for instance in self.instances.iter_mut().flatten() {
            instance.unnoticed += by;
        }
    }

    /// An instance asks what time it is.
    async fn anchor(&mut self, number: usize) {
        if let Some(instance) = self.instances[number].as_mut().filter(|instance| instance.frozen_until.is_none()) {
            let by = std::mem::take(&mut instance.unnoticed);
            instance.clock.step_to(instance.clock.now() + by);
            let _may_fail = instance.engine.anchor.step().await;
        }
    }

    /// One instance loses the database, while the others reach it.
    fn cut(&mut self) {
        let number = self.dice.below(self.instances.len());
        if let Some(instance) = &self.instances[number] {
            instance.cut.store(true, Ordering::Relaxed);
        }
    }

    /// Connects all instances to the database again.
    fn heal(&mut self) {
        self.faults.outage.store(false, Ordering::Relaxed);
        for instance in self.instances.iter().flatten() {
            instance.cut.store(false, Ordering::Relaxed);
        }
    }

    /// Crashes an instance, with its handlers and everything unrecorded; another one takes its place.
    fn crash(&mut self) {
        let number = self.dice.below(self.instances.len());
        self.replace(number);
    }

    fn replace(&mut self, number: usize) {
        if let Some(instance) = self.instances[number].take() {
            self.diary.crash(instance.number);
        }
        let instance = self.instance();
        self.instances[number] = Some(instance);
    }

    /// An instance stops its handlers, records their ends if the store lets it, and ends; another one takes its place.
    async fn shut_down(&mut self) {
        let number = self.dice.below(self.instances.len());
        if let Some(instance) = self.instances[number].as_mut().filter(|instance| instance.frozen_until.is_none()) {
            self.diary.stop(instance.engine.shared.inflight.working().into_iter().map(|(run, _)| run));
            instance.engine.shared.inflight.stop_all(&Stop::Shutdown);
            for _ in 0..30 {
                tokio::task::yield_now().await;
            }
            let _may_fail = instance.engine.recorder.step().await;
            self.replace(number);
        }
    }

    fn freeze(&mut self) {
        let number = self.dice.below(self.instances.len());
        let until = self.now + SignedDuration::from_secs(5 + self.dice.below(90) as i64);
        if let Some(instance) = &mut self.instances[number] {
            instance.frozen_until = Some(until);
            self.diary.freeze(instance.number);
        }
    }

    /// Some loop of some instance takes a step; an error is what it lives with.
    async fn step(&mut self) {
        let number = self.dice.below(self.instances.len());
        let which = self.dice.below(REAPER + 1);
        // Its own loop asks once a second, and the reaper before it ends runs.
        let is_late = |instance: &Instance| !instance.unnoticed.is_zero();
        let asks = self.since_step > SignedDuration::from_secs(1) || which == REAPER;
        if asks && self.instances[number].as_ref().is_some_and(is_late) {
            self.anchor(number).await;
        }
        let Some(instance) = &mut self.instances[number] else { return };
        if instance.frozen_until.is_none() {
            let engine = &mut instance.engine;
            let _may_fail = match which {
                0..=5 => {
                    let under_way = &mut instance.under_way[[0, 0, 1, 2, 2, 2][which]];
                    if under_way.as_ref().is_none_or(JoinHandle::is_finished) {
                        *under_way = Some(match which {
                            0 | 1 => tokio::spawn(step_of(Planner::new(&engine.shared))),
                            2 => tokio::spawn(step_of(SecondPlanner::new(&engine.shared))),
                            _ => tokio::spawn(step_of(Claimer::new(&engine.shared))),
                        });
                    }
                    return;
                }
                6..=8 => engine.recorder.step().await,
                9 | 10 => engine.heartbeat.step().await,
                _ => engine.reaper.step().await,
            };
        }
    }

    /// Nothing fails any more and nothing new is wanted: everything that was begun must come to its end.
    pub(super) async fn mend_and_drain(&mut self) -> Vec<String> {
        self.faults.mended.store(true, Ordering::Relaxed);
        self.instances.iter_mut().flatten().for_each(|instance| instance.frozen_until = None);
        if self.steps {
            // Those that stood still know how much time has passed.
            self.pass(SignedDuration::ZERO).await;
            for number in 0..self.instances.len() {
                self.anchor(number).await;
            }
        }
        operator::retire_all(self).await;
        for _ in 0..if self.steps { 5_000 } else { 400 } {
            self.pass(SignedDuration::from_secs(7)).await;
            for instance in self.instances.iter_mut().flatten() {
                instance.engine.heartbeat.step().await.unwrap();
            }
            for instance in self.instances.iter_mut().flatten() {
                let engine = &mut instance.engine;
                engine.reaper.step().await.unwrap();
                engine.planner.step().await.unwrap();
                engine.claimer.step().await.unwrap();
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
                engine.recorder.step().await.unwrap();
            }
            let snapshot = Snapshot::read(&*self.store).await;
            if snapshot.unfinished_runs().is_empty() && self.is_idle() {
                break;
            }
        }
        let idle = self.is_idle();
        (!idle).then(|| "an instance still holds runs".to_owned()).into_iter().collect()
    }

    fn is_idle(&self) -> bool {
        self.instances.iter().flatten().all(|instance| instance.engine.shared.inflight.is_empty())
    }

    pub(super) async fn jobs(&self) -> Vec<everbell_core::Job> {
        let page = PageRequest { limit: 1_000, after: None };
        let jobs = self.store.list_jobs(&JobFilter::default(), &page).await.unwrap();
        jobs.items.into_iter().map(|row| row.job).collect()
    }
}
