//! `everbell context`: servers by name.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use everbell_client::Client;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use serde_json::json;

use super::connection::contexts::{self, Context, Contexts};
use super::output::{Cell, Column, Mark, Output, Table, printable};
use super::{CliError, Exit};

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell context
  everbell context list
  everbell context list --json";

const ADD_EXAMPLES: &str = "\
Examples:
  everbell context add staging --url http://127.0.0.1:7070
  everbell context add prod --url https://cron.example.com --token-file prod.token
  echo \"$EVERBELL_TOKEN\" | everbell context add lab --url https://lab.example.com --token-stdin";

const USE_EXAMPLES: &str = "\
Examples:
  everbell context use prod
  everbell context use staging
  everbell context use staging && everbell status";

const REMOVE_EXAMPLES: &str = "\
Examples:
  everbell context remove lab
  everbell context remove prod
  everbell context remove staging && everbell context";

/// A longer text cannot be a token.
const MAX_TOKEN_BYTES: usize = 4_096;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ContextArgs {
    #[command(subcommand)]
    command: Option<ContextCommand>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Subcommand)]
enum ContextCommand {
    /// Add a server under a name
    ///
    /// The first server added becomes the current one. There is no flag for the token itself, because other users of a
    /// machine can see command lines.
    #[command(before_help = ADD_EXAMPLES)]
    Add(AddArgs),
    /// Make a server the current one, which is used unless a flag or a variable names another
    #[command(before_help = USE_EXAMPLES)]
    Use {
        /// The name of the context.
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// List the servers
    #[command(before_help = EXAMPLES)]
    List(ListArgs),
    /// Remove a server
    #[command(before_help = REMOVE_EXAMPLES, visible_alias = "rm")]
    Remove {
        /// The name of the context.
        #[arg(value_name = "NAME")]
        name: String,
    },
}

#[derive(Debug, Args)]
struct ListArgs {
    /// Print one JSON document, without tokens.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct AddArgs {
    /// A name for the server: letters, digits, `-`, `_` and `.`.
    #[arg(value_name = "NAME")]
    name: String,
    /// The address of the server.
    #[arg(long, value_name = "URL")]
    url: String,
    /// Read the token from this file, each time.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Read the token from standard input and store it, in a file that only you can read.
    #[arg(long, conflicts_with = "token_file")]
    token_stdin: bool,
}

pub(crate) fn run(args: &ContextArgs, output: &mut Output) -> Result<Exit, CliError> {
    match &args.command {
        None => list(&args.list, output),
        Some(ContextCommand::List(args)) => list(args, output),
        Some(ContextCommand::Add(args)) => add(args, output),
        Some(ContextCommand::Use { name }) => {
            let mut contexts = Contexts::load()?;
            let server = contexts.find("NAME", name)?.server.clone();
            contexts.current = Some(name.clone());
            contexts.save()?;
            done(output, &format!("Using {name}: {}", printable(&server)))
        }
        Some(ContextCommand::Remove { name }) => {
            let mut contexts = Contexts::load()?;
            contexts.find("NAME", name)?;
            contexts.contexts.remove(name);
            contexts.current = contexts.current.filter(|current| current != name);
            contexts.save()?;
            done(output, &format!("Removed {name}"))
        }
    }
}

fn done(output: &mut Output, words: &str) -> Result<Exit, CliError> {
    let mark = output.mark(Mark::Good);
    output.line(&format!("{mark} {words}"))?;
    Ok(Exit::Success)
}

fn add(args: &AddArgs, output: &mut Output) -> Result<Exit, CliError> {
    let AddArgs { name, url, .. } = args;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(is_name) {
        let message = format!("NAME: `{}` must be 1 to 64 letters, digits, `-`, `_` or `.`", name.escape_debug());
        return Err(CliError::invalid(message));
    }
    Client::builder(url).timeout(Duration::from_secs(1)).build().map_err(|error| CliError::Invalid {
        message: format!("--url: {error}"),
        hint: Some("use an address such as `https://everbell.example.com`".to_owned()),
    })?;
    let mut contexts = Contexts::load()?;
    if contexts.contexts.contains_key(name) {
        return Err(CliError::Invalid {
            message: format!("the context `{name}` exists"),
            hint: Some(format!("remove it first: everbell context remove {name}")),
        });
    }
    let absolute = |file: &PathBuf| {
        std::path::absolute(file).ok().filter(|path| path.is_file()).ok_or_else(|| {
            CliError::invalid(format!("--token-file: `{}` is not a file that can be read", file.display()))
        })
    };
    let token_file = args.token_file.as_ref().map(absolute).transpose()?;
    let token = if args.token_stdin { Some(read_token()?) } else { None };
    contexts.contexts.insert(name.clone(), Context { server: url.clone(), token_file, token });
    let is_current = contexts.contexts.len() == 1 || contexts.current.is_none();
    if is_current {
        contexts.current = Some(name.clone());
    }
    contexts.save()?;
    let used = if is_current { ", which is used from now on".to_owned() } else { String::new() };
    done(output, &format!("Added {name}: {}{used}", printable(url)))
}

/// Reads a token from standard input; on a terminal, without showing it.
fn read_token() -> Result<String, CliError> {
    let stdin = std::io::stdin();
    let shown = if stdin.is_terminal() { tcgetattr(&stdin).ok() } else { None };
    if let Some(shown) = &shown {
        let mut hidden = shown.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&stdin, OptionalActions::Now, &hidden).map_err(std::io::Error::from)?;
        let mut stderr = std::io::stderr().lock();
        write!(stderr, "Token: ")?;
        stderr.flush()?;
    }
    let mut text = String::new();
    let read = stdin.read_line(&mut text);
    if let Some(shown) = &shown {
        tcsetattr(&stdin, OptionalActions::Now, shown).map_err(std::io::Error::from)?;
        writeln!(std::io::stderr())?;
    }
    read?;
    match text.trim() {
        "" => Err(CliError::invalid("--token-stdin: standard input is empty")),
        token if token.len() > MAX_TOKEN_BYTES || token.contains(char::is_whitespace) => {
            Err(CliError::invalid("--token-stdin: the first line is not a token"))
        }
        token => Ok(token.to_owned()),
    }
}

fn list(args: &ListArgs, output: &mut Output) -> Result<Exit, CliError> {
    let contexts = Contexts::load()?;
    let is_current = |name: &String| contexts.current.as_ref() == Some(name);
    if args.json {
        let item = |(name, context): (&String, &Context)| json!({ "name": name, "server": context.server, "token": context.token_place(), "current": is_current(name) });
        let items: Vec<_> = contexts.contexts.iter().map(item).collect();
        output.json(&json!({ "items": items }))?;
        return Ok(Exit::Success);
    }
    if contexts.contexts.is_empty() {
        if output.is_for_people() {
            let place = contexts::file().map_or_else(String::new, |file| format!(" in {}", file.display()));
            crate::error::note(format!("no contexts{place}; add one: everbell context add NAME --url URL"));
        }
        return Ok(Exit::Success);
    }
    let columns = [
        Column::new("NAME"),
        Column::new("CURRENT"),
        Column::new("SERVER").shrinks(),
        Column::new("TOKEN").shrinks().drop_order(1),
    ];
    let mut table = Table::new(&columns, output.symbols);
    for (name, context) in &contexts.contexts {
        let current = if is_current(name) { Cell::both("yes", "yes") } else { Cell::both("", "") };
        let token = context.token_place();
        table.row(vec![Cell::text(name), current, Cell::text(&context.server), Cell::text(&token)]);
    }
    output.list(&table)?;
    Ok(Exit::Success)
}
