//! [`TestBell`]: an instance whose time a test decides.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use everbell_core::org::{Org, OrgWrite};
use everbell_core::settle::Outcome;
use everbell_core::store::{Claim, ClusterStore, JobRef, JobStore, PageRequest, RunFilter, RunStore, StoreResult};
use everbell_core::{JobKey, Json, OrgId, Run as Record, RunStatus, Target};
use everbell_store::memory::{FaultPoint, MemoryStore};
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::ManualClock;
use super::ran::{Drained, Ran};
use crate::bell::Everbell;
use crate::builder::Builder;
use crate::client::{Jobs, Orgs, Runs, ad_hoc};
use crate::clock::{Clock, earlier, later};
use crate::engine::{Attempt, Engine, EngineOptions, Step, Wait};
use crate::error::RunError;
use crate::lease::Lease;
use crate::run::Run;

/// How long a handler may take, in real time, before the clock moves on without it.
const HANDLER_TIMEOUT: Duration = Duration::from_secs(1);

/// A time in a test: a [`Timestamp`], or its text.
pub trait IntoTime {
    /// Returns the time, or fails the test.
    fn into_time(self) -> Timestamp;
}

impl IntoTime for Timestamp {
    fn into_time(self) -> Timestamp {
        self
    }
}

impl IntoTime for &str {
    #[track_caller]
    fn into_time(self) -> Timestamp {
        self.parse().unwrap_or_else(|error| panic!("`{self}` is no time: {error}"))
    }
}

/// An instance on a store in memory, under a clock that only the test moves. See the [module](super).
#[derive(Debug)]
pub struct TestBell {
    bell: Everbell,
    store: Arc<MemoryStore>,
    clock: Arc<ManualClock>,
    engine: Engine,
    /// Handlers that run on while time passes.
    slow: BTreeSet<Attempt>,
    /// Whether an instance crashed, which the others have to notice.
    crashed: bool,
}

impl TestBell {
    /// Starts an instance from this builder, at this time. Replaces its database and clock.
    pub async fn start(builder: Builder, now: impl IntoTime) -> TestBell {
        let now = now.into_time();
        let (store, clock) = (Arc::new(MemoryStore::new()), Arc::new(ManualClock::new(now)));
        store.set_now(now);
        let builder = builder.store(Arc::clone(&store) as _).clock(Arc::clone(&clock) as _);
        let bell = builder.build().await.unwrap_or_else(|error| panic!("{error}"));
        let engine = instance(&bell);
        let mut test = TestBell { bell, store, clock, engine, slow: BTreeSet::new(), crashed: false };
        test.turn().await;
        test
    }

    /// Returns the instance under test.
    pub fn bell(&self) -> &Everbell {
        &self.bell
    }

    /// Lists, creates and changes jobs.
    pub fn jobs(&self) -> Jobs {
        self.bell.jobs()
    }

    /// Lists, cancels and repeats runs.
    pub fn runs(&self) -> Runs {
        self.bell.runs()
    }

    /// Lists and changes orgs.
    pub fn orgs(&self) -> Orgs {
        self.bell.orgs()
    }

    /// Creates an org in this zone, or moves it there.
    pub async fn org(&self, id: &str, timezone: &str) -> Org {
        let id = OrgId::new(id).unwrap_or_else(|error| panic!("{error}"));
        let write = OrgWrite { timezone: Some(timezone.to_owned()), ..OrgWrite::new(id) };
        self.orgs().set(write).await.unwrap_or_else(|error| panic!("{error}")).org
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Lets time pass. Everything that becomes due happens at its time, one after the other.
    pub async fn advance_to(&mut self, time: impl IntoTime) {
        let end = time.into_time();
        loop {
            let next = self.turn().await.min(end);
            if self.now() >= end {
                return;
            }
            self.clock.set(next);
            self.store.set_now(next);
        }
    }

    /// Like [`TestBell::advance_to`], for a duration.
    pub async fn advance_by(&mut self, time: Duration) {
        self.advance_to(later(self.now(), time)).await;
    }

    /// Does everything that can be done now, and returns how the runs ended.
    pub async fn drain(&mut self) -> Drained {
        let before = self.ended().await;
        self.turn().await;
        let after = self.ended().await;
        let new = |of: fn(&Drained) -> usize| of(&after) - of(&before);
        Drained { succeeded: new(|d| d.succeeded), failed: new(|d| d.failed), canceled: new(|d| d.canceled) }
    }

    /// Calls the handler of a target, without a job or a run in the store. Returns its result as it would be stored.
    pub async fn perform<T: DeserializeOwned>(&self, target: &str, payload: impl Serialize) -> Result<T, RunError> {
        let label = Target::new(target).unwrap_or_else(|error| panic!("{error}"));
        let served = self.engine.shared.targets.get(&label);
        let action = &served.unwrap_or_else(|| panic!("there is no target `{target}`")).action;
        let text = serde_json::to_string(&payload).unwrap_or_else(|error| panic!("the payload is no JSON: {error}"));
        let payload = Json::parse("payload", &text).unwrap_or_else(|error| panic!("{error}"));
        let claim = trial(label, payload, self.now());
        let (_never, stop) = watch::channel(false);
        let (_granted, renewed) = watch::channel(self.clock.monotonic());
        let shared = &self.engine.shared;
        let lease = Lease::new(renewed, shared.options.lease, false, Arc::clone(&shared.clock));
        match action(Run::new(claim, shared.events.clone(), stop, lease)).await {
            Outcome::Succeeded { result } => {
                let text = result.as_ref().map_or("null", Json::as_str);
                Ok(serde_json::from_str(text).unwrap_or_else(|error| panic!("the result is {text}: {error}")))
            }
            Outcome::Failed { failure, then } => Err(RunError::from_parts(failure, then)),
            other => panic!("a handler ended with {other:?}"),
        }
    }

    /// Returns the runs of this job that started, with their output, for assertions.
    pub async fn assert_ran(&self, key: &str) -> Ran {
        let mut runs = Vec::new();
        for run in self.records(key).await.into_iter().filter(|run| run.attempt > 0) {
            runs.push(self.store.get_run(run.id).await.unwrap_or_else(|error| panic!("{error}")));
        }
        Ran { key: key.to_owned(), runs }
    }

    /// Fails the test if a run is still pending or running.
    pub async fn assert_settled(&self) {
        let filter = RunFilter { status: vec![RunStatus::Pending, RunStatus::Running], ..RunFilter::default() };
        let left = self.list(&filter).await;
        assert!(left.is_empty(), "not settled:{}", Ran { key: String::new(), runs: left });
    }

    /// Returns the next times at which a job fires, in its zone.
    pub async fn next_fires(&self, job: &str, count: usize) -> Vec<String> {
        let fires = self.jobs().next_fires(job, count).await.unwrap_or_else(|error| panic!("{error}"));
        fires.iter().map(ToString::to_string).collect()
    }

    /// Crashes the instance now, with everything unrecorded. Another one takes its place.
    pub fn crash(&mut self) {
        self.engine = instance(&self.bell);
        self.slow.clear();
        self.crashed = true;
    }

    /// Lets time pass until this job fires, and crashes the instance while its handler works.
    pub async fn crash_during(&mut self, job: &str) {
        let key = JobKey::new(job).unwrap_or_else(|error| panic!("{error}"));
        let row = self.store.get_job(&JobRef::Key(key)).await.unwrap_or_else(|error| panic!("{error}"));
        let next = row.timer.and_then(|timer| timer.next_run_at);
        let next = next.unwrap_or_else(|| panic!("job `{job}` does not fire any more"));
        self.advance_to(earlier(next, Duration::from_micros(1))).await;
        self.clock.set(next);
        self.store.set_now(next);
        self.engine.planner.step().await.unwrap_or_else(|error| panic!("{error}"));
        self.engine.claimer.step().await.unwrap_or_else(|error| panic!("{error}"));
        self.crash();
    }

    /// Makes the next call of the store fail, before or after its work.
    pub fn fail_next(&self, point: FaultPoint) {
        self.store.fail_next(point);
    }

    /// Runs the loops until nothing is left to do now; returns when there will be more.
    async fn turn(&mut self) -> Timestamp {
        loop {
            let engine = &mut self.engine;
            let beat = engine.heartbeat.step().await;
            let resumed = engine.resumer.step().await;
            // Not as a loop would, which waits a moment between two looks.
            let progress = engine
                .reconciler
                .look(engine.shared.now())
                .await
                .map(|more| if more { Wait::No } else { Wait::ForSignal });
            let planned = engine.planner.step().await;
            let claimed = engine.claimer.step().await;
            self.let_handlers_work().await;
            let recorded = self.engine.recorder.step().await;
            let reaped = if self.crashed { self.engine.reaper.step().await } else { Ok(Wait::ForSignal) };
            let now = self.now();
            // What fails is done again, as a loop would do.
            let again = |wait: &StoreResult<Wait>| match wait {
                Ok(Wait::No) | Err(_) => true,
                Ok(Wait::For(time)) => time.is_zero(),
                Ok(Wait::ForSignal) => false,
            };
            if [&beat, &resumed, &progress, &planned, &claimed, &recorded, &reaped].into_iter().any(again) {
                continue;
            }
            self.crashed &= self.has_orphans().await;
            let idle = self.is_idle().await;
            let times = [planned, claimed, reaped].into_iter().filter_map(|wait| match wait {
                Ok(Wait::For(time)) if !idle => Some(later(now, time)),
                _ => None,
            });
            let times = times.chain(if idle { self.next_fire().await } else { None });
            let pauses = self.store.pauses_ending(1).await.unwrap_or_default();
            let times = times.chain(pauses.into_iter().map(|(_, until)| until)).chain(self.clock.next_sleeper());
            return times.min().unwrap_or(Timestamp::MAX);
        }
    }

    /// Waits for handlers, but not forever: one that waits for the clock, or for the test, runs on while time passes.
    async fn let_handlers_work(&mut self) {
        let busy =
            |slow: &BTreeSet<Attempt>, working: Vec<Attempt>| working.into_iter().any(|run| !slow.contains(&run));
        let inflight = &self.engine.shared.inflight;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let wait = async {
            while busy(&self.slow, inflight.working()) {
                self.engine.shared.signals.record.notified().await;
            }
        };
        if busy(&self.slow, inflight.working()) && tokio::time::timeout(HANDLER_TIMEOUT, wait).await.is_err() {
            self.slow.extend(inflight.working());
        }
    }

    /// Whether no run is pending or running. Then nothing happens before the next fire, and no loop has to poll.
    async fn is_idle(&self) -> bool {
        self.store.counts(self.now()).await.is_ok_and(|counts| counts.active_runs.is_empty())
    }

    /// Returns when the next timer fires, if none is due now.
    async fn next_fire(&self) -> Option<Timestamp> {
        let targets: Vec<Target> = self.engine.shared.targets.names().cloned().collect();
        self.store.plan_due(self.now(), 1, &targets, &crate::engine::decide).await.ok()?.next_due_at
    }

    async fn has_orphans(&self) -> bool {
        let filter = RunFilter { status: vec![RunStatus::Running], ..RunFilter::default() };
        let running = self.list(&filter).await;
        running.iter().any(|run| !self.engine.shared.inflight.contains((run.id, run.attempt)))
    }

    async fn ended(&self) -> Drained {
        let filter = RunFilter {
            status: vec![RunStatus::Succeeded, RunStatus::Failed, RunStatus::Canceled],
            ..RunFilter::default()
        };
        let runs = self.list(&filter).await;
        let count = |status| runs.iter().filter(|run| run.status == status).count();
        Drained {
            succeeded: count(RunStatus::Succeeded),
            failed: count(RunStatus::Failed),
            canceled: count(RunStatus::Canceled),
        }
    }

    async fn records(&self, key: &str) -> Vec<Record> {
        let key = JobKey::new(key).unwrap_or_else(|error| panic!("{error}"));
        self.list(&RunFilter { job_key: Some(key), ..RunFilter::default() }).await
    }

    /// Returns all runs that match, oldest first.
    async fn list(&self, filter: &RunFilter) -> Vec<Record> {
        let mut runs = Vec::new();
        let mut page = PageRequest { limit: 1_000, after: None };
        loop {
            let found = self.store.list_runs(filter, &page).await.unwrap_or_else(|error| panic!("{error}"));
            runs.extend(found.items);
            page.after = found.next;
            if page.after.is_none() {
                runs.reverse();
                return runs;
            }
        }
    }
}

/// Polling is off: the test knows when something will happen.
fn instance(bell: &Everbell) -> Engine {
    let options = EngineOptions { poll: Duration::MAX, linger: Duration::ZERO, ..bell.options().clone() };
    bell.engine_with(options)
}

/// A run that belongs to no job, as an executor receives it.
fn trial(target: Target, payload: Json, now: Timestamp) -> Claim {
    let lease_until = later(now, Duration::from_secs(30));
    let run = Record {
        status: RunStatus::Running,
        attempt: 1,
        started_at: Some(now),
        lease_until: Some(lease_until),
        ..ad_hoc(target, payload, "test", now)
    };
    Claim { run, job: None, lease_until }
}
