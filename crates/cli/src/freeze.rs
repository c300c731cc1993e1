//! `everbell freeze`: times in which schedules do not fire.

use clap::{Args, Subcommand};
use everbell_client::{FreezeInput, wire};
use everbell_wire::time_input::TimeReader;
use jiff::Timestamp;

use super::error::RefusalContext;
use super::online::ZoneArgs;
use super::output::{Cell, Column, Mark, Output, Table, printable};
use super::times::{stamp, stamp_cell};
use super::{CliError, Exit, OnlineArgs, Session};

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell freeze
  everbell freeze add --from 'tomorrow 18:00' --until '+4d' --reason 'release weekend'
  everbell freeze list --json";

const LIST_EXAMPLES: &str = "\
Examples:
  everbell freeze list
  everbell freeze list --tz Europe/Paris
  everbell freeze list -o name";

const ADD_EXAMPLES: &str = "\
Examples:
  everbell freeze add --until '+2h' --reason 'database upgrade' --label env=stage
  everbell freeze add --from 'tomorrow 18:00' --until '+4d' --tz Europe/Paris --reason release
  everbell freeze add --from 2099-12-24 --until 2099-12-27 --reason Christmas --except backup";

const END_EXAMPLES: &str = "\
Examples:
  everbell freeze end \"$FREEZE\"
  everbell freeze add --until '+1h' --reason 'a test' -o name | xargs everbell freeze end
  everbell freeze add --until '+1h' --reason 'a test' -o name | xargs everbell freeze end --json";

const COLUMNS: [Column; 6] = [
    Column::new("ID"),
    Column::new("STATE"),
    Column::new("FROM"),
    Column::new("UNTIL"),
    Column::new("JOBS"),
    Column::new("REASON").shrinks(),
];

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct FreezeArgs {
    #[command(subcommand)]
    command: Option<FreezeCommand>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Subcommand)]
enum FreezeCommand {
    /// List current and upcoming freezes
    #[command(before_help = LIST_EXAMPLES)]
    List(ListArgs),
    /// Announce a freeze
    ///
    /// Slots during the freeze become gaps with the reason `frozen` and are not caught up. Manual runs, retries and backfills
    /// continue. A one-time job waits until the freeze ends.
    #[command(before_help = ADD_EXAMPLES)]
    Add(AddArgs),
    /// End a freeze early, or cancel an upcoming one
    #[command(before_help = END_EXAMPLES)]
    End(EndArgs),
}

#[derive(Debug, Args)]
struct ListArgs {
    #[command(flatten)]
    zone: ZoneArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
struct AddArgs {
    /// The start of the freeze: RFC 3339, `2027-03-13 09:00`, `+2h`, `tomorrow 18:00`. Default: now.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<String>,
    /// The end of the freeze; `+4d` counts from now.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: String,
    /// The reason, from 3 to 500 characters.
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Only jobs with this label, `NAME=VALUE` or `NAME`; default: all jobs.
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
    /// Exempt this job from the freeze; repeatable.
    #[arg(long, value_name = "KEY")]
    except: Vec<String>,
    /// The IANA time zone of times without an offset, and of the times that are shown. Default: UTC.
    #[command(flatten)]
    zone: ZoneArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
struct EndArgs {
    /// The id of the freeze.
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(crate) fn run(args: &FreezeArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    match &args.command {
        None => list(&args.list, now, output),
        Some(FreezeCommand::List(args)) => list(args, now, output),
        Some(FreezeCommand::Add(args)) => add(args, now, output),
        Some(FreezeCommand::End(args)) => end(args, now, output),
    }
}

fn list(args: &ListArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let zone = args.zone.read()?.or_utc();
    let mut session = Session::new(&args.online, now, output)?;
    let list = session.client.run(session.client.freezes().list().list());
    let list = list.with_action(|| "list freezes".to_owned())?;
    if session.print_list(&list, |freeze| &freeze.id)? {
        return Ok(Exit::Success);
    }
    if list.items.is_empty() {
        session.advise("no freeze is in force or announced")?;
        return Ok(Exit::Success);
    }
    let mut table = Table::new(&COLUMNS, session.out.symbols);
    for freeze in &list.items {
        table.row(vec![
            Cell::text(&freeze.id),
            Cell::text(if freeze.in_force { "in force" } else { "ahead" }),
            stamp_cell(Some(freeze.from), &zone),
            stamp_cell(Some(freeze.until), &zone),
            Cell::text(&jobs(freeze)),
            Cell::text(&freeze.reason),
        ]);
    }
    session.out.list(&table)?;
    Ok(Exit::Success)
}

fn jobs(freeze: &wire::Freeze) -> String {
    let all = freeze.label.clone().unwrap_or_else(|| "all jobs".to_owned());
    if freeze.except.is_empty() { all } else { format!("{all} except {}", freeze.except.join(", ")) }
}

fn add(args: &AddArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let zone = args.zone.read()?.or_utc();
    let reader = TimeReader { now, zone: &zone };
    let request = FreezeInput {
        from: args.from.as_deref().map(|text| reader.read("--from", text)).transpose()?,
        until: reader.read("--until", &args.until)?,
        timezone: None,
        reason: args.reason.clone(),
        label: args.label.clone(),
        except: args.except.clone(),
    };
    let mut session = Session::new(&args.online, now, output)?;
    let answer = session.client.send(session.client.freezes().announce(&request));
    let answer = answer.with_action(|| "announce the freeze".to_owned())?;
    let Some(freeze) = session.for_people(answer, |freeze| &freeze.id)? else { return Ok(Exit::Success) };
    let (from, until) = (stamp(freeze.from, &zone), stamp(freeze.until, &zone));
    let text = format!("Frozen from {from} until {until}: {}", jobs(&freeze));
    session.done(Mark::Paused, &printable(&text))?;
    session.advise(&format!("end it early: everbell freeze end {}", freeze.id))?;
    Ok(Exit::Success)
}

fn end(args: &EndArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let answer = session.client.send(session.client.freezes().end(&args.id));
    let answer = answer.with_action(|| "end the freeze".to_owned());
    let answer = answer.or_hint(404, || "list them: everbell freeze".to_owned())?;
    let Some(freeze) = session.for_people(answer, |freeze| &freeze.id)? else { return Ok(Exit::Success) };
    session.done(Mark::Good, &format!("Ended the freeze: {}", printable(&freeze.reason)))?;
    Ok(Exit::Success)
}
