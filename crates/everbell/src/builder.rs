//! [`Builder`]: what there shall be, checked as a whole before anything begins.

mod checks;
#[cfg(feature = "tower")]
mod layers;
mod reload;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use everbell_core::calendar::CalendarContent;
use everbell_core::store::Store;
use everbell_core::{Json, Source, Target};
#[cfg(feature = "postgres")]
use everbell_store::postgres::{PgPool, PostgresStore};

use tokio::sync::RwLock;

use crate::app_name;
use crate::bell::Everbell;
use crate::build_error::BuildError;
use crate::clock::{Clock, DatabaseClock};
use crate::engine::{EngineOptions, Starting};
use crate::events::{Event, Events, Observer};
use crate::extract::States;
use crate::handler::{Handler, HandlerFn};
use crate::layer::Layers;
use crate::parts::Parts;
use crate::run_token::RunTokens;
use crate::schedule::Schedule;
use crate::sync::{Removed, SyncPlan, Syncer};
use crate::target_label::TargetLabel;
use crate::targets::{Action, PayloadCheck, Serving, TargetOptions, Targets};
use crate::trace::{Tracing, TracingHook};

/// Describes an [`Everbell`]. Nothing happens before [`Builder::build`].
#[must_use = "nothing happens until it is built"]
pub struct Builder {
    keeping: Option<Keeping>,
    clock: Option<Arc<dyn Clock>>,
    states: States,
    targets: Vec<Registered>,
    known: Vec<String>,
    schedules: Vec<Schedule>,
    calendars: Vec<(String, CalendarContent)>,
    source: Source,
    app: Option<String>,
    removed: Removed,
    adopt: bool,
    options: EngineOptions,
    observers: Vec<Observer>,
    layers: Layers,
    tracing: TracingHook,
    problems: Vec<String>,
}

/// The database.
enum Keeping {
    At(String),
    In(Arc<dyn Store>),
    #[cfg(feature = "postgres")]
    Pool(PgPool),
}

/// A target whose handler waits for the state.
struct Registered {
    name: String,
    options: TargetOptions,
    check: fn(&States) -> Vec<String>,
    check_payload: PayloadCheck,
    erase: Box<dyn FnOnce(Arc<States>) -> Action + Send>,
}

/// The parts of a builder after all checks.
struct Checked {
    keeping: Keeping,
    targets: Targets,
    known: BTreeSet<Target>,
    states: Arc<States>,
    syncer: Syncer,
}

impl Builder {
    pub(crate) fn new() -> Builder {
        Builder {
            keeping: None,
            clock: None,
            states: States::default(),
            targets: Vec::new(),
            known: Vec::new(),
            schedules: Vec::new(),
            calendars: Vec::new(),
            source: Source::Code,
            app: None,
            removed: Removed::default(),
            adopt: false,
            options: EngineOptions::default(),
            observers: Vec::new(),
            layers: Layers::default(),
            tracing: TracingHook::default(),
            problems: Vec::new(),
        }
    }

    /// Sets the database: `sqlite:PATH`, `sqlite::memory:`, or `postgres://user:password@host/database`. It may be that of
    /// your application: tables are in the schema `everbell`, or in that of `?schema=NAME`; on SQLite they have the prefix
    /// `everbell_`.
    pub fn database(mut self, url: impl Into<String>) -> Builder {
        self.keeping = Some(Keeping::At(url.into()));
        self
    }

    /// Sets a pool of the application, instead of [`Builder::database`]: the last call counts. Everbell borrows at most a
    /// half of its connections at once, for one short transaction each, and leaves their sessions as they were; one more
    /// connection, beside the pool, listens for notifications. [`PostgresStore::from_pool`] has the details, and
    /// [`from_pool_with`](PostgresStore::from_pool_with) takes another schema.
    #[cfg(feature = "postgres")]
    pub fn pool(mut self, pool: PgPool) -> Builder {
        self.keeping = Some(Keeping::Pool(pool));
        self
    }

    /// Sets a store that is already open, instead of [`Builder::database`]: the last call counts.
    pub fn store(mut self, store: Arc<dyn Store>) -> Builder {
        self.keeping = Some(Keeping::In(store));
        self
    }

    /// Sets another source of time than the database: for tests.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Builder {
        self.clock = Some(clock);
        self
    }

    /// Adds a value that handlers take as [`State`](crate::State): one of each type.
    pub fn state<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Builder {
        if !self.states.add(value) {
            let name = crate::extract::short_name(std::any::type_name::<T>());
            self.problems.push(format!("there are two states of the type `{name}`"));
        }
        self
    }

    /// Serves a target with a function. The name is a text, or a [`TypedTarget`](crate::TypedTarget), which must have the
    /// type of the function's [`Payload`](crate::Payload).
    pub fn target<A: 'static, M, H>(self, name: impl TargetLabel<A, M>, handler: H) -> Builder
    where
        H: HandlerFn<A> + Handler<A>,
    {
        self.target_with(name, handler, TargetOptions::default())
    }

    /// Serves a target with a function, with limits on concurrency and time.
    pub fn target_with<A: 'static, M, H>(
        mut self,
        name: impl TargetLabel<A, M>,
        handler: H,
        options: TargetOptions,
    ) -> Builder
    where
        H: HandlerFn<A> + Handler<A>,
    {
        let erase = Box::new(move |states| handler.into_action(states));
        let (name, check_payload): (_, PayloadCheck) = (name.into_label(), Arc::new(H::check_payload));
        self.targets.push(Registered { name, options, check: H::check, check_payload, erase });
        self
    }

    /// Serves a target with an [`Action`] that is no function of the program: for crates that bring their own targets.
    pub fn action(self, name: impl Into<String>, action: Action, options: TargetOptions) -> Builder {
        self.checked_action(name, action, options, Arc::new(|_: &Json| Ok(())))
    }

    /// Like [`Builder::action`], with a check that refuses payloads when they are written. Its error continues "the
    /// payload is", such as `no address: …`.
    pub fn checked_action(
        mut self,
        name: impl Into<String>,
        action: Action,
        options: TargetOptions,
        check_payload: PayloadCheck,
    ) -> Builder {
        let (check, erase) = (|_: &States| Vec::new(), Box::new(move |_| action));
        self.targets.push(Registered { name: name.into(), options, check, check_payload, erase });
        self
    }

    /// Names a target that other programs serve, so that this one may schedule it even while none of them is running, for
    /// instance during their deployment. Payloads for it are not checked here; a [`TypedTarget`](crate::TypedTarget) lets
    /// the compiler do that.
    ///
    /// Without this, a target is known if a live instance serves it or if a job already has it. Others are refused,
    /// because they are most likely misspelled.
    pub fn knows(mut self, target: impl Into<String>) -> Builder {
        self.known.push(target.into());
        self
    }

    /// Declares a job. [`Builder::build`] syncs it into the database.
    pub fn schedule(mut self, schedule: Schedule) -> Builder {
        self.schedules.push(schedule);
        self
    }

    /// Declares several jobs.
    pub fn schedules(mut self, schedules: impl IntoIterator<Item = Schedule>) -> Builder {
        self.schedules.extend(schedules);
        self
    }

    /// Declares a calendar, which jobs may name. [`Builder::build`] writes it before the jobs, with all of its days.
    pub fn calendar(mut self, name: impl Into<String>, content: CalendarContent) -> Builder {
        self.calendars.push((name.into(), content));
        self
    }

    /// Sets the kind of owner of the schedules: default [`Source::Code`]. A sync leaves the jobs of other owners alone.
    pub fn source(mut self, source: Source) -> Builder {
        self.source = source;
        self
    }

    /// Sets the name of this program, by which it owns the jobs that it declares. A sync changes, pauses and retires only
    /// the jobs of its own name, so several programs can share a database. The guide
    /// [`instances`](crate::guides::instances) says more.
    ///
    /// Choose one name for all instances and all deployments. The default is the name by which the program was started,
    /// without its folder: a library cannot know the name of the crate that embeds it, and the name of the file itself
    /// may hold a version, to which a stable name links. Executables that declare the same jobs need a common name.
    pub fn app(mut self, name: impl Into<String>) -> Builder {
        self.app = Some(name.into());
        self
    }

    /// Sets how jobs are treated that the program no longer declares: default [`Removed::Keep`].
    pub fn removed(mut self, removed: Removed) -> Builder {
        self.removed = removed;
        self
    }

    /// Sets whether to take over jobs that another owner declared, the API, a configuration file or another program:
    /// default no. Two programs that declare the same job and both adopt it take it from each other at every start, so
    /// leave this on only until the job has moved.
    pub fn adopt(mut self, adopt: bool) -> Builder {
        self.adopt = adopt;
        self
    }

    /// Sets the options of the engine.
    pub fn options(mut self, options: EngineOptions) -> Builder {
        self.options = options;
        self
    }

    /// Calls a function with every [`Event`], when and where it happens: for metrics, which must miss none. The loops
    /// wait for it, so it must be quick and must not block. There may be several.
    pub fn observe(mut self, observer: impl Fn(&Event) + Send + Sync + 'static) -> Builder {
        self.observers.push(Box::new(observer));
        self
    }

    /// Connects the traces of the program: a run that a request asked for, and the run of a one-time job, continue the trace
    /// of that request, here or in the instance that executes them. See [`Tracing`]. The last call counts.
    pub fn tracing(mut self, tracing: impl Tracing) -> Builder {
        self.tracing = TracingHook::new(tracing);
        self
    }

    /// Checks everything, opens the database and brings its schema and the declared jobs up to date.
    ///
    /// Reports all problems at once, before anything is opened.
    pub async fn build(self) -> Result<Everbell, BuildError> {
        let (parts, states, syncer) = self.open().await?;
        let done = syncer.apply(&parts).await?;
        let bell = Everbell::new(parts, syncer, done);
        states.set_bell(bell.downgrade());
        Ok(bell)
    }

    /// Returns what [`Builder::build`] would do with the declared jobs, without doing it. Migrates the schema.
    pub async fn plan(self) -> Result<SyncPlan, BuildError> {
        let (parts, _, syncer) = self.open().await?;
        Ok(syncer.plan(&parts).await?)
    }

    async fn open(mut self) -> Result<(Arc<Parts>, Arc<States>, Syncer), BuildError> {
        let Checked { keeping, targets, known, states, syncer } = self.check()?;
        let store = match keeping {
            Keeping::In(store) => store,
            Keeping::At(url) => everbell_store::connect(&url).await?,
            #[cfg(feature = "postgres")]
            Keeping::Pool(pool) => Arc::new(PostgresStore::from_pool(pool).await?),
        };
        let clock = if let Some(clock) = self.clock { clock } else { Arc::new(DatabaseClock::start(&*store).await?) };
        let (options, events) = (self.options, Events::new(self.observers));
        Ok((
            Arc::new(Parts {
                store,
                clock,
                targets: Serving::new(targets),
                known,
                options,
                events,
                run_tokens: RunTokens::default(),
                starting: Starting::default(),
                declared_calendars: RwLock::new(syncer.declared_calendars()),
            }),
            states,
            syncer,
        ))
    }

    /// Returns the parts that replace those of a running program.
    fn checked_reload(mut self, parts: &Parts) -> Result<(Targets, Arc<States>, Syncer), BuildError> {
        self.keeping = Some(Keeping::In(Arc::clone(&parts.store)));
        let Checked { mut targets, states, syncer, .. } = self.check()?;
        targets.roles = Some(self.options.roles);
        Ok((targets, states, syncer.asked_at(parts.clock.now())))
    }

    fn check(&mut self) -> Result<Checked, BuildError> {
        let mut problems = std::mem::take(&mut self.problems);
        let keeping = self.keeping.take();
        if keeping.is_none() {
            problems.push("a database is missing; say `.database(\"sqlite:everbell.db\")`".to_owned());
        }
        if self.source == Source::Api {
            problems.push("schedules that are declared cannot be owned by `api`".to_owned());
        }
        let app = app_name::check(self.app.as_deref(), &mut problems);
        problems.extend(self.options.problems().iter().map(ToString::to_string));
        let served = self.targets.iter().map(|target| &target.name);
        let names: BTreeSet<String> = served.chain(&self.known).cloned().collect();
        let known = self.check_known(&mut problems);
        let states = Arc::new(std::mem::take(&mut self.states));
        let targets = self.check_targets(&states, &mut problems);
        let schedules = self.check_schedules(&names, &targets, &mut problems);
        let calendars = self.check_calendars(&mut problems);
        match (keeping, app) {
            (Some(keeping), Some(app)) if problems.is_empty() => {
                let syncer = Syncer::new(schedules, (self.source, app), self.removed, self.adopt);
                Ok(Checked { keeping, targets, known, states, syncer: syncer.with_calendars(calendars) })
            }
            _ => Err(BuildError::Invalid(problems)),
        }
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let targets: Vec<&str> = self.targets.iter().map(|target| target.name.as_str()).collect();
        // The address may hold a password.
        f.debug_struct("Builder")
            .field("states", &self.states)
            .field("targets", &targets)
            .field("schedules", &self.schedules)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
