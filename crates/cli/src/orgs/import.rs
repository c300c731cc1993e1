//! `everbell orgs import`: JSON lines or CSV.

use std::path::PathBuf;

use clap::Args;
use everbell_wire::org_csv::lines;
use jiff::Timestamp;

use crate::api::input;
use crate::connection::RefusalContext;
use crate::output::{Mark, Output, counted};
use crate::{CliError, Exit, OnlineArgs, Session};

pub(super) const EXAMPLES: &str = "\
Examples:
  echo '{\"id\":\"acme\",\"timezone\":\"Europe/Paris\"}' | everbell orgs import -
  printf 'id,timezone,name\\nbolt,Asia/Tokyo,Bolt\\ncove,UTC,\"Cove, Inc\"\\n' | everbell orgs import -
  echo '{\"id\":\"acme\",\"enabled\":false}' | everbell orgs import - --dry-run --json";

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// JSON lines or CSV; `-` is standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Show the changes without applying them.
    #[arg(long)]
    dry_run: bool,
    /// The reason, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(super) fn run(args: &ImportArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let text = input(&args.file)?;
    let lines = if text.trim_start().starts_with('{') { text } else { lines(&text)? };
    let mut session = Session::new(&args.online, now, output)?;
    let call = session.client.orgs().import(lines, args.dry_run, args.reason.as_deref());
    let answer = session.client.send(call).with_action(|| "import orgs".to_owned())?;
    let Some(done) = session.for_people(answer, |_| "")? else { return Ok(Exit::Success) };
    let (mark, create, change) =
        if done.dry_run { (Mark::Arrow, "Would create", "change") } else { (Mark::Good, "Created", "changed") };
    session.done(
        mark,
        &format!(
            "{create} {}, {change} {}; {} unchanged",
            counted(done.created as usize, "org"),
            done.changed,
            done.same
        ),
    )?;
    session.advise("see them: everbell orgs list")?;
    Ok(Exit::Success)
}
