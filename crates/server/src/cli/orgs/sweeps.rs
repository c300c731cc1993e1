//! `everbell orgs rebuild` and `everbell orgs stop`: what is done for every org of a job.

use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::cli::client::{Asked, job_path};
use crate::cli::document::{flag, items, number, text};
use crate::cli::online::Format;
use crate::cli::output::{Mark, Output, printable};
use crate::cli::{CliError, Exit, OnlineArgs, Session};

pub(super) const REBUILD_EXAMPLES: &str = "\
Examples:
  everbell orgs rebuild org-briefing
  everbell orgs rebuild org-briefing --reason \"after a restore\"
  everbell orgs rebuild org-briefing -o json";

pub(super) const STOP_EXAMPLES: &str = "\
Examples:
  everbell orgs stop org-briefing
  everbell orgs stop org-briefing --reason \"the payload was wrong\"
  everbell orgs stop org-briefing -o json";

#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// The key or id of the job.
    #[arg(value_name = "JOB")]
    job: String,
    /// Why, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    online: OnlineArgs,
}

impl SweepArgs {
    fn body(&self) -> Value {
        self.reason.as_ref().map_or_else(|| json!({}), |reason| json!({ "reason": reason }))
    }
}

pub(super) fn rebuild(args: &SweepArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let answer = session.client.post(&format!("{}/orgs/rebuild", job_path(&args.job)), &args.body());
    let answer = answer.asked(|| format!("rebuild the timers of job `{}`", args.job)).or_list()?;
    let Some(begun) = session.for_people(&answer, "id")? else { return Ok(Exit::Success) };
    let how = if flag(&begun, "done") { "are made anew" } else { "are being made anew, a few orgs at a time" };
    session.done(Mark::Good, &format!("The timers of {} {how}", printable(&args.job)))?;
    Ok(Exit::Success)
}

/// Stops whatever makes runs for every org of the job. Nothing to stop is no failure.
pub(super) fn stop(args: &SweepArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let path = job_path(&args.job);
    let what = || format!("stop what is done for the orgs of job `{}`", args.job);
    let found = session.client.get(&format!("{path}/orgs"), &[("limit", "1".to_owned())]);
    let found = found.asked(what).or_list()?.value()?;
    let makes_runs = |sweep: &&Value| matches!(text(sweep, "work"), "run_now" | "backfill");
    let mut stopped = Vec::new();
    for sweep in items(&found, "sweeps").iter().filter(makes_runs) {
        let answer = session.client.post(&format!("{path}/sweeps/{}/stop", text(sweep, "id")), &args.body());
        match answer.asked(what) {
            Ok(answer) => stopped.push(answer.value()?),
            // It came to its end meanwhile.
            Err(CliError::Refused(refusal)) if refusal.status == 404 => {}
            Err(error) => return Err(error),
        }
    }
    match session.format {
        Some(Format::Json) => session.out.line(&json!({ "items": stopped }).to_string())?,
        Some(Format::Jsonl) => stopped.iter().try_for_each(|sweep| session.out.line(&sweep.to_string()))?,
        Some(Format::Name) => stopped.iter().try_for_each(|sweep| session.out.line(text(sweep, "id")))?,
        Some(Format::Table | Format::Plain) | None => told(&mut session, &args.job, &stopped)?,
    }
    Ok(Exit::Success)
}

fn told(session: &mut Session<'_>, job: &str, stopped: &[Value]) -> Result<(), CliError> {
    for sweep in stopped {
        let seen = number(sweep, "seen").unwrap_or_default();
        let words = format!("Stopped {} of {} after {seen} orgs", text(sweep, "work"), printable(job));
        session.done(Mark::Ended, &words)?;
    }
    if stopped.is_empty() {
        return session.done(Mark::Good, &format!("No runs are being made for the orgs of {}", printable(job)));
    }
    session.detail("the runs that were made stay")
}
