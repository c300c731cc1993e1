//! Confirmation of changes that cannot be undone.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;

use super::CliError;

/// `--yes` of a command that changes jobs and never asks, so that a script can pass it to all of them.
#[derive(Debug, Args)]
pub(crate) struct YesArgs {
    /// Do not ask for confirmation. This command never asks.
    #[arg(short, long)]
    #[allow(dead_code, reason = "there is no question that it would answer")]
    yes: bool,
}

/// Asks for confirmation. Without a terminal, fails with `call`, the command line that needs none.
pub(crate) fn confirmed(question: &str, call: &str) -> Result<bool, CliError> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(CliError::invalid(format!("no terminal to ask for confirmation: {question}\n  {call}")));
    }
    let mut stderr = io::stderr().lock();
    write!(stderr, "{question} [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Fails unless the user confirms, now or with `--yes`.
pub fn agreed(question: &str, yes: bool) -> Result<(), CliError> {
    if yes || confirmed(question, "add `--yes`, or preview with `--dry-run`")? {
        return Ok(());
    }
    Err(CliError::Failed { message: "not confirmed; nothing was changed".to_owned(), hint: None })
}
