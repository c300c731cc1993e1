//! `everbell status`.

use clap::Args;
use jiff::Timestamp;

use super::error::RefusalContext;
use super::output::{Mark, Output, counted, printable};
use super::times::since;
use super::{CliError, Exit, OnlineArgs, Session};

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell status
  everbell status --json
  everbell status --server http://127.0.0.1:7070 --request-timeout 5s";

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    online: OnlineArgs,
}

pub(crate) fn run(args: &StatusArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let answer = session.client.send(session.client.status()).with_action(|| "show the status".to_owned())?;
    let Some(status) = session.for_people(answer, |status| &status.version)? else { return Ok(Exit::Success) };
    let (errored, due) = (status.errored_jobs, status.due_timers);
    let dot = session.out.symbols.dot();
    let rows = [
        ("server", format!("{} {dot} everbell {}", session.client.server(), status.version)),
        ("you are", format!("{} {dot} {}", status.actor, status.role)),
        ("database", format!("{} {dot} schema {}", status.database, status.schema_version)),
        ("jobs", format!("{} active, {} paused, {errored} errored", status.active_jobs, status.paused_jobs)),
        ("runs", format!("{} running, {} pending", status.running_runs, status.pending_runs)),
        ("zone data", status.tz_data.clone()),
    ];
    let context = session.client.context().map(|name| ("context", name.to_owned()));
    let rows: Vec<Vec<String>> =
        context.iter().chain(&rows).map(|(name, value)| vec![(*name).to_owned(), printable(value)]).collect();
    session.out.table(&rows, &[2])?;
    let late = status.oldest_due_at.map_or_else(String::new, |at| format!(" for {}", since(at, now)));
    if due > 0 {
        session.done(Mark::Warning, &format!("{} due but not planned{late}", counted(due as usize, "timer")))?;
    }
    for words in &status.notes {
        session.done(Mark::Warning, &printable(words))?;
    }
    if errored > 0 {
        session.advise("see which jobs cannot fire: everbell jobs list --errored")?;
    }
    Ok(Exit::Success)
}
