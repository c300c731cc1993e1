//! `everbell targets`.

mod edit;

use clap::{Args, Subcommand};
use everbell_client::TryTargetRequest;
use everbell_wire::elapsed::took;
use everbell_wire::{self as wire, TargetTrend};
use jiff::Timestamp;

use super::error::RefusalContext;
use super::jobs::payload;
use super::output::{Cell, Column, Output, Table, aligned, counted, printable};
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

const SHOW_EXAMPLES: &str = "\
Examples:
  everbell targets show print
  everbell targets show print --block
  everbell targets show print --json";

const COLUMNS: [Column; 10] = [
    Column::new("TARGET").shrinks_to(16),
    Column::new("TYPE").drop_order(2),
    Column::new("ADDRESS").shrinks_to(20).drop_order(1),
    Column::new("SERVED BY"),
    Column::new("JOBS").right(),
    Column::new("RUNS").right(),
    Column::new("FAILED").right(),
    Column::new("FAILED %").right(),
    Column::new("P95").right(),
    Column::new("WAITING JOBS").shrinks().drop_order(3),
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
    /// Show a target, its runs of the last 24 hours and its configuration block
    #[command(before_help = SHOW_EXAMPLES)]
    Show(ShowArgs),
    /// Define a target without a configuration file
    ///
    /// Works only if `targets.editable` in the configuration allows it. Secrets are given by reference: `env:NAME` or
    /// `file:PATH`.
    #[command(before_help = edit::ADD_EXAMPLES)]
    Add(edit::AddArgs),
    /// Change a target that is not in the configuration
    #[command(before_help = edit::EDIT_EXAMPLES)]
    Edit(edit::EditArgs),
    /// Delete a target that is not in the configuration
    #[command(name = "rm", visible_alias = "delete", before_help = edit::RM_EXAMPLES)]
    Rm(edit::RmArgs),
    /// Run a target once, without a job
    #[command(before_help = TRY_EXAMPLES)]
    Try(TryArgs),
}

#[derive(Debug, Args)]
struct ShowArgs {
    /// The label of the target.
    #[arg(value_name = "LABEL")]
    target: String,
    /// Print only its `[[target]]` block, without secrets. For admins.
    #[arg(long)]
    block: bool,
    #[command(flatten)]
    online: OnlineArgs,
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
        Some(TargetsCommand::Show(args)) => show(args, now, output),
        Some(TargetsCommand::Add(args)) => edit::add(args, now, output),
        Some(TargetsCommand::Edit(args)) => edit::edit(args, now, output),
        Some(TargetsCommand::Rm(args)) => edit::rm(args, now, output),
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
    let (mut unserved, mut failing) = (Vec::new(), Vec::new());
    for target in &list.items {
        let (instances, waiting) = (target.instances.len(), target.waiting_jobs.join(", "));
        if instances == 0 && target.jobs > 0 {
            unserved.push(printable(&target.target));
        }
        let runs = target.last_day.as_ref();
        if runs.is_some_and(|runs| runs.trend == Some(TargetTrend::Higher)) {
            failing.push(printable(&target.target));
        }
        let served = if instances == 0 { "none".to_owned() } else { counted(instances, "instance") };
        table.row(vec![
            Cell::text(&target.target),
            number(target.r#type.as_ref().map(ToString::to_string)),
            number(target.address.clone()),
            Cell::both(served, &instances.to_string()),
            Cell::text(&target.jobs.to_string()),
            number(runs.map(|runs| runs.runs.to_string())),
            number(runs.map(|runs| runs.failed.to_string())),
            number(runs.and_then(|runs| runs.failure_rate).map(|rate| format!("{:.1}", rate * 100.0))),
            number(runs.and_then(|runs| runs.p95_ms).map(took)),
            if waiting.is_empty() { Cell::both("-", "") } else { Cell::text(&waiting) },
        ]);
    }
    session.out.list(&table)?;
    if !unserved.is_empty() {
        session.advise(&format!("no live instance serves {}: those jobs do not fire", unserved.join(", ")))?;
    }
    if !failing.is_empty() {
        session.advise(&format!("more runs fail than usual: {}", failing.join(", ")))?;
    }
    Ok(Exit::Success)
}

/// A value, or nothing.
fn number(value: Option<String>) -> Cell {
    value.map_or_else(|| Cell::both("-", ""), |value| Cell::text(&value))
}

fn show(args: &ShowArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let answer = session.client.send(session.client.targets().get(&args.target));
    let answer = answer.with_action(|| format!("show target `{}`", args.target));
    let answer = answer.or_hint(404, || "list them: everbell targets".to_owned())?;
    let Some(target) = session.for_people(answer, |target| &target.target)? else { return Ok(Exit::Success) };
    if args.block {
        let Some(block) = &target.block else {
            let message = format!("the block of target `{}` cannot be shown", args.target);
            let hint = "it needs an admin token, and a server that defines the target".to_owned();
            return Err(CliError::Failed { message, hint: Some(hint) });
        };
        return lines(&mut session, block);
    }
    let edited = |revision: u32| format!("{revision}, by {}", target.updated_by.as_deref().unwrap_or("?"));
    let revision = target.revision.map(edited);
    let (instances, runs) = (target.instances.join(", "), target.last_day.as_ref().map(day));
    let rows = vec![
        row("target", Some(&target.target)),
        row("type", target.r#type.as_ref().map(wire::TargetType::as_str)),
        row("address", target.address.as_deref()),
        row("served by", Some(instances.as_str()).filter(|instances| !instances.is_empty())),
        row("jobs", Some(&target.jobs.to_string())),
        row("revision", revision.as_deref()),
        row("problem", target.problem.as_deref()),
        row("last 24 hours", runs.as_deref()),
    ];
    if session.out.is_for_people() {
        for line in aligned(&rows, &[1]) {
            session.out.line(&line)?;
        }
    } else {
        session.out.table(&rows, &[1])?;
    }
    if let Some(block) = target.block.as_ref().filter(|_| session.out.is_for_people()) {
        session.out.line("")?;
        lines(&mut session, block)?;
    }
    Ok(Exit::Success)
}

fn row(name: &str, value: Option<&str>) -> Vec<String> {
    vec![name.to_owned(), printable(value.unwrap_or("-"))]
}

/// Prints a text line by line, without control characters.
fn lines(session: &mut Session<'_>, text: &str) -> Result<Exit, CliError> {
    for line in text.lines() {
        session.out.line(&printable(line))?;
    }
    Ok(Exit::Success)
}

/// The runs of a day in words.
fn day(runs: &wire::TargetRuns) -> String {
    let percent = |rate: f64| format!("{:.1}%", rate * 100.0);
    let mut parts = vec![counted(usize::try_from(runs.runs).unwrap_or(usize::MAX), "run")];
    parts.extend(runs.success_rate.map(|rate| format!("{} succeeded", percent(rate))));
    parts.extend(runs.p95_ms.map(|p95| format!("p95 {}", took(p95))));
    let earlier = runs.earlier_failure_rate.map_or_else(String::new, |rate| format!(" ({} before)", percent(rate)));
    match runs.trend {
        Some(TargetTrend::Higher) => parts.push(format!("more failures than usual{earlier}")),
        Some(TargetTrend::Lower) => parts.push(format!("fewer failures than usual{earlier}")),
        _ => {}
    }
    parts.join(", ")
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
