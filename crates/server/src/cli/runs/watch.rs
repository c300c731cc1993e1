//! `everbell runs watch`, and every other way to wait for a run.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::begun::host;
use super::printed::Printed;
use super::{run_id, run_path};
use crate::cli::client::{Answer, Asked, Client, Events};
use crate::cli::document::{number, some_text, text};
use crate::cli::error::note;
use crate::cli::online::{Format, duration};
use crate::cli::output::{Mark, Output, printable};
use crate::cli::words::shell;
use crate::cli::{CliError, Exit, OnlineArgs, Session};
use crate::elapsed::{took, wait};

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell runs watch \"$RUN\"
  everbell runs watch daily-briefing --log
  everbell runs watch \"$RUN\" --json";

/// Events tell at once, but a server begins to watch only when somebody listens: looks find what it missed, at first in
/// short order.
const FIRST_LOOK: Duration = Duration::from_millis(50);
const LAST_LOOK: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// The id of the run, or the key of a job for its newest run.
    #[arg(value_name = "RUN")]
    run: String,
    /// Give up after so long, and exit with 7; the run goes on.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,
    /// Print what the run prints, as it comes, a few seconds behind.
    #[arg(long)]
    log: bool,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(super) fn run(args: &WatchArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let id = run_id(&session.client, &args.run)?;
    // A document for programs has all of it.
    let printed = (args.log && !for_programs(&session)).then(Printed::default);
    follow_with(&mut session, &id, args.timeout, printed)
}

/// Follows a run to its end, tells the end, and gives it as the exit code.
pub(crate) fn follow(session: &mut Session<'_>, id: &str, patience: Option<Duration>) -> Result<Exit, CliError> {
    follow_with(session, id, patience, None)
}

/// The same with what it prints meanwhile.
fn follow_with(
    session: &mut Session<'_>,
    id: &str,
    patience: Option<Duration>,
    mut printed: Option<Printed>,
) -> Result<Exit, CliError> {
    let client = std::rc::Rc::clone(&session.client);
    let deadline = patience.map(|patience| ends(crate::clock::wall(), patience));
    let mut progress = Progress::new(session, printed.is_none());
    // Listening first: an end between the question and the first event would be missed.
    let mut events = client.events(vec![("types", "run.*".to_owned())]).ok();
    let mut look = FIRST_LOOK;
    let (answer, ended) = loop {
        let answer = client.get(&run_path(id), &[]).asked(|| format!("watch run `{id}`")).or_list()?;
        let found = answer.value()?;
        progress.tell(&found, || host(&client, text(&found, "runnerInstanceId")));
        let ended = !matches!(text(&found, "status"), "pending" | "running");
        if let Some(printed) = &mut printed {
            printed.show(session, &found, ended)?;
        }
        if ended {
            break (answer, found);
        }
        let left = deadline.map(|end| end.duration_since(crate::clock::wall()));
        if left.is_some_and(|left| left <= SignedDuration::ZERO) {
            progress.end();
            return Err(still(id, text(&found, "status"), patience.unwrap_or_default()));
        }
        let left = left.and_then(|left| Duration::try_from(left).ok()).unwrap_or(look).min(look);
        look = (look * 2).min(LAST_LOOK);
        if let Err(error) = heard(&client, events.as_mut(), id, left) {
            progress.end();
            if matches!(error, CliError::Interrupted) && !session.quiet {
                note(format!("run {id} goes on; follow it: everbell runs watch {id}"));
            }
            return Err(error);
        }
    };
    progress.end();
    finish(session, &answer, &ended)
}

/// Waits for something about the run, or for so long.
fn heard(client: &Client, events: Option<&mut Events<'_>>, id: &str, most: Duration) -> Result<(), CliError> {
    let Some(events) = events else { return client.sleep(most) };
    while events.next(Some(most))?.is_some_and(|event| text(&event.data, "runId") != id) {}
    Ok(())
}

fn ends(now: Timestamp, patience: Duration) -> Timestamp {
    now.checked_add(patience).unwrap_or(Timestamp::MAX)
}

fn still(id: &str, status: &str, patience: Duration) -> CliError {
    CliError::Unreachable {
        message: format!("run {id} is still {status} after {}", wait(patience.as_secs() as i64)),
        hint: format!("it goes on; follow it: everbell runs watch {id}"),
    }
}

fn finish(session: &mut Session<'_>, answer: &Answer, run: &Value) -> Result<Exit, CliError> {
    let (id, status) = (text(run, "id"), text(run, "status"));
    match session.format {
        Some(Format::Json | Format::Jsonl) => session.out.line(answer.text.trim_end())?,
        Some(Format::Name) => session.out.line(id)?,
        Some(Format::Table | Format::Plain) | None => {
            let took = number(run, "durationMs").map_or_else(String::new, |ms| format!(" in {}", took(ms)));
            session.done(Mark::of_status(status), &format!("run {id} {status}{took}"))?;
            for line in why(run) {
                session.detail(&line)?;
            }
            if status != "succeeded" {
                session.advise(&format!("see more: everbell runs show {}", shell(id)))?;
            }
        }
    }
    Ok(if status == "succeeded" { Exit::Success } else { Exit::RunFailed })
}

/// Why a run ended without success.
pub(super) fn why(run: &Value) -> Vec<String> {
    let failure = some_text(run, "failureMessage").map(|message| {
        let code = some_text(run, "failureCode").map_or_else(String::new, |code| format!("{code}: "));
        printable(&format!("{code}{message}"))
    });
    let skip = some_text(run, "skipDetail").map(|detail| printable(&format!("skipped: {detail}")));
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
        Progress { shown, last: String::new(), arrow: session.out.symbols.of(Mark::Arrow) }
    }

    /// Nobody has to see it, so nothing fails if it cannot be written.
    fn tell(&mut self, run: &Value, host: impl FnOnce() -> Option<String>) {
        let status = text(run, "status");
        // The end has a line of its own.
        if !self.shown || status == self.last || !matches!(status, "pending" | "running") {
            return;
        }
        let mut stderr = std::io::stderr().lock();
        if self.last.is_empty() {
            let _ = write!(stderr, "{} run {}", self.arrow, text(run, "id"));
        }
        let place = if status == "running" { host() } else { None };
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
