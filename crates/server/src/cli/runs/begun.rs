//! A run that somebody asked for: what is said when it starts, waits, or is skipped because another is in the way.

use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::watch;
use crate::cli::client::{Answer, Client, job_path};
use crate::cli::document::{items, text, time};
use crate::cli::error::note;
use crate::cli::online::{Format, ZoneArgs, duration};
use crate::cli::output::{Mark, printable};
use crate::cli::times::{away, since, spoken};
use crate::cli::{CliError, Exit, Session};

/// Whether to wait for the end of a run.
#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// Follow the run, and exit with 0 if it succeeds and with 6 if not.
    #[arg(short, long)]
    wait: bool,
    /// With --wait, give up after so long and exit with 7; the run goes on.
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "wait")]
    timeout: Option<Duration>,
}

/// What the server answered to a wish for a run.
pub(crate) struct Begun<'a> {
    pub(crate) answer: Result<Answer, CliError>,
    /// What to do about a run in the way.
    pub(crate) again: &'a str,
}

/// Tells what became of the wish, or follows the run.
pub(crate) fn told(session: &mut Session<'_>, begun: Begun<'_>, wait: &WaitArgs) -> Result<Exit, CliError> {
    let answer = match begun.answer {
        Err(CliError::Refused(refusal)) if refusal.code() == "OverlapSkipped" => {
            return skipped(session, &refusal.problem, begun.again);
        }
        answer => answer?,
    };
    let document = answer.value()?;
    let run = document.get("run").unwrap_or(&Value::Null);
    if text(&document, "outcome") == "skipped" {
        return skipped(session, &document, begun.again);
    }
    let id = text(run, "id");
    if wait.wait {
        return watch::follow(session, id, wait.timeout);
    }
    match session.format {
        Some(Format::Json | Format::Jsonl) => session.out.line(answer.text.trim_end())?,
        Some(Format::Name) => session.out.line(id)?,
        Some(Format::Table | Format::Plain) | None => {
            let (word, more) = match text(&document, "outcome") {
                "queued" => ("Queued", ", which waits for the active one"),
                _ => ("Started", ""),
            };
            let name = run.get("jobKey").and_then(Value::as_str).unwrap_or_else(|| text(run, "target"));
            session.done(Mark::Arrow, &format!("{word} run {id} of {}{more}", printable(name)))?;
            if let Some(next) = time(&document, "nextRunAt") {
                // A run by hand has no slot, so only its job knows the zone.
                let job = session.client.get(&job_path(text(run, "jobDefinitionId")), &[]);
                let job = job.and_then(|answer| answer.value()).unwrap_or_default();
                let zone = (ZoneArgs { tz: None }).read()?.zone(&job);
                session.detail(&format!("Next   {} ({}), as before", spoken(next, &zone), away(next, session.now)))?;
            }
            session.advise(&format!("follow it: everbell runs watch {id}"))?;
        }
    }
    Ok(Exit::Success)
}

/// Names the run in the way and the one that was recorded.
fn skipped(session: &mut Session<'_>, document: &Value, again: &str) -> Result<Exit, CliError> {
    let recorded = document.get("run").unwrap_or(&Value::Null);
    match session.format {
        Some(Format::Json | Format::Jsonl) => session.out.json(document)?,
        Some(Format::Name) => session.out.line(text(recorded, "id"))?,
        Some(Format::Table | Format::Plain) | None => {}
    }
    let active = document.get("activeRun").unwrap_or(&Value::Null);
    let (status, id) = (text(active, "status"), text(recorded, "activeRunId"));
    let long = time(active, "startedAt").map(|at| since(at, session.now));
    let host = host(&session.client, text(active, "runnerInstanceId"));
    let about: Vec<String> =
        [long, host.map(|host| format!("on {}", printable(&host)))].into_iter().flatten().collect();
    let about = if about.is_empty() { String::new() } else { format!(" ({})", about.join(" ")) };
    let status = if status.is_empty() { "active" } else { status };
    let mark = session.out.symbols.of(Mark::Skipped);
    note(format!("{mark} Skipped: run {id} is still {status}{about}"));
    note(format!("  recorded as run {}", text(recorded, "id")));
    note(format!("  {again}"));
    Ok(Exit::Conflict)
}

/// The machine of an instance, as far as that can be told.
pub(super) fn host(client: &Client, instance: &str) -> Option<String> {
    if instance.is_empty() {
        return None;
    }
    let all = client.get("/instances", &[]).ok()?.value().ok()?;
    let found = items(&all, "items").iter().find(|one| text(one, "id") == instance)?;
    Some(text(found, "host").to_owned())
}
