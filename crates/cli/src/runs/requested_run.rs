//! [`RequestedRun`]: a run that a command requested, which starts, waits, or is skipped.

use std::time::Duration;

use clap::Args;
use everbell_client::{Response, WithJson};
use everbell_core::Zone;
use everbell_wire as wire;
use everbell_wire::run::RunNowOutcome;
use serde_json::Value;

use super::watch;
use crate::connection::Connection;
use crate::error::note;
use crate::online::{Format, duration, own_zone};
use crate::output::{Mark, printable};
use crate::times::{away, since, spoken};
use crate::{CliError, Exit, Session};

/// Whether to wait for the end of a run.
#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// Follow the run, and exit with 0 if it succeeds and with 6 if not.
    #[arg(short, long)]
    wait: bool,
    /// With --wait, stop waiting after this time and exit with 7; the run continues.
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "wait")]
    timeout: Option<Duration>,
}

/// The response to a request for a run.
pub(crate) struct RequestedRun<'a> {
    pub(crate) response: Result<Response<WithJson<wire::RunNow>>, CliError>,
    /// Advice if it was skipped because another run is active.
    pub(crate) if_skipped: &'a str,
}

impl RequestedRun<'_> {
    /// Prints whether the run started, or follows it.
    pub(crate) fn report(self, session: &mut Session<'_>, wait: &WaitArgs) -> Result<Exit, CliError> {
        let response = match self.response {
            Err(CliError::Refused(refusal)) if refusal.problem().code == wire::ProblemCode::OverlapSkipped => {
                let wire::Problem { run, active_run, .. } = refusal.problem();
                return skipped(session, run.as_deref(), active_run.as_deref(), refusal.json(), self.if_skipped);
            }
            response => response?,
        };
        let WithJson { document, json } = response.document;
        if document.outcome == RunNowOutcome::Skipped {
            return skipped(session, Some(&document.run), None, &json, self.if_skipped);
        }
        started(session, &document, &response.text, wait)
    }
}

fn started(session: &mut Session<'_>, started: &wire::RunNow, text: &str, wait: &WaitArgs) -> Result<Exit, CliError> {
    let wire::RunNow { outcome, run, next_run_at } = started;
    let id = &run.id;
    if wait.wait {
        return watch::follow(session, id, wait.timeout);
    }
    match session.format {
        Some(Format::Json | Format::Jsonl) => session.out.line(text.trim_end())?,
        Some(Format::Name) => session.out.line(id)?,
        Some(Format::Table | Format::Plain) | None => {
            let (word, more) = match outcome {
                RunNowOutcome::Queued => ("Queued", ", which waits for the active run"),
                _ => ("Started", ""),
            };
            let name = run.job_key.as_ref().unwrap_or(&run.target);
            session.done(Mark::Arrow, &format!("{word} run {id} of {}{more}", printable(name)))?;
            if let Some(next) = *next_run_at {
                // A run by hand has no slot, so only its job knows the zone.
                let job = run.job_id.as_deref();
                let job = job.and_then(|id| session.client.send(session.client.jobs().get(id)).ok());
                let zone = job.map_or_else(Zone::utc, |job| own_zone(&job.document));
                session.detail(&format!("Next   {} ({}), unchanged", spoken(next, &zone), away(next, session.now)))?;
            }
            session.advise(&format!("follow it: everbell runs watch {id}"))?;
        }
    }
    Ok(Exit::Success)
}

/// Prints the active run and the skipped run that was recorded.
fn skipped(
    session: &mut Session<'_>,
    recorded: Option<&wire::Run>,
    active: Option<&wire::Run>,
    json: &Value,
    if_skipped: &str,
) -> Result<Exit, CliError> {
    let recorded_id = recorded.map_or("", |run| &run.id);
    match session.format {
        Some(Format::Json | Format::Jsonl) => session.out.json(json)?,
        Some(Format::Name) => session.out.name(recorded_id)?,
        Some(Format::Table | Format::Plain) | None => {}
    }
    let id = recorded.and_then(|run| run.active_run_id.as_deref()).unwrap_or_default();
    let status = active.map_or("active", |run| run.status.as_str());
    let long = active.and_then(|run| run.started_at).map(|at| since(at, session.now));
    let host = active.and_then(|run| host(&session.client, run));
    let about: Vec<String> =
        [long, host.map(|host| format!("on {}", printable(&host)))].into_iter().flatten().collect();
    let about = if about.is_empty() { String::new() } else { format!(" ({})", about.join(" ")) };
    let mark = session.out.symbols.symbol(Mark::Skipped);
    note(format!("{mark} Skipped: run {id} is still {status}{about}"));
    note(format!("  recorded as run {recorded_id}"));
    note(format!("  {if_skipped}"));
    Ok(Exit::Conflict)
}

/// The host of the instance that executes or executed a run, if it is known.
pub(super) fn host(client: &Connection, run: &wire::Run) -> Option<String> {
    let instance = run.runner_instance_id.as_ref()?;
    let all = client.send(client.instances().list()).ok()?;
    all.document.items.into_iter().find(|one| one.id == *instance).map(|one| one.host)
}
