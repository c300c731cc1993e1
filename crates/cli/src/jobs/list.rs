//! `everbell jobs list`.

use clap::Args;
use clap::builder::PossibleValuesParser;
use everbell_client::{EventQuery, JobQuery};
use everbell_core::Zone;
use everbell_wire as wire;
use everbell_wire::job::{JobStatus, ScheduleType, Source};
use everbell_wire::run::RunStatus;
use jiff::Timestamp;

use crate::error::RefusalContext;
use crate::online::{DisplayZone, ZoneArgs};
use crate::output::{Cell, Column, Mark, Output, Table, clock_face, counted, printable};
use crate::times::{exact, fire_cell, local, whole_second};
use crate::words::{filled, joined};
use crate::{CliError, Exit, OnlineArgs, Session, watch};
use everbell_wire::elapsed::{took, wait};
use everbell_wire::shell;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell jobs list
  everbell jobs list --status paused,active --sort nextRunAt
  everbell jobs list --search brief -o name";

const COLUMNS: [Column; 9] = [
    Column::new("JOB KEY").shrinks_to(16),
    Column::new("VER").right().drop_order(1),
    Column::new("TARGET").shrinks().drop_order(3),
    Column::new("SCHEDULE").shrinks().drop_order(5),
    Column::new("TZ").drop_order(2),
    Column::new("STATUS"),
    Column::new("LAST").drop_order(4),
    Column::new("NEXT"),
    Column::new("LEFT"),
];

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only jobs with these statuses; default: active and paused.
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = PossibleValuesParser::new(JobStatus::WORDS))]
    status: Vec<String>,
    /// Only jobs with these targets.
    #[arg(long, value_name = "LABEL", value_delimiter = ',')]
    target: Vec<String>,
    /// Only versions of this job.
    #[arg(long, value_name = "KEY")]
    job: Option<String>,
    /// Only jobs whose key, target or description contains this.
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Only jobs that are declared by this source.
    #[arg(long, value_name = "SOURCE", value_parser = PossibleValuesParser::new(Source::WORDS))]
    source: Option<String>,
    /// Only jobs whose last run has one of these statuses.
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = PossibleValuesParser::new(RunStatus::WORDS))]
    last_run: Vec<String>,
    /// Only jobs that cannot fire because their schedule or timer cannot be read.
    #[arg(long)]
    errored: bool,
    /// Only jobs that have failed since their last success.
    #[arg(long)]
    failing: bool,
    /// Only jobs with this label.
    #[arg(long, value_name = "NAME[=VALUE]")]
    label: Option<String>,
    /// Sort by this; default: jobKey. A minus sign puts the newest first.
    #[arg(long, value_name = "ORDER", value_parser = ["jobKey", "nextRunAt", "-createdAt", "target", "-lastRunAt"],
          allow_hyphen_values = true)]
    sort: Option<String>,
    /// Show at most this many jobs.
    #[arg(long, value_name = "N", default_value = "1000", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    /// Follow changes: redraw the table, or print each event with `-o jsonl`.
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    zone: ZoneArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

impl ListArgs {
    fn query(&self) -> JobQuery {
        JobQuery {
            status: self.status.iter().map(|word| JobStatus::from_word(word)).collect(),
            target: self.target.clone(),
            job_key: self.job.clone(),
            text: self.search.clone(),
            source: self.source.as_deref().map(Source::from_word),
            last_run_status: self.last_run.iter().map(|word| RunStatus::from_word(word)).collect(),
            errored: self.errored.then_some(true),
            failing: self.failing.then_some(true),
            label: self.label.clone(),
            sort: self.sort.clone(),
            ..JobQuery::default()
        }
    }
}

pub(super) fn run(args: &ListArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let shown = args.zone.read()?;
    let mut session = Session::new(&args.online, now, output)?;
    if args.watch {
        let events = EventQuery { job_key: args.job.clone(), ..EventQuery::default() };
        return watch::follow(&mut session, &events, |session| draw(args, &shown, session));
    }
    draw(args, &shown, &mut session)?;
    Ok(Exit::Success)
}

fn draw(args: &ListArgs, shown: &DisplayZone, session: &mut Session<'_>) -> Result<(), CliError> {
    let list = session.client.take(session.client.jobs().list(&args.query()), args.limit as usize);
    let list = list.with_action(|| "list jobs".to_owned())?;
    if session.print_list(&list, |job| &job.job_key)? {
        return Ok(());
    }
    if list.items.is_empty() {
        let filtered = args.query() != JobQuery::default();
        let words = if filtered {
            "no job matches; list all: everbell jobs list"
        } else {
            "no jobs yet; create one: everbell jobs create KEY --target LABEL --cron \"0 8 * * 1-5\""
        };
        return session.advise(words);
    }
    let mut table = Table::new(&COLUMNS, session.out.symbols);
    for job in &list.items {
        table.row(row(job, shown, session));
    }
    session.out.list(&table)?;
    let symbols = session.out.symbols;
    let first = list.items.first().map(|job| shell(&job.job_key)).unwrap_or_default();
    let counts = counts(&list.items);
    let more = if list.next_cursor.is_some() { " shown; raise --limit to see more" } else { "" };
    session.advise(&joined(&[&format!("{counts}{more}"), &format!("next: everbell jobs show {first}")], symbols))
}

/// `4 jobs (3 active, 1 paused)`.
fn counts(jobs: &[wire::Job]) -> String {
    let count = |status: &JobStatus| jobs.iter().filter(|job| job.status == *status).count();
    let parts = [JobStatus::Active, JobStatus::Paused, JobStatus::Retired].map(|status| (count(&status), status));
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, status)| format!("{count} {status}")).collect();
    format!("{} ({})", counted(jobs.len(), "job"), parts.join(", "))
}

fn row(job: &wire::Job, shown: &DisplayZone, session: &Session<'_>) -> Vec<Cell> {
    let zone = shown.zone(job);
    let next = job.next_run_at;
    let left = next.map_or_else(String::new, |at| wait(at.duration_since(session.now).as_secs().max(0)));
    let left = if job.next_run_frozen_until.is_some() { format!("{left} frozen") } else { left };
    let status = if filled(job.error.as_ref()).is_some() { "errored" } else { job.status.as_str() };
    vec![
        Cell::text(&job.job_key),
        Cell::text(&job.version.to_string()),
        Cell::text(&job.target),
        Cell::text(schedule(job)),
        Cell::text(&job.timezone),
        Cell::status(status, session.out.symbols),
        last_run(job, &zone, session),
        fire_cell(next, &zone),
        if left.is_empty() { Cell::both("-", "") } else { Cell::text(&left) },
    ]
}

/// The expression, `once`, or which runs start the job.
pub(super) fn schedule(job: &wire::Job) -> &str {
    match job.schedule_type {
        ScheduleType::OneTime => "once",
        ScheduleType::After => &job.schedule_text,
        _ => job.cron_expression.as_deref().unwrap_or_default(),
    }
}

/// `✓ 13:40 (41.2s)`: the time of today, the weekday of this week, else the date.
fn last_run(job: &wire::Job, zone: &Zone, session: &Session<'_>) -> Cell {
    let Some(last) = &job.last_run else { return Cell::both("-", "") };
    let (status, at) = (last.status.as_str(), last.scheduled_at);
    let (then, today) = (local(at, zone), local(session.now, zone).date());
    let days = (today - then.date()).get_days();
    let day = match days {
        0 => String::new(),
        1..=6 => then.strftime("%a ").to_string(),
        _ => then.strftime("%m-%d ").to_string(),
    };
    let duration = last.duration_ms.map(took);
    let minute = then.time().with().second(0).subsec_nanosecond(0).build().unwrap_or(then.time());
    let mark = Mark::from_status(status);
    let shown = format!(
        "{} {day}{}{}",
        session.out.symbols.symbol(mark),
        clock_face(minute),
        duration.as_ref().map_or_else(String::new, |took| format!(" ({took})"))
    );
    let plain = [Some(status.to_owned()), Some(exact(whole_second(at), zone)), duration];
    let plain: Vec<String> = plain.into_iter().flatten().collect();
    Cell::both(printable(&shown), &plain.join(" ")).styled(mark.style())
}
