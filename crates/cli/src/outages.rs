//! `everbell outages`: when nothing ran, what it cost, and what catch-up did.

use clap::Args;
use everbell_core::Zone;
use everbell_wire as wire;
use everbell_wire::elapsed::wait;
use everbell_wire::shell;
use everbell_wire::time_input::TimeReader;
use jiff::Timestamp;

use super::error::RefusalContext;
use super::online::{Format, ZoneArgs};
use super::output::{Cell, Column, Output, Table, counted, printable};
use super::times::{exact, stamp_cell};
use super::{CliError, Exit, OnlineArgs, Session};

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell outages
  everbell outages --from -7d --jobs
  everbell outages --from 'today 00:00' --json";

const COLUMNS: [Column; 8] = [
    Column::new("FROM"),
    Column::new("UNTIL"),
    Column::new("LENGTH"),
    Column::new("JOBS").right(),
    Column::new("SLOTS").right(),
    Column::new("MISSED").right(),
    Column::new("COALESCED").right().drop_order(1),
    Column::new("RAN LATE").right().drop_order(2),
];

const JOB_COLUMNS: [Column; 8] = [
    Column::new("FROM"),
    Column::new("JOB").shrinks(),
    Column::new("SLOTS").right(),
    Column::new("MISSED").right(),
    Column::new("COALESCED").right(),
    Column::new("RAN LATE").right(),
    Column::new("BACKFILLED").right().drop_order(1),
    Column::new("CAUGHT UP"),
];

/// The most jobs that advice names.
const MAX_ADVISED: usize = 5;

#[derive(Debug, Args)]
pub(crate) struct OutagesArgs {
    /// Only outages that end at or after this time, read in the zone of `--tz` or in UTC: RFC 3339, `-1d`, `today 06:00`.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<String>,
    /// Only outages that start before this time.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to: Option<String>,
    /// Count only current jobs with this label, `NAME=VALUE` or `NAME`.
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
    /// List each job of each outage.
    #[arg(long)]
    jobs: bool,
    /// Also list outages in which no job had a slot.
    #[arg(long)]
    empty: bool,
    #[command(flatten)]
    zone: ZoneArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(crate) fn run(args: &OutagesArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let zone = args.zone.read()?.or_utc();
    let reader = TimeReader { now, zone: &zone };
    let from = args.from.as_deref().map(|text| reader.read("--from", text)).transpose()?;
    let to = args.to.as_deref().map(|text| reader.read("--to", text)).transpose()?;
    let mut session = Session::new(&args.online, now, output)?;
    let call = session.client.reports().outages(from, to, args.empty);
    let call = args.label.iter().fold(call, |call, label| call.parameter("label", label));
    let list = session.client.run(call.list());
    let list = list.with_action(|| "list outages".to_owned())?;
    if session.format == Some(Format::Name) {
        // An outage has no id: its beginning names it.
        list.items.iter().try_for_each(|outage| session.out.line(&outage.from.to_string()))?;
        return Ok(Exit::Success);
    }
    if session.print_list(&list, |_| "")? {
        return Ok(Exit::Success);
    }
    if list.items.is_empty() {
        session.advise("no outage is known in which a job had a slot")?;
        return Ok(Exit::Success);
    }
    let table = if args.jobs { by_job(&list.items, &zone, &session) } else { overview(&list.items, &zone, &session) };
    session.out.list(&table)?;
    if !session.quiet && session.out.is_for_people() {
        for outage in &list.items {
            advise(&mut session, outage, args.jobs)?;
        }
    }
    Ok(Exit::Success)
}

fn overview(outages: &[wire::Outage], zone: &Zone, session: &Session<'_>) -> Table {
    let mut table = Table::new(&COLUMNS, session.out.symbols);
    let number = |count: u64| Cell::text(&count.to_string());
    for outage in outages {
        table.row(vec![
            stamp_cell(Some(outage.from), zone),
            stamp_cell(Some(outage.until), zone),
            Cell::text(&wait(outage.until.duration_since(outage.from).as_secs())),
            number(outage.jobs),
            number(outage.slots),
            number(outage.missed),
            number(outage.coalesced),
            number(outage.ran),
        ]);
    }
    table
}

fn by_job(outages: &[wire::Outage], zone: &Zone, session: &Session<'_>) -> Table {
    let mut table = Table::new(&JOB_COLUMNS, session.out.symbols);
    let number = |count: u64| Cell::text(&count.to_string());
    for (outage, job) in outages.iter().flat_map(|outage| outage.items.iter().map(move |job| (outage, job))) {
        table.row(vec![
            stamp_cell(Some(outage.from), zone),
            Cell::text(&job.job_key),
            number(job.slots),
            number(job.missed),
            number(job.coalesced),
            number(job.ran),
            number(job.backfilled),
            Cell::text(if job.caught_up { "yes" } else { "no" }),
        ]);
    }
    table
}

/// Says what catch-up did, and how to run what was missed.
fn advise(session: &mut Session<'_>, outage: &wire::Outage, names_all: bool) -> Result<(), CliError> {
    if outage.jobs == 0 {
        return Ok(());
    }
    let from = exact(outage.from, &Zone::utc());
    session.advise(&format!(
        "{from}: {} in {}; {} of {} caught up",
        counted(outage.slots as usize, "slot"),
        counted(outage.jobs as usize, "job"),
        outage.jobs_caught_up,
        counted(outage.jobs as usize, "job"),
    ))?;
    // Those that missed slots need it most.
    let open: Vec<_> = outage.items.iter().filter(|job| !job.caught_up && job.can_backfill).collect();
    let most = if names_all { open.len() } else { MAX_ADVISED };
    for job in open.iter().take(most) {
        session.advise(&format!(
            "  run what was missed: everbell jobs backfill {} --from {} --to {}",
            shell(&printable(&job.job_key)),
            job.first_slot_at,
            job.last_slot_at
        ))?;
    }
    if open.len() > most {
        session.advise(&format!("  and {} more jobs: everbell outages --jobs", open.len() - most))?;
    }
    Ok(())
}
