//! `everbell gaps`: the slots of all jobs that got no run.

use clap::Args;
use everbell_client::AllGapsQuery;
use everbell_wire::gap::GapReason;
use everbell_wire::time_input::TimeReader;
use jiff::Timestamp;

use super::error::{RefusalContext, note};
use super::online::{Format, ZoneArgs};
use super::output::{Cell, Column, Output, Table, counted};
use super::times::fire_cell;
use super::words::{filled, joined};
use super::{CliError, Exit, OnlineArgs, Session};

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell gaps
  everbell gaps --from -1d --reason missed --label team=data
  everbell gaps --from 'today 06:00' --to now --json";

const COLUMNS: [Column; 8] = [
    Column::new("JOB").shrinks(),
    Column::new("FIRST SLOT"),
    Column::new("LAST SLOT"),
    Column::new("SLOTS").right(),
    Column::new("REASON"),
    Column::new("ORG").shrinks().drop_order(2),
    Column::new("BY").shrinks().drop_order(1),
    Column::new("RUN").drop_order(3),
];

#[derive(Debug, Args)]
pub(crate) struct GapsArgs {
    /// Only gaps for this reason.
    #[arg(long, value_name = "REASON", value_parser = ["missed", "coalesced", "paused", "dst_gap", "expired", "errored", "excluded", "frozen", "incomplete"])]
    reason: Option<String>,
    /// Only gaps of jobs with this label.
    #[arg(long, value_name = "NAME[=VALUE]")]
    label: Option<String>,
    /// Only gaps of this job.
    #[arg(long, value_name = "KEY")]
    job: Option<String>,
    /// Only gaps of this org.
    #[arg(long, value_name = "ORG")]
    org: Option<String>,
    /// Only gaps that end at or after this time, read in the zone of `--tz` or in UTC: RFC 3339, `-1d`, `today 06:00`.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<String>,
    /// Only gaps that start before this time.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to: Option<String>,
    /// Show at most this many gaps.
    #[arg(short = 'n', long, value_name = "N", default_value = "30", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    #[command(flatten)]
    zone: ZoneArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(crate) fn run(args: &GapsArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let zone = args.zone.read()?.or_utc();
    let reader = TimeReader { now, zone: &zone };
    let query = AllGapsQuery {
        reason: args.reason.as_deref().map(GapReason::from_word),
        from: args.from.as_deref().map(|text| reader.read("--from", text)).transpose()?,
        to: args.to.as_deref().map(|text| reader.read("--to", text)).transpose()?,
        job_key: args.job.clone(),
        label: args.label.clone(),
        org_id: args.org.clone(),
    };
    let mut session = Session::new(&args.online, now, output)?;
    let list = session.client.take(session.client.reports().gaps(&query), args.limit as usize);
    let list = list.with_action(|| "list gaps".to_owned())?;
    let is_printed = session.print_list(&list, |gap| &gap.id)?;
    let says_more = session.format == Some(Format::Json) || session.out.is_for_people();
    if list.next_cursor.is_some() && !session.quiet && !says_more {
        // A list that is cut looks like a whole one.
        session.out.flush()?;
        note(format!("{} shown; raise --limit to see more", list.items.len()));
    }
    if is_printed {
        return Ok(Exit::Success);
    }
    if list.items.is_empty() {
        session.advise(if query == AllGapsQuery::default() { "every slot got a run" } else { "no gap matches" })?;
        return Ok(Exit::Success);
    }
    let mut table = Table::new(&COLUMNS, session.out.symbols);
    let or_dash = |text: Option<&String>| filled(text).map_or_else(|| Cell::both("-", ""), Cell::text);
    for gap in &list.items {
        table.row(vec![
            Cell::text(gap.job_key.as_ref().unwrap_or(&gap.job_id)),
            fire_cell(Some(gap.first_slot_at), &zone),
            fire_cell(Some(gap.last_slot_at), &zone),
            Cell::text(&gap.slots.to_string()),
            Cell::text(gap.reason.as_str()),
            or_dash(gap.org_id.as_ref()),
            or_dash(gap.actor.as_ref()),
            or_dash(gap.run_id.as_ref()),
        ]);
    }
    session.out.list(&table)?;
    let slots: u64 = list.items.iter().map(|gap| gap.slots).sum();
    let more = if list.next_cursor.is_some() { " shown; raise --limit to see more" } else { "" };
    let count = format!("{} in {}{more}", counted(slots as usize, "slot"), counted(list.items.len(), "gap"));
    session.advise(&joined(&[&count, "why nothing ran: everbell outages"], session.out.symbols))?;
    Ok(Exit::Success)
}
