//! `everbell jobs`: what operators do with jobs.

mod act;
mod backfill;
mod create;
pub(crate) mod declared;
mod definition;
mod edit;
mod history;
mod list;
mod run;
mod show;
mod versions;

use clap::{Args, Subcommand};
use jiff::Timestamp;

pub(crate) use definition::Body;
pub(super) use definition::{json_of, payload};

use super::output::Output;
use super::{CliError, Exit};

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell jobs
  everbell jobs list --status paused
  everbell jobs show daily-briefing";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct JobsArgs {
    #[command(subcommand)]
    command: Option<JobsCommand>,
    #[command(flatten)]
    list: list::ListArgs,
}

#[derive(Debug, Subcommand)]
enum JobsCommand {
    /// List jobs: when they fire next, and how they ended last
    #[command(before_help = list::EXAMPLES)]
    List(list::ListArgs),
    /// Show everything about a job
    #[command(before_help = show::EXAMPLES)]
    Show(show::ShowArgs),
    /// Make a job that fires again and again
    #[command(before_help = create::EXAMPLES)]
    Create(create::CreateArgs),
    /// Make a job that fires once
    #[command(before_help = create::ONCE_EXAMPLES)]
    Once(create::OnceArgs),
    /// Make the next version of a job: only what is named changes
    #[command(before_help = edit::EXAMPLES)]
    NewVersion(edit::EditArgs),
    /// Pause a job; a reason is required
    #[command(before_help = act::PAUSE_EXAMPLES)]
    Pause(act::PauseArgs),
    /// Resume a paused job
    #[command(before_help = act::RESUME_EXAMPLES)]
    Resume(act::ResumeArgs),
    /// Run a job now
    ///
    /// Exits with 5 if it was skipped because another run is active. With --wait it follows the run and exits with 0 if
    /// that succeeded and with 6 otherwise.
    #[command(before_help = run::EXAMPLES)]
    Run(run::RunArgs),
    /// Move the next fire of a job, and only that
    #[command(before_help = act::RESCHEDULE_EXAMPLES)]
    Reschedule(act::RescheduleArgs),
    /// Pass over the next fires of a job
    #[command(before_help = act::SKIP_EXAMPLES)]
    Skip(act::SkipArgs),
    /// Retire a job for good; its history stays
    #[command(before_help = act::RETIRE_EXAMPLES)]
    Retire(act::RetireArgs),
    /// List the versions of a job, the newest first
    #[command(before_help = versions::EXAMPLES)]
    Versions(versions::VersionsArgs),
    /// Tell what became of a time: a run, a gap, or why neither
    #[command(before_help = history::EXPLAIN_EXAMPLES)]
    Explain(history::ExplainArgs),
    /// List slots of a job that got no run, and why
    #[command(before_help = history::GAPS_EXAMPLES)]
    Gaps(history::GapsArgs),
    /// Tell how a job fared lately: counts, durations, lags
    #[command(before_help = history::STATS_EXAMPLES)]
    Stats(history::StatsArgs),
    /// Make runs for slots that have gone by and have none
    ///
    /// Tells its plan first, and asks. If no slot is without a run, nothing is made and it exits with 0.
    #[command(before_help = backfill::EXAMPLES)]
    Backfill(backfill::BackfillArgs),
    /// List the backfills of a job and how far they are, the newest first
    #[command(before_help = backfill::LIST_EXAMPLES)]
    Backfills(backfill::BackfillsArgs),
    /// Cancel the runs of a backfill that have not begun
    #[command(before_help = backfill::STOP_EXAMPLES)]
    BackfillStop(backfill::StopArgs),
    #[command(flatten)]
    Declared(declared::DeclaredCommand),
}

pub(crate) fn run(args: &JobsArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    match &args.command {
        None => list::run(&args.list, now, output),
        Some(JobsCommand::List(args)) => list::run(args, now, output),
        Some(JobsCommand::Show(args)) => show::run(args, now, output),
        Some(JobsCommand::Create(args)) => create::run(args, now, output),
        Some(JobsCommand::Once(args)) => create::once(args, now, output),
        Some(JobsCommand::NewVersion(args)) => edit::run(args, now, output),
        Some(JobsCommand::Pause(args)) => act::pause(args, now, output),
        Some(JobsCommand::Resume(args)) => act::resume(args, now, output),
        Some(JobsCommand::Run(args)) => run::run(args, now, output),
        Some(JobsCommand::Reschedule(args)) => act::reschedule(args, now, output),
        Some(JobsCommand::Skip(args)) => act::skip(args, now, output),
        Some(JobsCommand::Retire(args)) => act::retire(args, now, output),
        Some(JobsCommand::Versions(args)) => versions::run(args, now, output),
        Some(JobsCommand::Explain(args)) => history::explain(args, now, output),
        Some(JobsCommand::Gaps(args)) => history::gaps(args, now, output),
        Some(JobsCommand::Stats(args)) => history::stats(args, now, output),
        Some(JobsCommand::Backfill(args)) => backfill::run(args, now, output),
        Some(JobsCommand::Backfills(args)) => backfill::list(args, now, output),
        Some(JobsCommand::BackfillStop(args)) => backfill::stop(args, now, output),
        Some(JobsCommand::Declared(command)) => declared::run(command, now, output),
    }
}
