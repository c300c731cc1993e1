//! `everbell problems`: what is wrong with jobs, and who takes care of it.

use std::time::Duration;

use clap::{Args, Subcommand};
use everbell_client::{ProblemAcknowledge, ProblemMute, ProblemQuery, wire};
use jiff::{SignedDuration, Timestamp};

use super::error::RefusalContext;
use super::online::{ZoneArgs, duration};
use super::output::{Cell, Column, Mark, Output, Table, printable};
use super::times::{since, stamp_cell};
use super::{CliError, Exit, OnlineArgs, Session};

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell problems
  everbell problems list --all --job nightly-backup
  everbell problems mute \"$PROBLEM\" --for 4h --reason 'SMTP is down, INC-88'";

const LIST_EXAMPLES: &str = "\
Examples:
  everbell problems list
  everbell problems list --all --limit 50
  everbell problems list --kind no_success --json";

const ACKNOWLEDGE_EXAMPLES: &str = "\
Examples:
  everbell problems acknowledge \"$PROBLEM\"
  everbell problems acknowledge \"$PROBLEM\" --reason 'looking at it'
  everbell problems ack \"$PROBLEM\" --quiet";

const MUTE_EXAMPLES: &str = "\
Examples:
  everbell problems mute \"$PROBLEM\" --reason 'SMTP is down, INC-88'
  everbell problems mute \"$PROBLEM\" --for 4h --reason 'maintenance'
  everbell problems mute \"$PROBLEM\" --for 90m --reason 'deploying' --json";

const UNMUTE_EXAMPLES: &str = "\
Examples:
  everbell problems unmute \"$PROBLEM\"
  everbell problems unmute \"$PROBLEM\" --quiet
  everbell problems unmute \"$PROBLEM\" --json";

const COLUMNS: [Column; 7] = [
    Column::new("ID"),
    Column::new("ABOUT").shrinks(),
    Column::new("PROBLEM"),
    Column::new("SINCE"),
    Column::new("CLOSED").drop_order(2),
    Column::new("HANDLED").drop_order(1),
    Column::new("REASON").shrinks().drop_order(3),
];

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ProblemsArgs {
    #[command(subcommand)]
    command: Option<ProblemsCommand>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Subcommand)]
enum ProblemsCommand {
    /// List open problems, or all of them
    #[command(before_help = LIST_EXAMPLES)]
    List(ListArgs),
    /// Acknowledge a problem, so that no reminders follow
    #[command(before_help = ACKNOWLEDGE_EXAMPLES, visible_alias = "ack")]
    Acknowledge(AcknowledgeArgs),
    /// Mute a problem, so that no messages follow until it closes
    #[command(before_help = MUTE_EXAMPLES)]
    Mute(MuteArgs),
    /// Unmute a problem
    #[command(before_help = UNMUTE_EXAMPLES)]
    Unmute(UnmuteArgs),
}

#[derive(Debug, Args)]
struct ListArgs {
    /// List closed problems too.
    #[arg(long)]
    all: bool,
    /// Only problems of this job.
    #[arg(long, value_name = "KEY")]
    job: Option<String>,
    /// Only problems with runs for this org, which rules with `orgs` find.
    #[arg(long, value_name = "ID")]
    org: Option<String>,
    /// Only problems of jobs with this label, `NAME=VALUE` or `NAME`.
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
    /// Only problems of this kind: `failed`, `no_success`, `job_error`, `auto_paused`, `missed`, `skipped`, `late_start`,
    /// `too_long` or `instance_lost`.
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Show at most this many problems.
    #[arg(short = 'n', long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    #[command(flatten)]
    zone: ZoneArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
struct AcknowledgeArgs {
    /// The id of the problem.
    #[arg(value_name = "ID")]
    id: String,
    /// The reason, which is shown with the problem.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
struct MuteArgs {
    /// The id of the problem.
    #[arg(value_name = "ID")]
    id: String,
    /// The reason, which is shown with the problem.
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// How long to mute the problem, such as 4h; default: until it closes.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    lasts: Option<Duration>,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
struct UnmuteArgs {
    /// The id of the problem.
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(crate) fn run(args: &ProblemsArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    match &args.command {
        None => list(&args.list, now, output),
        Some(ProblemsCommand::List(args)) => list(args, now, output),
        Some(ProblemsCommand::Acknowledge(args)) => {
            let request = ProblemAcknowledge { reason: args.reason.clone() };
            let session = Session::new(&args.online, now, output)?;
            let call = session.client.problems().acknowledge(&args.id, &request);
            change(session, call, "acknowledge", (Mark::Good, "Acknowledged"))
        }
        Some(ProblemsCommand::Mute(args)) => {
            let lasts = args.lasts.and_then(|lasts| SignedDuration::try_from(lasts).ok());
            let until = lasts.and_then(|lasts| now.checked_add(lasts).ok());
            let request = ProblemMute { reason: args.reason.clone(), until };
            let session = Session::new(&args.online, now, output)?;
            let call = session.client.problems().mute(&args.id, &request);
            change(session, call, "mute", (Mark::Paused, "Muted"))
        }
        Some(ProblemsCommand::Unmute(args)) => {
            let session = Session::new(&args.online, now, output)?;
            let call = session.client.problems().unmute(&args.id);
            change(session, call, "unmute", (Mark::Good, "Unmuted"))
        }
    }
}

fn list(args: &ListArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let zone = args.zone.read()?.or_utc();
    let mut session = Session::new(&args.online, now, output)?;
    let query = ProblemQuery {
        open: (!args.all).then_some(true),
        kind: args.kind.clone(),
        job_key: args.job.clone(),
        org_id: args.org.clone(),
        label: args.label.clone(),
    };
    let list = session.client.take(session.client.problems().list(&query), args.limit as usize);
    let list = list.with_action(|| "list problems".to_owned())?;
    if session.print_list(&list, |problem| &problem.id)? {
        return Ok(Exit::Success);
    }
    if list.items.is_empty() {
        let none =
            if args.all { "no problem matches" } else { "no open problem; problems are found by [[rule]] blocks" };
        session.advise(none)?;
        return Ok(Exit::Success);
    }
    let mut table = Table::new(&COLUMNS, session.out.symbols);
    for problem in &list.items {
        table.row(vec![
            Cell::text(&problem.id),
            Cell::text(&subject(problem)),
            Cell::text(problem.kind.as_str()),
            Cell::text(&since(problem.since, session.now)),
            stamp_cell(problem.closed_at, &zone),
            handled(problem),
            Cell::text(&problem.reason),
        ]);
    }
    session.out.list(&table)?;
    Ok(Exit::Success)
}

/// The job, with its org if it is about one, or the host of the instance.
fn subject(problem: &wire::JobProblem) -> String {
    match (&problem.instance, &problem.org_id) {
        (Some(instance), _) => format!("instance on {}", instance.host),
        (None, Some(org)) => format!("{} for {org}", problem.job_key),
        (None, None) => problem.job_key.clone(),
    }
}

fn handled(problem: &wire::JobProblem) -> Cell {
    match (&problem.muted, &problem.acknowledged) {
        (Some(note), _) => Cell::text(&format!("muted by {}", note.by)),
        (None, Some(note)) => Cell::text(&format!("acknowledged by {}", note.by)),
        (None, None) => Cell::both("-", ""),
    }
}

fn change(
    mut session: Session<'_>,
    call: everbell_client::Call<wire::JobProblem>,
    verb: &str,
    (mark, done): (Mark, &str),
) -> Result<Exit, CliError> {
    let answer = session
        .client
        .send(call)
        .with_action(|| format!("{verb} the problem"))
        .or_hint(404, || "list them: everbell problems".to_owned())?;
    let Some(problem) = session.for_people(answer, |problem| &problem.id)? else { return Ok(Exit::Success) };
    session.done(mark, &format!("{done} {} of {}", printable(problem.kind.as_str()), printable(&subject(&problem))))?;
    Ok(Exit::Success)
}
