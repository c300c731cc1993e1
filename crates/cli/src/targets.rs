//! `everbell targets`.

use clap::{Args, Subcommand};
use everbell_client::TryTargetRequest;
use everbell_wire as wire;
use jiff::Timestamp;

use super::connection::RefusalContext;
use super::jobs::payload;
use super::output::{Cell, Column, Output, Table, counted, printable};
use super::runs::requested_run::{RequestedRun, WaitArgs};
use super::{CliError, Exit, OnlineArgs, Session};

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell targets
  everbell targets list -o name
  everbell targets try print --payload '{\"hello\":\"world\"}' --wait";

const TRY_EXAMPLES: &str = "\
Examples:
  everbell targets try print --wait
  everbell targets try print --payload '{\"hello\":\"world\"}'
  echo '{\"hello\":\"pipe\"}' | everbell targets try print --payload - -o name";

const COLUMNS: [Column; 4] = [
    Column::new("TARGET").shrinks(),
    Column::new("SERVED BY"),
    Column::new("RECENT FAILURES"),
    Column::new("WAITING JOBS").shrinks(),
];

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct TargetsArgs {
    #[command(subcommand)]
    command: Option<TargetsCommand>,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Subcommand)]
enum TargetsCommand {
    /// List targets and the instances that serve them
    #[command(before_help = EXAMPLES)]
    List {
        #[command(flatten)]
        online: OnlineArgs,
    },
    /// Run a target once, without a job
    #[command(before_help = TRY_EXAMPLES)]
    Try(TryArgs),
}

#[derive(Debug, Args)]
struct TryArgs {
    /// The label of the target.
    #[arg(value_name = "LABEL")]
    target: String,
    /// The payload: JSON, `@FILE`, or `-` for standard input; default: `{}`.
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    payload: Option<String>,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(crate) fn run(args: &TargetsArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    match &args.command {
        None => list(&args.online, now, output),
        Some(TargetsCommand::List { online }) => list(online, now, output),
        Some(TargetsCommand::Try(args)) => try_once(args, now, output),
    }
}

fn list(online: &OnlineArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(online, now, output)?;
    let list = session.client.run(session.client.targets().list().list()).with_action(|| "list targets".to_owned())?;
    if session.print_list(&list, |target| &target.target)? {
        return Ok(Exit::Success);
    }
    let mut table = Table::new(&COLUMNS, session.out.symbols);
    let mut unserved = Vec::new();
    for target in &list.items {
        let (instances, waiting) = (target.instances.len(), target.waiting_jobs.join(", "));
        if instances == 0 {
            unserved.push(printable(&target.target));
        }
        let served = if instances == 0 { "none".to_owned() } else { counted(instances, "instance") };
        table.row(vec![
            Cell::text(&target.target),
            Cell::both(served, &instances.to_string()),
            failed_lately(target),
            if waiting.is_empty() { Cell::both("-", "") } else { Cell::text(&waiting) },
        ]);
    }
    session.out.list(&table)?;
    if !unserved.is_empty() {
        session.advise(&format!("no live instance serves {}: those jobs do not fire", unserved.join(", ")))?;
    }
    Ok(Exit::Success)
}

/// The number of recent runs that failed: `3 of 100`.
fn failed_lately(target: &wire::Target) -> Cell {
    match (target.recent_failures, target.recent_runs) {
        (Some(failures), Some(runs)) if runs > 0 => Cell::text(&format!("{failures} of {runs}")),
        _ => Cell::both("-", ""),
    }
}

fn try_once(args: &TryArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let request = TryTargetRequest { payload: args.payload.as_deref().map(payload).transpose()? };
    let mut session = Session::new(&args.online, now, output)?;
    let call = session.client.targets().try_once(&args.target, &request);
    let answer = session
        .client
        .send(call.read_as())
        .with_action(|| format!("try target `{}`", args.target))
        .or_hint(404, || "list them: everbell targets".to_owned());
    RequestedRun { response: answer, if_skipped: "" }.report(&mut session, &args.wait)
}
