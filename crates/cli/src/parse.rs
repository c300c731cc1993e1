//! Parsing a command line, with better advice than clap has where a word is right and its place is wrong.

use std::ffi::OsString;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use everbell_core::cron::Expression;

use crate::CliError;

/// The most commands that a tip names.
const MAX_NAMED_COMMANDS: usize = 4;

/// Parses a command line. An expression that looks like a flag is reported as an expression, and a subcommand that belongs
/// to another command is named with it.
pub fn parse<P: Parser>(args: impl Iterator<Item = OsString>) -> Result<P, CliError> {
    let args: Vec<OsString> = args.collect();
    P::try_parse_from(&args).map_err(|mut error| {
        misread_expression(&args, &error).unwrap_or_else(|| {
            name_the_place(&mut error, &P::command());
            CliError::Usage(error)
        })
    })
}

/// `-1 * * * *` looks like an unknown flag, but the error of the expression is more helpful.
fn misread_expression(args: &[OsString], error: &clap::Error) -> Option<CliError> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let text = args.iter().filter_map(|arg| arg.to_str()).find(|arg| arg.starts_with('-') && arg.contains(' '))?;
    Expression::parse(text).err().map(CliError::Expression)
}

/// Adds where an unknown subcommand exists, as in "did you mean 'everbell jobs backfill'?".
fn name_the_place(error: &mut clap::Error, root: &clap::Command) {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return };
    let mut places = Vec::new();
    find(root, root.get_name(), word, &mut places);
    places.truncate(MAX_NAMED_COMMANDS);
    let Some((last, others)) = places.split_last() else { return };
    let named = if others.is_empty() { last.clone() } else { format!("{} or {last}", others.join(", ")) };
    let tip = ContextValue::StyledStrs(vec![format!("did you mean {named}?").into()]);
    error.insert(ContextKind::Suggested, tip);
}

/// Collects the commands with this name, in the order of the help.
fn find(command: &clap::Command, path: &str, word: &str, places: &mut Vec<String>) {
    for own in command.get_subcommands().filter(|own| !own.is_hide_set()) {
        let path = format!("{path} {}", own.get_name());
        if own.get_name() == word || own.get_all_aliases().any(|alias| alias == word) {
            places.push(format!("'{path}'"));
        }
        find(own, &path, word, places);
    }
}
