//! `everbell orgs import`: JSON lines or CSV.

use std::path::PathBuf;

use clap::Args;
use everbell_wire::org_csv::lines;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::api::input;
use crate::error::RefusalContext;
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
    let lines = if text.trim_start().starts_with('{') { writable(&text) } else { lines(&text)? };
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

/// Members of the document of an org that an import does not set: the lines of `orgs -o jsonl` have them.
const READ_ONLY: [&str; 9] =
    ["localTime", "localDate", "movedFrom", "movedAt", "revision", "createdAt", "updatedAt", "updatedBy", "error"];

/// Leaves out what an import cannot set. A line that is no JSON object stays as it is, and the server names it.
fn writable(text: &str) -> String {
    let line = |line: &str| match serde_json::from_str::<Map<String, Value>>(line) {
        Ok(mut org) => {
            org.retain(|name, _| !READ_ONLY.contains(&name.as_str()));
            Value::Object(org).to_string()
        }
        Err(_) => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<String>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_list_become_lines_of_an_import() {
        let listed = "{\"id\":\"a\",\"revision\":3,\"settings\":{\"revision\":1},\"error\":null}\n\nno json\n{\"id\":\"b\",\"odd\":1}";
        let expected = "{\"id\":\"a\",\"settings\":{\"revision\":1}}\n\nno json\n{\"id\":\"b\",\"odd\":1}";
        assert_eq!(writable(listed), expected);
    }
}
