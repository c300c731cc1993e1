//! The store, the instances, and what happens to them.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use everbell_core::change;
use everbell_core::settle::Outcome;
use everbell_core::store::{JobFilter, PageRequest, Store};
use everbell_core::{Backoff, CatchUp, JobId, Overlap, PolicyValues, RunId, RunStatus, Target};
use everbell_store::conformance::checkers::Snapshot;
use everbell_store::conformance::dice::Dice;
use everbell_store::conformance::faults::Faulty;
use everbell_store::memory::{FaultPoint, MemoryStore};
use jiff::{SignedDuration, Timestamp};

use super::super::lab::{action, at, entry, error, job, ok, options, with};
use super::operator;
use crate::clock::Clock;
use crate::engine::{Engine, Step};
use crate::events::Events;
use crate::run::Run;
use crate::targets::{TargetOptions, Targets};
use crate::testing::ManualClock;

/// What must hold at every moment, or over time.
#[derive(Default)]
pub(super) struct Witnesses {
    /// How often a handler began each attempt.
    begun: Mutex<BTreeMap<(RunId, u32), u32>>,
    /// The high-water marks as they were seen last.
    marks: BTreeMap<JobId, Timestamp>,
    /// How runs ended, when that was seen first.
    ended: BTreeMap<RunId, (RunStatus, Option<Timestamp>)>,
    complaints: Vec<String>,
}

impl Witnesses {
    /// What changed that must not.
    fn look(&mut self, snapshot: &Snapshot) {
        for row in &snapshot.jobs {
            let (id, mark) = (row.job.definition.id, row.timer.as_ref().map(|timer| timer.last_slot_at));
            let Some(mark) = mark else { continue };
            let before = self.marks.insert(id, mark);
            if before.is_some_and(|before| before > mark) {
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

    pub(super) fn complaints(&mut self, snapshot: &Snapshot) -> Vec<String> {
        self.look(snapshot);
        let begun = self.begun.lock().unwrap();
        let twice = begun.iter().filter(|(_, times)| **times > 1);
        let twice = twice.map(|((run, attempt), times)| format!("attempt {attempt} of {run} began {times} times"));
        let unheard = snapshot
            .runs
            .iter()
            .filter(|run| run.status == RunStatus::Succeeded && !begun.contains_key(&(run.id, run.attempt)));
        let unheard = unheard.map(|run| format!("run {} succeeded without a handler", run.id));
        std::mem::take(&mut self.complaints).into_iter().chain(twice).chain(unheard).collect()
    }
}

struct Instance {
    engine: Engine,
    clock: Arc<ManualClock>,
    /// How far its clock is off.
    offset: SignedDuration,
    /// Stands still until then: neither its loops nor its clock go on.
    frozen_until: Option<Timestamp>,
}

pub(super) struct World {
    pub(super) store: Arc<MemoryStore>,
    pub(super) witnesses: Witnesses,
    pub(super) dice: Dice,
    pub(super) now: Timestamp,
    begun: Arc<Witness>,
    instances: Vec<Option<Instance>>,
    faults: Arc<Faults>,
}

/// The part of the witnesses that handlers see.
type Witness = Mutex<BTreeMap<(RunId, u32), u32>>;

/// Whether calls of the store fail.
#[derive(Default)]
struct Faults {
    /// All of them.
    outage: AtomicBool,
    /// None of them.
    mended: AtomicBool,
}

const TARGETS: [&str; 5] = ["quick", "slow", "flaky", "hangs", "panics"];

impl World {
    pub(super) async fn new(seed: u64) -> World {
        let mut dice = Dice::new(seed);
        let store = Arc::new(MemoryStore::new());
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
            begun: Arc::default(),
            now: at("00:00"),
            instances: Vec::new(),
            faults: Arc::default(),
            dice,
        };
        for number in 0..3 {
            let instance = world.instance(number);
            world.instances.push(Some(instance));
        }
        world
    }

    fn instance(&mut self, number: u64) -> Instance {
        let odds = 20 + self.dice.below(200);
        let seed = self.dice.roll() ^ number;
        let faults = Arc::clone(&self.faults);
        let store = Faulty::new(Arc::clone(&self.store) as _, move |call| {
            let mut dice = Dice::new(seed ^ (u64::from(call) << 20));
            if faults.mended.load(Ordering::Relaxed) {
                return None;
            }
            if faults.outage.load(Ordering::Relaxed) {
                return Some(FaultPoint::Before);
            }
            dice.one_in(odds).then(|| if dice.one_in(2) { FaultPoint::Before } else { FaultPoint::After })
        });
        let offset = SignedDuration::from_millis(self.dice.below(4_000) as i64 - 2_000);
        let clock = Arc::new(ManualClock::new(self.now + offset));
        let targets = targets(&clock, &self.begun, seed);
        let engine = Engine::new(Arc::new(store), Arc::clone(&clock) as _, targets, options(), Events::new(Vec::new()));
        Instance { engine, clock, offset, frozen_until: None }
    }

    /// One thing happens.
    pub(super) async fn act(&mut self) {
        match self.dice.below(100) {
            0 => self.crash(),
            1 => self.freeze(),
            2 => self.faults.outage.store(true, Ordering::Relaxed),
            3..=6 => self.faults.outage.store(false, Ordering::Relaxed),
            7..=11 => operator::act(self).await,
            12..=30 => {
                let seconds = self.dice.below(12) as i64;
                self.pass(SignedDuration::from_secs(seconds));
            }
            _ => self.step().await,
        }
        for _ in 0..self.dice.below(12) {
            tokio::task::yield_now().await;
        }
        if self.dice.one_in(10) {
            let snapshot = Snapshot::read(&*self.store).await;
            self.witnesses.look(&snapshot);
        }
    }

    fn pass(&mut self, time: SignedDuration) {
        self.now += time;
        for instance in self.instances.iter_mut().flatten() {
            if instance.frozen_until.is_some_and(|until| until > self.now) {
                continue;
            }
            instance.frozen_until = None;
            instance.clock.set(self.now + instance.offset);
        }
    }

    /// An instance is gone, with its handlers and whatever it has not said; another one takes its place.
    fn crash(&mut self) {
        let number = self.dice.below(self.instances.len());
        drop(self.instances[number].take());
        let instance = self.instance(number as u64);
        self.instances[number] = Some(instance);
    }

    fn freeze(&mut self) {
        let number = self.dice.below(self.instances.len());
        let until = self.now + SignedDuration::from_secs(5 + self.dice.below(90) as i64);
        if let Some(instance) = &mut self.instances[number] {
            instance.frozen_until = Some(until);
        }
    }

    /// Some loop of some instance takes a step; an error is what it lives with.
    async fn step(&mut self) {
        let number = self.dice.below(self.instances.len());
        let which = self.dice.below(12);
        let Some(instance) = &mut self.instances[number] else { return };
        if instance.frozen_until.is_none() {
            let engine = &mut instance.engine;
            let _may_fail = match which {
                0..=2 => engine.planner.step().await,
                3..=5 => engine.claimer.step().await,
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
        operator::pause_all(self).await;
        for _ in 0..400 {
            self.pass(SignedDuration::from_secs(7));
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
        self.witnesses.begun = Mutex::new(self.begun.lock().unwrap().clone());
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

fn policies(dice: &mut Dice) -> impl FnOnce(&mut PolicyValues) {
    let overlap = *dice.pick(Overlap::ALL).unwrap();
    let catch_up = *dice.pick(CatchUp::ALL).unwrap();
    let max_attempts = 1 + dice.below(3) as u32;
    let timeout = Duration::from_secs(5 + dice.below(60) as u64);
    let pause_after_failures = dice.one_in(3).then_some(4);
    let max_concurrent_runs = 1 + dice.below(2) as u32;
    move |values| {
        values.overlap = overlap;
        values.catch_up = catch_up;
        values.max_attempts = max_attempts;
        values.timeout = timeout;
        values.pause_after_failures = pause_after_failures;
        values.max_concurrent_runs = max_concurrent_runs;
        values.backoff = Backoff { initial: Duration::from_secs(3), max: Duration::from_secs(20) };
    }
}

/// Handlers whose fate is decided by the seed, the run and the attempt.
fn targets(clock: &Arc<ManualClock>, begun: &Arc<Witness>, seed: u64) -> Targets {
    let mut targets = Targets::default();
    let mut serve = |label: &str, fate: fn(Run, Arc<ManualClock>, Dice) -> Fate| {
        let (clock, begun) = (Arc::clone(clock), Arc::clone(begun));
        let handler = action(move |run: Run| {
            *begun.lock().unwrap().entry((run.id(), run.attempt())).or_default() += 1;
            let dice = Dice::new(seed ^ run.id().as_uuid().as_u128() as u64 ^ u64::from(run.attempt()));
            fate(run, Arc::clone(&clock), dice)
        });
        assert!(targets.add(Target::new(label).unwrap(), handler, TargetOptions::default()));
    };
    serve("quick", |_, _, _| fate(async { ok() }));
    serve("flaky", |_, _, mut dice| fate(async move { if dice.one_in(2) { error("no") } else { ok() } }));
    serve("panics", |_, _, mut dice| fate(async move { if dice.one_in(2) { panic!("planned") } else { ok() } }));
    serve("slow", |run, clock, mut dice| {
        let time = Duration::from_secs(dice.below(90) as u64);
        fate(async move {
            tokio::select! {
                biased;
                () = run.canceled() => error("stopped"),
                () = clock.sleep(time) => ok(),
            }
        })
    });
    serve("hangs", |_, clock, mut dice| {
        let time = Duration::from_secs(20 + dice.below(400) as u64);
        fate(async move {
            clock.sleep(time).await;
            ok()
        })
    });
    targets
}

type Fate = std::pin::Pin<Box<dyn Future<Output = Outcome> + Send>>;

fn fate(outcome: impl Future<Output = Outcome> + Send + 'static) -> Fate {
    Box::pin(outcome)
}
