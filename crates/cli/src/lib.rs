//! The command line: every command, and the flags of those that need no server. The other flags are in the module of their
//! noun.
//!
//! These structs hold the arguments, mostly as text. Each command parses them (a zone, an instant, a schedule) in its own
//! module.

pub(crate) mod api;
pub(crate) mod audit;
mod calendars;
pub mod clock;
pub(crate) mod completions;
mod confirm;
pub(crate) mod connection;
mod context;
pub(crate) mod cron;
pub(crate) mod doctor;
mod error;
mod exit;
mod freeze;
pub(crate) mod gaps;
pub(crate) mod healthcheck;
pub(crate) mod import;
mod init;
pub(crate) mod instances;
pub(crate) mod jobs;
pub(crate) mod man;
pub(crate) mod next;
mod notify;
mod online;
pub(crate) mod orgs;
pub(crate) mod outages;
pub(crate) mod output;
mod parse;
pub(crate) mod problems;
mod progress;
mod refusal;
pub(crate) mod reload;
mod runs;
mod session;
pub(crate) mod sessions;
mod simulate;
pub(crate) mod status;
pub(crate) mod targets;
mod times;
pub(crate) mod tokens;
mod top;
pub(crate) mod topics;
pub(crate) mod version;
mod watch;
pub(crate) mod words;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgMatches, Args, FromArgMatches, Subcommand};
use everbell_core::Draft;
use everbell_core::cron::{DstFold, DstGap};

use jiff::Timestamp;

pub use completions::complete as answer_completions;
pub use confirm::agreed;
pub use connection::TOKEN_FILE;
pub use error::{CliError, warn};
pub use exit::Exit;
pub use init::STARTER;
pub use jobs::PausedJob;
pub(crate) use online::OnlineArgs;
pub use output::{Output, aligned};
pub use parse::parse;
pub use progress::Progress;
pub use refusal::Refusal;
pub(crate) use session::Session;

#[derive(Debug, Subcommand)]
enum Commands {
    /// Write a starter configuration file
    #[command(before_help = init::EXAMPLES)]
    Init(init::InitArgs),
    /// Manage contexts, which are named servers; lists them without a subcommand
    #[command(before_help = context::EXAMPLES)]
    Context(context::ContextArgs),
    /// Explain and check cron expressions, offline
    #[command(before_help = cron::CRON_EXAMPLES, arg_required_else_help = true)]
    Cron {
        #[command(subcommand)]
        command: CronCommand,
    },
    /// Manage jobs; lists them without a subcommand
    #[command(before_help = jobs::EXAMPLES)]
    Jobs(Box<jobs::JobsArgs>),
    /// Manage runs; lists them without a subcommand
    #[command(before_help = runs::EXAMPLES)]
    Runs(Box<runs::RunsArgs>),
    /// Manage orgs, each with its own time zone; lists them without a subcommand
    #[command(before_help = orgs::EXAMPLES)]
    Orgs(Box<orgs::OrgsArgs>),
    /// Manage calendars of days on which jobs do or do not fire; lists them without a subcommand
    #[command(before_help = calendars::EXAMPLES)]
    Calendars(calendars::CalendarsArgs),
    /// Manage freezes, during which schedules do not fire; lists them without a subcommand
    #[command(before_help = freeze::EXAMPLES)]
    Freeze(freeze::FreezeArgs),
    /// Import jobs from other schedulers
    #[command(before_help = import::EXAMPLES, arg_required_else_help = true)]
    Import {
        #[command(subcommand)]
        command: import::ImportCommand,
    },
    /// Show the next runs of all jobs
    #[command(before_help = next::EXAMPLES)]
    Next(next::NextArgs),
    /// List slots that got no run, for all jobs
    #[command(before_help = gaps::EXAMPLES)]
    Gaps(gaps::GapsArgs),
    /// List outages and the runs they affected
    ///
    /// An outage is a period of at least 20 seconds in which no scheduling instance sent a heartbeat. Each is listed with the
    /// jobs whose slots passed, and what catch-up did.
    #[command(before_help = outages::EXAMPLES)]
    Outages(outages::OutagesArgs),
    /// Show the jobs that run, fail or cost the most
    ///
    /// Counts every run that ended in the window. All versions and orgs of a job are counted together; one-time jobs are counted
    /// by target.
    #[command(before_help = top::EXAMPLES)]
    Top(top::TopArgs),
    /// Simulate jobs: which slots run, are skipped, coalesced or missed
    ///
    /// Decides as production does, on a virtual clock: overlap, catch-up, grace, jitter, timeouts and retries. Nothing is
    /// active at the start, and a job that another one depends on counts as having succeeded then.
    #[command(before_help = simulate::EXAMPLES)]
    Simulate(Box<simulate::SimulateArgs>),
    /// List and try targets
    #[command(before_help = targets::EXAMPLES)]
    Targets(targets::TargetsArgs),
    /// List and drain instances
    #[command(before_help = instances::EXAMPLES)]
    Instances(instances::InstancesArgs),
    /// Manage tokens; lists them without a subcommand
    #[command(before_help = tokens::EXAMPLES)]
    Tokens(tokens::TokensArgs),
    /// Manage browser sessions; lists them without a subcommand
    #[command(before_help = sessions::EXAMPLES)]
    Sessions(sessions::SessionsArgs),
    /// List and handle problems of jobs; lists open ones without a subcommand
    #[command(before_help = problems::EXAMPLES)]
    Problems(problems::ProblemsArgs),
    /// List and test notification channels
    #[command(before_help = notify::EXAMPLES)]
    Notify(notify::NotifyArgs),
    /// Reload the configuration of the server, without a restart
    ///
    /// Everything is checked first: a configuration with problems changes nothing. Runs in flight are not disturbed. With
    /// several instances, each reloads its own file: this command reaches only the one that responds.
    #[command(before_help = reload::EXAMPLES)]
    Reload(reload::ReloadArgs),
    /// List audit entries, newest first
    #[command(before_help = audit::EXAMPLES)]
    Audit(audit::AuditArgs),
    /// Show the state of the server and its database
    #[command(before_help = status::EXAMPLES)]
    Status(status::StatusArgs),
    /// Send a request to the API
    #[command(before_help = api::EXAMPLES)]
    Api(api::ApiArgs),
    /// Diagnose problems and suggest fixes
    ///
    /// Checks at most 1000 jobs and runs, and takes at most 10 seconds. Exits with 1 if it finds an error; warnings alone
    /// exit with 0.
    #[command(before_help = doctor::EXAMPLES)]
    Doctor(doctor::DoctorArgs),
    /// Check the health of the server (exits with 0 or 1)
    #[command(before_help = healthcheck::EXAMPLES)]
    Healthcheck(healthcheck::HealthcheckArgs),
    /// Print the completion script for a shell
    #[command(before_help = completions::EXAMPLES, after_help = completions::INSTALLATION)]
    Completions(completions::CompletionsArgs),
    /// Write manual pages
    #[command(before_help = man::EXAMPLES)]
    Man(man::ManArgs),
    /// Show help for a command or a topic: environment, exit-codes, formatting, time
    #[command(before_help = HELP_EXAMPLES)]
    Help {
        /// The command or the topic.
        #[arg(value_name = "WORD")]
        words: Vec<String>,
    },
    /// Show the version of everbell and its time zone data
    #[command(before_help = version::EXAMPLES)]
    Version(version::VersionArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum CronCommand {
    /// Show the next times of a cron expression
    #[command(before_help = cron::NEXT_EXAMPLES)]
    Next(NextArgs),
    /// Explain a cron expression and warn about surprises
    #[command(before_help = cron::EXPLAIN_EXAMPLES)]
    Explain(ExplainArgs),
    /// Check whether expressions are valid
    ///
    /// Exits with 0 if all are valid and with 2 otherwise.
    #[command(before_help = cron::CHECK_EXAMPLES)]
    Check(CheckArgs),
}

#[derive(Debug, Args)]
pub(crate) struct NextArgs {
    /// The schedule: five fields, six with leading seconds, a macro such as `@daily`, or `@every 90s`.
    #[arg(value_name = "EXPR", required_unless_present = "batch", conflicts_with = "batch")]
    pub(crate) expr: Option<String>,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    /// How many times to show, from 1 to 10000; fewer if the schedule ends earlier.
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) count: u16,
    /// Leave out times before this one; an `@every` expression counts from it.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) start_at: Option<String>,
    /// Leave out times after this one.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) end_at: Option<String>,
    /// Print one JSON document: `{"items":[{"at":…,"local":…}]}`.
    #[arg(long)]
    pub(crate) json: bool,
    /// Read requests from standard input, one JSON object per line.
    ///
    /// A request is `{"expr":"30 2 * * *","tz":"America/New_York","start":"2027-03-13T00:00:00Z","count":3}`. `tz` defaults
    /// to UTC and `count` to 1; `dstGap` and `dstFold` are optional. Each request gets one line of output,
    /// `{"items":[{"at":…,"local":…}]}` or `{"error":…}`. Empty lines are ignored.
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
    /// Print one JSON document, as the cron preview of the API returns it.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The expressions to check, each as one argument.
    #[arg(value_name = "EXPR", required = true)]
    pub(crate) exprs: Vec<String>,
    /// Check for warnings in this IANA time zone.
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    pub(crate) tz: String,
    /// Exit with 1 if the expressions are valid but one has a warning.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print one JSON document that includes the errors: `{"items":[{"expression":…,"valid":…}]}`.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How an expression is read: its zone, the start, and the rules for clock changes.
#[derive(Debug, Args)]
pub(crate) struct ReadingArgs {
    /// Read the expression, and times without an offset, in this IANA time zone.
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    pub(crate) tz: String,
    /// Show only times after this one: RFC 3339, a local time, `now`, `+15m` or `tomorrow 08:00`.
    #[arg(long, value_name = "TIME", default_value = "now", allow_hyphen_values = true)]
    pub(crate) from: String,
    /// Choose what happens to times that do not exist because clocks go forward: `shift` fires once at the first
    /// instant after the gap, `skip` does not fire.
    #[arg(long, value_name = "RULE", default_value = DstGap::default().as_str(), value_parser = dst_gap())]
    pub(crate) dst_gap: DstGap,
    /// Choose which of two equal local times fires when clocks go back.
    #[arg(long, value_name = "RULE", default_value = DstFold::default().as_str(), value_parser = dst_fold())]
    pub(crate) dst_fold: DstFold,
}

const HELP_EXAMPLES: &str = "\
Examples:
  everbell help exit-codes
  everbell help time
  everbell help cron next";

/// A command of this crate. A program with more commands flattens it into its own enum.
#[derive(Debug)]
pub struct Command(Commands);

impl FromArgMatches for Command {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Command, clap::Error> {
        Commands::from_arg_matches(matches).map(Command)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl Subcommand for Command {
    fn augment_subcommands(command: clap::Command) -> clap::Command {
        Commands::augment_subcommands(command)
    }

    fn augment_subcommands_for_update(command: clap::Command) -> clap::Command {
        Commands::augment_subcommands_for_update(command)
    }

    fn has_subcommand(name: &str) -> bool {
        Commands::has_subcommand(name)
    }
}

/// The program that a command is part of.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Returns its whole command line, for help, manual pages and completions.
    pub command: fn() -> clap::Command,
    /// Reads the `[[job]]` blocks of a configuration file, given its name and its text.
    pub read_jobs: fn(&str, &str) -> Result<Vec<Draft>, CliError>,
    /// Reads the `[[job_state]]` blocks of such a file.
    pub read_states: fn(&str, &str) -> Result<Vec<PausedJob>, CliError>,
}

impl Command {
    /// Whether this is `everbell healthcheck`, which exits only with 0 and 1.
    pub fn is_healthcheck(&self) -> bool {
        matches!(self.0, Commands::Healthcheck(_))
    }

    /// Runs the command.
    pub fn run(&self, program: Program, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
        match &self.0 {
            Commands::Init(args) => init::run(args, output),
            Commands::Context(args) => context::run(args, output),
            Commands::Cron { command } => cron::run(command, now, output),
            Commands::Jobs(args) => jobs::run(args, program, now, output),
            Commands::Runs(args) => runs::run(args, now, output),
            Commands::Orgs(args) => orgs::run(args, now, output),
            Commands::Calendars(args) => calendars::run(args, now, output),
            Commands::Freeze(args) => freeze::run(args, now, output),
            Commands::Import { command } => import::run(command, now, output),
            Commands::Next(args) => next::run(args, now, output),
            Commands::Gaps(args) => gaps::run(args, now, output),
            Commands::Outages(args) => outages::run(args, now, output),
            Commands::Simulate(args) => simulate::run(args, program, now, output),
            Commands::Targets(args) => targets::run(args, now, output),
            Commands::Instances(args) => instances::run(args, now, output),
            Commands::Sessions(args) => sessions::run(args, now, output),
            Commands::Tokens(args) => tokens::run(args, now, output),
            Commands::Top(args) => top::run(args, now, output),
            Commands::Problems(args) => problems::run(args, now, output),
            Commands::Notify(args) => notify::run(args, now, output),
            Commands::Reload(args) => reload::run(args, now, output),
            Commands::Audit(args) => audit::run(args, now, output),
            Commands::Status(args) => status::run(args, now, output),
            Commands::Api(args) => api::run(args, now, output),
            Commands::Help { words } => topics::run(words, program, output),
            Commands::Doctor(args) => doctor::run(args, now, output),
            Commands::Healthcheck(args) => healthcheck::run(args),
            Commands::Completions(args) => completions::run(args, output),
            Commands::Man(args) => man::run(args, program, output),
            Commands::Version(args) => version::run(args, output),
        }
    }
}

fn dst_gap() -> impl TypedValueParser<Value = DstGap> {
    one_of(DstGap::ALL, DstGap::as_str)
}

fn dst_fold() -> impl TypedValueParser<Value = DstFold> {
    one_of(DstFold::ALL, DstFold::as_str)
}

/// Parses one of the words of a choice in core.
fn one_of<T: Copy + Default + Send + Sync + 'static>(
    all: &'static [T],
    word: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.iter().map(|choice| word(*choice)))
        .map(move |typed| all.iter().copied().find(|choice| word(*choice) == typed).unwrap_or_default())
}
