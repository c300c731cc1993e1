//! `everbell tokens`.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use everbell_client::TokenCreate;
use everbell_core::Zone;
use everbell_wire as wire;
use jiff::Timestamp;

use super::confirm::confirmed;
use super::connection::admin_token_file;
use super::error::{RefusalContext, warn};
use super::online::{DisplayZone, ZoneArgs};
use super::output::{Cell, Column, Mark, Output, Table, printable};
use super::times::{away, spoken, stamp_cell};
use super::{CliError, Exit, OnlineArgs, Session};
use everbell_wire::shell;
use everbell_wire::time_input::TimeReader;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell tokens
  everbell tokens create ci --role operator > ci.token
  everbell tokens revoke ci --yes";

const CREATE_EXAMPLES: &str = "\
Examples:
  everbell tokens create grafana --role viewer
  everbell tokens create deploy --role admin --expires +90d
  everbell tokens create ops --role operator --json";

const LIST_EXAMPLES: &str = "\
Examples:
  everbell tokens list
  everbell tokens list --tz UTC
  everbell tokens list -o name";

const REVOKE_EXAMPLES: &str = "\
Examples:
  everbell tokens revoke grafana --yes
  everbell tokens revoke deploy --yes -o name
  everbell tokens revoke ops --yes --request-timeout 5s";

const COLUMNS: [Column; 6] = [
    Column::new("NAME").shrinks(),
    Column::new("ROLE"),
    Column::new("STATE"),
    Column::new("CREATED").drop_order(1),
    Column::new("EXPIRES").drop_order(2),
    Column::new("LAST USED"),
];

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct TokensArgs {
    #[command(subcommand)]
    command: Option<TokensCommand>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Subcommand)]
enum TokensCommand {
    /// Create a token; its secret is shown once
    #[command(before_help = CREATE_EXAMPLES)]
    Create(CreateArgs),
    /// List tokens (secrets are never shown)
    #[command(before_help = LIST_EXAMPLES)]
    List(ListArgs),
    /// Revoke a token
    #[command(before_help = REVOKE_EXAMPLES, visible_aliases = ["rm", "delete"])]
    Revoke(RevokeArgs),
}

#[derive(Debug, Args)]
struct ListArgs {
    #[command(flatten)]
    zone: ZoneArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
struct CreateArgs {
    /// A name for people and the audit trail.
    #[arg(value_name = "NAME")]
    name: String,
    /// The role: viewers read, operators also run, pause and cancel, admins also change jobs and tokens.
    #[arg(long, value_name = "ROLE", value_parser = PossibleValuesParser::new(wire::Role::WORDS))]
    role: String,
    /// When the token expires: RFC 3339 or `+90d`; default: never.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    expires: Option<String>,
    #[command(flatten)]
    online: OnlineArgs,
}

const LAST_ADMIN_HINT: &str = "create another one first: everbell tokens create NAME --role admin; or regain access later by \
                        starting a server with EVERBELL_ADMIN_TOKEN";

#[derive(Debug, Args)]
struct RevokeArgs {
    /// The name of the token.
    #[arg(value_name = "NAME")]
    name: String,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(crate) fn run(args: &TokensArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    match &args.command {
        None => list(&args.list, now, output),
        Some(TokensCommand::List(args)) => list(args, now, output),
        Some(TokensCommand::Create(args)) => create(args, now, output),
        Some(TokensCommand::Revoke(args)) => revoke(args, now, output),
    }
}

fn list(args: &ListArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let shown = args.zone.read()?;
    let mut session = Session::new(&args.online, now, output)?;
    let list = session.client.run(session.client.tokens().list().list()).with_action(|| "list tokens".to_owned())?;
    if session.print_list(&list, |token| &token.name)? {
        return Ok(Exit::Success);
    }
    let mut table = Table::new(&COLUMNS, session.out.symbols);
    for token in &list.items {
        table.row(row(token, &shown, &session));
    }
    session.out.list(&table)?;
    Ok(Exit::Success)
}

fn row(token: &wire::Token, shown: &DisplayZone, session: &Session<'_>) -> Vec<Cell> {
    let zone = shown.or_utc();
    let ends = token.expires_at;
    let (state, mark) = match (token.revoked_at, ends) {
        (Some(_), _) => ("revoked", Mark::Canceled),
        (None, Some(at)) if at <= session.now => ("expired", Mark::Ended),
        _ => ("valid", Mark::Good),
    };
    let used = token.last_used_at.map(|at| away(at, session.now));
    vec![
        Cell::text(&token.name),
        Cell::text(token.role.as_str()),
        Cell::both(format!("{} {state}", session.out.symbols.symbol(mark)), state).styled(mark.style()),
        stamp_cell(Some(token.created_at), &zone),
        ends.map_or_else(|| Cell::both("never", ""), |at| stamp_cell(Some(at), &zone)),
        used.map_or_else(|| Cell::both("never", ""), |used| Cell::text(&used)),
    ]
}

fn create(args: &CreateArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let utc = Zone::utc();
    let times = TimeReader { now, zone: &utc };
    let expires = args.expires.as_ref().map(|text| times.read("--expires", text)).transpose()?;
    let mut session = Session::new(&args.online, now, output)?;
    let token = TokenCreate { name: args.name.clone(), role: args.role.clone(), expires_at: expires };
    let answer = session
        .client
        .send(session.client.tokens().create(&token))
        .with_action(|| format!("create token `{}`", args.name))
        .or_hint(409, || "choose another name, or list them: everbell tokens".to_owned())?;
    let Some(created) = session.for_people(answer, |created| &created.about.name)? else { return Ok(Exit::Success) };
    let token = &created.token;
    if session.out.is_for_people() {
        let ends = expires.map_or_else(|| "never expires".to_owned(), |at| format!("expires {}", spoken(at, &utc)));
        session.done(Mark::Good, &format!("Created token {} ({}), which {ends}", printable(&args.name), args.role))?;
        session.out.line(&format!("  {token}"))?;
        session.advise("the secret is shown only once; store it where only its user can read it")?;
        let first = admin_token_file();
        if args.role == "admin" && first.exists() {
            let file = shell(&first.display().to_string());
            session.advise(&format!(
                "the first admin token is no longer needed: everbell tokens revoke admin && rm {file}"
            ))?;
        }
    } else {
        session.out.line(token)?;
    }
    Ok(Exit::Success)
}

/// Whether this is the last valid admin token. A client that may not list tokens may not revoke them either, which the
/// server reports later.
fn is_last_admin(session: &Session<'_>, name: &str) -> bool {
    let Ok(list) = session.client.run(session.client.tokens().list().list()) else { return false };
    let is_admin = |token: &&wire::Token| {
        let ended = token.expires_at.is_some_and(|at| at <= session.now);
        token.role == wire::Role::Admin && token.revoked_at.is_none() && !ended
    };
    let admins: Vec<&wire::Token> = list.items.iter().filter(is_admin).collect();
    matches!(admins[..], [one] if one.name == name)
}

fn revoke(args: &RevokeArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let name = shell(&args.name);
    let mut session = Session::new(&args.online, now, output)?;
    let is_last = is_last_admin(&session, &args.name);
    if is_last {
        warn(format!(
            "{name} is the last admin token: without it, no client can create tokens or jobs\n  hint: {LAST_ADMIN_HINT}"
        ));
    }
    let question = format!("Revoke token {name} permanently?");
    if !args.yes && !confirmed(&question, &format!("everbell tokens revoke {name} --yes"))? {
        return Ok(Exit::Failed);
    }
    session
        .client
        .send(session.client.tokens().revoke(&args.name, is_last))
        .with_action(|| format!("revoke token `{}`", args.name))
        .or_hint(404, || "list them: everbell tokens".to_owned())?;
    if session.is_for_people(&args.name)? {
        session.done(Mark::Canceled, &format!("Revoked token {}", printable(&args.name)))?;
    }
    Ok(Exit::Success)
}
