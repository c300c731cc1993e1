//! `everbell jobs`.

mod actions;
mod backfill;
mod backfill_changes;
mod bulk;
mod create;
mod definition_args;
mod diff;
mod editor;
mod files;
mod history;
mod list;
mod new_version;
mod policy_args;
mod purge;
mod restore_declaration;
mod rollback;
mod run;
mod show;
mod versions;

use clap::{Args, Subcommand};
use jiff::Timestamp;

pub use files::PausedJob;
pub(crate) use files::{Done, Importing, crontab, expect_target, is_for_programs, machine_zone};

pub(super) use definition_args::{parse_json, payload};

use super::output::Output;
use super::{CliError, Exit, Program};

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
    /// List jobs with their next run and last result
    #[command(before_help = list::EXAMPLES)]
    List(list::ListArgs),
    /// Show everything about a job
    #[command(before_help = show::EXAMPLES, visible_alias = "get")]
    Show(show::ShowArgs),
    /// Create a recurring job
    #[command(before_help = create::EXAMPLES)]
    Create(create::CreateArgs),
    /// Create a one-time job
    #[command(before_help = create::ONCE_EXAMPLES)]
    Once(create::OnceArgs),
    /// Edit a job, which creates its next version
    ///
    /// Flags change only the fields that they name. Without flags, opens the job as TOML in VISUAL or EDITOR, and saves the
    /// changes if the job has not changed in the meantime; an empty or unchanged file changes nothing.
    #[command(name = "edit", visible_alias = "new-version", before_help = new_version::EXAMPLES)]
    NewVersion(new_version::NewVersionArgs),
    /// Go back to an older version of a job
    ///
    /// Shows the changes and asks for confirmation. Creates the next version, with the content of the older one.
    #[command(before_help = rollback::EXAMPLES)]
    Rollback(rollback::RollbackArgs),
    /// Restore the declaration of a job that was edited
    ///
    /// For a job that a program or a configuration file declares. Creates the next version, with the declared content.
    #[command(before_help = restore_declaration::EXAMPLES)]
    RestoreDeclaration(restore_declaration::RestoreDeclarationArgs),
    /// Pause a job, or all jobs with a label; a reason is required
    #[command(before_help = actions::PAUSE_EXAMPLES)]
    Pause(actions::PauseArgs),
    /// Resume a paused job, or all with a label
    #[command(before_help = actions::RESUME_EXAMPLES)]
    Resume(actions::ResumeArgs),
    /// Run a job now
    ///
    /// Exits with 5 if the run was skipped because another one is active. With --wait, exits with 0 if the run succeeds and
    /// with 6 otherwise.
    #[command(before_help = run::EXAMPLES)]
    Run(run::RunArgs),
    /// Move only the next run of a job
    #[command(before_help = actions::RESCHEDULE_EXAMPLES)]
    Reschedule(actions::RescheduleArgs),
    /// Skip the next runs of a job
    #[command(before_help = actions::SKIP_EXAMPLES)]
    Skip(actions::SkipArgs),
    /// Retire a job; its history stays
    #[command(before_help = actions::RETIRE_EXAMPLES, visible_alias = "rm")]
    Retire(actions::RetireArgs),
    /// Delete a job with its versions, payloads and runs
    ///
    /// This cannot be undone. It is refused while a run of the job is running; runs that have not started are deleted.
    #[command(before_help = purge::EXAMPLES, visible_alias = "delete")]
    Purge(purge::PurgeArgs),
    /// List the versions of a job, newest first
    #[command(before_help = versions::EXAMPLES)]
    Versions(versions::VersionsArgs),
    /// Explain what happened at a given time
    #[command(before_help = history::EXPLAIN_EXAMPLES)]
    Explain(history::ExplainArgs),
    /// List a job's slots that got no run, and why
    #[command(before_help = history::GAPS_EXAMPLES)]
    Gaps(history::GapsArgs),
    /// Show job statistics: counts, durations, lags
    #[command(before_help = history::STATS_EXAMPLES)]
    Stats(history::StatsArgs),
    /// Create runs for past slots that have none
    ///
    /// Shows the plan and asks for confirmation. If every slot has a run, it creates nothing and exits with 0.
    #[command(before_help = backfill::EXAMPLES)]
    Backfill(backfill::BackfillArgs),
    /// List the backfills of a job and their progress, newest first
    #[command(before_help = backfill::LIST_EXAMPLES)]
    Backfills(backfill::BackfillsArgs),
    /// Stop a backfill, and withdraw its runs that have not started
    #[command(before_help = backfill::STOP_EXAMPLES)]
    BackfillStop(backfill::StopArgs),
    #[command(flatten)]
    BackfillChange(backfill_changes::BackfillCommand),
    #[command(flatten)]
    Files(files::FileCommand),
    /// Compare two versions of a job, by default the newest two
    #[command(before_help = diff::EXAMPLES)]
    Diff(diff::DiffArgs),
}

pub(crate) fn run(args: &JobsArgs, program: Program, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    match &args.command {
        None => list::run(&args.list, now, output),
        Some(JobsCommand::List(args)) => list::run(args, now, output),
        Some(JobsCommand::Show(args)) => show::run(args, now, output),
        Some(JobsCommand::Create(args)) => create::run(args, now, output),
        Some(JobsCommand::Once(args)) => create::once(args, now, output),
        Some(JobsCommand::NewVersion(args)) => new_version::run(args, program, now, output),
        Some(JobsCommand::Rollback(args)) => rollback::run(args, now, output),
        Some(JobsCommand::RestoreDeclaration(args)) => restore_declaration::run(args, now, output),
        Some(JobsCommand::Pause(args)) => actions::pause(args, now, output),
        Some(JobsCommand::Resume(args)) => actions::resume(args, now, output),
        Some(JobsCommand::Run(args)) => run::run(args, now, output),
        Some(JobsCommand::Reschedule(args)) => actions::reschedule(args, now, output),
        Some(JobsCommand::Skip(args)) => actions::skip(args, now, output),
        Some(JobsCommand::Retire(args)) => actions::retire(args, now, output),
        Some(JobsCommand::Purge(args)) => purge::run(args, now, output),
        Some(JobsCommand::Versions(args)) => versions::run(args, now, output),
        Some(JobsCommand::Explain(args)) => history::explain(args, now, output),
        Some(JobsCommand::Gaps(args)) => history::gaps(args, now, output),
        Some(JobsCommand::Stats(args)) => history::stats(args, now, output),
        Some(JobsCommand::Backfill(args)) => backfill::run(args, now, output),
        Some(JobsCommand::Backfills(args)) => backfill::list(args, now, output),
        Some(JobsCommand::BackfillStop(args)) => backfill::stop(args, now, output),
        Some(JobsCommand::BackfillChange(command)) => backfill_changes::run(command, now, output),
        Some(JobsCommand::Files(command)) => files::run(command, program, now, output),
        Some(JobsCommand::Diff(args)) => diff::run(args, now, output),
    }
}
