//! [`TestBell`]: an instance whose time a test decides.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use everbell_core::OrgId;
use everbell_core::org::{Org, OrgWrite};
use everbell_core::store::Store;
use everbell_store::memory::{FaultPoint, MemoryStore};
use jiff::Timestamp;

use super::ManualClock;
use crate::bell::Everbell;
use crate::builder::Builder;
use crate::client::{Jobs, Orgs, Runs};
use crate::clock::Clock;
use crate::engine::{Attempt, Engine, EngineOptions};
use crate::inbox::Inbox;

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
        self.parse().unwrap_or_else(|error| panic!("`{self}` is not a time: {error}"))
    }
}

/// An instance under a clock that only the test moves, usually on a store in memory. See the [module](super).
#[derive(Debug)]
pub struct TestBell {
    pub(super) bell: Everbell,
    pub(super) store: Arc<dyn Store>,
    /// The store, if it is in memory.
    memory: Option<Arc<MemoryStore>>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) engine: Engine,
    pub(super) inbox: Inbox,
    /// Whether the instance has done anything yet.
    pub(super) started: bool,
    /// Whether the instance is shutting down, and takes no more work.
    pub(super) stopping: bool,
    /// Handlers that run on while time passes.
    pub(super) slow: BTreeSet<Attempt>,
    /// Whether an instance crashed, which the others have to notice.
    pub(super) crashed: bool,
    pub(super) handler_timeout: Option<Duration>,
}

impl TestBell {
    /// Starts an instance from this builder, at this time. Replaces its database by a store in memory, and its clock.
    pub async fn start(builder: Builder, now: impl IntoTime) -> TestBell {
        let memory = Arc::new(MemoryStore::new());
        TestBell::open(builder, Arc::clone(&memory) as _, Some(memory), now.into_time()).await
    }

    /// Like [`TestBell::start`], on a store that the test has opened: for code that writes jobs within its own
    /// transactions, which needs a real database. A [`SqliteStore`](crate::SqliteStore) on a temporary file is quick.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use everbell::testing::TestBell;
    /// # use everbell::{Everbell, SqliteStore};
    /// # async fn test() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = Arc::new(SqliteStore::open("/tmp/test.db".as_ref()).await?);
    /// let test = TestBell::start_on(Arc::clone(&store) as _, Everbell::builder(), "2027-01-01T00:00:00Z").await;
    /// // The code under test calls `bell.jobs().create_in(&mut tx, &schedule)`; `test.advance_to(…)` fires the job.
    /// # Ok(())
    /// # }
    /// ```
    pub async fn start_on(store: Arc<dyn Store>, builder: Builder, now: impl IntoTime) -> TestBell {
        TestBell::open(builder, store, None, now.into_time()).await
    }

    async fn open(
        builder: Builder,
        store: Arc<dyn Store>,
        memory: Option<Arc<MemoryStore>>,
        now: Timestamp,
    ) -> TestBell {
        let clock = Arc::new(ManualClock::new(now));
        if let Some(memory) = &memory {
            memory.set_now(now);
        }
        let builder = builder.store(Arc::clone(&store)).clock(Arc::clone(&clock) as _);
        let bell = builder.build().await.unwrap_or_else(|error| panic!("{error}"));
        let engine = instance(&bell);
        let (started, stopping, crashed) = (false, false, false);
        let (inbox, slow, handler_timeout) = (Inbox::default(), BTreeSet::new(), None);
        let mut test =
            TestBell { bell, store, memory, clock, engine, inbox, started, stopping, slow, crashed, handler_timeout };
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

    /// Sets how long a handler may take, in real time, before the clock moves on while it works.
    ///
    /// By default that is 10 s; for a handler that waits in [`Run::canceled`](crate::Run::canceled), 1 s.
    pub fn handler_timeout(&mut self, timeout: Duration) {
        self.handler_timeout = Some(timeout);
    }

    /// Returns the next times at which a job fires, in its zone.
    pub async fn next_fires(&self, job: &str, count: usize) -> Vec<String> {
        let fires = self.jobs().next_fires(job, count).await.unwrap_or_else(|error| panic!("{error}"));
        fires.iter().map(ToString::to_string).collect()
    }

    /// Makes the next call of the store fail, before or after its work. Fails the test on a store that is not in memory.
    #[track_caller]
    pub fn fail_next(&self, point: FaultPoint) {
        let Some(memory) = &self.memory else { panic!("only the store in memory, of `TestBell::start`, can fail so") };
        memory.fail_next(point);
    }

    /// Moves the clocks.
    pub(super) fn set_time(&self, now: Timestamp) {
        self.clock.set(now);
        if let Some(memory) = &self.memory {
            memory.set_now(now);
        }
    }
}

/// Polling is off: the test knows when something will happen.
pub(super) fn instance(bell: &Everbell) -> Engine {
    let options = EngineOptions { poll: Duration::MAX, linger: Duration::ZERO, ..bell.options().clone() };
    let mut engine = bell.engine_with(options);
    // Time passes in leaps, in which this instance is alive all the same.
    engine.heartbeat.assume_alive_between_beats();
    engine
}
