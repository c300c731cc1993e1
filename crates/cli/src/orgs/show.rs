//! `everbell orgs show`.

use clap::Args;
use everbell_wire as wire;
use everbell_wire::org_job::OrgJobState;
use jiff::Timestamp;

use super::list::{or_dash, state};
use crate::error::RefusalContext;
use crate::online::{DisplayZone, ZoneArgs};
use crate::output::{Cell, Column, Mark, Output, Table, aligned, printable};
use crate::times::{fire_cell, stamp};
use crate::{CliError, Exit, OnlineArgs, Session};
use everbell_wire::shell;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell orgs show acme
  everbell orgs show acme --tz UTC
  everbell orgs show acme --json";

pub(super) const COLUMNS: [Column; 5] = [
    Column::new("JOB KEY").shrinks_to(20),
    Column::new("STATE"),
    Column::new("SCHEDULE").shrinks().drop_order(1),
    Column::new("NEXT"),
    Column::new("WHY").shrinks().drop_order(2),
];

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The id of the org.
    #[arg(value_name = "ORG")]
    org: String,
    #[command(flatten)]
    zone: ZoneArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(super) fn run(args: &ShowArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let shown = args.zone.read()?;
    let mut session = Session::new(&args.online, now, output)?;
    let answer = session.client.send(session.client.orgs().get(&args.org));
    let answer = answer.with_action(|| format!("show org `{}`", args.org)).or_list()?;
    let Some(org) = session.for_people(answer, |org| &org.id)? else { return Ok(Exit::Success) };
    let jobs = session.client.send(session.client.orgs().jobs(&args.org));
    let jobs = jobs.with_action(|| format!("list jobs of org `{}`", args.org))?.document.items;
    let rows = rows(&org, &shown);
    if session.out.is_for_people() {
        let mark = session.out.mark(Mark::from_status(state(&org)));
        session.out.line(&format!("{mark} {} {}", printable(&org.id), printable(&org.name)))?;
        for line in aligned(&rows, &[2]) {
            session.out.line(&format!("  {line}"))?;
        }
    } else {
        session.out.table(&rows, &[2])?;
    }
    let mut table = Table::new(&COLUMNS, session.out.symbols);
    for job in &jobs {
        table.row(row(job, &shown, &session));
    }
    if !jobs.is_empty() {
        session.out.list(&table)?;
    }
    session.advise(&format!("next: everbell runs list --org {}", shell(&args.org)))?;
    Ok(Exit::Success)
}

fn rows(org: &wire::Org, shown: &DisplayZone) -> Vec<Vec<String>> {
    let zone = shown.zone(org);
    let moved = org.moved_from.as_ref().zip(org.moved_at);
    let settings = org.settings.as_ref().map(wire::Raw::as_str).filter(|settings| *settings != "{}");
    let local = org.local_date.as_ref().zip(org.local_time.as_ref());
    let rows = [
        ("timezone", Some(org.timezone.clone())),
        ("local", local.map(|(date, time)| format!("{date} {time}"))),
        ("error", org.error.clone()),
        ("moved", moved.map(|(from, at)| format!("from {from}, {}", stamp(at, &zone)))),
        ("settings", settings.map(str::to_owned)),
        ("changed", Some(format!("{} by {}", stamp(org.updated_at, &zone), org.updated_by))),
        ("revision", Some(org.revision.to_string())),
    ];
    let row = |(name, value): (&str, Option<String>)| Some(vec![name.to_owned(), printable(&value?)]);
    rows.into_iter().filter_map(row).collect()
}

fn row(job: &wire::OrgJob, shown: &DisplayZone, session: &Session<'_>) -> Vec<Cell> {
    let mark = match job.standing {
        OrgJobState::Eligible => Mark::Active,
        OrgJobState::Errored => Mark::Warning,
        _ => Mark::Paused,
    };
    let standing = job.standing.as_str();
    vec![
        Cell::text(&job.job_key),
        Cell::both(format!("{} {standing}", session.out.symbols.symbol(mark)), standing).styled(mark.style()),
        Cell::text(job.cron_expression.as_deref().unwrap_or_default()),
        fire_cell(job.next_run_at, &shown.zone(job)),
        or_dash(job.why.as_deref().unwrap_or_default()),
    ]
}
