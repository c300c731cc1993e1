//! `everbell jobs diff`.

use clap::Args;
use everbell_wire as wire;
use jiff::Timestamp;
use serde_json::Value;

use crate::error::RefusalContext;
use crate::online::Format;
use crate::output::{Cell, Column, Output, Table, printable};
use crate::{CliError, Exit, OnlineArgs, Session};

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell jobs diff daily-briefing
  everbell jobs diff daily-briefing --from 1 --to 2
  everbell jobs diff daily-briefing --json";

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The job: its key or its id.
    #[arg(value_name = "JOB")]
    job: String,
    /// The version to compare with.
    #[arg(long, value_name = "N", requires = "to", value_parser = clap::value_parser!(u32).range(1..))]
    from: Option<u32>,
    /// The version to compare.
    #[arg(long, value_name = "N", requires = "from", value_parser = clap::value_parser!(u32).range(1..))]
    to: Option<u32>,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(super) fn run(args: &DiffArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let job = &args.job;
    let action = || format!("compare versions of job `{job}`");
    let named = args.from.zip(args.to);
    let (from, to) = named.map_or_else(|| newest(&session, job), Ok)?;
    let answer = session.client.send(session.client.jobs().diff(job, from, to)).with_action(action)?;
    if session.format == Some(Format::Name) {
        answer.document.items.iter().try_for_each(|change| session.out.name(&change.field))?;
        return Ok(Exit::Success);
    }
    let Some(wire::Items { items }) = session.for_people(answer, |_| "")? else { return Ok(Exit::Success) };
    let columns = [Column::new("FIELD"), Column::new("FROM").shrinks(), Column::new("TO").shrinks()];
    let mut table = Table::new(&columns, session.out.symbols);
    for wire::ChangedField { field, from, to } in &items {
        table.row(vec![Cell::text(field), cell(from), cell(to)]);
    }
    session.out.list(&table)?;
    let relation = if items.is_empty() { "is equal to" } else { "differs from" };
    session.advise(&format!("version {to} {relation} version {from}"))?;
    Ok(Exit::Success)
}

/// The newest version and the one before.
fn newest(session: &Session<'_>, job: &str) -> Result<(u32, u32), CliError> {
    let versions = session.client.send(session.client.jobs().versions(job));
    let versions = versions.with_action(|| format!("compare versions of job `{job}`"))?;
    let newest = versions.document.items.first().map_or(1, |newest| newest.version);
    if newest > 1 {
        return Ok((newest - 1, newest));
    }
    Err(CliError::Invalid {
        message: format!("job `{}` has one version, so there is nothing to compare", printable(job)),
        hint: Some("create the next one: everbell jobs edit".to_owned()),
    })
}

fn cell(value: &Value) -> Cell {
    match value {
        Value::Null => Cell::text(""),
        Value::String(text) => Cell::text(text),
        other => Cell::text(&other.to_string()),
    }
}
