//! `everbell reload`.

use clap::Args;
use jiff::Timestamp;

use super::error::RefusalContext;
use super::output::{Mark, Output, counted, printable};
use super::{CliError, Exit, OnlineArgs, Session};

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell reload --dry-run
  everbell reload
  everbell reload --json";

#[derive(Debug, Args)]
pub(crate) struct ReloadArgs {
    /// Only check the configuration, and print what would change.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(crate) fn run(args: &ReloadArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let answer = session.client.send(session.client.reload(args.dry_run));
    let answer = answer.with_action(|| "reload the configuration".to_owned())?;
    let Some(reloaded) = session.for_people(answer, |reloaded| &reloaded.instance)? else {
        return Ok(Exit::Success);
    };
    let file = reloaded.file.as_deref().map_or_else(|| "no file".to_owned(), printable);
    let instance = printable(&reloaded.instance);
    let done = if reloaded.dry_run { "would reload" } else { "reloaded" };
    let changes = match reloaded.changes.len() {
        0 => "nothing changed".to_owned(),
        count => counted(count, "change"),
    };
    session.done(Mark::Good, &format!("{instance} {done} {file}: {changes}"))?;
    for change in &reloaded.changes {
        let (part, name, change) =
            (printable(change.part.as_str()), printable(&change.name), printable(&change.change));
        session.detail(&format!("{part} {name}: {change}"))?;
    }
    for key in &reloaded.needs_restart {
        let mark = session.out.mark(Mark::Warning);
        session.detail(&format!("{mark} {} needs a restart", printable(key)))?;
    }
    for warning in &reloaded.warnings {
        session.advise(&printable(warning))?;
    }
    Ok(Exit::Success)
}
