//! `everbell jobs purge`.

use clap::Args;
use jiff::Timestamp;

use crate::confirm::confirmed;
use crate::error::RefusalContext;
use crate::output::{Mark, Output, counted, printable};
use crate::{CliError, Exit, OnlineArgs, Session};
use everbell_wire::shell;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell jobs purge nightly --yes
  everbell jobs purge pulse --yes --reason \"erasure request 7\"
  everbell jobs purge report --yes --json";

#[derive(Debug, Args)]
pub(crate) struct PurgeArgs {
    /// The job: its key or its id.
    #[arg(value_name = "JOB")]
    job: String,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    yes: bool,
    /// The reason, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(super) fn run(args: &PurgeArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let job = shell(&args.job);
    let question = format!("Delete job {job} with all its versions, payloads and runs? This cannot be undone.");
    if !args.yes && !confirmed(&question, &format!("everbell jobs purge {job} --yes"))? {
        return Ok(Exit::Failed);
    }
    let mut session = Session::new(&args.online, now, output)?;
    let answer = session.client.send(session.client.jobs().purge(&args.job, args.reason.as_deref()));
    let answer = answer.with_action(|| format!("purge job `{}`", args.job)).or_list()?;
    let Some(purged) = session.for_people(answer, |purged| &purged.job_key)? else { return Ok(Exit::Success) };
    session.done(Mark::Ended, &format!("Deleted {}", printable(&purged.job_key)))?;
    let rows = [(purged.versions, "version"), (purged.runs, "run"), (purged.gaps, "gap")];
    let rows: Vec<String> = rows.iter().map(|(rows, of)| counted(*rows as usize, of)).collect();
    session.detail(&rows.join(", "))?;
    session
        .advise(&format!("see who did what: everbell audit --object {}", shell(&format!("job:{}", purged.job_key))))?;
    Ok(Exit::Success)
}
