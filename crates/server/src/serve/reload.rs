//! Reloading the configuration: `SIGHUP`, or `POST /config/reload`.
//!
//! Everything is read and checked first, targets and channels are made, and conflicts with other owners of jobs are looked
//! for: until then nothing has changed. New credentials of the database are tried and taken first, because the old ones may be
//! worth nothing any more. Then jobs are synced and targets replaced ([`Everbell::reload`]), and the rest
//! follows, which cannot fail. Settings that are used when the server starts stay as they were, and are reported.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use async_trait::async_trait;
use everbell::{BuildError, CalendarAction, CalendarStep, Everbell, SyncAction, changes_only_credentials};
use everbell_core::Json;
use everbell_http::{App, Reload, ReloadError, audit_entry};
use everbell_observe::{Metrics, logs};
use everbell_wire::reload::ConfigPart;
use everbell_wire::{ConfigChange, Reloaded};
use tokio::sync::watch;

use super::stored::Stored;
use super::{builder, first_token, options, warnings};
use crate::config::{Config, Environment, ServeFlags};
use crate::notify::{NOTIFIER, Notifications, evaluates};
use crate::targets::{Supervisor, TargetSettings};

/// Settings that a reload applies: a section, or one of its keys. Blocks are always applied.
const RELOADED: [&str; 13] = [
    "api.require_if_match",
    "api.run_now_overlap_status",
    "auth",
    "jobs.adopt",
    "jobs.removed",
    "log.level",
    "server.public_url",
    "server.trust_proxy",
    "shell",
    "targets",
    "ui.environment",
    "target",
    "job",
];

/// The parts of a running server that a reload replaces.
pub(super) struct Reloader {
    pub(super) flags: ServeFlags,
    pub(super) environment: Environment,
    /// The configuration at the start, of which everything that needs a restart is in use.
    pub(super) started: Config,
    /// The newest configuration. Locked while another one is read and applied.
    pub(super) current: tokio::sync::Mutex<Config>,
    pub(super) bell: Everbell,
    pub(super) app: Arc<App>,
    pub(super) metrics: Metrics,
    pub(super) supervisor: Programs,
    pub(super) notifications: watch::Sender<Notifications>,
    pub(super) log: logs::FilterHandle,
    /// Targets that admins define, as this instance has them.
    pub(super) stored: RwLock<Arc<Stored>>,
}

/// The supervisor of programs, started when the first target needs it.
#[derive(Clone, Default)]
pub(super) struct Programs(Arc<Mutex<Option<Supervisor>>>);

impl Programs {
    /// Returns the supervisor that the targets of the file and these stored ones need.
    pub(super) fn supervisor(&self, config: &Config, stored: &[TargetSettings]) -> Supervisor {
        let mut started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*started {
            Some(supervisor) => supervisor.clone(),
            None if config.server.role.schedules()
                && config.targets.iter().chain(stored).any(TargetSettings::runs_programs) =>
            {
                started.insert(Supervisor::start()).clone()
            }
            None => Supervisor::none(),
        }
    }
}

#[async_trait]
impl Reload for Reloader {
    async fn reload(&self, actor: &str, dry_run: bool) -> Result<Reloaded, ReloadError> {
        let mut current = self.current.lock().await;
        let read = Config::load(&self.flags, &self.environment);
        let read = read.map_err(|error| {
            ReloadError::Invalid(error.problems.iter().map(|problem| format!("{problem}")).collect())
        })?;
        if read.file.is_none()
            && let Some(file) = &current.file
        {
            return Err(ReloadError::Invalid(vec![format!("the configuration file {file} is gone")]));
        }
        let needs_restart = needs_restart(&self.started, &read);
        let mut next = with_settings_in_use(read, &self.started, &current);
        if next.file.is_none() {
            next.schedules.clone_from(&current.schedules);
        }
        let invalid = |problem: String| ReloadError::Invalid(vec![problem]);
        let notifications = next
            .notifications()
            .map_err(|(field, problem)| invalid(format!("a notification channel: {field}: {problem}")))?;
        let stored = Stored::load(&next, &self.environment, &**self.bell.store()).await.map_err(ReloadError::Store)?;
        let supervisor = if dry_run { Supervisor::none() } else { self.supervisor.supervisor(&next, &stored.settings) };
        let builder =
            builder(&next, &stored.settings, &self.metrics, &supervisor).map_err(|error| invalid(error.to_string()))?;
        let mut changes = changes(&current, &next);
        if !dry_run && next.database != current.database {
            self.renew_credentials(&next).await?;
        }
        let synced = if dry_run { self.bell.plan_reload(builder).await } else { self.bell.reload(builder).await };
        let synced = synced.map_err(|error| match error {
            BuildError::Invalid(problems) | BuildError::Owned(problems) => ReloadError::Invalid(problems),
            BuildError::Store(error) => ReloadError::Store(error),
            other => invalid(other.to_string()),
        })?;
        changes.extend(synced.calendars.iter().filter(|step| step.action.is_change()).map(calendar_change));
        changes.extend(synced.steps.iter().filter(|step| step.action.is_change()).map(job_change));
        let reloaded = Reloaded {
            dry_run,
            file: next.file.clone(),
            instance: format!("{}:{}", self.bell.options().host, std::process::id()),
            changes,
            needs_restart,
            warnings: next.warnings.iter().cloned().chain(synced.steps.iter().filter_map(job_warning)).collect(),
        };
        if !dry_run {
            self.apply(&next, notifications, actor, &reloaded).await;
            self.set_stored(stored);
            *current = next;
        }
        Ok(reloaded)
    }
}

impl Reloader {
    /// Fails, and changes nothing, if they do not work.
    async fn renew_credentials(&self, next: &Config) -> Result<(), ReloadError> {
        let renewed = self.bell.renew_credentials(next.database.reveal()).await;
        renewed.map_err(|error| ReloadError::Invalid(vec![format!("database.url: {error}")]))
    }

    /// Applies what cannot fail, and says so.
    async fn apply(&self, next: &Config, notifications: Notifications, actor: &str, reloaded: &Reloaded) {
        if next.auth.admin_token.is_none()
            && let Err(error) = first_token::ensure(&self.bell, next).await
        {
            tracing::error!("the configuration no longer has an admin token, and none could be created: {error}");
        }
        self.app.replace(options::api(next), next.auth.admin_token.as_ref(), options::duties(next));
        self.notifications.send_replace(notifications);
        if let Err(error) = self.log.set(next.log.filter.clone()) {
            tracing::error!(%error, "could not change the log level");
        }
        warnings::log(next);
        reloaded.warnings.iter().filter(|one| !next.warnings.contains(one)).for_each(|one| tracing::warn!("{one}"));
        for ConfigChange { part, name, change } in &reloaded.changes {
            tracing::info!("configuration reloaded: {part} {name}: {change}");
        }
        if reloaded.changes.is_empty() {
            tracing::info!("configuration reloaded: nothing changed");
        }
        for key in &reloaded.needs_restart {
            tracing::warn!("`{key}` has changed; restart the server to apply it");
        }
        let mut entry = audit_entry::new_entry(actor, "config.reload", "config".to_owned(), self.bell.now());
        let after = serde_json::json!({ "changes": reloaded.changes, "needsRestart": reloaded.needs_restart });
        entry.after = Json::parse("audit", &after.to_string()).ok();
        if let Err(error) = self.bell.store().append_audit(&entry).await {
            tracing::error!(%error, "could not write the reload to the audit trail");
        }
    }

    /// Reloads at every signal, forever.
    pub(super) async fn follow(&self, mut signals: watch::Receiver<u32>) {
        while signals.changed().await.is_ok() {
            tracing::info!("reloading the configuration");
            match self.reload("everbell", false).await {
                Ok(_) => {}
                Err(ReloadError::Invalid(problems)) => {
                    for problem in &problems {
                        tracing::error!("{problem}");
                    }
                    tracing::error!("the configuration was not reloaded; nothing was changed");
                }
                Err(ReloadError::Store(error)) => {
                    tracing::error!(%error, "the configuration was not reloaded; send the signal again");
                }
            }
        }
        std::future::pending::<()>().await;
    }
}

/// The new configuration with those settings of the start that only a restart changes. The address of the database may
/// have other credentials than the current one.
fn with_settings_in_use(next: Config, started: &Config, current: &Config) -> Config {
    let mut engine = started.engine.clone();
    engine.roles.retain(|role| role != NOTIFIER);
    if started.server.role.schedules() && evaluates(&next.rules) {
        engine.roles.push(NOTIFIER.to_owned());
    }
    let mut server = started.server.clone();
    server.public_url.clone_from(&next.server.public_url);
    server.trust_proxy = next.server.trust_proxy;
    let mut api = started.api.clone();
    api.require_if_match = next.api.require_if_match;
    api.run_now_overlap_status = next.api.run_now_overlap_status;
    let mut ui = started.ui.clone();
    ui.environment.clone_from(&next.ui.environment);
    let mut jobs = next.jobs;
    jobs.app.clone_from(&started.jobs.app);
    let renews = changes_only_credentials(current.database.reveal(), next.database.reveal());
    let database = if renews { next.database.clone() } else { current.database.clone() };
    let connect = started.connect.clone();
    Config { engine, server, api, ui, jobs, database, connect, metrics: started.metrics, ..next }
}

/// The keys whose values differ from those at the start and that a reload does not apply.
fn needs_restart(started: &Config, next: &Config) -> Vec<String> {
    let is_same_database = started.database == next.database
        || changes_only_credentials(started.database.reveal(), next.database.reveal());
    let is_reloaded = |key: &str| {
        let section = key.split(['.', ' ']).next().unwrap_or_default();
        RELOADED.iter().any(|one| *one == key || *one == section)
            || !SECTIONS.contains(&section)
            || (is_same_database && key.starts_with("database.url"))
    };
    let value =
        |config: &Config, key: &str| config.sources.iter().find(|one| one.key == key).map(|one| one.value.clone());
    let keys = next.sources.iter().map(|shown| &shown.key).filter(|key| !is_reloaded(key));
    let mut changed: Vec<String> = keys.filter(|key| value(started, key) != value(next, key)).cloned().collect();
    if !is_same_database && !changed.iter().any(|key| key.starts_with("database.url")) {
        changed.push("database.url".to_owned());
    }
    changed
}

/// The sections of the configuration, apart from its blocks.
const SECTIONS: [&str; 12] =
    ["server", "database", "api", "ui", "auth", "engine", "retention", "log", "metrics", "jobs", "shell", "targets"];

/// The changes besides those of jobs.
fn changes(before: &Config, after: &Config) -> Vec<ConfigChange> {
    let mut changes = Vec::new();
    compare(&ConfigPart::Target, &before.targets, &after.targets, |target| &target.label, &mut changes);
    compare(&ConfigPart::Notify, &before.channels, &after.channels, |channel| &channel.name, &mut changes);
    compare(&ConfigPart::Rule, &before.rules, &after.rules, |rule| &rule.name, &mut changes);
    compare(&ConfigPart::Template, &before.templates, &after.templates, |template| &template.name, &mut changes);
    let settings = [
        ("api.require_if_match", before.api.require_if_match != after.api.require_if_match),
        ("api.run_now_overlap_status", before.api.run_now_overlap_status != after.api.run_now_overlap_status),
        ("auth.admin_token", before.auth.admin_token != after.auth.admin_token),
        ("auth.metrics_token", before.auth.metrics_token != after.auth.metrics_token),
        ("auth.run_history", before.auth.run_history != after.auth.run_history),
        ("database.url", before.database != after.database),
        ("jobs.adopt", before.jobs.adopt != after.jobs.adopt),
        ("jobs.removed", before.jobs.removed != after.jobs.removed),
        ("log.level", before.log.filter.to_string() != after.log.filter.to_string()),
        ("server.public_url", before.server.public_url != after.server.public_url),
        ("server.trust_proxy", before.server.trust_proxy != after.server.trust_proxy),
        ("targets", before.target_rules != after.target_rules),
        ("ui.environment", before.ui.environment != after.ui.environment),
    ];
    let settings = settings.into_iter().filter(|(_, is_changed)| *is_changed);
    changes.extend(settings.map(|(name, _)| change(ConfigPart::Setting, name, "changed")));
    changes
}

/// Notes which of these were added, changed or removed.
fn compare<T: PartialEq>(
    part: &ConfigPart,
    before: &[T],
    after: &[T],
    name: impl Fn(&T) -> &String,
    changes: &mut Vec<ConfigChange>,
) {
    for one in after {
        match before.iter().find(|other| name(other) == name(one)) {
            None => changes.push(change(part.clone(), name(one), "added")),
            Some(other) if other != one => changes.push(change(part.clone(), name(one), "changed")),
            Some(_) => {}
        }
    }
    let gone = before.iter().filter(|one| !after.iter().any(|other| name(other) == name(one)));
    changes.extend(gone.map(|one| change(part.clone(), name(one), "removed")));
}

fn change(part: ConfigPart, name: &str, change: &str) -> ConfigChange {
    ConfigChange { part, name: name.to_owned(), change: change.to_owned() }
}

/// Describes a job that was left as it is, if a person should know.
fn job_warning(step: &everbell::SyncStep) -> Option<String> {
    let is_warning =
        matches!(step.action, SyncAction::Edited { .. } | SyncAction::Held { .. } | SyncAction::Unowned { .. });
    is_warning.then(|| step.to_string().split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The change of a calendar.
fn calendar_change(step: &CalendarStep) -> ConfigChange {
    let words = match &step.action {
        CalendarAction::Create => "added".to_owned(),
        CalendarAction::Replace { replaces_edit_by: Some(by), .. } => format!("changed, replaces the edit by {by}"),
        _ => "changed".to_owned(),
    };
    change(ConfigPart::Calendar, &step.name, &words)
}

/// The change of a job: its step without the mark and the key.
fn job_change(step: &everbell::SyncStep) -> ConfigChange {
    let text = step.to_string();
    let words: Vec<&str> = text.split_whitespace().skip(1).filter(|word| *word != step.key.as_str()).collect();
    change(ConfigPart::Job, step.key.as_str(), &words.join(" "))
}
