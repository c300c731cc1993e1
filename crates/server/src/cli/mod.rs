//! The command line as it is typed: every command stands here, with the flags of those that need no server. The flags of
//! the others stand with the noun that they are about.
//!
//! These structs hold what was written, mostly as text. Each command turns them into what is meant (a zone, an instant,
//! a schedule) in a file of its own, and refuses there what makes no sense.

pub(crate) mod api;
pub(crate) mod audit;
pub(crate) mod body;
pub(crate) mod client;
pub(crate) mod completions;
pub(crate) mod config;
mod confirm;
pub(crate) mod cron;
pub(crate) mod db;
pub(crate) mod doctor;
mod document;
mod error;
pub(crate) mod healthcheck;
pub(crate) mod instances;
pub(crate) mod jobs;
pub(crate) mod man;
pub(crate) mod next;
mod online;
pub(crate) mod orgs;
pub(crate) mod output;
mod progress;
pub(crate) mod runs;
pub(crate) mod sessions;
pub(crate) mod status;
pub(crate) mod targets;
mod times;
pub(crate) mod tokens;
pub(crate) mod topics;
pub(crate) mod version;
mod watch;
pub(crate) mod words;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use everbell_core::cron::{DstFold, DstGap, Expression};

use crate::config::ServeFlags;

pub(crate) use error::{CliError, Exit, warn};
pub(crate) use online::{OnlineArgs, Session};

/// A durable, distributed cron: exactly one outcome for every slot
#[derive(Debug, Parser)]
#[command(name = "everbell", version, before_help = ROOT_EXAMPLES, after_help = ROOT_TOPICS)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the server: scheduler, API, targets
    ///
    /// Without a configuration file it keeps everything in `./everbell-data/` and runs a job `demo` every minute.
    #[command(before_help = SERVE_EXAMPLES)]
    Serve(SettingArgs),
    /// Work with cron expressions, offline
    #[command(before_help = CRON_EXAMPLES, arg_required_else_help = true)]
    Cron {
        #[command(subcommand)]
        command: CronCommand,
    },
    /// Look at the configuration of the server
    #[command(before_help = config::EXAMPLES, after_long_help = config::variables(), arg_required_else_help = true)]
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Look after the database, offline
    #[command(before_help = db::DB_EXAMPLES, arg_required_else_help = true)]
    Db {
        #[command(subcommand)]
        command: db::DbCommand,
    },
    /// Work with jobs; alone it lists them
    #[command(before_help = jobs::EXAMPLES)]
    Jobs(Box<jobs::JobsArgs>),
    /// Work with runs; alone it lists them
    #[command(before_help = runs::EXAMPLES)]
    Runs(Box<runs::RunsArgs>),
    /// Work with orgs, for which jobs fire at their own local time; alone it lists them
    #[command(before_help = orgs::EXAMPLES)]
    Orgs(Box<orgs::OrgsArgs>),
    /// Show what fires next, in the whole cluster
    #[command(before_help = next::EXAMPLES)]
    Next(next::NextArgs),
    /// Work with targets; alone it lists them
    #[command(before_help = targets::EXAMPLES)]
    Targets(targets::TargetsArgs),
    /// Work with instances; alone it lists them
    #[command(before_help = instances::EXAMPLES)]
    Instances(instances::InstancesArgs),
    /// Work with tokens; alone it lists them
    #[command(before_help = tokens::EXAMPLES)]
    Tokens(tokens::TokensArgs),
    /// Work with browser sessions; alone it lists them
    #[command(before_help = sessions::EXAMPLES)]
    Sessions(sessions::SessionsArgs),
    /// List what people and programs did, the newest first
    #[command(before_help = audit::EXAMPLES)]
    Audit(audit::AuditArgs),
    /// Tell what the server is, and how its database fares
    #[command(before_help = status::EXAMPLES)]
    Status(status::StatusArgs),
    /// Send any call to the API
    #[command(before_help = api::EXAMPLES)]
    Api(api::ApiArgs),
    /// Look for what is wrong, and tell what to do about it
    ///
    /// Exits with 1 if something is wrong and with 0 if there are only warnings. Looks at no more than 1000 jobs and runs,
    /// and takes no more than 10 seconds.
    #[command(before_help = doctor::EXAMPLES)]
    Doctor(doctor::DoctorArgs),
    /// Tell by the exit code whether the server is well: 0 or 1
    #[command(before_help = healthcheck::EXAMPLES)]
    Healthcheck(healthcheck::HealthcheckArgs),
    /// Print the completion script of a shell
    #[command(before_help = completions::EXAMPLES, after_help = completions::INSTALLATION)]
    Completions(completions::CompletionsArgs),
    /// Write a manual page for every command
    #[command(before_help = man::EXAMPLES)]
    Man(man::ManArgs),
    /// Show the help of a command, or of environment, exit-codes, formatting, time
    #[command(before_help = HELP_EXAMPLES)]
    Help {
        /// A command or a topic.
        #[arg(value_name = "WORD")]
        words: Vec<String>,
    },
    /// Show the version of everbell and of its time zone data
    #[command(before_help = version::EXAMPLES)]
    Version(version::VersionArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum CronCommand {
    /// Show when an expression fires next
    #[command(before_help = NEXT_EXAMPLES)]
    Next(NextArgs),
    /// Say in words what an expression means, and what may surprise
    #[command(before_help = EXPLAIN_EXAMPLES)]
    Explain(ExplainArgs),
    /// Tell valid expressions from invalid ones
    ///
    /// Exits with 0 if all are valid and with 2 otherwise.
    #[command(before_help = CHECK_EXAMPLES)]
    Check(CheckArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Tell every problem of a configuration, or what it makes the server do
    ///
    /// Exits with 0 if it can be used and with 2 otherwise. Nothing is started, opened or changed.
    #[command(before_help = config::CHECK_EXAMPLES)]
    Check(ConfigArgs),
    /// Show every value and who said it: default, file, variable or flag
    ///
    /// Secrets are not shown.
    #[command(before_help = config::SHOW_EXAMPLES)]
    Show(ConfigArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What outweighs the environment and the file. Words and addresses are checked together with the rest.
#[derive(Debug, Args)]
pub(crate) struct SettingArgs {
    /// Read this file instead of `everbell.toml`.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Listen on this address and port, such as `127.0.0.1:7070`.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Keep everything in this database: `sqlite:PATH` or `postgres://user@host/database`.
    ///
    /// Others on this machine can see a password that is written here; `EVERBELL_DATABASE_URL_FILE` keeps it from them.
    #[arg(long, value_name = "URL")]
    pub(crate) database: Option<String>,
    /// Do this much: `all`, `scheduler` or `api`.
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Option<String>,
    /// Keep the SQLite file and the first admin token in this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<String>,
    /// Tell this much: `error`, `warn`, `info`, `debug`, `trace`, or such as `info,everbell=debug`.
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log_level: Option<String>,
    /// Write lines for people, `text`, or for programs, `json`.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log_format: Option<String>,
}

impl SettingArgs {
    /// The flags as the configuration takes them.
    pub(crate) fn flags(&self) -> ServeFlags {
        ServeFlags {
            config: self.config.clone(),
            listen: self.listen.clone(),
            database: self.database.clone(),
            role: self.role.clone(),
            data_dir: self.data_dir.clone(),
            log_level: self.log_level.clone(),
            log_format: self.log_format.clone(),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct NextArgs {
    /// The schedule: five fields, six with leading seconds, a macro such as `@daily`, or `@every 90s`.
    #[arg(value_name = "EXPR", required_unless_present = "batch", conflicts_with = "batch")]
    pub(crate) expr: Option<String>,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    /// Show this many fires, from 1 to 10000, or fewer if the schedule ends before.
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) count: u16,
    /// Leave out fires before this time; an `@every` expression counts from it.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) start_at: Option<String>,
    /// Leave out fires after this time.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) end_at: Option<String>,
    /// Print one JSON document: `{"items":[{"at":…,"local":…}]}`.
    #[arg(long)]
    pub(crate) json: bool,
    /// Answer the questions on standard input, one JSON object per line.
    ///
    /// A question is `{"expr":"30 2 * * *","tz":"America/New_York","start":"2027-03-13T00:00:00Z","count":3}`; `tz` is
    /// UTC and `count` is 1 if absent, and `dstGap` and `dstFold` are possible. Each is answered by one line,
    /// `{"items":[{"at":…,"local":…}]}` or `{"error":…}`; empty lines are ignored.
    #[arg(long, conflicts_with_all = ["tz", "from", "dst_gap", "dst_fold", "count", "start_at", "end_at"])]
    pub(crate) batch: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The schedule: five fields, six with leading seconds, a macro such as `@daily`, or `@every 90s`.
    #[arg(value_name = "EXPR")]
    pub(crate) expr: String,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    /// Print one JSON document, the same as the cron preview of the API.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The expressions to check, each as one argument.
    #[arg(value_name = "EXPR", required = true)]
    pub(crate) exprs: Vec<String>,
    /// Look for surprises in this IANA time zone.
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    pub(crate) tz: String,
    /// Exit with 1 if all expressions are valid and one of them has a warning.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print one JSON document, with the errors in it: `{"items":[{"expression":…,"valid":…}]}`.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How an expression is read: where, from when on, and what happens when clocks change.
#[derive(Debug, Args)]
pub(crate) struct ReadingArgs {
    /// Read the expression, and times without an offset, in this IANA time zone.
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    pub(crate) tz: String,
    /// Show only fires after this time: RFC 3339, a local time, `now`, `+15m` or `tomorrow 08:00`.
    #[arg(long, value_name = "TIME", default_value = "now", allow_hyphen_values = true)]
    pub(crate) from: String,
    /// Choose what happens to times that do not exist because clocks go forward: `shift` fires once at the first
    /// instant after the gap, `skip` does not fire.
    #[arg(long, value_name = "RULE", default_value = DstGap::default().as_str(), value_parser = dst_gap())]
    pub(crate) dst_gap: DstGap,
    /// Choose which of two equal times fires when clocks go back.
    #[arg(long, value_name = "RULE", default_value = DstFold::default().as_str(), value_parser = dst_fold())]
    pub(crate) dst_fold: DstFold,
}

const ROOT_EXAMPLES: &str = "\
Examples:
  everbell serve
  everbell config show
  everbell cron next \"0 9 * * mon-fri\" --tz Europe/Paris";

const ROOT_TOPICS: &str = "\
Topics:
  everbell help environment   variables that are read
  everbell help exit-codes    what the exit codes mean
  everbell help formatting    tables, tabs, JSON, colours
  everbell help time          how times are shown and written";

const HELP_EXAMPLES: &str = "\
Examples:
  everbell help exit-codes
  everbell help time
  everbell help cron next";

const CRON_EXAMPLES: &str = "\
Examples:
  everbell cron next \"*/15 * * * *\" --count 3
  everbell cron explain \"0 0 L * *\" --tz Asia/Tokyo
  everbell cron check \"0 9 * * mon-fri\" @daily";

const NEXT_EXAMPLES: &str = "\
Examples:
  everbell cron next \"0 9 * * mon-fri\" --tz Europe/Paris --from \"tomorrow 08:00\"
  everbell cron next \"30 2 * * *\" --tz America/New_York --from 2027-03-13 --dst-gap skip
  echo '{\"expr\":\"@daily\",\"start\":\"2027-03-13T00:00:00Z\"}' | everbell cron next --batch";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  everbell cron explain \"0 9 1,15 * mon\" --tz Europe/Paris
  everbell cron explain \"30 2 * * *\" --tz America/New_York --from 2027-03-13
  everbell cron explain \"@every 90s\" --json";

const CHECK_EXAMPLES: &str = "\
Examples:
  everbell cron check \"0 9 * * mon-fri\"
  everbell cron check \"0 9 * * mon-fri\" \"@every 90s\" --strict
  everbell cron check \"30 2 * * *\" --tz America/New_York --json";

const SERVE_EXAMPLES: &str = "\
Examples:
  everbell serve
  everbell serve --config everbell.example.toml --listen 127.0.0.1:8080
  EVERBELL_DATABASE_URL=postgres://everbell@db/everbell everbell serve --role api";

/// Reads the command line.
pub(crate) fn parse(args: impl Iterator<Item = OsString>) -> Result<Cli, CliError> {
    let args: Vec<OsString> = args.collect();
    Cli::try_parse_from(&args).map_err(|error| misread_expression(&args, &error).unwrap_or(CliError::Usage(error)))
}

/// `-1 * * * *` looks like a flag, but who writes it is better served by what is wrong with the expression.
fn misread_expression(args: &[OsString], error: &clap::Error) -> Option<CliError> {
    if error.kind() != clap::error::ErrorKind::UnknownArgument {
        return None;
    }
    let text = args.iter().filter_map(|arg| arg.to_str()).find(|arg| arg.starts_with('-') && arg.contains(' '))?;
    Expression::parse(text).err().map(CliError::Expression)
}

fn dst_gap() -> impl TypedValueParser<Value = DstGap> {
    one_of(DstGap::ALL, DstGap::as_str)
}

fn dst_fold() -> impl TypedValueParser<Value = DstFold> {
    one_of(DstFold::ALL, DstFold::as_str)
}

/// Reads one of the words of a choice that core defines.
fn one_of<T: Copy + Default + Send + Sync + 'static>(
    all: &'static [T],
    word: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.iter().map(|choice| word(*choice)))
        .map(move |typed| all.iter().copied().find(|choice| word(*choice) == typed).unwrap_or_default())
}
