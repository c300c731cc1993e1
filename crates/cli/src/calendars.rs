//! `everbell calendars`: named sets of days on which jobs fire, or do not.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use everbell_client::{CalendarInput, wire};
use everbell_wire::shell;
use jiff::Timestamp;

use super::confirm::confirmed;
use super::error::RefusalContext;
use super::online::ZoneArgs;
use super::output::{Cell, Column, Mark, Output, Table, aligned, counted, printable};
use super::times::stamp;
use super::{CliError, Exit, OnlineArgs, Session};

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell calendars
  everbell calendars set de-holidays --date '*-12-25 Christmas'
  everbell calendars show de-holidays";

const LIST_EXAMPLES: &str = "\
Examples:
  everbell calendars list
  everbell calendars list --json
  everbell calendars list -o name";

const SHOW_EXAMPLES: &str = "\
Examples:
  everbell calendars show de-holidays
  everbell calendars show de-holidays --tz UTC
  everbell calendars show de-holidays --json";

const SET_EXAMPLES: &str = "\
Examples:
  everbell calendars set weekend --weekly sat,sun
  everbell calendars set de-holidays --date '*-12-25 Christmas' --dry-run
  everbell calendars set closures --date 2027-08-02..2027-08-13 --reason 'summer'";

const DELETE_EXAMPLES: &str = "\
Examples:
  everbell calendars delete closures --yes
  everbell calendars delete weekend --yes --quiet
  everbell calendars delete de-holidays --yes -o name";

const COLUMNS: [Column; 6] = [
    Column::new("NAME").shrinks_to(20),
    Column::new("DAYS"),
    Column::new("WEEKLY"),
    Column::new("TIMEZONE"),
    Column::new("JOBS"),
    Column::new("SOURCE").drop_order(1),
];

/// The most fires of a job that are shown.
const MAX_SHOWN_FIRES: usize = 5;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct CalendarsArgs {
    #[command(subcommand)]
    command: Option<CalendarsCommand>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Subcommand)]
enum CalendarsCommand {
    /// List calendars
    #[command(before_help = LIST_EXAMPLES)]
    List(ListArgs),
    /// Show the days of a calendar and the jobs that use it
    #[command(before_help = SHOW_EXAMPLES)]
    Show(ShowArgs),
    /// Create a calendar or replace all of its days
    ///
    /// The jobs that use it get a new version at once. With `--dry-run`, nothing changes.
    #[command(before_help = SET_EXAMPLES)]
    Set(SetArgs),
    /// Delete a calendar that no job uses
    #[command(before_help = DELETE_EXAMPLES)]
    Delete(DeleteArgs),
}

#[derive(Debug, Args)]
struct ListArgs {
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
struct ShowArgs {
    /// The name of the calendar.
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    zone: ZoneArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
struct SetArgs {
    /// The name of the calendar.
    #[arg(value_name = "NAME")]
    name: String,
    /// A day, such as `2027-01-01`, `2027-04-02..2027-04-05` or `*-12-25`, optionally followed by a name; repeatable.
    #[arg(long = "date", value_name = "DAY")]
    dates: Vec<String>,
    /// Days of every week, separated by commas, such as `sat,sun`.
    #[arg(long, value_name = "DAYS", value_delimiter = ',')]
    weekly: Vec<String>,
    /// An iCalendar file whose events to add; `-` reads standard input.
    #[arg(long, value_name = "FILE")]
    ics: Option<PathBuf>,
    /// The IANA time zone of the days. Default: that of the job, or of the org.
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// Show which runs would be added or removed, without changing anything.
    #[arg(long)]
    dry_run: bool,
    /// The reason, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
struct DeleteArgs {
    /// The name of the calendar.
    #[arg(value_name = "NAME")]
    name: String,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(crate) fn run(args: &CalendarsArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    match &args.command {
        None => list(&args.list, now, output),
        Some(CalendarsCommand::List(args)) => list(args, now, output),
        Some(CalendarsCommand::Show(args)) => show(args, now, output),
        Some(CalendarsCommand::Set(args)) => set(args, now, output),
        Some(CalendarsCommand::Delete(args)) => delete(args, now, output),
    }
}

fn list(args: &ListArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let list = session.client.run(session.client.calendars().list().list());
    let list = list.with_action(|| "list calendars".to_owned())?;
    if session.print_list(&list, |calendar| &calendar.name)? {
        return Ok(Exit::Success);
    }
    if list.items.is_empty() {
        session.advise("no calendar; create one: everbell calendars set weekend --weekly sat,sun")?;
        return Ok(Exit::Success);
    }
    let mut table = Table::new(&COLUMNS, session.out.symbols);
    for calendar in &list.items {
        table.row(vec![
            Cell::text(&calendar.name),
            Cell::text(&calendar.dates.len().to_string()),
            Cell::text(&or_dash(&calendar.weekly.join(","))),
            Cell::text(calendar.timezone.as_deref().unwrap_or("of the job")),
            Cell::text(&calendar.jobs.len().to_string()),
            Cell::text(calendar.source.as_str()),
        ]);
    }
    session.out.list(&table)?;
    Ok(Exit::Success)
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}

fn show(args: &ShowArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let zone = args.zone.read()?.or_utc();
    let mut session = Session::new(&args.online, now, output)?;
    let answer = session.client.send(session.client.calendars().get(&args.name));
    let answer = answer.with_action(|| format!("show calendar `{}`", args.name));
    let answer = answer.or_hint(404, || "list them: everbell calendars".to_owned())?;
    let Some(calendar) = session.for_people(answer, |calendar| &calendar.name)? else { return Ok(Exit::Success) };
    let mut rows = vec![
        row("name", &calendar.name),
        row(
            "version",
            &format!("{}, {} by {}", calendar.version, stamp(calendar.updated_at, &zone), calendar.updated_by),
        ),
        row("timezone", calendar.timezone.as_deref().unwrap_or("that of the job, or of the org")),
        row("weekly", &or_dash(&calendar.weekly.join(", "))),
        row("jobs", &or_dash(&calendar.jobs.join(", "))),
        row("source", calendar.source.as_str()),
    ];
    rows.extend(calendar.dates.iter().map(|day| row("day", day)));
    if session.out.is_for_people() {
        for line in aligned(&rows, &[1]) {
            session.out.line(&line)?;
        }
    } else {
        session.out.table(&rows, &[1])?;
    }
    Ok(Exit::Success)
}

fn row(name: &str, value: &str) -> Vec<String> {
    vec![name.to_owned(), printable(value)]
}

fn set(args: &SetArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let ics = args.ics.as_deref().map(super::api::input).transpose()?;
    let input = CalendarInput {
        timezone: args.timezone.clone(),
        dates: args.dates.clone(),
        weekly: args.weekly.clone(),
        ics,
        reason: args.reason.clone(),
    };
    let mut session = Session::new(&args.online, now, output)?;
    let answer = session.client.send(session.client.calendars().put(&args.name, &input, args.dry_run));
    let answer = answer.with_action(|| format!("set calendar `{}`", args.name))?;
    let Some(written) = session.for_people(answer, name_of)? else { return Ok(Exit::Success) };
    let name = printable(&args.name);
    match (&written.calendar, written.dry_run) {
        (_, true) => session.done(Mark::Waiting, &format!("Calendar {name} was not changed (dry run)"))?,
        (Some(calendar), false) => {
            let days = calendar.dates.len() + calendar.weekly.len();
            let (days, jobs) = (
                if days == 1 { "1 entry".to_owned() } else { format!("{days} entries") },
                counted(calendar.jobs.len(), "job"),
            );
            let text = format!("Calendar {name} is at version {} with {days}, used by {jobs}", calendar.version);
            session.done(Mark::Good, &text)?;
        }
        (None, false) => session.done(Mark::Good, &format!("Calendar {name} was written"))?,
    }
    for effect in &written.effects {
        session.detail(&effect_text(effect))?;
    }
    if written.effects.is_empty() {
        session.detail("no run changes in the next 90 days")?;
    }
    for failure in &written.failed_jobs {
        let text = format!("{} is not updated yet: {}", failure.job_key, failure.reason);
        session.detail(&printable(&text))?;
    }
    if !written.dry_run {
        let advice = format!("use it: everbell jobs edit JOB --exclude {}", shell(&args.name));
        session.advise(&advice)?;
    }
    Ok(if written.failed_jobs.is_empty() { Exit::Success } else { Exit::Failed })
}

fn name_of(written: &wire::CalendarWritten) -> &str {
    written.calendar.as_ref().map_or("", |calendar| calendar.name.as_str())
}

/// One line about the fires of a job that change.
fn effect_text(effect: &wire::CalendarEffect) -> String {
    let zone = everbell_core::Zone::get(&effect.timezone).unwrap_or_else(|_| everbell_core::Zone::utc());
    let part = |sign: &str, count: u64, fires: &[Timestamp]| {
        let shown: Vec<String> = fires.iter().take(MAX_SHOWN_FIRES).map(|at| stamp(*at, &zone)).collect();
        let more = if count as usize > shown.len() { ", …" } else { "" };
        (count > 0).then(|| format!("{sign}{count} ({}{more})", shown.join(", ")))
    };
    let parts = [part("-", effect.removed, &effect.removed_fires), part("+", effect.added, &effect.added_fires)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    printable(&format!("{}: {} runs in 90 days", effect.job_key, parts.join(", ")))
}

fn delete(args: &DeleteArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let name = shell(&args.name);
    let question = format!("Delete calendar {name}?");
    if !args.yes && !confirmed(&question, &format!("everbell calendars delete {name} --yes"))? {
        return Ok(Exit::Failed);
    }
    let mut session = Session::new(&args.online, now, output)?;
    let answer = session.client.send(session.client.calendars().delete(&args.name));
    let answer = answer.with_action(|| format!("delete calendar `{}`", args.name));
    answer.or_hint(404, || "list them: everbell calendars".to_owned())?;
    if session.is_for_people(&args.name)? {
        session.done(Mark::Ended, &format!("Deleted calendar {}", printable(&args.name)))?;
    }
    Ok(Exit::Success)
}
