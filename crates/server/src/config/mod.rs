//! The configuration of the server: a file, the environment and flags.
//!
//! ```text
//! defaults < everbell.toml < EVERBELL_… < --flags
//! ```
//!
//! [`fields`] declares every key. [`document`] turns the file into a value with the line of each part, [`layers`] lays
//! the others over it and remembers origins, and [`sections`], [`targets`] and [`jobs`] convert it to types. Nothing
//! stops at the first problem: a [`ConfigError`] has all of them, each with file, line and key.
//!
//! Relative paths, in the file too, start at the working directory: `everbell-data` lies there, and a path on the
//! command line means the same. Nothing here has side effects: no folder is created, no database opened.

mod calendars;
mod document;
mod email;
pub(crate) mod fields;
mod jobs;
mod layers;
mod notify;
mod notify_fields;
mod problem;
mod secrets;
mod sections;
mod settings;
mod shown;
mod stored_targets;
mod targets;
mod templates;
pub(crate) mod variables;

use std::path::{Path, PathBuf};

use everbell::{ConnectOptions, EngineOptions, Schedule};
use everbell_cli::PausedJob;
use everbell_core::Draft;
use everbell_core::alert::Rule;
use everbell_http::{ApiSettings, ConfiguredTarget};
use everbell_wire::Template;
use serde_json::Value;

use crate::notify::{ChannelSettings, NOTIFIER, Notifications, evaluates};
use crate::targets::TargetSettings;
use document::Document;
use everbell_wire::form::{Form, Naming};
use everbell_wire::secret::Secret;
use layers::Layers;

pub(crate) use calendars::CalendarSettings;
pub(crate) use problem::{ConfigError, Problem};
pub(crate) use settings::{AuthSettings, JobsSettings, LogSettings, MetricsSettings, ServerSettings, UiSettings};
pub(crate) use shown::{Shown, callable, without_password};
pub(crate) use stored_targets::{TargetRules, described as described_stored_target};
pub(crate) use variables::Environment;

/// The file that is used if it exists and none is named.
const FILE: &str = "everbell.toml";

/// Longer files are no configuration.
const MAX_FILE_BYTES: u64 = 1 << 24;

/// The configuration of a first start without a file: a job that says hello every minute.
const DEMO: &str = r#"
[[target]]
label = "log"
type = "log"

[[job]]
job_key = "demo"
target = "log"
cron_expression = "* * * * *"
payload = { message = "hello world" }
"#;

/// The values of flags. They override everything else.
#[derive(Clone, Default)]
pub(crate) struct ServeFlags {
    /// The file. It must exist.
    pub(crate) config: Option<PathBuf>,
    pub(crate) listen: Option<String>,
    pub(crate) database: Option<String>,
    pub(crate) role: Option<String>,
    pub(crate) data_dir: Option<String>,
    pub(crate) log_level: Option<String>,
    pub(crate) log_format: Option<String>,
}

impl ServeFlags {
    /// Path of names, name of the flag, and what it says.
    fn values(&self) -> impl Iterator<Item = (&'static str, &'static str, &str)> {
        let all = [
            ("server.listen", "--listen", &self.listen),
            ("database.url", "--database", &self.database),
            ("server.role", "--role", &self.role),
            ("server.dataDir", "--data-dir", &self.data_dir),
            ("log.level", "--log-level", &self.log_level),
            ("log.format", "--log-format", &self.log_format),
        ];
        all.into_iter().filter_map(|(path, flag, value)| Some((path, flag, value.as_deref()?)))
    }
}

/// Everything that the server needs to know, checked as a whole.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) server: ServerSettings,
    /// The address of the database, which may hold a password.
    pub(crate) database: Secret,
    /// How it is used.
    pub(crate) connect: ConnectOptions,
    pub(crate) api: ApiSettings,
    pub(crate) ui: UiSettings,
    pub(crate) auth: AuthSettings,
    /// With the retention, and with the roles of this process.
    pub(crate) engine: EngineOptions,
    pub(crate) log: LogSettings,
    pub(crate) metrics: MetricsSettings,
    pub(crate) jobs: JobsSettings,
    pub(crate) targets: Vec<TargetSettings>,
    /// The same targets as people may know them.
    pub(crate) described_targets: Vec<ConfiguredTarget>,
    /// Whether admins may define more of them, and what those may use.
    pub(crate) target_rules: TargetRules,
    /// Each names one of the targets.
    pub(crate) schedules: Vec<Schedule>,
    /// The calendars, which jobs may name.
    pub(crate) calendars: Vec<CalendarSettings>,
    /// How messages reach people.
    pub(crate) channels: Vec<ChannelSettings>,
    /// The rules that say which channels hear of which problems.
    pub(crate) rules: Vec<Rule>,
    /// Named expressions for new jobs: the built-in ones come first.
    pub(crate) templates: Vec<Template>,
    /// The file, as it was named; nothing if there is none.
    pub(crate) file: Option<String>,
    /// All values without their secrets, with their origins.
    pub(crate) sources: Vec<Shown>,
    /// Warnings about settings that are valid but may surprise.
    pub(crate) warnings: Vec<String>,
}

impl Config {
    /// Opens the channels of this configuration, with the rules that use them.
    pub(crate) fn notifications(&self) -> Result<Notifications, crate::targets::Problem> {
        let public_url = self.server.public_url.as_deref();
        Notifications::open(self.server.role.schedules(), &self.channels, &self.rules, public_url)
    }

    /// Reads everything.
    pub(crate) fn load(flags: &ServeFlags, environment: &Environment) -> Result<Config, ConfigError> {
        let named = named_file(flags, environment)?;
        let file = named.or_else(|| Path::new(FILE).exists().then(|| FILE.to_owned()));
        let Some(file) = file else {
            return Config::read(None, DEMO, flags, environment);
        };
        let text = secrets::read_text(&file, MAX_FILE_BYTES).map_err(|reason| {
            let message = format!("the configuration file {reason}");
            ConfigError::new(vec![Problem { file: Some(file.clone()), line: None, key: String::new(), message }])
        })?;
        Config::read(Some(file), &text, flags, environment)
    }

    /// Reads a file whose text is known already.
    fn read(
        file: Option<String>,
        text: &str,
        flags: &ServeFlags,
        environment: &Environment,
    ) -> Result<Config, ConfigError> {
        let secrets = secrets::Secrets { environment };
        let mut layers = Layers::new(file.clone(), Document::parse(text), environment, flags);
        let merged = layers.merged.clone();
        let mut form = Form::read(&merged, fields::SECTIONS, Naming::Snake);
        let mut settings = sections::read(&mut form, secrets);
        form.faults().iter().for_each(|fault| layers.refuse(fault));
        let mut targets = targets::read(&mut layers, secrets);
        targets::add_shell(&mut layers, &mut targets, settings.shell.take());
        // Targets that admins define are known to the database only.
        let are_all_known = settings.target_rules.editable.is_empty();
        let jobs = jobs::read(&mut layers, are_all_known.then_some(&*targets.labels));
        let calendars = calendars::read(&mut layers);
        let notify = notify::read(&mut layers, secrets);
        let templates = templates::read(&mut layers);
        if !layers.problems.is_empty() {
            return Err(ConfigError::new(layers.problems));
        }
        let public_url = settings.server.public_url.as_deref();
        targets::set_api_url(&mut targets.settings, public_url, &settings.api.mounts);
        let mut warnings = environment.warnings();
        warnings.extend(settings.warnings());
        let mut engine = settings.engine.clone();
        if settings.server.role.schedules() && evaluates(&notify.rules) {
            engine.roles.push(NOTIFIER.to_owned());
        }
        Ok(Config {
            sources: shown::all(&layers, &settings),
            server: settings.server,
            database: settings.database,
            connect: settings.connect,
            api: settings.api,
            ui: settings.ui,
            auth: settings.auth,
            engine,
            log: settings.log,
            metrics: settings.metrics,
            jobs: settings.jobs,
            targets: targets.settings,
            described_targets: targets.described,
            target_rules: settings.target_rules,
            schedules: jobs.into_iter().map(Schedule::from).collect(),
            calendars,
            channels: notify.channels,
            rules: notify.rules,
            templates,
            file,
            warnings,
        })
    }
}

/// The `[[job]]` blocks of a file alone. Which targets there are, its reader knows; what else stands there is checked as
/// ever, and says nothing.
pub(crate) fn read_jobs(file: &str, text: &str) -> Result<Vec<Draft>, ConfigError> {
    let (mut layers, _) = jobs_file(file, text);
    let drafts = jobs::read(&mut layers, None);
    if layers.problems.is_empty() { Ok(drafts) } else { Err(ConfigError::new(layers.problems)) }
}

/// The `[[job_state]]` blocks of a file alone.
pub(crate) fn read_states(file: &str, text: &str) -> Result<Vec<PausedJob>, ConfigError> {
    let (mut layers, blocks) = jobs_file(file, text);
    let states = jobs::read_states(&mut layers, blocks);
    if layers.problems.is_empty() { Ok(states) } else { Err(ConfigError::new(layers.problems)) }
}

/// A file with jobs, and its `[[job_state]]` blocks: a configuration has none, because it does not say what operators do.
fn jobs_file(file: &str, text: &str) -> (Layers, Value) {
    let (environment, flags) = (Environment::default(), ServeFlags::default());
    let mut document = Document::parse(text);
    let blocks = document.value.as_object_mut().and_then(|members| members.remove("job_state"));
    (Layers::new(Some(file.to_owned()), document, &environment, &flags), blocks.unwrap_or_default())
}

/// The file that a flag or a variable names.
fn named_file(flags: &ServeFlags, environment: &Environment) -> Result<Option<String>, ConfigError> {
    let refused = |key: &str, message: &str| {
        let (key, message) = (key.to_owned(), message.to_owned());
        ConfigError::new(vec![Problem { file: None, line: None, key, message }])
    };
    if let Some(path) = &flags.config {
        return match path.to_str() {
            Some("") => Err(refused("--config", "is empty; name a file")),
            Some(path) => Ok(Some(path.to_owned())),
            None => Err(refused("--config", "is not valid UTF-8")),
        };
    }
    environment
        .get(variables::CONFIG)
        .map(|said| said.map(str::to_owned).map_err(|message| refused(variables::CONFIG, message)))
        .transpose()
}

#[cfg(test)]
mod tests;
