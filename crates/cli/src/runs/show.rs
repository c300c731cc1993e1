//! `everbell runs show`: the timeline, the failure, and the end of the output.

use clap::Args;
use everbell_core::Zone;
use everbell_wire as wire;
use everbell_wire::run::RunStatus;
use jiff::Timestamp;

use super::requested_run::host;
use super::run_id;
use super::watch::why;
use crate::error::RefusalContext;
use crate::online::ZoneArgs;
use crate::output::{Mark, Output, aligned, printable};
use crate::times::{exact, local, spoken};
use crate::words::filled;
use crate::{CliError, Exit, OnlineArgs, Session};
use everbell_wire::elapsed::took;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell runs show \"$RUN\"
  everbell runs show daily-briefing --tz Europe/Paris
  everbell runs show \"$RUN\" --json";

/// The most lines of output that are shown, from the end.
const MAX_OUTPUT_LINES: usize = 20;

/// The most earlier attempts that are shown, the latest ones.
const MAX_EARLIER_ATTEMPTS: usize = 10;

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The id of the run or the beginning of it, or the key of a job for its newest run.
    #[arg(value_name = "RUN")]
    run: String,
    /// Print only the output of the run, as far as it is stored.
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
    let answer = session.client.send(session.client.runs().get(&id));
    let answer = answer.with_action(|| format!("show run `{}`", args.run)).or_list()?;
    let Some(run) = session.for_people(answer, |run| &run.id)? else { return Ok(Exit::Success) };
    if args.log {
        return log(&mut session, &run);
    }
    let rows = rows(&run, &shown.zone(&run), &session);
    if !session.out.is_for_people() {
        session.out.table(&rows, &[2])?;
        let lines = run.output.as_deref().unwrap_or_default().lines();
        lines.map(printable).try_for_each(|line| session.out.line(&format!("output\t{line}")))?;
        return Ok(Exit::Success);
    }
    let status = run.status.as_str();
    let (mark, name) = (session.out.mark(Mark::from_status(status)), named(&run));
    session.out.line(&format!("{mark} {status} {name}"))?;
    for line in aligned(&rows, &[2]) {
        session.out.line(&format!("  {line}"))?;
    }
    tail(&mut session, &run)?;
    let next = match run.status {
        RunStatus::Pending | RunStatus::Running => "watch",
        _ => "rerun",
    };
    session.advise(&format!("next: everbell runs {next} {}", run.id))?;
    Ok(Exit::Success)
}

/// `daily-briefing v3`, or the target of a trial.
fn named(run: &wire::Run) -> String {
    match filled(run.job_key.as_ref()) {
        Some(key) => printable(&format!("{key} v{}", run.job_version.unwrap_or_default())),
        None => printable(&format!("a trial of {}", run.target)),
    }
}

fn rows(run: &wire::Run, zone: &Zone, session: &Session<'_>) -> Vec<Vec<String>> {
    let for_people = session.out.is_for_people();
    let clock = |at: Timestamp| if for_people { in_millis(at, zone) } else { exact(at, zone) };
    let mut rows: Vec<(&str, String)> = Vec::new();
    if !for_people {
        rows.push(("status", run.status.to_string()));
        rows.push(("job", run.job_key.clone().unwrap_or_default()));
    }
    rows.push(("id", run.id.clone()));
    rows.push(("target", run.target.clone()));
    rows.push(("trigger", run.trigger_label.clone()));
    let started = run.started_runs.iter().flatten();
    rows.extend(started.map(|run| {
        let job = run.job_key.as_deref().unwrap_or_default();
        ("started", format!("{} of {} ({})", run.id, printable(job), run.status))
    }));
    rows.extend(filled(run.trace_id.as_ref()).map(|id| ("trace", id.to_owned())));
    let slot = |at: Timestamp| if for_people { spoken(at, zone) } else { exact(at, zone) };
    rows.extend(run.slot_at.map(|at| ("slot", slot(at))));
    if run.folded_slots > 0 {
        rows.push(("folded", format!("{} earlier slots", run.folded_slots)));
    }
    rows.push(("created", clock(run.created_at)));
    let late = run.lag_ms.map_or_else(String::new, |ms| format!(", {} late", took(ms)));
    let host = host(&session.client, run).map_or_else(String::new, |host| format!(" on {host}"));
    rows.extend(run.started_at.map(|at| ("started", format!("{}{host}{late}", clock(at)))));
    let lasted = run.duration_ms.map_or_else(String::new, |ms| format!(", took {}", took(ms)));
    rows.extend(run.finished_at.map(|at| ("finished", format!("{}{lasted}", clock(at)))));
    if run.attempt > 1 {
        rows.push(("attempt", run.attempt.to_string()));
    }
    let skipped = run.earlier_attempts.len().saturating_sub(MAX_EARLIER_ATTEMPTS);
    let earlier = run.earlier_attempts[skipped..].iter();
    rows.extend(earlier.map(|one| ("earlier", format!("{}, {}", one.detail, clock(one.ended_at)))));
    rows.extend(run.next_attempt_at.map(|at| ("next attempt", clock(at))));
    if let Some(remote) = &run.remote {
        let until = run.lease_until.map_or_else(String::new, |at| format!(", heartbeat due by {}", clock(at)));
        rows.push(("remote", format!("its remote side works on it{until}")));
        let (percent, message) = remote.progress.as_ref().map_or((None, None), |p| (p.percent, p.message.as_deref()));
        let percent = percent.map(|percent| format!("{percent}%"));
        let words: Vec<&str> = percent.as_deref().into_iter().chain(message).collect();
        rows.extend((!words.is_empty()).then(|| ("progress", words.join(", "))));
    }
    if run.cancel_requested {
        rows.push(("cancel", "requested".to_owned()));
    }
    rows.extend(why(run).into_iter().map(|words| ("why", words)));
    rows.extend(filled(run.active_run_id.as_ref()).map(|id| ("active run", id.to_owned())));
    rows.extend(run.failure_details.as_ref().map(|details| ("details", details.to_string())));
    rows.extend(run.payload_snapshot.as_ref().map(|payload| ("payload", payload.as_str().to_owned())));
    rows.extend(run.result.as_ref().map(|result| ("result", result.to_string())));
    rows.into_iter().map(|(name, value)| vec![name.to_owned(), printable(&value)]).collect()
}

/// `2026-11-16 08:00:00.013 CET`: a timeline shows what takes milliseconds.
fn in_millis(at: Timestamp, zone: &Zone) -> String {
    let there = local(at, zone);
    let abbreviation = zone.as_jiff().to_offset_info(at).abbreviation().to_owned();
    format!("{} {abbreviation}", there.strftime("%Y-%m-%d %H:%M:%S%.3f"))
}

/// Prints the end of the output, indented, with control characters escaped.
fn tail(session: &mut Session<'_>, run: &wire::Run) -> Result<(), CliError> {
    let Some(output) = filled(run.output.as_ref()) else { return Ok(()) };
    let lines: Vec<&str> = output.lines().collect();
    let cut = lines.len().saturating_sub(MAX_OUTPUT_LINES);
    let more = if cut > 0 { format!(" (the last {MAX_OUTPUT_LINES} lines; show all: --log)") } else { String::new() };
    session.out.line(&format!("  output{more}"))?;
    lines[cut..].iter().try_for_each(|line| session.out.line(&format!("    {}", printable(line))))?;
    Ok(())
}

/// Prints the output: as it is for a program, with control characters escaped for a terminal.
pub(super) fn log(session: &mut Session<'_>, run: &wire::Run) -> Result<Exit, CliError> {
    let output = run.output.as_deref().unwrap_or_default();
    if session.out.is_terminal() {
        output.lines().try_for_each(|line| session.out.line(&printable(line)))?;
    } else {
        session.out.raw(output)?;
    }
    Ok(Exit::Success)
}
