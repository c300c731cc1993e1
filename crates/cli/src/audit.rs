//! `everbell audit`.

use clap::Args;
use everbell_client::AuditQuery;
use jiff::Timestamp;

use super::error::RefusalContext;
use super::online::ZoneArgs;
use super::output::{Cell, Column, Output, Table};
use super::times::stamp_cell;
use super::words::filled;
use super::{CliError, Exit, OnlineArgs, Session};

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell audit
  everbell audit --job daily-briefing --limit 5
  everbell audit --object token:admin --json";

const COLUMNS: [Column; 7] = [
    Column::new("TIME"),
    Column::new("ACTOR").shrinks(),
    Column::new("ACTION"),
    Column::new("OBJECT").shrinks(),
    Column::new("REASON").shrinks().drop_order(3),
    Column::new("FROM").drop_order(2),
    Column::new("REQUEST").drop_order(1),
];

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// Only entries about this job.
    #[arg(long, value_name = "KEY", conflicts_with = "object")]
    job: Option<String>,
    /// Only entries about this object, such as `job:daily-briefing` or `token:ops`.
    #[arg(long, value_name = "OBJECT")]
    object: Option<String>,
    /// Show at most this many entries.
    #[arg(short = 'n', long, value_name = "N", default_value = "30", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    #[command(flatten)]
    zone: ZoneArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(crate) fn run(args: &AuditArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let zone = args.zone.read()?.or_utc();
    let mut session = Session::new(&args.online, now, output)?;
    let object = args.object.clone().or_else(|| args.job.as_ref().map(|key| format!("job:{key}")));
    let list = session.client.take(session.client.audit().list(&AuditQuery { object }), args.limit as usize);
    let list = list.with_action(|| "read the audit trail".to_owned())?;
    if session.print_list(&list, |entry| &entry.id)? {
        return Ok(Exit::Success);
    }
    let mut table = Table::new(&COLUMNS, session.out.symbols);
    for entry in &list.items {
        let or_dash = |text: Option<&String>| filled(text).map_or_else(|| Cell::both("-", ""), Cell::text);
        table.row(vec![
            stamp_cell(Some(entry.at), &zone),
            Cell::text(&entry.actor),
            Cell::text(&entry.action),
            Cell::text(&entry.object),
            or_dash(entry.reason.as_ref()),
            or_dash(entry.from.as_ref()),
            or_dash(entry.request_id.as_ref()),
        ]);
    }
    if list.items.is_empty() {
        session.advise("no audit entry matches")?;
        return Ok(Exit::Success);
    }
    session.out.list(&table)?;
    let more = if list.next_cursor.is_some() { " shown; raise --limit to see more" } else { "" };
    let noun = if list.items.len() == 1 { "entry" } else { "entries" };
    session.advise(&format!("{} {noun}{more}", list.items.len()))?;
    Ok(Exit::Success)
}
