//! [`Everbell`]: everything together, ready to run.

use std::convert::Infallible;
use std::future::Future;
use std::sync::{Arc, Weak};

use everbell_core::SEEN_EVERY;
use everbell_core::store::{Instance, Store, StoreResult};
use jiff::Timestamp;
use tokio::sync::Mutex;
use tracing::warn;

use crate::client::{Calendars, Context, Freezes, Jobs, MAX_NAMED_JOBS, Orgs, Reports, Runs, TargetReport};
use crate::clock::Clock;
use crate::engine::{Engine, EngineFailed, EngineOptions};
use crate::events::EventStream;
use crate::inbox::{self, Inbox, Left};
use crate::parts::Parts;
use crate::sync::{SyncPlan, Syncer};
use crate::targets::{Serving, Targets};

/// Durable cron inside of a program. Cheap to clone; all clones share one instance.
///
/// Jobs can be created and changed at once; they fire while [`Everbell::run_until`] runs, here or on another instance
/// with the same database.
#[derive(Clone, Debug)]
pub struct Everbell {
    pub(crate) parts: Arc<Parts>,
    pub(crate) declared: Arc<Declared>,
}

/// The jobs that the program declares.
#[derive(Debug)]
pub(crate) struct Declared {
    /// Syncs them, one sync at a time.
    pub(crate) syncer: Mutex<Syncer>,
    /// The changes of the first sync.
    synced: SyncPlan,
}

/// An [`Everbell`] that does not keep itself alive.
#[derive(Clone, Debug)]
pub(crate) struct WeakBell {
    parts: Weak<Parts>,
    declared: Arc<Declared>,
}

impl WeakBell {
    /// Returns the bell, unless its program dropped it.
    pub(crate) fn upgrade(&self) -> Option<Everbell> {
        Some(Everbell { parts: self.parts.upgrade()?, declared: Arc::clone(&self.declared) })
    }
}

impl Everbell {
    pub(crate) fn new(parts: Arc<Parts>, syncer: Syncer, done: SyncPlan) -> Everbell {
        Everbell { parts, declared: Arc::new(Declared { syncer: Mutex::new(syncer), synced: done }) }
    }

    pub(crate) fn downgrade(&self) -> WeakBell {
        WeakBell { parts: Arc::downgrade(&self.parts), declared: Arc::clone(&self.declared) }
    }

    /// Fires schedules and runs handlers until `shutdown` resolves. Then it takes no more work, lets handlers finish
    /// for a while, stops the others, and records everything. Dropping the future ends all of it at once.
    ///
    /// Pass [`shutdown_signal()`](crate::shutdown_signal()) to stop on SIGTERM and ctrl-c; the guide
    /// [`shutdown`](crate::guides::shutdown) has the details.
    ///
    /// It may be called again after it has ended, and several times at once: each call is a separate instance.
    pub fn run_until(&self, shutdown: impl Future<Output = ()>) -> impl Future<Output = Result<(), EngineFailed>> {
        let engine = self.engine();
        engine.shared.begin(&self.parts.starting);
        // A large future, which others are put into.
        let engine = Box::pin(engine.run_until(shutdown));
        async move {
            tokio::select! {
                biased;
                ended = engine => ended,
                never = Box::pin(inbox::serve(&self.parts)) => match never {},
                never = Box::pin(self.keep_declared()) => match never {},
            }
        }
    }

    /// Lists this process as an instance with these roles until `shutdown` resolves. It takes no work and serves no
    /// target: for a process that only answers requests.
    pub async fn announce_until(&self, roles: &[&str], shutdown: impl Future<Output = ()>) {
        let Parts { store, clock, options, events, .. } = &*self.parts;
        let roles = roles.iter().map(|role| (*role).to_owned()).collect();
        let options = EngineOptions { roles, ..options.clone() };
        let none = Serving::new(Targets::default());
        let engine = Engine::new(Arc::clone(store), Arc::clone(clock), none, options, events.clone());
        tokio::select! {
            () = Box::pin(engine.announce_until(shutdown)) => {}
            never = Box::pin(self.keep_declared()) => match never {},
        }
    }

    fn engine(&self) -> Engine {
        self.engine_with(self.parts.options.clone())
    }

    /// Creates an engine that has not started.
    pub(crate) fn engine_with(&self, options: EngineOptions) -> Engine {
        let Parts { store, clock, targets, events, .. } = &*self.parts;
        Engine::new(Arc::clone(store), Arc::clone(clock), targets.clone(), options, events.clone())
    }

    /// Answers requests of the inbox, for a test that moves time.
    pub(crate) async fn answer_inbox(&self, inbox: &mut Inbox) -> StoreResult<Left> {
        inbox.answer_some(&self.parts).await
    }

    /// Returns the options of this program's instances.
    pub fn options(&self) -> &EngineOptions {
        &self.parts.options
    }

    /// Lists, creates and changes jobs.
    pub fn jobs(&self) -> Jobs {
        Jobs::new(Context::new(&self.parts))
    }

    /// Lists, cancels and repeats runs.
    pub fn runs(&self) -> Runs {
        Runs::new(Context::new(&self.parts))
    }

    /// Lists and changes orgs: tenants, for each of whom a job fires at the org's own local time.
    pub fn orgs(&self) -> Orgs {
        Orgs::new(Context::new(&self.parts))
    }

    /// Lists and changes calendars: named sets of days on which jobs fire, or do not.
    pub fn calendars(&self) -> Calendars {
        Calendars::new(Context::new(&self.parts))
    }

    /// Reports over all jobs: outages, next fires, backfills and statistics.
    pub fn reports(&self) -> Reports {
        Reports::new(Context::new(&self.parts))
    }

    /// Lists, announces and ends freezes: times in which schedules do not fire.
    pub fn freezes(&self) -> Freezes {
        Freezes::new(Context::new(&self.parts))
    }

    /// Returns the targets that live instances serve, and the jobs whose target no live instance serves.
    pub async fn targets(&self) -> StoreResult<TargetReport> {
        self.parts.target_report(MAX_NAMED_JOBS).await
    }

    /// Like [`Everbell::targets`], with the names of at most this many jobs, up to 1,000: for callers that need only
    /// counts or examples.
    pub async fn targets_naming(&self, jobs: u32) -> StoreResult<TargetReport> {
        self.parts.target_report(jobs.min(MAX_NAMED_JOBS)).await
    }

    /// Lists all known instances, oldest first; also those that sent no heartbeat lately.
    pub async fn instances(&self) -> StoreResult<Vec<Instance>> {
        self.parts.store.list_instances().await
    }

    /// The time since which an instance must have sent a heartbeat to count as alive: the length of a lease ago.
    pub fn alive_since(&self) -> Timestamp {
        self.parts.alive_since()
    }

    /// Subscribes to the events of this program's instances from now on, without [`Event::Round`](crate::Event::Round). A slow receiver
    /// misses some of them; [`Builder::observe`](crate::Builder::observe) does not.
    pub fn events(&self) -> EventStream {
        EventStream::new(self.parts.events.listen())
    }

    /// Connects to the database with the credentials of another address of it from now on: a rotated password, another role
    /// or certificate. Nothing changes unless they work; connections with the old ones are closed when their transaction ends.
    ///
    /// Only for a PostgreSQL database that was opened from an address. For [`Builder::pool`](crate::Builder::pool), call
    /// `PgPool::set_connect_options`; a password in `PGPASSFILE` is read for each connection, without a call.
    pub async fn renew_credentials(&self, url: &str) -> StoreResult<()> {
        everbell_store::renew_credentials(&*self.parts.store, url).await
    }

    /// Returns what the builder did with the schedules of the program.
    pub fn synced(&self) -> &SyncPlan {
        &self.declared.synced
    }

    /// Returns the store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.parts.store
    }

    /// Returns the clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.parts.clock
    }

    /// Returns the current time, which all instances on the same database share.
    pub fn now(&self) -> Timestamp {
        self.parts.clock.now()
    }

    /// Whether [`Builder::tracing`](crate::Builder::tracing) finds a trace around the caller.
    #[doc(hidden)]
    pub fn is_traced(&self) -> bool {
        self.parts.targets.now().tracing.current().is_some()
    }

    /// Says regularly that this release of the program is running, and repeats a sync that had to wait for another one.
    async fn keep_declared(&self) -> Infallible {
        loop {
            let syncer = self.declared.syncer.lock().await;
            if syncer.can_change()
                && let Err(error) = syncer.keep_up(&self.parts).await
            {
                warn!(%error, "could not sync the declared jobs again; retrying");
            }
            drop(syncer);
            self.parts.clock.sleep(SEEN_EVERY).await;
        }
    }
}
