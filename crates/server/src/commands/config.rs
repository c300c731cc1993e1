//! `everbell config`: the configuration of the server, before it is started.

use std::collections::BTreeSet;
use std::path::Path;

use everbell::{JobId, JobKey, Made, Scope, Source};
use everbell_core::cron::Warning;
use everbell_core::{Definition, Spec, When};
use everbell_wire as wire;
use jiff::{Timestamp, Zoned};
use serde::Serialize;
use serde_json::Value;

use super::{ConfigArgs, ConfigCommand};
use crate::config::variables::{VARIABLES, Variable};
use crate::config::{Config, ConfigError, Environment, Problem, Shown, callable};
use crate::targets::{Kind, TargetSettings};
use everbell_cli::{CliError, Exit, Output, aligned, warn};
use everbell_http::api::jobs::missing_dependency;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell config check --config everbell.example.toml
  everbell config show
  everbell config show --json";

pub(super) const CHECK_EXAMPLES: &str = "\
Examples:
  everbell config check
  everbell config check --config everbell.example.toml
  everbell config check --config everbell.example.toml --json";

pub(super) const SHOW_EXAMPLES: &str = "\
Examples:
  everbell config show
  everbell config show --config everbell.example.toml --listen 127.0.0.1:8080
  EVERBELL_LOG=debug everbell config show --json";

pub(crate) fn run(
    command: &ConfigCommand,
    environment: &Environment,
    now: Timestamp,
    output: &mut Output,
) -> Result<Exit, CliError> {
    match command {
        ConfigCommand::Check(args) => check(args, environment, now, output),
        ConfigCommand::Show(args) => show(args, environment, output),
    }
}

/// The variables that the server reads, for the help.
pub(super) fn variables() -> String {
    let row = |variable: &Variable| vec![format!("  {}", variable.name), variable.doc.to_owned()];
    let rows: Vec<_> = VARIABLES.iter().map(row).collect();
    format!("Environment:\n{}", aligned(&rows, &[2]).join("\n"))
}

fn check(args: &ConfigArgs, environment: &Environment, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let config = match Config::load(&args.settings.flags(), environment) {
        Ok(config) => config,
        Err(error) if args.json => {
            output.json(&Refused::from(&error))?;
            return Ok(Exit::Usage);
        }
        Err(error) => return Err(error.into()),
    };
    let mut jobs: Vec<Job> = config.schedules.iter().filter_map(|schedule| Job::new(schedule, now)).collect();
    let keys: BTreeSet<JobKey> = jobs.iter().map(|job| job.definition.key.clone()).collect();
    for job in &mut jobs {
        job.misses = job.missing(&keys);
    }
    let mut warnings = config.warnings.clone();
    warnings.extend(config.targets.iter().filter_map(missing_program));
    if args.json {
        output.json(&Accepted::new(&config, &jobs, &warnings))?;
        return Ok(Exit::Success);
    }
    let of = config.file.as_deref().unwrap_or("no configuration file, using defaults");
    let mut counts = format!("{}, {}", counted(config.targets.len(), "target"), counted(jobs.len(), "job"));
    if !config.calendars.is_empty() {
        counts = format!("{counts}, {}", counted(config.calendars.len(), "calendar"));
    }
    if !config.channels.is_empty() {
        let (channels, rules) = (counted(config.channels.len(), "channel"), counted(config.rules.len(), "rule"));
        counts = format!("{counts}, {channels}, {rules}");
    }
    output.line(&format!("ok: {of}: {counts}"))?;
    let rows: Vec<_> = config.targets.iter().map(target_row).chain(jobs.iter().map(Job::row)).collect();
    output.table(&rows, &[2])?;
    // On a terminal both streams meet: the table comes first, whole.
    output.flush()?;
    warnings.iter().for_each(warn);
    for job in &jobs {
        job.remarks().iter().for_each(|remark| warn(format!("job \"{}\": {remark}", job.definition.key.as_str())));
    }
    Ok(Exit::Success)
}

fn show(args: &ConfigArgs, environment: &Environment, output: &mut Output) -> Result<Exit, CliError> {
    let config = Config::load(&args.settings.flags(), environment)?;
    if args.json {
        output.json(&Effective {
            file: config.file.as_deref(),
            items: config.sources.iter().map(Item::from).collect(),
        })?;
        return Ok(Exit::Success);
    }
    let row = |Shown { key, value, origin }: &Shown| vec![key.clone(), cell(value), origin.to_string()];
    output.table(&config.sources.iter().map(row).collect::<Vec<_>>(), &[2])?;
    output.flush()?;
    config.warnings.iter().for_each(warn);
    Ok(Exit::Success)
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// A value in one cell of a table.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if !text.is_empty() && !text.chars().any(char::is_control) => text.clone(),
        other => other.to_string(),
    }
}

fn target_row(target: &TargetSettings) -> Vec<String> {
    let does = match &target.kind {
        Kind::Log => "prints the payload".to_owned(),
        Kind::Http(http) => format!("{} {}", http.method, callable(&http.url)),
        Kind::Command(command) => cell(&Value::from(command.argv.first().map(String::as_str))),
        Kind::Shell(_) => "runs the command of the payload".to_owned(),
    };
    vec!["target".to_owned(), target.label.clone(), type_of(target).to_owned(), does]
}

/// Says that the program of a `command` target cannot be found on this machine, which need not be the server's.
fn missing_program(target: &TargetSettings) -> Option<String> {
    let Kind::Command(command) = &target.kind else { return None };
    let program = Path::new(command.argv.first()?);
    let found = if program.components().count() > 1 {
        command.cwd.as_deref().unwrap_or(Path::new("")).join(program).exists()
    } else if command.env.contains_key("PATH") {
        return None;
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    };
    let label = &target.label;
    (!found).then(|| format!("target \"{label}\": the program `{}` was not found on this machine", program.display()))
}

fn type_of(target: &TargetSettings) -> &'static str {
    match target.kind {
        Kind::Log => "log",
        Kind::Http(_) => "http",
        Kind::Command(_) => "command",
        Kind::Shell(_) => "shell",
    }
}

/// A job and what there is to say about it now.
struct Job {
    definition: Definition,
    next: Option<Zoned>,
    warnings: Vec<Warning>,
    /// The job that it depends on, if the configuration has no such job.
    misses: Option<String>,
}

impl Job {
    /// Returns `None` for a schedule that cannot be a job, which a configuration never has.
    fn new(schedule: &everbell::Schedule, now: Timestamp) -> Option<Job> {
        let made = Made { id: JobId::new(now, [0; 10]), source: Source::Config, by: "config", at: now };
        let definition = schedule.definition(&made).ok()?;
        let spec = definition.spec.as_ref().ok()?;
        // For orgs it fires at as many times as there are zones.
        let next = spec.next_after(now).filter(|_| definition.scope == Scope::Global);
        let next = next.map(|at| at.to_zoned(spec.zone().as_jiff().clone()));
        Some(Job { next, warnings: spec.warnings(now), misses: None, definition })
    }

    fn missing(&self, keys: &BTreeSet<JobKey>) -> Option<String> {
        let depends = self.definition.policies.depends_on.as_ref()?;
        (!keys.contains(&depends.job_key)).then(|| depends.job_key.to_string())
    }

    fn spec(&self) -> Option<&Spec> {
        self.definition.spec.as_ref().ok()
    }

    fn when(&self) -> String {
        self.spec().map_or_else(String::new, |spec| match spec.when() {
            When::Cron(expression) | When::Every { expression, .. } => expression.describe(),
            When::Once(_) => "Once".to_owned(),
            When::After(after) => after.describe(),
            When::AfterAll(fan_in) => fan_in.describe(),
        })
    }

    fn zone(&self) -> &str {
        self.spec().map_or("UTC", |spec| spec.zone().name())
    }

    fn is_per_org(&self) -> bool {
        self.definition.scope == Scope::PerOrg
    }

    /// Whether runs of another job start it.
    fn follows(&self) -> bool {
        self.spec().is_some_and(Spec::is_following)
    }

    fn row(&self) -> Vec<String> {
        let next = self.next.as_ref();
        vec![
            "job".to_owned(),
            self.definition.key.as_str().to_owned(),
            self.definition.target.as_str().to_owned(),
            self.when(),
            if self.is_per_org() { "each org".to_owned() } else { self.zone().to_owned() },
            next.map_or_else(|| "-".to_owned(), |next| next.strftime("%Y-%m-%d %H:%M:%S %:z").to_string()),
        ]
    }

    fn documents(&self) -> Vec<wire::Warning> {
        let misses = self.misses.as_deref().map(missing_dependency);
        self.warnings.iter().map(wire::Warning::from).chain(misses).collect()
    }

    fn remarks(&self) -> Vec<String> {
        let waits = self.is_per_org() || self.follows();
        let over = (self.next.is_none() && !waits).then(|| "it no longer fires".to_owned());
        let misses = self.misses.as_deref().map(|key| {
            format!("it depends on `{key}`, which this configuration does not define: every slot is skipped unless that job exists elsewhere")
        });
        self.warnings.iter().map(|warning| warning.detail.clone()).chain(over).chain(misses).collect()
    }
}

/// A configuration that can be used.
#[derive(Serialize)]
struct Accepted<'a> {
    valid: bool,
    file: Option<&'a str>,
    targets: Vec<TargetDocument<'a>>,
    jobs: Vec<JobDocument<'a>>,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct TargetDocument<'a> {
    label: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JobDocument<'a> {
    job_key: &'a str,
    target: &'a str,
    description: String,
    timezone: &'a str,
    next_run_at: Option<String>,
    next_run_at_local: Option<String>,
    warnings: Vec<wire::Warning>,
}

impl<'a> Accepted<'a> {
    fn new(config: &'a Config, jobs: &'a [Job], warnings: &'a [String]) -> Accepted<'a> {
        let target = |target: &'a TargetSettings| TargetDocument { label: &target.label, kind: type_of(target) };
        let job = |job: &'a Job| JobDocument {
            job_key: job.definition.key.as_str(),
            target: job.definition.target.as_str(),
            description: job.when(),
            timezone: job.zone(),
            next_run_at: job.next.as_ref().map(|next| next.timestamp().to_string()),
            next_run_at_local: job.next.as_ref().map(Zoned::to_string),
            warnings: job.documents(),
        };
        Accepted {
            valid: true,
            file: config.file.as_deref(),
            targets: config.targets.iter().map(target).collect(),
            jobs: jobs.iter().map(job).collect(),
            warnings,
        }
    }
}

/// A configuration that cannot be used.
#[derive(Serialize)]
struct Refused<'a> {
    valid: bool,
    problems: Vec<ProblemDocument<'a>>,
}

#[derive(Serialize)]
struct ProblemDocument<'a> {
    file: Option<&'a str>,
    line: Option<usize>,
    key: &'a str,
    message: &'a str,
}

impl<'a> From<&'a ConfigError> for Refused<'a> {
    fn from(error: &'a ConfigError) -> Self {
        let document = |Problem { file, line, key, message }: &'a Problem| ProblemDocument {
            file: file.as_deref(),
            line: *line,
            key,
            message,
        };
        Refused { valid: false, problems: error.problems.iter().map(document).collect() }
    }
}

/// A value, and where it comes from.
#[derive(Serialize)]
struct Effective<'a> {
    file: Option<&'a str>,
    items: Vec<Item<'a>>,
}

#[derive(Serialize)]
struct Item<'a> {
    key: &'a str,
    value: &'a Value,
    source: String,
}

impl<'a> From<&'a Shown> for Item<'a> {
    fn from(Shown { key, value, origin }: &'a Shown) -> Self {
        Item { key, value, source: origin.to_string() }
    }
}
