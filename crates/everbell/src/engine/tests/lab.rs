//! [`Lab`]: an engine on the model in memory, whose steps a test calls.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use everbell_core::change::{self, JobChange, JobView};
use everbell_core::settle::{Outcome, Then};
use everbell_core::store::{
    AuditEntry, Changed, JobRef, JobRow, JobStore, PageRequest, RunFilter, RunStore, Store, StoreResult,
};
use everbell_core::{
    Definition, Failure, FailureCode, Invalid, JobId, JobKey, Policies, PolicyValues, Run as Record, Spec, Target, Zone,
};
use everbell_store::memory::MemoryStore;
use jiff::Timestamp;
use tokio::sync::broadcast;

use crate::engine::{Engine, EngineOptions, Shared, Step, Wait, audit};
use crate::events::{Event, Events};
use crate::run::Run;
use crate::targets::{Action, Serving, TargetOptions, Targets};
use crate::testing::ManualClock;

/// `12:00` of the day on which tests play, or a whole timestamp.
pub(super) fn at(text: &str) -> Timestamp {
    let whole = if text.contains('T') { text.to_owned() } else { format!("2026-11-15T{text}Z") };
    let whole = if whole.len() == "2026-11-15T12:00Z".len() { whole.replace('Z', ":00Z") } else { whole };
    whole.parse().unwrap_or_else(|error| panic!("`{whole}` is no time: {error}"))
}

/// A job made at midnight; the schedule is `<expression> [in <zone>]` or `once <time>`.
pub(super) fn job(key: &str, schedule: &str, target: &str) -> Definition {
    let (expression, zone) = schedule.split_once(" in ").unwrap_or((schedule, "UTC"));
    let zone = Zone::get(zone).unwrap();
    let spec = match expression.strip_prefix("once ") {
        Some(time) => Spec::once(at(time), zone).unwrap(),
        None => Spec::recurring(expression.parse().unwrap(), zone, at("00:00")),
    };
    everbell_core::with!(Definition {
        created_by: "ana".to_owned(),
        ..Definition::new(
            JobId::new(at("00:00"), tail(key)),
            JobKey::new(key).unwrap(),
            Target::new(target).unwrap(),
            Ok(spec),
            at("00:00")
        )
    })
}

/// Ten bytes that a name decides.
pub(super) fn tail(name: &str) -> [u8; 10] {
    let mut bytes = [0_u8; 10];
    for (place, byte) in name.bytes().enumerate() {
        bytes[place % 10] = bytes[place % 10].wrapping_mul(31) ^ byte;
    }
    bytes
}

/// With other policies.
pub(super) fn with(definition: Definition, change: impl FnOnce(&mut PolicyValues)) -> Definition {
    let mut values = (*definition.policies).clone();
    change(&mut values);
    everbell_core::with!(Definition { policies: Policies::new(values).unwrap(), ..definition })
}

/// An action from a closure.
pub(super) fn action<F: Future<Output = Outcome> + Send + 'static>(
    handler: impl Fn(Run) -> F + Send + Sync + 'static,
) -> Action {
    Arc::new(move |run| Box::pin(handler(run)))
}

pub(super) fn ok() -> Outcome {
    Outcome::Succeeded { result: None }
}

pub(super) fn error(message: &str) -> Outcome {
    Outcome::Failed { failure: Failure::new(FailureCode::HANDLER_ERROR, message), then: Then::RETRY }
}

pub(super) fn options() -> EngineOptions {
    EngineOptions { linger: Duration::ZERO, host: "lab".to_owned(), ..EngineOptions::default() }
}

/// One engine, its store and its clock.
pub(super) struct Lab {
    pub(super) store: Arc<MemoryStore>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) engine: Engine,
    pub(super) events: broadcast::Receiver<Arc<Event>>,
    /// The work of handlers, in order: `<target> <slot>`.
    pub(super) log: Arc<Mutex<Vec<String>>>,
}

impl Lab {
    /// At midnight, with the targets `log` (notes its slot), `fail`, `panic`, and `wait`, which ends when it is canceled.
    pub(super) fn new() -> Lab {
        Lab::with_targets(|_, _| {})
    }

    pub(super) fn with_targets(more: impl FnOnce(&mut Targets, &Arc<ManualClock>)) -> Lab {
        let log = Arc::new(Mutex::new(Vec::new()));
        let clock = Arc::new(ManualClock::new(at("00:00")));
        let mut targets = Targets::default();
        let noted = Arc::clone(&log);
        let note = action(move |run: Run| {
            noted.lock().unwrap().push(format!("log {}", run.scheduled_at().strftime("%H:%M:%S")));
            async { ok() }
        });
        let mut serve = |label: &str, action| {
            assert!(targets.add(Target::new(label).unwrap(), action, TargetOptions::default()));
        };
        serve("log", note);
        serve("fail", action(|_| async { error("no") }));
        serve("panic", action(|_| async { panic!("boom") }));
        let wait = |run: Run| async move {
            run.canceled().await;
            ok()
        };
        serve("wait", action(wait));
        more(&mut targets, &clock);
        let store = Arc::new(MemoryStore::new());
        let events = Events::new(Vec::new());
        let heard = events.listen();
        let engine =
            Engine::new(Arc::clone(&store) as _, Arc::clone(&clock) as _, Serving::new(targets), options(), events);
        Lab { store, clock, engine, events: heard, log }
    }

    /// Another instance on the same store and clock, with the same targets.
    pub(super) fn engine_beside(&self) -> Engine {
        let Shared { targets, options, events, .. } = &*self.engine.shared;
        let (store, clock) = (Arc::clone(&self.store) as _, Arc::clone(&self.clock) as _);
        Engine::new(store, clock, targets.clone(), options.clone(), events.clone())
    }

    /// Another instance that reaches the store in another way.
    pub(super) fn engine_on(&self, store: Arc<dyn Store>) -> Engine {
        let Shared { targets, options, events, .. } = &*self.engine.shared;
        Engine::new(store, Arc::clone(&self.clock) as _, targets.clone(), options.clone(), events.clone())
    }

    /// The engine, to be run; another one takes its place.
    pub(super) fn engine_instead(&mut self) -> Engine {
        let other = self.engine_beside();
        std::mem::replace(&mut self.engine, other)
    }

    pub(super) fn set(&self, time: &str) {
        self.clock.set(at(time));
    }

    pub(super) async fn create(&self, definition: Definition) {
        let entry = entry("job.create", definition.created_at);
        self.store.create_job(&change::create(definition), &entry).await.unwrap();
    }

    pub(super) async fn change(
        &self,
        key: &str,
        decide: impl Fn(&JobView) -> Result<JobChange, Invalid> + Send + Sync,
    ) -> StoreResult<Changed> {
        let entry = entry("job.change", self.engine.shared.now());
        self.store.change_job(&by_key(key), None, &decide, &entry).await
    }

    pub(super) async fn job(&self, key: &str) -> JobRow {
        self.store.get_job(&by_key(key)).await.unwrap()
    }

    /// Plans, claims, lets handlers work and records, until nothing is left to do.
    pub(super) async fn turn(&mut self) {
        loop {
            let planned = self.engine.planner.step().await.unwrap();
            self.engine.claimer.step().await.unwrap();
            self.settle().await;
            let recorded = self.engine.recorder.step().await.unwrap();
            if planned != Wait::No && recorded != Wait::No {
                return;
            }
        }
    }

    /// Moves the clock and takes a turn.
    pub(super) async fn turn_at(&mut self, time: &str) {
        self.set(time);
        self.turn().await;
    }

    /// Lets every task go as far as it can.
    pub(super) async fn settle(&self) {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
    }

    /// Every run of a job, oldest first: `<slot> <status> [<failure code or skip reason>]`.
    pub(super) async fn runs(&self, key: &str) -> Vec<String> {
        self.records(key).await.iter().map(summary).collect()
    }

    pub(super) async fn records(&self, key: &str) -> Vec<Record> {
        let filter = RunFilter { job_key: Some(JobKey::new(key).unwrap()), ..RunFilter::default() };
        let page = self.store.list_runs(&filter, &PageRequest { limit: 1_000, after: None }).await.unwrap();
        page.items.into_iter().rev().collect()
    }

    /// Returns the output of a job's first run, as far as it is saved.
    pub(super) async fn printed(&self, key: &str) -> Option<String> {
        let first = self.records(key).await[0].id;
        self.store.get_run(first).await.unwrap().output
    }

    /// The names of the events since the last call.
    pub(super) fn heard(&mut self) -> Vec<String> {
        let mut names = Vec::new();
        while let Ok(event) = self.events.try_recv() {
            let name = format!("{event:?}");
            names.push(name.split([' ', '(']).next().unwrap_or_default().to_owned());
        }
        names
    }
}

pub(super) fn summary(run: &Record) -> String {
    let time = run.scheduled_at.strftime("%H:%M:%S");
    let why = run.failure.as_ref().map(|failure| failure.code.as_str().to_owned());
    let why = why.or_else(|| run.skip.as_ref().map(|skip| skip.as_str().to_owned()));
    format!("{time} {}{}", run.status, why.map_or(String::new(), |why| format!(" {why}")))
}

pub(super) fn by_key(key: &str) -> JobRef {
    JobRef::Key(JobKey::new(key).unwrap())
}

pub(super) fn entry(what: &str, at: Timestamp) -> AuditEntry {
    audit(what, "job:test".to_owned(), None, at)
}
