//! `everbell status`: what the server is, and how its database fares.

use clap::Args;
use jiff::Timestamp;

use super::client::Asked;
use super::document::{number, text, texts, time};
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
    let answer = session.client.get("/status", &[]).asked(|| "tell the status".to_owned())?;
    let Some(status) = session.for_people(&answer, "version")? else { return Ok(Exit::Success) };
    let count = |name: &str| number(&status, name).unwrap_or_default();
    let (errored, due) = (count("erroredJobs"), count("dueTimers"));
    let dot = session.out.symbols.dot();
    let rows = [
        ("server", format!("{} {dot} everbell {}", session.client.server(), text(&status, "version"))),
        ("you are", format!("{} {dot} {}", text(&status, "actor"), text(&status, "role"))),
        ("database", format!("{} {dot} schema {}", text(&status, "database"), count("schemaVersion"))),
        ("jobs", format!("{} active, {} paused, {errored} errored", count("activeJobs"), count("pausedJobs"))),
        ("runs", format!("{} running, {} pending", count("runningRuns"), count("pendingRuns"))),
        ("zone data", text(&status, "tzData").to_owned()),
    ];
    let rows: Vec<Vec<String>> = rows.iter().map(|(name, value)| vec![(*name).to_owned(), printable(value)]).collect();
    session.out.table(&rows, &[2])?;
    let late = time(&status, "oldestDueAt").map_or_else(String::new, |at| format!(" for {}", since(at, now)));
    if due > 0 {
        session.done(Mark::Warning, &format!("{} due but not planned{late}", counted(due as usize, "timer")))?;
    }
    for told in texts(&status, "notes") {
        session.done(Mark::Warning, &printable(told))?;
    }
    if errored > 0 {
        session.advise("see which jobs cannot fire: everbell jobs list --errored")?;
    }
    Ok(Exit::Success)
}
