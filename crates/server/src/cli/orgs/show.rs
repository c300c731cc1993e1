//! `everbell orgs show`.

use clap::Args;
use jiff::Timestamp;
use serde_json::Value;

use super::list::{or_dash, state};
use super::org_path;
use crate::cli::client::Asked;
use crate::cli::document::{items, number, some_text, text, time};
use crate::cli::online::{Shown, ZoneArgs};
use crate::cli::output::{Cell, Column, Mark, Output, Table, aligned, printable};
use crate::cli::times::{fire_cell, stamp};
use crate::cli::words::shell;
use crate::cli::{CliError, Exit, OnlineArgs, Session};

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell orgs show acme
  everbell orgs show acme --tz UTC
  everbell orgs show acme --json";

pub(super) const COLUMNS: [Column; 5] = [
    Column::new("JOB KEY").shrinks_to(20),
    Column::new("STANDING"),
    Column::new("SCHEDULE").shrinks().goes(1),
    Column::new("NEXT"),
    Column::new("WHY").shrinks().goes(2),
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
    let path = org_path(&args.org);
    let answer = session.client.get(&path, &[]);
    let answer = answer.asked(|| format!("show org `{}`", args.org)).or_list()?;
    let Some(org) = session.for_people(&answer, "id")? else { return Ok(Exit::Success) };
    let jobs = session.client.get(&format!("{path}/jobs"), &[]).asked(|| format!("list jobs of org `{}`", args.org))?;
    let jobs = jobs.value()?;
    let rows = rows(&org, &shown);
    if session.out.is_for_people() {
        let mark = session.out.mark(Mark::of_status(state(&org)));
        session.out.line(&format!("{mark} {} {}", printable(text(&org, "id")), printable(text(&org, "name"))))?;
        for line in aligned(&rows, &[2]) {
            session.out.line(&format!("  {line}"))?;
        }
    } else {
        session.out.table(&rows, &[2])?;
    }
    let mut table = Table::new(&COLUMNS, session.out.symbols);
    for job in items(&jobs, "items") {
        table.row(row(job, &shown, &session));
    }
    if !items(&jobs, "items").is_empty() {
        session.out.list(&table)?;
    }
    session.advise(&format!("next: everbell runs list --org {}", shell(&args.org)))?;
    Ok(Exit::Success)
}

fn rows(org: &Value, shown: &Shown) -> Vec<Vec<String>> {
    let zone = shown.zone(org);
    let at = |name: &str| time(org, name).map(|at| stamp(at, &zone));
    let moved = some_text(org, "movedFrom").zip(at("movedAt")).map(|(from, at)| format!("from {from}, {at}"));
    let settings = org.get("settings").filter(|settings| settings.as_object().is_some_and(|own| !own.is_empty()));
    let rows = [
        ("timezone", some_text(org, "timezone").map(str::to_owned)),
        ("local", some_text(org, "localDate").map(|date| format!("{date} {}", text(org, "localTime")))),
        ("error", some_text(org, "error").map(str::to_owned)),
        ("moved", moved),
        ("settings", settings.map(ToString::to_string)),
        ("changed", at("updatedAt").map(|at| format!("{at} by {}", text(org, "updatedBy")))),
        ("revision", number(org, "revision").map(|revision| revision.to_string())),
    ];
    let row = |(name, value): (&str, Option<String>)| Some(vec![name.to_owned(), printable(&value?)]);
    rows.into_iter().filter_map(row).collect()
}

fn row(job: &Value, shown: &Shown, session: &Session<'_>) -> Vec<Cell> {
    let mark = match text(job, "standing") {
        "eligible" => Mark::Active,
        "errored" => Mark::Warning,
        _ => Mark::Paused,
    };
    let standing = text(job, "standing");
    vec![
        Cell::text(text(job, "jobKey")),
        Cell::both(format!("{} {standing}", session.out.symbols.of(mark)), standing).styled(mark.style()),
        Cell::text(text(job, "cronExpression")),
        fire_cell(time(job, "nextRunAt"), &shown.zone(job)),
        or_dash(text(job, "why")),
    ]
}
