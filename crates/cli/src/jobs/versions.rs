//! `everbell jobs versions`.

use clap::Args;
use jiff::Timestamp;

use super::list::schedule;
use crate::error::RefusalContext;
use crate::online::ZoneArgs;
use crate::output::{Cell, Column, Output, Table};
use crate::times::stamp_cell;
use crate::{CliError, Exit, OnlineArgs, Session};

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell jobs versions daily-briefing
  everbell jobs versions daily-briefing --tz UTC
  everbell jobs versions daily-briefing -o jsonl";

const COLUMNS: [Column; 7] = [
    Column::new("VER").right(),
    Column::new("STATUS"),
    Column::new("TARGET").shrinks(),
    Column::new("SCHEDULE").shrinks(),
    Column::new("TZ").drop_order(1),
    Column::new("CREATED").drop_order(3),
    Column::new("BY").shrinks().drop_order(2),
];

#[derive(Debug, Args)]
pub(crate) struct VersionsArgs {
    /// The job: its key or its id.
    #[arg(value_name = "JOB")]
    job: String,
    #[command(flatten)]
    zone: ZoneArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(super) fn run(args: &VersionsArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let shown = args.zone.read()?;
    let mut session = Session::new(&args.online, now, output)?;
    let list = session.client.run(session.client.jobs().versions(&args.job).list());
    let list = list.with_action(|| format!("list the versions of job `{}`", args.job)).or_list()?;
    if session.print_list(&list, |job| &job.id)? {
        return Ok(Exit::Success);
    }
    let mut table = Table::new(&COLUMNS, session.out.symbols);
    for job in &list.items {
        table.row(vec![
            Cell::text(&job.version.to_string()),
            Cell::status(job.status.as_str(), session.out.symbols),
            Cell::text(&job.target),
            Cell::text(schedule(job)),
            Cell::text(&job.timezone),
            stamp_cell(Some(job.created_at), &shown.zone(job)),
            Cell::text(&job.created_by),
        ]);
    }
    session.out.list(&table)?;
    Ok(Exit::Success)
}
