//! `everbell runs watch`, and every other way to wait for a run.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use clap::Args;
use everbell_client::{Event, EventQuery, Events, Response};
use everbell_wire as wire;
use everbell_wire::run::RunStatus;
use jiff::{SignedDuration, Timestamp};

use super::output_follower::OutputFollower;
use super::requested_run::host;
use super::run_id;
use crate::connection::Connection;
use crate::error::{RefusalContext, note};
use crate::online::{Format, duration};
use crate::output::{Mark, Output, printable};
use crate::words::filled;
use crate::{CliError, Exit, OnlineArgs, Session};
use everbell_wire::elapsed::{took, wait};
use everbell_wire::shell;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell runs watch \"$RUN\"
  everbell runs watch daily-briefing --log
  everbell runs watch \"$RUN\" --json";

/// A server starts to watch runs when a client subscribes, so it may miss an early change: the run is polled as well, often
/// at first.
const FIRST_POLL_INTERVAL: Duration = Duration::from_millis(50);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// The id of the run or the beginning of it, or the key of a job for its newest run.
    #[arg(value_name = "RUN")]
    run: String,
    /// Stop waiting after this time and exit with 7; the run continues.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,
    /// Print the output of the run as it grows, a few seconds behind.
    #[arg(long)]
    log: bool,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(super) fn run(args: &WatchArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let id = run_id(&session.client, &args.run)?;
    // The document for programs contains the output.
    let printed = (args.log && !for_programs(&session)).then(OutputFollower::default);
    follow_with(&mut session, &id, args.timeout, printed)
}

/// Follows a run until it ends, prints the result, and returns it as an exit code.
pub(crate) fn follow(session: &mut Session<'_>, id: &str, timeout: Option<Duration>) -> Result<Exit, CliError> {
    follow_with(session, id, timeout, None)
}

pub(super) fn follow_with(
    session: &mut Session<'_>,
    id: &str,
    timeout: Option<Duration>,
    mut printed: Option<OutputFollower>,
) -> Result<Exit, CliError> {
    let client = std::rc::Rc::clone(&session.client);
    let deadline = timeout.map(|timeout| ends(crate::clock::wall(), timeout));
    let mut progress = Progress::new(session, printed.is_none());
    // Subscribe first, so that no end is missed before the first request.
    let mut events = client.run(client.events(&EventQuery { types: vec!["run.*".to_owned()], job_key: None })).ok();
    let mut look = FIRST_POLL_INTERVAL;
    let answer = loop {
        let answer = client.send(client.runs().get(id)).with_action(|| format!("watch run `{id}`")).or_list()?;
        let found = &answer.document;
        progress.show(found, || host(&client, found));
        let ended = !is_active(found);
        if let Some(printed) = &mut printed {
            printed.show(session, found, ended)?;
        }
        if ended {
            break answer;
        }
        let left = deadline.map(|end| end.duration_since(crate::clock::wall()));
        if left.is_some_and(|left| left <= SignedDuration::ZERO) {
            progress.end();
            return Err(still(id, found.status.as_str(), timeout.unwrap_or_default()));
        }
        let left = left.and_then(|left| Duration::try_from(left).ok()).unwrap_or(look).min(look);
        look = (look * 2).min(MAX_POLL_INTERVAL);
        if let Err(error) = wait_for_event(&client, events.as_mut(), id, left) {
            progress.end();
            if matches!(error, CliError::Interrupted) && !session.quiet {
                note(format!("run {id} continues; follow it: everbell runs watch {id}"));
            }
            return Err(error);
        }
    };
    progress.end();
    finish(session, &answer)
}

/// Waits for an event of the run, but not longer than the timeout.
fn wait_for_event(
    client: &Connection,
    events: Option<&mut Events>,
    id: &str,
    timeout: Duration,
) -> Result<(), CliError> {
    let Some(events) = events else { return client.sleep(timeout) };
    let is_about_other = |event: Event| event.run().is_none_or(|event| event.run_id != id);
    while client.run(events.next_within(timeout))?.is_some_and(is_about_other) {}
    Ok(())
}

fn is_active(run: &wire::Run) -> bool {
    matches!(run.status, RunStatus::Pending | RunStatus::Running)
}

fn ends(now: Timestamp, timeout: Duration) -> Timestamp {
    now.checked_add(timeout).unwrap_or(Timestamp::MAX)
}

fn still(id: &str, status: &str, timeout: Duration) -> CliError {
    CliError::Unreachable {
        message: format!("run {id} is still {status} after {}", wait(timeout.as_secs() as i64)),
        hint: format!("it continues; follow it: everbell runs watch {id}"),
    }
}

fn finish(session: &mut Session<'_>, answer: &Response<wire::Run>) -> Result<Exit, CliError> {
    let run = &answer.document;
    let (id, status) = (&run.id, run.status.as_str());
    let succeeded = run.status == RunStatus::Succeeded;
    match session.format {
        Some(Format::Json | Format::Jsonl) => session.out.line(answer.text.trim_end())?,
        Some(Format::Name) => session.out.line(id)?,
        Some(Format::Table | Format::Plain) | None => {
            let took = run.duration_ms.map_or_else(String::new, |ms| format!(" in {}", took(ms)));
            session.done(Mark::from_status(status), &format!("run {id} {status}{took}"))?;
            for line in why(run) {
                session.detail(&line)?;
            }
            if !succeeded {
                session.advise(&format!("show details: everbell runs show {}", shell(id)))?;
            }
        }
    }
    Ok(if succeeded { Exit::Success } else { Exit::RunFailed })
}

/// Why a run ended without success.
pub(super) fn why(run: &wire::Run) -> Vec<String> {
    let failure = filled(run.failure_message.as_ref()).map(|message| {
        let code = filled(run.failure_code.as_ref()).map_or_else(String::new, |code| format!("{code}: "));
        printable(&format!("{code}{message}"))
    });
    let skip = filled(run.skip_detail.as_ref()).map(|detail| printable(&format!("skipped: {detail}")));
    failure.into_iter().chain(skip).collect()
}

fn for_programs(session: &Session<'_>) -> bool {
    matches!(session.format, Some(Format::Json | Format::Jsonl | Format::Name))
}

/// One line on the terminal that grows with every state.
struct Progress {
    shown: bool,
    last: String,
    arrow: &'static str,
}

impl Progress {
    fn new(session: &Session<'_>, wanted: bool) -> Progress {
        let shown = wanted && std::io::stderr().is_terminal() && !session.quiet && !for_programs(session);
        Progress { shown, last: String::new(), arrow: session.out.symbols.symbol(Mark::Arrow) }
    }

    /// Shows a new status. Errors of the terminal are ignored.
    fn show(&mut self, run: &wire::Run, host: impl FnOnce() -> Option<String>) {
        let status = run.status.as_str();
        // The end has a line of its own.
        if !self.shown || status == self.last || !is_active(run) {
            return;
        }
        let mut stderr = std::io::stderr().lock();
        if self.last.is_empty() {
            let _ = write!(stderr, "{} run {}", self.arrow, run.id);
        }
        let place = if run.status == RunStatus::Running { host() } else { None };
        let place = place.map_or_else(String::new, |host| format!(" on {}", printable(&host)));
        let _ = write!(stderr, " {status}{place} ...");
        let _ = stderr.flush();
        status.clone_into(&mut self.last);
    }

    fn end(&self) {
        if self.shown && !self.last.is_empty() {
            let _ = writeln!(std::io::stderr());
        }
    }
}
