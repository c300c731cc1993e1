//! `everbell runs`.

mod cancel;
mod list;
mod logs;
mod output_follower;
mod report;
pub(crate) mod requested_run;
mod rerun_many;
mod show;
mod watch;

use clap::{Args, Subcommand};
use everbell_client::RunQuery;
use everbell_wire::run::Skip;
use jiff::Timestamp;

use super::connection::Connection;
use super::error::RefusalContext;
use super::output::{Output, printable};
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
    #[command(before_help = show::EXAMPLES, visible_alias = "get")]
    Show(show::ShowArgs),
    /// Print the output of a run, as far as it is stored
    #[command(before_help = logs::EXAMPLES)]
    Logs(logs::LogsArgs),
    /// Follow a run until it ends, and exit with its result
    ///
    /// Exits with 0 if it succeeded, with 6 if it failed, was canceled or was skipped, and with 7 after --timeout.
    #[command(before_help = watch::EXAMPLES)]
    Watch(watch::WatchArgs),
    /// Cancel a pending or running run
    #[command(before_help = cancel::EXAMPLES)]
    Cancel(cancel::CancelArgs),
    /// Complete a run that its remote side is working on
    ///
    /// For a run whose target responded with 202. The run token that the target received is accepted as the token.
    #[command(before_help = report::COMPLETE_EXAMPLES)]
    Complete(report::CompleteArgs),
    /// Fail the attempt of a run that its remote side is working on
    ///
    /// For a run whose target responded with 202. The run token that the target received is accepted as the token.
    #[command(before_help = report::FAIL_EXAMPLES)]
    Fail(report::FailArgs),
    /// Rerun a finished run, or all runs that match a filter
    #[command(before_help = cancel::RERUN_EXAMPLES)]
    Rerun(cancel::RerunArgs),
}

pub(crate) fn run(args: &RunsArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    match &args.command {
        None => list::run(&args.list, now, output),
        Some(RunsCommand::List(args)) => list::run(args, now, output),
        Some(RunsCommand::Show(args)) => show::run(args, now, output),
        Some(RunsCommand::Logs(args)) => logs::run(args, now, output),
        Some(RunsCommand::Watch(args)) => watch::run(args, now, output),
        Some(RunsCommand::Cancel(args)) => cancel::run(args, now, output),
        Some(RunsCommand::Complete(args)) => report::complete(args, now, output),
        Some(RunsCommand::Fail(args)) => report::fail(args, now, output),
        Some(RunsCommand::Rerun(args)) => cancel::rerun(args, now, output),
    }
}

/// The most runs that an ambiguous prefix lists.
const MAX_CANDIDATES: usize = 10;
/// The fewest digits of an id that name a run.
const MIN_PREFIX_DIGITS: usize = 8;

/// The id of a run that is named by its id, by the beginning of it, or by the key of a job for its newest run.
fn run_id(client: &Connection, name: &str) -> Result<String, CliError> {
    if let Some(id) = by_prefix(client, name)? {
        return Ok(id);
    }
    let newest = RunQuery { job_key: Some(name.to_owned()), ..RunQuery::default() };
    let newest = client.take(client.runs().list(&newest), 20);
    let newest = newest.with_action(|| format!("find the newest run of `{name}`"))?;
    // Future slots that an operator skipped are newer than every other run.
    let happened = newest.items.into_iter().find(|run| run.skip_reason != Some(Skip::Operator));
    // If there is none, the server refuses the name.
    Ok(happened.map_or_else(|| name.to_owned(), |run| run.id))
}

/// The id of a run that is named by its id or the beginning of it. If there is none, the server refuses the name.
fn exact_id(client: &Connection, name: &str) -> Result<String, CliError> {
    Ok(by_prefix(client, name)?.unwrap_or_else(|| name.to_owned()))
}

/// The run whose id begins with this text; `None` if there is none, or the text cannot be the beginning of an id.
fn by_prefix(client: &Connection, name: &str) -> Result<Option<String>, CliError> {
    if name.parse::<everbell_core::RunId>().is_ok() {
        return Ok(Some(name.to_owned()));
    }
    let is_digit = |c: char| c.is_ascii_hexdigit();
    let digits = name.chars().filter(|c| is_digit(*c)).count();
    if digits < MIN_PREFIX_DIGITS || !name.chars().all(|c| is_digit(c) || c == '-') || name.len() > 36 {
        return Ok(None);
    }
    let query = RunQuery { id_prefix: Some(name.to_owned()), ..RunQuery::default() };
    let found = client.take(client.runs().list(&query), MAX_CANDIDATES + 1);
    let found = found.with_action(|| format!("find the run `{name}`"))?.items;
    if let [_, _, ..] = found.as_slice() {
        let line = |run: &everbell_wire::Run| {
            let job = run.job_key.as_deref().unwrap_or(&run.target);
            format!("{}  {} {}", run.id, run.status, printable(job))
        };
        let mut lines: Vec<String> = found.iter().take(MAX_CANDIDATES).map(line).collect();
        if found.len() > MAX_CANDIDATES {
            lines.push("and more".to_owned());
        }
        let message = format!("the ids of several runs begin with `{name}`\n  {}", lines.join("\n  "));
        return Err(CliError::Invalid { message, hint: Some("write more of the id".to_owned()) });
    }
    Ok(found.into_iter().next().map(|run| run.id))
}
