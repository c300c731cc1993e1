//! `everbell jobs restore-declaration`, and what other commands say about declared jobs.

use clap::Args;
use everbell_wire as wire;
use jiff::Timestamp;

use super::show::{fires, next_in_words, print_warnings};
use crate::error::RefusalContext;
use crate::online::own_zone;
use crate::output::{Mark, Output, printable};
use crate::{CliError, Exit, OnlineArgs, Session};
use everbell_wire::shell;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell jobs restore-declaration nightly-report
  everbell jobs restore-declaration nightly-report --reason \"the holidays are over\"
  everbell jobs restore-declaration nightly-report --json";

#[derive(Debug, Args)]
pub(crate) struct RestoreDeclarationArgs {
    /// The job: its key or its id.
    #[arg(value_name = "JOB")]
    job: String,
    /// The reason, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(super) fn run(args: &RestoreDeclarationArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let answer = session.client.send(session.client.jobs().restore_declaration(&args.job, args.reason.as_deref()));
    let answer = answer.with_action(|| format!("restore the declaration of job `{}`", args.job)).or_list()?;
    let Some(job) = session.for_people(answer, |job| &job.job_key)? else { return Ok(Exit::Success) };
    let (key, version) = (printable(&job.job_key), job.version);
    session.done(Mark::Good, &format!("Created {key} v{version} ({}), which is as declared", job.status))?;
    let next = next_in_words(&job, &fires(&session.client, &job), &own_zone(&job), now);
    session.detail(&format!("Next   {next}"))?;
    session.out.flush()?;
    print_warnings(&job);
    session.advise(&format!("see its versions: everbell jobs versions {}", shell(&job.job_key)))?;
    Ok(Exit::Success)
}

/// `in code by billing, as v2; edited since: the declaration differs`.
pub(super) fn in_words(declaration: &wire::JobDeclaration) -> String {
    let wire::JobDeclaration { version, edited, .. } = declaration;
    let edited = if *edited { "; edited since: the declaration differs" } else { "" };
    format!("{}, as v{version}{edited}", declaration.place())
}
