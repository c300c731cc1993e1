//! `everbell orgs export`.

use std::path::PathBuf;

use clap::Args;
use everbell_client::OrgQuery;
use jiff::Timestamp;
use serde_json::json;

use crate::error::RefusalContext;
use crate::output::{Mark, Output, counted};
use crate::{CliError, Exit, OnlineArgs, Session};

/// The most orgs of one file.
const MAX_ORGS: usize = 1_000_000;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell orgs export
  everbell orgs export -f orgs.jsonl
  everbell orgs export | everbell orgs import - --dry-run";

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Write to this file instead of standard output; an existing file is replaced.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(super) fn run(args: &ExportArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let list = session.client.take(session.client.orgs().list(&OrgQuery::default()), MAX_ORGS);
    let list = list.with_action(|| "list orgs".to_owned())?;
    if list.next_cursor.is_some() {
        return Err(CliError::invalid(format!("the server has more than {MAX_ORGS} orgs, too many for one file")));
    }
    let mut lines = String::new();
    for org in &list.items {
        let mut line = json!({ "id": org.id, "timezone": org.timezone, "name": org.name, "enabled": org.enabled });
        if let Some(settings) = &org.settings {
            line["settings"] = json!(settings);
        }
        lines.push_str(&line.to_string());
        lines.push('\n');
    }
    let Some(file) = &args.file else {
        session.out.raw(&lines)?;
        return Ok(Exit::Success);
    };
    std::fs::write(file, lines).map_err(|error| CliError::Failed {
        message: format!("cannot write `{}`: {error}", file.display()),
        hint: None,
    })?;
    session.done(Mark::Good, &format!("Wrote {} to {}", counted(list.items.len(), "org"), file.display()))?;
    session.advise(&format!("preview it on another server: everbell orgs import {} --dry-run", file.display()))?;
    Ok(Exit::Success)
}
