//! `everbell runs`.

mod cancel;
mod list;
mod output_follower;
pub(crate) mod requested_run;
mod show;
mod watch;

use clap::{Args, Subcommand};
use everbell_client::RunQuery;
use everbell_wire::run::Skip;
use jiff::Timestamp;

use super::connection::{Connection, RefusalContext};
use super::output::Output;
use super::{CliError, Exit};

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell runs
  everbell runs list --job daily-briefing --limit 5
  everbell runs list --status failed --from -1d";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    command: Option<RunsCommand>,
    #[command(flatten)]
    list: list::ListArgs,
}

#[derive(Debug, Subcommand)]
enum RunsCommand {
    /// List runs, newest first
    #[command(before_help = list::EXAMPLES)]
    List(list::ListArgs),
    /// Show a run: result, failure, output
    #[command(before_help = show::EXAMPLES)]
    Show(show::ShowArgs),
    /// Follow a run until it ends, and exit with its result
    ///
    /// Exits with 0 if it succeeded, with 6 if it failed, was canceled or was skipped, and with 7 after --timeout.
    #[command(before_help = watch::EXAMPLES)]
    Watch(watch::WatchArgs),
    /// Cancel a pending or running run
    #[command(before_help = cancel::EXAMPLES)]
    Cancel(cancel::CancelArgs),
    /// Rerun a finished run
    #[command(before_help = cancel::RERUN_EXAMPLES)]
    Rerun(cancel::RerunArgs),
}

pub(crate) fn run(args: &RunsArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    match &args.command {
        None => list::run(&args.list, now, output),
        Some(RunsCommand::List(args)) => list::run(args, now, output),
        Some(RunsCommand::Show(args)) => show::run(args, now, output),
        Some(RunsCommand::Watch(args)) => watch::run(args, now, output),
        Some(RunsCommand::Cancel(args)) => cancel::run(args, now, output),
        Some(RunsCommand::Rerun(args)) => cancel::rerun(args, now, output),
    }
}

/// The id of a run that is named by its id, or by the key of a job for its newest run.
fn run_id(client: &Connection, name: &str) -> Result<String, CliError> {
    if name.parse::<everbell_core::RunId>().is_ok() {
        return Ok(name.to_owned());
    }
    let newest = RunQuery { job_key: Some(name.to_owned()), ..RunQuery::default() };
    let newest = client.take(client.runs().list(&newest), 20);
    let newest = newest.with_action(|| format!("find the newest run of `{name}`"))?;
    // Future slots that an operator skipped are newer than every other run.
    let happened = newest.items.into_iter().find(|run| run.skip_reason != Some(Skip::Operator));
    // If there is none, the server refuses the name.
    Ok(happened.map_or_else(|| name.to_owned(), |run| run.id))
}
