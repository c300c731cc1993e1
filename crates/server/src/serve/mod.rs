//! `everbell serve`: opens the database, lets everybody in who may, and works until it is told to stop.

mod first_token;
mod greeting;
mod signals;

use std::sync::Arc;

use everbell::{BuildError, Everbell, Source, StoreError};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::cli::{CliError, Exit};
use crate::config::Config;
use crate::http::{self, App};
use crate::observe::{Metrics, Notifier, Timed, logs};
use crate::targets::{Keeper, Kind, Problem, TargetSettings};

pub(crate) use first_token::FILE as TOKEN_FILE;

/// Works until it is told to stop.
pub(crate) fn run(config: &Config) -> Result<Exit, CliError> {
    logs::init(config.log.format, config.log.filter.clone())
        .map_err(|error| CliError::Failed { message: format!("cannot begin to log: {error}"), hint: None })?;
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(Box::pin(serve(config)));
    // What is left is blocking and would be waited for.
    runtime.shutdown_background();
    ended
}

async fn serve(config: &Config) -> Result<Exit, CliError> {
    let signals = signals::listen()?;
    let metrics = if config.metrics.per_job { Metrics::with_jobs() } else { Metrics::new() };
    let bell = build(config, &metrics).await?;
    let listener = TcpListener::bind(config.server.listen).await.map_err(|error| CliError::Failed {
        message: format!("cannot listen on {}: {error}", config.server.listen),
        hint: Some("another process may have this port; choose one with `--listen ADDRESS:PORT`".to_owned()),
    })?;
    let address = listener.local_addr()?;
    let way = first_token::ensure(&bell, config).await?;
    greeting::print(config, &bell, address, &way)?;

    let (end, ended) = watch::channel(false);
    let app = Arc::new(App::new(config, bell.clone(), metrics, ended.clone()));
    let most = config.server.max_connections as usize;
    let serving = tokio::spawn(http::listen::serve(listener, http::router(&app), most, ended));
    let watched = Arc::clone(&app);
    let watching = tokio::spawn(async move { watched.live.watch(&watched.bell).await });
    let notifier = Arc::new(Notifier::from_env());
    notifier.ready();
    notifier.status(&format!("listening on {address}"));
    let watchdog = tokio::spawn(watchdog(Arc::clone(&notifier)));

    let stopping = async {
        signals::told(signals.clone(), 1).await;
        tracing::info!("stopping: taking no more work; a second signal ends at once");
        app.metrics.pulse().stop();
        notifier.stopping();
    };
    let worked = tokio::select! {
        () = signals::told(signals.clone(), 2) => return Ok(Exit::Interrupted),
        worked = work(config, &bell, stopping) => worked,
    };
    end.send_replace(true);
    for task in [serving, watching] {
        if let Err(error) = task.await {
            tracing::error!(%error, "a part of the server broke");
        }
    }
    watchdog.abort();
    worked?;
    tracing::info!("stopped");
    Ok(Exit::Success)
}

/// Opens the database, and brings it up to the targets and jobs of the configuration.
async fn build(config: &Config, metrics: &Metrics) -> Result<Everbell, CliError> {
    let store = everbell::connect(config.database.reveal()).await.map_err(|error| cannot_build(&error.into()))?;
    let mut builder = Everbell::builder()
        .store(Arc::new(Timed::new(store, metrics)))
        .options(config.engine.clone())
        .source(Source::Config)
        .removed(config.jobs.removed)
        .adopt(config.jobs.adopt)
        .schedules(config.schedules.iter().cloned());
    let runs_programs = |target: &TargetSettings| matches!(target.kind, Kind::Command(_));
    let has_programs = config.server.role.schedules() && config.targets.iter().any(runs_programs);
    let keeper = if has_programs { Keeper::start() } else { Keeper::none() };
    for target in &config.targets {
        let action = target.action(metrics, &keeper).map_err(|problems: Problem| CliError::Failed {
            message: format!("target `{}`: {}: {}", target.label, problems.0, problems.1),
            hint: Some("`everbell config check` tells every problem".to_owned()),
        })?;
        builder = builder.action(&target.label, action, target.options);
    }
    let observer = metrics.clone();
    let bell =
        builder.observe(move |event| observer.observe(event)).build().await.map_err(|error| cannot_build(&error))?;
    for step in &bell.synced().steps {
        if step.action.is_change() {
            tracing::info!("{step}");
        }
    }
    Ok(bell)
}

fn cannot_build(error: &BuildError) -> CliError {
    let hint = match error {
        BuildError::Invalid(problems) if problems.iter().any(|problem| problem.contains("is owned by")) => {
            "rename the job, or say `adopt = true` in `[jobs]`"
        }
        BuildError::Invalid(_) => "`everbell config check` tells every problem",
        BuildError::Store(StoreError::Unavailable { .. }) => {
            "see that the database runs and that `database.url` names it; `everbell config show` tells what is used"
        }
        BuildError::Store(_) => "`everbell config show` tells which database is used",
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

/// What this process does besides answering, until it is told to stop.
async fn work(config: &Config, bell: &Everbell, stopping: impl Future<Output = ()>) -> Result<(), CliError> {
    if !config.server.role.schedules() {
        bell.announce_until(&["api"], stopping).await;
        return Ok(());
    }
    let failed = |error: everbell::EngineFailed| CliError::Failed { message: error.to_string(), hint: None };
    bell.run_until(stopping).await.map_err(failed)
}
