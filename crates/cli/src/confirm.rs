//! A question before something that cannot be taken back.

use std::io::{self, BufRead, IsTerminal, Write};

use super::CliError;

/// Asks the person at the terminal. Without one, `call` is how to say yes beforehand.
pub(crate) fn confirmed(question: &str, call: &str) -> Result<bool, CliError> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(CliError::invalid(format!("there is no terminal to ask at: {question}\n  {call}")));
    }
    let mut stderr = io::stderr().lock();
    write!(stderr, "{question} [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Goes on if the answer is yes, or was given with `--yes`.
pub fn agreed(question: &str, yes: bool) -> Result<(), CliError> {
    if yes || confirmed(question, "add `--yes`, or look first with `--dry-run`")? {
        return Ok(());
    }
    Err(CliError::Failed { message: "not confirmed; nothing was changed".to_owned(), hint: None })
}
