//! `everbell jobs run`.

use clap::Args;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use super::definition::payload;
use super::show::jobs_there;
use crate::cli::client::{Asked, job_path};
use crate::cli::output::Output;
use crate::cli::runs::begun::{Begun, WaitArgs, told};
use crate::cli::{CliError, Exit, OnlineArgs, Session};

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell jobs run daily-briefing --wait
  everbell jobs run daily-briefing --queue --payload '{\"kind\":\"again\"}'
  everbell jobs run daily-briefing --force -o name";

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The job: its key or its id.
    #[arg(value_name = "JOB")]
    job: String,
    #[command(flatten)]
    wait: WaitArgs,
    /// Start at once, whatever else is active.
    #[arg(long, conflicts_with = "queue")]
    force: bool,
    /// Wait for the runs that are active instead of being skipped.
    #[arg(long)]
    queue: bool,
    /// Another payload than the job's: JSON, `@FILE`, or `-` for standard input.
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    payload: Option<String>,
    /// Why, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Serialize)]
struct Body<'a> {
    force: bool,
    queue: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Box<RawValue>>,
}

pub(super) fn run(args: &RunArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let payload = args.payload.as_deref().map(payload).transpose()?;
    let mut session = Session::new(&args.online, now, output)?;
    let body = Body { force: args.force, queue: args.queue, note: args.reason.as_deref(), payload };
    let answer = session.client.post(&format!("{}/run-now", job_path(&args.job)), &body);
    let answer = answer.asked(|| format!("run job `{}`", args.job)).or_try(404, jobs_there);
    let ways = format!("everbell jobs run {}", crate::cli::words::shell(&args.job));
    let begun = Begun { answer, again: &format!("force it: {ways} --force, or wait for it: {ways} --queue") };
    told(&mut session, begun, &args.wait)
}
