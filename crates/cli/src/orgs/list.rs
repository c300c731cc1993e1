//! `everbell orgs list`.

use clap::Args;
use everbell_client::OrgQuery;
use everbell_wire as wire;
use jiff::Timestamp;

use crate::error::RefusalContext;
use crate::output::{Cell, Column, Output, Symbols, Table, counted};
use crate::words::joined;
use crate::{CliError, Exit, OnlineArgs, Session};
use everbell_wire::shell;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell orgs list
  everbell orgs list --timezone Europe/Paris --disabled
  everbell orgs list --search acme -o name";

const COLUMNS: [Column; 6] = [
    Column::new("ORG").shrinks_to(20),
    Column::new("NAME").shrinks().drop_order(2),
    Column::new("TIMEZONE"),
    Column::new("LOCAL").drop_order(1),
    Column::new("STATE"),
    Column::new("ERROR").shrinks().drop_order(3),
];

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only orgs whose id or name contains this.
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Only orgs in this IANA time zone.
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// Only orgs for which jobs fire.
    #[arg(long, conflicts_with = "disabled")]
    enabled: bool,
    /// Only orgs for which no job fires.
    #[arg(long)]
    disabled: bool,
    /// Only orgs for which some job cannot fire, because a zone or an override cannot be read.
    #[arg(long)]
    errored: bool,
    /// Show at most this many orgs.
    #[arg(long, value_name = "N", default_value = "1000", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    limit: u32,
    #[command(flatten)]
    online: OnlineArgs,
}

impl ListArgs {
    fn query(&self) -> OrgQuery {
        OrgQuery {
            text: self.search.clone(),
            timezone: self.timezone.clone(),
            enabled: (self.enabled || self.disabled).then_some(self.enabled),
            errored: self.errored.then_some(true),
        }
    }
}

pub(super) fn run(args: &ListArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let query = args.query();
    let list = session.client.take(session.client.orgs().list(&query), args.limit as usize);
    let list = list.with_action(|| "list orgs".to_owned())?;
    if session.print_list(&list, |org| &org.id)? {
        return Ok(Exit::Success);
    }
    let Some(first) = list.items.first() else {
        session.advise(if query == OrgQuery::default() {
            "no orgs yet; create one: everbell orgs set acme --timezone Europe/Paris"
        } else {
            "no org matches; list all: everbell orgs list"
        })?;
        return Ok(Exit::Success);
    };
    let symbols = session.out.symbols;
    let mut table = Table::new(&COLUMNS, symbols);
    for org in &list.items {
        table.row(row(org, symbols));
    }
    session.out.list(&table)?;
    let more = if list.next_cursor.is_some() { " shown; raise --limit to see more" } else { "" };
    let counts = format!("{}{more}", counted(list.items.len(), "org"));
    session.advise(&joined(&[&counts, &format!("next: everbell orgs show {}", shell(&first.id))], symbols))?;
    Ok(Exit::Success)
}

fn row(org: &wire::Org, symbols: Symbols) -> Vec<Cell> {
    let clock = [&org.local_date, &org.local_time].map(|part| part.as_deref().unwrap_or_default());
    let local = clock.join(" ");
    vec![
        Cell::text(&org.id),
        or_dash(&org.name),
        Cell::text(&org.timezone),
        or_dash(local.trim()),
        Cell::status(state(org), symbols),
        or_dash(org.error.as_deref().unwrap_or_default()),
    ]
}

/// A dash for people, nothing for programs, if there is nothing.
pub(super) fn or_dash(text: &str) -> Cell {
    if text.is_empty() { Cell::both("-", "") } else { Cell::text(text) }
}

/// The status of an org, in the words for jobs.
pub(super) fn state(org: &wire::Org) -> &'static str {
    match (org.error.is_some(), org.enabled) {
        (true, _) => "errored",
        (false, true) => "active",
        (false, false) => "paused",
    }
}
