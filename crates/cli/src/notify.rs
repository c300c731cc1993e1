//! `everbell notify`: channels, tests and messages.

use everbell_wire::notify::DeliveryStatus;
use std::time::Duration;

use clap::{Args, Subcommand};
use everbell_client::{DeliveryQuery, wire};
use jiff::Timestamp;

use super::error::RefusalContext;
use super::online::ZoneArgs;
use super::output::{Cell, Column, Mark, Output, Table, printable};
use super::times::stamp_cell;
use super::words::filled;
use super::{CliError, Exit, OnlineArgs, Session};

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell notify channels
  everbell notify test ops-slack
  everbell notify deliveries --status dead";

const CHANNELS_EXAMPLES: &str = "\
Examples:
  everbell notify channels
  everbell notify channels --tz Europe/Paris
  everbell notify channels --json";

const TEST_EXAMPLES: &str = "\
Examples:
  everbell notify test ops-slack
  everbell notify test oncall --no-wait
  everbell notify test ops-slack --json";

const DELIVERIES_EXAMPLES: &str = "\
Examples:
  everbell notify deliveries
  everbell notify deliveries --status dead
  everbell notify deliveries --channel ops-slack --limit 5";

/// How long a test is waited for, and how often the server is asked.
const TEST_TIMEOUT: Duration = Duration::from_secs(75);
const TEST_POLL: Duration = Duration::from_millis(500);

const CHANNEL_COLUMNS: [Column; 6] = [
    Column::new("CHANNEL"),
    Column::new("TYPE"),
    Column::new("LAST MESSAGE"),
    Column::new("PENDING"),
    Column::new("DEAD"),
    Column::new("RULES").shrinks().drop_order(1),
];

const DELIVERY_COLUMNS: [Column; 7] = [
    Column::new("TIME"),
    Column::new("CHANNEL"),
    Column::new("CHANGE"),
    Column::new("STATUS"),
    Column::new("ATTEMPTS"),
    Column::new("TITLE").shrinks().drop_order(2),
    Column::new("ERROR").shrinks().drop_order(1),
];

#[derive(Debug, Args)]
pub(crate) struct NotifyArgs {
    #[command(subcommand)]
    command: NotifyCommand,
}

#[derive(Debug, Subcommand)]
enum NotifyCommand {
    /// List notification channels
    #[command(before_help = CHANNELS_EXAMPLES)]
    Channels(ChannelsArgs),
    /// Send a test message through a channel
    ///
    /// Waits until the message has been sent, and exits with 1 if that fails.
    #[command(before_help = TEST_EXAMPLES)]
    Test(TestArgs),
    /// List notification messages, newest first
    #[command(before_help = DELIVERIES_EXAMPLES)]
    Deliveries(DeliveriesArgs),
}

#[derive(Debug, Args)]
struct ChannelsArgs {
    #[command(flatten)]
    zone: ZoneArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
struct TestArgs {
    /// The name of the channel.
    #[arg(value_name = "NAME")]
    name: String,
    /// Do not wait until the message has been sent.
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
struct DeliveriesArgs {
    /// Only messages to this channel.
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
    /// Only messages with this status: pending, delivered or dead.
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,
    /// Only messages about this problem.
    #[arg(long, value_name = "ID")]
    problem: Option<String>,
    /// Show at most this many messages.
    #[arg(short = 'n', long, value_name = "N", default_value = "30", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    #[command(flatten)]
    zone: ZoneArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(crate) fn run(args: &NotifyArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    match &args.command {
        NotifyCommand::Channels(args) => channels(args, now, output),
        NotifyCommand::Test(args) => test(args, now, output),
        NotifyCommand::Deliveries(args) => deliveries(args, now, output),
    }
}

fn channels(args: &ChannelsArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let zone = args.zone.read()?.or_utc();
    let mut session = Session::new(&args.online, now, output)?;
    let list = session.client.run(session.client.notify().channels().list());
    let list = list.with_action(|| "list channels".to_owned())?;
    if session.print_list(&list, |channel| &channel.name)? {
        return Ok(Exit::Success);
    }
    if list.items.is_empty() {
        session.advise("the server has no channel; write a [[notify]] block into its configuration")?;
        return Ok(Exit::Success);
    }
    let mut table = Table::new(&CHANNEL_COLUMNS, session.out.symbols);
    for channel in &list.items {
        table.row(vec![
            Cell::text(&channel.name),
            Cell::text(channel.kind.as_str()),
            stamp_cell(channel.last.as_ref().map(|last| last.created_at), &zone),
            Cell::text(&channel.pending.to_string()),
            Cell::text(&channel.dead.to_string()),
            Cell::text(&channel.rules.join("; ")),
        ]);
    }
    session.out.list(&table)?;
    Ok(Exit::Success)
}

fn test(args: &TestArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let mut answer = session
        .client
        .send(session.client.notify().test(&args.name))
        .with_action(|| format!("test channel `{}`", args.name))
        .or_hint(404, || "list them: everbell notify channels".to_owned())?;
    let mut waited = Duration::ZERO;
    while !args.no_wait && answer.document.status == DeliveryStatus::Pending && waited < TEST_TIMEOUT {
        session.client.sleep(TEST_POLL)?;
        waited += TEST_POLL;
        let query = DeliveryQuery { id: Some(answer.document.id.clone()), ..DeliveryQuery::default() };
        let list = session.client.take(session.client.notify().deliveries(&query), 1);
        let list = list.with_action(|| "look for the message".to_owned())?;
        let texts: Vec<String> = list.lines().map(str::to_owned).collect();
        if let (Some(delivery), Some(text)) = (list.items.into_iter().next(), texts.into_iter().next()) {
            (answer.document, answer.text) = (delivery, text);
        }
    }
    let has_failed = answer.document.status == DeliveryStatus::Dead;
    let exit = if has_failed { Exit::Failed } else { Exit::Success };
    let Some(delivery) = session.for_people(answer, |delivery| &delivery.id)? else { return Ok(exit) };
    let name = printable(&args.name);
    match delivery.status {
        DeliveryStatus::Delivered => session.done(Mark::Good, &format!("Sent a test message through {name}"))?,
        DeliveryStatus::Dead => {
            session.done(Mark::Bad, &format!("Could not send a test message through {name}"))?;
            session.detail(&printable(delivery.error.as_deref().unwrap_or("no reason was given")))?;
        }
        _ => {
            session.done(Mark::Waiting, &format!("The test message for {name} waits to be sent"))?;
            session.advise(
                "only instances with the scheduler role and this channel send messages; check again: everbell notify deliveries",
            )?;
        }
    }
    Ok(exit)
}

fn deliveries(args: &DeliveriesArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let zone = args.zone.read()?.or_utc();
    let mut session = Session::new(&args.online, now, output)?;
    let query = DeliveryQuery {
        id: None,
        channel: args.channel.clone(),
        problem_id: args.problem.clone(),
        status: args.status.clone(),
    };
    let list = session.client.take(session.client.notify().deliveries(&query), args.limit as usize);
    let list = list.with_action(|| "list messages".to_owned())?;
    if session.print_list(&list, |delivery| &delivery.id)? {
        return Ok(Exit::Success);
    }
    if list.items.is_empty() {
        session.advise("no message matches")?;
        return Ok(Exit::Success);
    }
    let mut table = Table::new(&DELIVERY_COLUMNS, session.out.symbols);
    for delivery in &list.items {
        table.row(row(delivery, &zone));
    }
    session.out.list(&table)?;
    Ok(Exit::Success)
}

fn row(delivery: &wire::NotifyDelivery, zone: &everbell_core::Zone) -> Vec<Cell> {
    let error = filled(delivery.error.as_ref()).map_or_else(|| Cell::both("-", ""), Cell::text);
    vec![
        stamp_cell(Some(delivery.created_at), zone),
        Cell::text(&delivery.channel),
        Cell::text(delivery.change.as_str()),
        Cell::text(delivery.status.as_str()),
        Cell::text(&delivery.attempts.to_string()),
        Cell::text(&delivery.title),
        error,
    ]
}
