//! `everbell runs show`: the timeline, the failure, and the end of what it printed.

use clap::Args;
use everbell_core::Zone;
use jiff::Timestamp;
use serde_json::Value;

use super::begun::host;
use super::watch::why;
use super::{run_id, run_path};
use crate::cli::client::Asked;
use crate::cli::document::{flag, number, some_text, text, time};
use crate::cli::online::ZoneArgs;
use crate::cli::output::{Mark, Output, aligned, printable};
use crate::cli::times::{exact, local, spoken};
use crate::cli::{CliError, Exit, OnlineArgs, Session};
use crate::elapsed::took;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell runs show \"$RUN\"
  everbell runs show daily-briefing --tz Europe/Paris
  everbell runs show \"$RUN\" --json";

/// How much of what it printed is shown, from the end.
const LINES: usize = 20;

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The id of the run, or the key of a job for its newest run.
    #[arg(value_name = "RUN")]
    run: String,
    /// Print only what the run printed, all that is kept of it.
    #[arg(long)]
    log: bool,
    #[command(flatten)]
    zone: ZoneArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(super) fn run(args: &ShowArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let shown = args.zone.read()?;
    let mut session = Session::new(&args.online, now, output)?;
    let id = run_id(&session.client, &args.run)?;
    let answer = session.client.get(&run_path(&id), &[]);
    let answer = answer.asked(|| format!("show run `{}`", args.run)).or_list()?;
    let Some(run) = session.for_people(&answer, "id")? else { return Ok(Exit::Success) };
    if args.log {
        return log(&mut session, &run);
    }
    let rows = rows(&run, &shown.zone(&run), &session);
    if !session.out.is_for_people() {
        session.out.table(&rows, &[2])?;
        let lines = text(&run, "output").lines();
        lines.map(printable).try_for_each(|line| session.out.line(&format!("output\t{line}")))?;
        return Ok(Exit::Success);
    }
    let status = text(&run, "status");
    let (mark, name) = (session.out.mark(Mark::of_status(status)), named(&run));
    session.out.line(&format!("{mark} {status} {name}"))?;
    for line in aligned(&rows, &[2]) {
        session.out.line(&format!("  {line}"))?;
    }
    tail(&mut session, &run)?;
    let id = text(&run, "id");
    let next = match status {
        "pending" | "running" => "watch",
        _ => "rerun",
    };
    session.advise(&format!("next: everbell runs {next} {id}"))?;
    Ok(Exit::Success)
}

/// `daily-briefing v3`, or the target of a trial.
fn named(run: &Value) -> String {
    match some_text(run, "jobKey") {
        Some(key) => printable(&format!("{key} v{}", number(run, "jobVersion").unwrap_or_default())),
        None => printable(&format!("a trial of {}", text(run, "target"))),
    }
}

fn rows(run: &Value, zone: &Zone, session: &Session<'_>) -> Vec<Vec<String>> {
    let for_people = session.out.is_for_people();
    let clock = |at: Timestamp| if for_people { in_millis(at, zone) } else { exact(at, zone) };
    let mut rows: Vec<(&str, String)> = Vec::new();
    if !for_people {
        rows.push(("status", text(run, "status").to_owned()));
        rows.push(("job", some_text(run, "jobKey").unwrap_or_default().to_owned()));
    }
    rows.push(("id", text(run, "id").to_owned()));
    rows.push(("target", text(run, "target").to_owned()));
    rows.push(("trigger", text(run, "triggerLabel").to_owned()));
    let slot = |at: Timestamp| if for_people { spoken(at, zone) } else { exact(at, zone) };
    rows.extend(time(run, "slotAt").map(|at| ("slot", slot(at))));
    if let Some(folded) = number(run, "foldedSlots").filter(|folded| *folded > 0) {
        rows.push(("folded", format!("{folded} earlier slots")));
    }
    rows.extend(time(run, "createdAt").map(|at| ("made", clock(at))));
    let late = number(run, "lagMs").map_or_else(String::new, |ms| format!(", {} after it was meant to", took(ms)));
    let place = host(&session.client, text(run, "runnerInstanceId")).unwrap_or_default();
    let place = if place.is_empty() { place } else { format!(" on {place}") };
    rows.extend(time(run, "startedAt").map(|at| ("started", format!("{}{place}{late}", clock(at)))));
    let lasted = number(run, "durationMs").map_or_else(String::new, |ms| format!(", took {}", took(ms)));
    rows.extend(time(run, "finishedAt").map(|at| ("finished", format!("{}{lasted}", clock(at)))));
    if let Some(attempt) = number(run, "attempt").filter(|attempt| *attempt > 1) {
        rows.push(("attempt", attempt.to_string()));
    }
    rows.extend(time(run, "nextAttemptAt").map(|at| ("tried again", clock(at))));
    if flag(run, "cancelRequested") {
        rows.push(("cancel", "somebody asked it to stop".to_owned()));
    }
    rows.extend(why(run).into_iter().map(|words| ("why", words)));
    rows.extend(some_text(run, "activeRunId").map(|id| ("in the way", id.to_owned())));
    let json = |name: &str| run.get(name).filter(|value| !value.is_null()).map(ToString::to_string);
    rows.extend(json("failureDetails").map(|details| ("details", details)));
    rows.extend(json("payloadSnapshot").map(|payload| ("payload", payload)));
    rows.extend(json("result").map(|result| ("result", result)));
    rows.into_iter().map(|(name, value)| vec![name.to_owned(), printable(&value)]).collect()
}

/// `2026-11-16 08:00:00.013 CET`: a timeline shows what takes milliseconds.
fn in_millis(at: Timestamp, zone: &Zone) -> String {
    let there = local(at, zone);
    let abbreviation = zone.as_jiff().to_offset_info(at).abbreviation().to_owned();
    format!("{} {abbreviation}", there.strftime("%Y-%m-%d %H:%M:%S%.3f"))
}

/// The end of what it printed, indented, each line of it harmless.
fn tail(session: &mut Session<'_>, run: &Value) -> Result<(), CliError> {
    let Some(output) = some_text(run, "output") else { return Ok(()) };
    let lines: Vec<&str> = output.lines().collect();
    let cut = lines.len().saturating_sub(LINES);
    let more = if cut > 0 { format!(" (the last {LINES} lines; all: --log)") } else { String::new() };
    session.out.line(&format!("  output{more}"))?;
    lines[cut..].iter().try_for_each(|line| session.out.line(&format!("    {}", printable(line))))?;
    Ok(())
}

/// A program gets it as it is; a terminal gets it harmless.
fn log(session: &mut Session<'_>, run: &Value) -> Result<Exit, CliError> {
    let output = text(run, "output");
    if session.out.is_terminal() {
        output.lines().try_for_each(|line| session.out.line(&printable(line)))?;
    } else {
        session.out.raw(output)?;
    }
    Ok(Exit::Success)
}
