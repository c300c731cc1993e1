//! `everbell orgs check`: previews a move to another time zone.

use clap::Args;
use everbell_wire as wire;
use jiff::Timestamp;

use crate::error::RefusalContext;
use crate::output::{Cell, Column, Mark, Output, Table, printable};
use crate::{CliError, Exit, OnlineArgs, Session};
use everbell_wire::shell;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell orgs check acme --timezone Asia/Tokyo
  everbell orgs check acme --timezone America/New_York --count 7
  everbell orgs what-if acme --timezone UTC --json";

const COLUMNS: [Column; 4] = [
    Column::new("JOB KEY").shrinks_to(20),
    Column::new("NEXT BEFORE").drop_order(1),
    Column::new("NEXT AFTER"),
    Column::new("TWICE A DAY"),
];

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The id of the org.
    #[arg(value_name = "ORG")]
    org: String,
    /// The IANA time zone to move to.
    #[arg(long, visible_alias = "tz", value_name = "ZONE")]
    timezone: String,
    /// How many times of each job to compare.
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u8).range(1..=100))]
    count: u8,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(super) fn run(args: &CheckArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let call = session.client.orgs().what_if(&args.org, &args.timezone, args.count.into());
    let answer = session.client.send(call);
    let answer = answer.with_action(|| format!("check a move of org `{}`", args.org)).or_list()?;
    let Some(wire::WhatIf { jobs, .. }) = session.for_people(answer, |preview| &preview.org_id)? else {
        return Ok(Exit::Success);
    };
    let mut table = Table::new(&COLUMNS, session.out.symbols);
    for job in &jobs {
        let again = if job.would_fire_again { "yes" } else { "no" };
        let mark = if again == "yes" { Mark::Warning } else { Mark::Good };
        table.row(vec![
            Cell::text(&job.job_key),
            first(&job.before),
            first(&job.after),
            Cell::text(again).styled(mark.style()),
        ]);
    }
    session.out.list(&table)?;
    if session.out.is_for_people() {
        for job in &jobs {
            session.detail(&printable(&format!("{}: {}", job.job_key, job.sentence)))?;
        }
    }
    let advice = format!("apply it: everbell orgs set {} --timezone {}", shell(&args.org), shell(&args.timezone));
    session.advise(&if jobs.is_empty() { format!("no job fires per org; {advice}") } else { advice })?;
    Ok(Exit::Success)
}

/// The first of some fires: `2026-11-16 08:00 +01:00`.
fn first(fires: &[wire::Fire]) -> Cell {
    let Some(fire) = fires.first() else { return Cell::both("-", "") };
    let local = fire.local.split_once('[').map_or(fire.local.as_str(), |(local, _)| local);
    Cell::both(printable(&local.replacen('T', " ", 1).replacen(":00+", " +", 1).replacen(":00-", " -", 1)), local)
}
