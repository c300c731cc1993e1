//! `everbell serve`: opens the database, serves the API and the web UI, and runs the scheduler until it is asked to
//! stop.

mod copies;
mod descriptors;
mod first_token;
mod greeting;
mod options;
mod reload;
mod signals;
mod stored;
mod warnings;

use std::pin::Pin;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use everbell::{BuildError, Builder, CalendarAction, Everbell, Source, StoreError, SyncAction};
use everbell_core::store::{JobFilter, PageRequest, Store};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::config::{Config, Environment, ServeFlags};
use crate::notify::{self, Notifications};
use crate::targets::{Problem, Supervisor, TargetSettings};
use everbell_cli::{CliError, Exit};
use everbell_http::{self as http, App, Pages};
use everbell_observe::{Metrics, Notifier, Timed, logs};
use everbell_ui::Ui;
use reload::{Programs, Reloader};
use signals::Signals;
use stored::Stored;

/// How long requests that are being answered may take to end when everything else has.
const LAST_REQUESTS_TIMEOUT: Duration = Duration::from_secs(6);
/// How long closing the database may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the last lines of the log may take to be read.
const LOG_FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Where the configuration comes from, to read it again.
pub(crate) struct Origin {
    pub(crate) flags: ServeFlags,
    pub(crate) environment: Environment,
}

/// Runs until it is asked to stop.
pub(crate) fn run(config: &Config, origin: Origin) -> Result<Exit, CliError> {
    let (log, filter) = logs::init(config.log.format, config.log.filter.clone())
        .map_err(|error| CliError::Failed { message: format!("cannot start logging: {error}"), hint: None })?;
    warnings::log(config);
    let metrics = if config.metrics.per_job { Metrics::with_jobs() } else { Metrics::new() };
    metrics.watch_log(&log);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(Box::pin(open_and_serve(config, origin, metrics, filter)));
    // What is left is blocking and would be waited for.
    runtime.shutdown_background();
    log.flush(LOG_FLUSH_TIMEOUT);
    ended
}

/// Opens the database, works with it, and closes it, however the work ended: an orderly end leaves the whole database in
/// its file.
async fn open_and_serve(
    config: &Config,
    origin: Origin,
    metrics: Metrics,
    filter: logs::FilterHandle,
) -> Result<Exit, CliError> {
    let signals = signals::listen()?;
    // Before anything is created: a second start by mistake leaves no trace.
    let listener = TcpListener::bind(config.server.listen).await.map_err(|error| CliError::Failed {
        message: format!("cannot listen on {}: {error}", config.server.listen),
        hint: Some("another process may be using this port; choose another with `--listen ADDRESS:PORT`".to_owned()),
    })?;
    let store = everbell::connect_with(config.database.reveal(), &config.connect);
    let store = store.await.map_err(|error| cannot_build(&error.into()))?;
    let config = &without_demo(config, &*store).await?;
    let start = Start { config, origin, metrics, filter, signals };
    let ended = start.serve(listener, Arc::clone(&store)).await;
    if !matches!(ended, Ok(Exit::Interrupted)) {
        close(&*store).await;
    }
    if matches!(ended, Ok(Exit::Success)) {
        tracing::info!("stopped");
    }
    ended
}

async fn close(store: &dyn Store) {
    match tokio::time::timeout(CLOSE_TIMEOUT, store.close()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "could not close the database cleanly"),
        Err(_) => {
            tracing::warn!("the database was still busy and was not closed cleanly; the next start will repair it");
        }
    }
}

/// Without a file, the job `demo` is for a new database: one with jobs was meant for another configuration.
async fn without_demo(config: &Config, store: &dyn Store) -> Result<Config, CliError> {
    let mut config = config.clone();
    let any = PageRequest { limit: 1, after: None };
    if config.file.is_none() {
        let jobs = store.list_jobs(&JobFilter::default(), &any).await;
        let jobs = jobs.map_err(|error| CliError::Failed { message: error.to_string(), hint: None })?;
        if !jobs.items.is_empty() {
            config.schedules.clear();
        }
    }
    Ok(config)
}

/// Everything that a server starts with, besides its database.
struct Start<'a> {
    config: &'a Config,
    origin: Origin,
    metrics: Metrics,
    filter: logs::FilterHandle,
    signals: Signals,
}

impl Start<'_> {
    async fn serve(self, listener: TcpListener, store: Arc<dyn Store>) -> Result<Exit, CliError> {
        let Start { config, origin, metrics, filter, signals } = self;
        if config.server.role.schedules() {
            copies::check(&*store, config).await?;
        }
        let supervisor = Programs::default();
        let stored = Stored::load(config, &origin.environment, &*store).await;
        let stored = stored.map_err(|error| cannot_build(&error.into()))?;
        let bell = build(config, &stored.settings, &metrics, &supervisor, store).await?;
        let notifications = config.notifications().map_err(|(field, problem): Problem| CliError::Failed {
            message: format!("a notification channel: {field}: {problem}"),
            hint: Some("`everbell config check` lists all problems".to_owned()),
        })?;
        let (notifications, newest) = watch::channel(notifications);
        let address = listener.local_addr()?;
        let way = first_token::ensure(&bell, config).await?;
        greeting::print(config, address, &way)?;

        let (end, ended) = watch::channel(false);
        let (options, duties) = (options::api(config), options::duties(config));
        let app =
            App::new(options, config.auth.admin_token.as_ref(), duties, bell.clone(), metrics.clone(), ended.clone());
        let app = Arc::new(app);
        let reloader = Arc::new(Reloader {
            flags: origin.flags,
            environment: origin.environment,
            started: config.clone(),
            current: tokio::sync::Mutex::new(config.clone()),
            bell: bell.clone(),
            app: Arc::clone(&app),
            metrics,
            supervisor,
            notifications,
            log: filter,
            stored: RwLock::new(Arc::new(Stored::default())),
        });
        reloader.begin_with(stored);
        app.reload_with(Arc::clone(&reloader) as _);
        app.edit_targets_with(Arc::clone(&reloader) as _);
        let parts = Parts { config, bell, app, reloader, newest, signals };
        parts.run(listener, end, ended).await
    }
}

/// The parts of a server that is ready to work.
struct Parts<'a> {
    config: &'a Config,
    bell: Everbell,
    app: Arc<App>,
    reloader: Arc<Reloader>,
    newest: watch::Receiver<Notifications>,
    signals: Signals,
}

impl Parts<'_> {
    /// Works until it is asked to stop, and ends everything in order.
    async fn run(
        self,
        listener: TcpListener,
        end: watch::Sender<bool>,
        ended: watch::Receiver<bool>,
    ) -> Result<Exit, CliError> {
        let Parts { config, bell, app, reloader, newest, signals } = self;
        let address = listener.local_addr()?;
        let pages = app.options().has_pages().then(|| Arc::new(Ui::new(&app)) as Arc<dyn Pages>);
        let limits = descriptors::limits(config);
        let notifier = Arc::new(Notifier::from_env());
        let watchdog = tokio::spawn(watchdog(Arc::clone(&notifier)));
        let reloads = signals.reloads.clone();
        let reloading = tokio::spawn(async move { tokio::join!(reloader.follow(reloads), reloader.follow_targets()) });
        let stopping = async {
            signals.stopped(1).await;
            tracing::info!("stopping: taking no more work; send a second signal to exit at once");
            app.metrics.pulse().stop();
            notifier.stopping();
            // From here on a reload would only be in the way.
            reloading.abort();
        };
        // It has begun before the first request can ask what it serves.
        let working = work(config, &bell, stopping);
        let serving =
            tokio::spawn(http::listen::serve(listener, http::router(&app, pages), limits, app.metrics.clone(), ended));
        let watched = Arc::clone(&app);
        let watching = tokio::spawn(async move { watched.live.watch(&watched.bell).await });
        notifier.ready();
        notifier.status(&format!("listening on {address}"));

        let worked = tokio::select! {
            () = signals.stopped(2) => return Ok(Exit::Interrupted),
            worked = working => worked,
            never = notify::run(&bell, newest) => match never {},
        };
        end.send_replace(true);
        let last = tokio::time::Instant::now() + LAST_REQUESTS_TIMEOUT;
        for mut task in [serving, watching] {
            match tokio::time::timeout_at(last, &mut task).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::error!(%error, "a part of the server failed"),
                Err(_) => task.abort(),
            }
        }
        if tokio::time::timeout_at(last, app.denials.flush(&bell)).await.is_err() {
            tracing::warn!("could not write the last denied requests to the audit trail");
        }
        watchdog.abort();
        worked?;
        Ok(Exit::Success)
    }
}

/// Returns a builder with the targets and jobs of a configuration, and with these stored targets.
fn builder(
    config: &Config,
    stored: &[TargetSettings],
    metrics: &Metrics,
    supervisor: &Supervisor,
) -> Result<Builder, CliError> {
    let mut builder = Everbell::builder()
        .options(config.engine.clone())
        .source(Source::Config)
        .app(&config.jobs.app)
        .removed(config.jobs.removed)
        .adopt(config.jobs.adopt)
        .schedules(config.schedules.iter().cloned());
    for calendar in &config.calendars {
        builder = builder.calendar(&calendar.name, calendar.content.clone());
    }
    if !config.target_rules.editable.is_empty() {
        // Their targets may be stored, also later.
        let wanted = config.schedules.iter().filter_map(|schedule| schedule.target_name().map(str::to_owned));
        builder = wanted.fold(builder, Builder::knows);
    }
    for target in config.targets.iter().chain(stored) {
        let action = target.action(metrics, supervisor).map_err(|problems: Problem| CliError::Failed {
            message: format!("target `{}`: {}: {}", target.label, problems.0, problems.1),
            hint: Some("`everbell config check` lists all problems".to_owned()),
        })?;
        builder = builder.checked_action(&target.label, action, target.options, target.payload_check());
    }
    Ok(builder)
}

/// Brings the database up to the targets and jobs of the configuration.
async fn build(
    config: &Config,
    stored: &[TargetSettings],
    metrics: &Metrics,
    supervisor: &Programs,
    store: Arc<dyn Store>,
) -> Result<Everbell, CliError> {
    let builder = builder(config, stored, metrics, &supervisor.supervisor(config, stored))?;
    let builder = builder.store(Arc::new(Timed::new(store, metrics)));
    let observer = metrics.clone();
    let bell =
        builder.observe(move |event| observer.observe(event)).build().await.map_err(|error| cannot_build(&error))?;
    for step in &bell.synced().calendars {
        match &step.action {
            action if action.is_change() => tracing::info!("{step}"),
            CalendarAction::Held { .. } => tracing::warn!("{step}"),
            _ => {}
        }
    }
    for step in &bell.synced().steps {
        match &step.action {
            action if action.is_change() => tracing::info!("{step}"),
            SyncAction::Edited { .. } | SyncAction::Held { .. } | SyncAction::Unowned { .. } => {
                tracing::warn!("{step}");
            }
            _ => {}
        }
    }
    Ok(bell)
}

fn cannot_build(error: &BuildError) -> CliError {
    let hint = match error {
        BuildError::Owned(_) => {
            "rename the job, give servers with different files different `app` names in `[jobs]`, or set `adopt = true` there"
        }
        BuildError::Invalid(_) => "`everbell config check` lists all problems",
        BuildError::Store(StoreError::Unavailable { .. }) => {
            "check that the database is running and that `database.url` is correct; `everbell config show` shows the value in use"
        }
        _ => "`everbell config show` shows which database is used",
    };
    CliError::Failed { message: error.to_string(), hint: Some(hint.to_owned()) }
}

/// Says that this process lives, as often as systemd wants to hear it.
async fn watchdog(notifier: Arc<Notifier>) {
    let Some(interval) = notifier.watchdog_interval() else { return };
    loop {
        notifier.watchdog();
        tokio::time::sleep(interval).await;
    }
}

/// Runs the scheduler, if this process has that role, until it is asked to stop.
fn work<'a>(
    config: &Config,
    bell: &'a Everbell,
    stopping: impl Future<Output = ()> + 'a,
) -> Pin<Box<dyn Future<Output = Result<(), CliError>> + 'a>> {
    if !config.server.role.schedules() {
        return Box::pin(async {
            bell.announce_until(&["api"], stopping).await;
            Ok(())
        });
    }
    let failed = |error: everbell::EngineFailed| CliError::Failed { message: error.to_string(), hint: None };
    let working = bell.run_until(stopping);
    Box::pin(async move { working.await.map_err(failed) })
}
