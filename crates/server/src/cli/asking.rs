//! Questions to the person at the terminal.

use std::io::{self, BufRead, IsTerminal, Write};

use super::CliError;

/// Goes on if the answer to the question is yes. Who is not at a terminal has to say so beforehand, with `--yes`.
pub(crate) fn confirm(question: &str, yes: bool) -> Result<(), CliError> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let message = format!("this needs a yes: {question}");
        return Err(CliError::Invalid {
            message,
            hint: Some("add `--yes`, or look first with `--dry-run`".to_owned()),
        });
    }
    let mut stderr = anstream::stderr();
    write!(stderr, "{question} [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    if ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
        return Ok(());
    }
    Err(CliError::Failed { message: "not confirmed; nothing was changed".to_owned(), hint: None })
}
