//! `everbell sessions`: browsers that are signed in.

use clap::{Args, Subcommand};
use jiff::Timestamp;

use super::confirm::confirmed;
use super::error::RefusalContext;
use super::online::ZoneArgs;
use super::output::{Cell, Column, Mark, Output, Table, counted, printable};
use super::times::{away, stamp_cell};
use super::words::filled;
use super::{CliError, Exit, OnlineArgs, Session};
use everbell_wire::shell;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell sessions --all
  everbell sessions end \"$SESSION\"
  everbell sessions end --actor token:ops --yes";

const LIST_EXAMPLES: &str = "\
Examples:
  everbell sessions list
  everbell sessions list --all --tz UTC
  everbell sessions list --json";

const END_EXAMPLES: &str = "\
Examples:
  everbell sessions end \"$SESSION\"
  everbell sessions end --yes
  everbell sessions end --actor token:ops --yes";

const COLUMNS: [Column; 6] = [
    Column::new("ID"),
    Column::new("ACTOR").shrinks(),
    Column::new("FROM"),
    Column::new("LAST USED"),
    Column::new("EXPIRES").drop_order(2),
    Column::new("BROWSER").shrinks().drop_order(1),
];

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    command: Option<SessionsCommand>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Subcommand)]
enum SessionsCommand {
    /// List browser sessions, your own or everyone's
    #[command(before_help = LIST_EXAMPLES)]
    List(ListArgs),
    /// End a session, or all sessions of an actor
    #[command(before_help = END_EXAMPLES)]
    End(EndArgs),
}

#[derive(Debug, Args)]
struct ListArgs {
    /// List everyone's sessions (admins only).
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    zone: ZoneArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
struct EndArgs {
    /// The id of the session; default: every session of your token.
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// End every session of this actor, such as `token:ops` (admins only).
    #[arg(long, value_name = "ACTOR", conflicts_with = "id")]
    actor: Option<String>,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(crate) fn run(args: &SessionsArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    match &args.command {
        None => list(&args.list, now, output),
        Some(SessionsCommand::List(args)) => list(args, now, output),
        Some(SessionsCommand::End(args)) => end(args, now, output),
    }
}

fn list(args: &ListArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let zone = args.zone.read()?.or_utc();
    let mut session = Session::new(&args.online, now, output)?;
    let sessions = session.client.sessions();
    let call = if args.all { sessions.list_all() } else { sessions.list() };
    let list = session.client.run(call.list()).with_action(|| "list sessions".to_owned())?;
    if session.print_list(&list, |one| &one.id)? {
        return Ok(Exit::Success);
    }
    if list.items.is_empty() {
        session.advise("no browser is signed in")?;
        return Ok(Exit::Success);
    }
    let mut table = Table::new(&COLUMNS, session.out.symbols);
    for one in &list.items {
        let or_dash = |text: Option<&String>| filled(text).map_or_else(|| Cell::both("-", ""), Cell::text);
        table.row(vec![
            Cell::text(&one.id),
            Cell::text(&one.actor),
            or_dash(one.from.as_ref()),
            Cell::text(&away(one.last_used_at, session.now)),
            stamp_cell(Some(one.expires_at), &zone),
            or_dash(one.user_agent.as_ref()),
        ]);
    }
    session.out.list(&table)?;
    Ok(Exit::Success)
}

fn end(args: &EndArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    if let Some(id) = &args.id {
        session
            .client
            .send(session.client.sessions().end(id))
            .with_action(|| format!("end session `{id}`"))
            .or_hint(404, || "list them: everbell sessions --all".to_owned())?;
        session.done(Mark::Canceled, &format!("Ended session {}", printable(id)))?;
        return Ok(Exit::Success);
    }
    let (whose, again) = match &args.actor {
        Some(actor) => (shell(actor), format!("everbell sessions end --actor {} --yes", shell(actor))),
        None => ("your token".to_owned(), "everbell sessions end --yes".to_owned()),
    };
    if !args.yes && !confirmed(&format!("End every session of {whose}?"), &again)? {
        return Ok(Exit::Failed);
    }
    let answer = session.client.send(session.client.sessions().end_all(args.actor.as_deref()));
    let answer = answer.with_action(|| format!("end the sessions of {whose}"))?;
    let Some(ended) = session.for_people(answer, |_| "")? else { return Ok(Exit::Success) };
    session.done(Mark::Canceled, &format!("Ended {} of {whose}", counted(ended.ended as usize, "session")))?;
    Ok(Exit::Success)
}
