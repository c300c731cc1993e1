//! `everbell gaps`: the slots of all jobs that got no run.

use clap::Args;
use clap::builder::PossibleValuesParser;
use everbell_client::{AllGapsQuery, GapQuery, List};
use everbell_core::Zone;
use everbell_wire::Gap;
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
    /// Only gaps of jobs with this label.
    #[arg(long, value_name = "NAME[=VALUE]")]
    label: Option<String>,
    /// Only gaps of this job.
    #[arg(long, value_name = "KEY")]
    job: Option<String>,
    #[command(flatten)]
    filter: GapFilterArgs,
    #[command(flatten)]
    zone: ZoneArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

/// Selects gaps, of one job or of all.
#[derive(Debug, Args)]
pub(super) struct GapFilterArgs {
    /// Only gaps for this reason.
    #[arg(long, value_name = "REASON", value_parser = PossibleValuesParser::new(GapReason::WORDS))]
    reason: Option<String>,
    /// Only gaps of this org.
    #[arg(long, value_name = "ORG")]
    org: Option<String>,
    /// Only gaps that end at or after this time: RFC 3339, `-1d`, `today 06:00`. Without `--tz` it is read in the zone of the
    /// job, or in UTC for all jobs.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<String>,
    /// Only gaps that start before this time.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to: Option<String>,
    /// Show at most this many gaps.
    #[arg(short = 'n', long, value_name = "N", default_value = "30", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(super) limit: u32,
}

impl GapFilterArgs {
    pub(super) fn query(&self, reader: &TimeReader<'_>) -> Result<GapQuery, CliError> {
        Ok(GapQuery {
            reason: self.reason.as_deref().map(GapReason::from_word),
            from: self.from.as_deref().map(|text| reader.read("--from", text)).transpose()?,
            to: self.to.as_deref().map(|text| reader.read("--to", text)).transpose()?,
            org_id: self.org.clone(),
        })
    }
}

/// How a list of gaps is shown, and what can be done about them.
pub(super) struct Shown<'a> {
    /// Whether they are of several jobs.
    pub(super) names_jobs: bool,
    /// Whether some were not asked for.
    pub(super) is_filtered: bool,
    pub(super) zone: &'a Zone,
    pub(super) next: &'a str,
}

pub(crate) fn run(args: &GapsArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let zone = args.zone.read()?.or_utc();
    let GapQuery { reason, from, to, org_id } = args.filter.query(&TimeReader { now, zone: &zone })?;
    let query = AllGapsQuery { reason, from, to, org_id, job_key: args.job.clone(), label: args.label.clone() };
    let mut session = Session::new(&args.online, now, output)?;
    let list = session.client.take(session.client.reports().gaps(&query), args.filter.limit as usize);
    let list = list.with_action(|| "list gaps".to_owned())?;
    let is_filtered = query != AllGapsQuery::default();
    let next = "why nothing ran: everbell outages";
    print(&mut session, &list, &Shown { names_jobs: true, is_filtered, zone: &zone, next })
}

/// Prints gaps, and how many slots they are.
pub(super) fn print(session: &mut Session<'_>, list: &List<Gap>, shown: &Shown<'_>) -> Result<Exit, CliError> {
    let is_printed = session.print_list(list, |gap| &gap.id)?;
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
        session.advise(if shown.is_filtered { "no gap matches" } else { "every slot got a run" })?;
        return Ok(Exit::Success);
    }
    // The first column is the job.
    let first = usize::from(!shown.names_jobs);
    let mut table = Table::new(&COLUMNS[first..], session.out.symbols);
    let or_dash = |text: Option<&String>| filled(text).map_or_else(|| Cell::both("-", ""), Cell::text);
    for gap in &list.items {
        let mut cells = vec![
            Cell::text(gap.job_key.as_ref().unwrap_or(&gap.job_id)),
            fire_cell(Some(gap.first_slot_at), shown.zone),
            fire_cell(Some(gap.last_slot_at), shown.zone),
            Cell::text(&gap.slots.to_string()),
            Cell::text(gap.reason.as_str()),
            or_dash(gap.org_id.as_ref()),
            or_dash(gap.actor.as_ref()),
            or_dash(gap.run_id.as_ref()),
        ];
        table.row(cells.split_off(first));
    }
    session.out.list(&table)?;
    let slots: u64 = list.items.iter().map(|gap| gap.slots).sum();
    let more = if list.next_cursor.is_some() { " shown; raise --limit to see more" } else { "" };
    let count = format!("{} in {}{more}", counted(slots as usize, "slot"), counted(list.items.len(), "gap"));
    session.advise(&joined(&[&count, shown.next], session.out.symbols))?;
    Ok(Exit::Success)
}
