//! `everbell orgs import`: JSON lines or CSV.

use std::path::PathBuf;

use clap::Args;
use everbell_wire as wire;
use everbell_wire::org_csv::lines;
use jiff::Timestamp;

use crate::api::input;
use crate::client::Asked;
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
    /// Show what would be done without doing it.
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
    let mut query: Vec<_> = args.reason.iter().map(|reason| ("reason", reason.clone())).collect();
    if args.dry_run {
        query.push(("dryRun", "true".to_owned()));
    }
    let answer = session.client.post_lines::<wire::Imported>("/orgs", &query, lines);
    let answer = answer.asked(|| "import orgs".to_owned())?;
    let Some(done) = session.for_people(answer, |_| "")? else { return Ok(Exit::Success) };
    let (mark, word) = if done.dry_run { (Mark::Arrow, "Would make") } else { (Mark::Good, "Made") };
    session.done(
        mark,
        &format!(
            "{word} {}, changed {}, {} as they were",
            counted(done.created as usize, "org"),
            done.changed,
            done.same
        ),
    )?;
    session.advise("see them: everbell orgs list")?;
    Ok(Exit::Success)
}
