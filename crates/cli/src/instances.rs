//! `everbell instances`.

use clap::{Args, Subcommand};
use everbell_wire as wire;
use jiff::Timestamp;

use super::error::RefusalContext;
use super::online::Format;
use super::output::{Cell, Column, Mark, Output, Table, printable};
use super::times::since;
use super::{CliError, Exit, OnlineArgs, Session};

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell instances
  everbell instances list --json
  everbell instances -o name";

const DRAIN_EXAMPLES: &str = "\
Examples:
  everbell instances drain \"$INSTANCE\"
  everbell instances drain \"$INSTANCE\" -o name
  everbell instances drain \"$INSTANCE\" --request-timeout 5s";

const UNDRAIN_EXAMPLES: &str = "\
Examples:
  everbell instances undrain \"$INSTANCE\"
  everbell instances undrain \"$INSTANCE\" -o name
  everbell instances undrain \"$INSTANCE\" --request-timeout 5s";

const COLUMNS: [Column; 9] = [
    Column::new("INSTANCE"),
    Column::new("HOST").shrinks(),
    Column::new("PID").right().drop_order(2),
    Column::new("STATE"),
    Column::new("VERSION").drop_order(3),
    Column::new("ROLES").shrinks().drop_order(1),
    Column::new("UP").drop_order(5),
    Column::new("LAST HEARTBEAT").drop_order(6),
    Column::new("TARGETS").right().drop_order(4),
];

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct InstancesArgs {
    #[command(subcommand)]
    command: Option<InstancesCommand>,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Subcommand)]
enum InstancesCommand {
    /// List instances, oldest first
    #[command(before_help = EXAMPLES)]
    List {
        #[command(flatten)]
        online: OnlineArgs,
    },
    /// Stop an instance from accepting work
    #[command(before_help = DRAIN_EXAMPLES)]
    Drain(DrainArgs),
    /// Let an instance accept work again
    #[command(before_help = UNDRAIN_EXAMPLES)]
    Undrain(DrainArgs),
}

#[derive(Debug, Args)]
struct DrainArgs {
    /// The id of the instance.
    #[arg(value_name = "INSTANCE")]
    instance: String,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(crate) fn run(args: &InstancesArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    match &args.command {
        None => list(&args.online, now, output),
        Some(InstancesCommand::List { online }) => list(online, now, output),
        Some(InstancesCommand::Drain(args)) => drain(args, true, now, output),
        Some(InstancesCommand::Undrain(args)) => drain(args, false, now, output),
    }
}

fn list(online: &OnlineArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(online, now, output)?;
    let list =
        session.client.run(session.client.instances().list().list()).with_action(|| "list instances".to_owned())?;
    if session.print_list(&list, |instance| &instance.id)? {
        return Ok(Exit::Success);
    }
    let mut table = Table::new(&COLUMNS, session.out.symbols);
    for instance in &list.items {
        table.row(row(instance, &session));
    }
    session.out.list(&table)?;
    Ok(Exit::Success)
}

fn row(instance: &wire::Instance, session: &Session<'_>) -> Vec<Cell> {
    let (state, mark) = match (instance.alive, instance.draining) {
        (false, _) => ("lost", Mark::Bad),
        (true, true) => ("draining", Mark::Warning),
        (true, false) => ("alive", Mark::Active),
    };
    let shown = format!("{} {state}", session.out.symbols.symbol(mark));
    vec![
        Cell::text(&instance.id),
        Cell::text(&instance.host),
        Cell::text(&instance.pid.to_string()),
        Cell::both(shown, state).styled(mark.style()),
        Cell::text(&instance.version),
        Cell::text(&instance.roles.join(",")),
        Cell::text(&since(instance.started_at, session.now)),
        Cell::text(&format!("{} ago", since(instance.heartbeat_at, session.now))),
        Cell::text(&instance.targets.len().to_string()),
    ]
}

fn drain(args: &DrainArgs, drains: bool, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let verb = if drains { "drain" } else { "undrain" };
    let mut session = Session::new(&args.online, now, output)?;
    let instances = session.client.instances();
    let call = if drains { instances.drain(&args.instance) } else { instances.undrain(&args.instance) };
    session
        .client
        .send(call)
        .with_action(|| format!("{verb} instance `{}`", args.instance))
        .or_hint(404, || "list them: everbell instances".to_owned())?;
    let name = printable(&args.instance);
    // The response has no document to print.
    match session.format {
        Some(Format::Name) => session.out.line(&name)?,
        Some(Format::Json | Format::Jsonl) => {}
        Some(Format::Table | Format::Plain) | None if drains => {
            session.done(
                Mark::Good,
                &format!("Instance {name} is draining: it finishes its runs and accepts no others"),
            )?;
            session.advise(&format!("show it: everbell instances; undo: everbell instances undrain {name}"))?;
        }
        Some(Format::Table | Format::Plain) | None => {
            session.done(Mark::Good, &format!("Instance {name} accepts work again"))?;
        }
    }
    Ok(Exit::Success)
}
