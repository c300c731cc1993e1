//! [`Session`]: what a command that connects to a server works with.

use std::rc::Rc;

use everbell_client::{List, Response};
use jiff::Timestamp;

use super::CliError;
use super::connection::Connection;
use super::error::{note, warn};
use super::online::{Format, OnlineArgs};
use super::output::{Mark, Output, printable};

/// A connection to a server, and the output of a command.
pub(crate) struct Session<'a> {
    pub(crate) client: Rc<Connection>,
    pub(crate) out: &'a mut Output,
    pub(crate) format: Option<Format>,
    pub(crate) quiet: bool,
    pub(crate) now: Timestamp,
}

impl<'a> Session<'a> {
    pub(crate) fn new(args: &OnlineArgs, now: Timestamp, out: &'a mut Output) -> Result<Session<'a>, CliError> {
        let format = args.prepare(out);
        let client = Connection::new(args)?;
        if client.sends_token_in_clear() {
            let server = printable(client.server());
            warn(format!(
                "the token is sent to {server} unencrypted, so anyone on the network path can read it; use https"
            ));
        }
        Ok(Session { client: Rc::new(client), out, format, quiet: args.quiet, now })
    }

    /// Prints the response if a program reads the output; otherwise returns the document. `name` is printed with `-o name`,
    /// unless it is empty.
    pub(crate) fn for_people<T>(
        &mut self,
        answer: Response<T>,
        name: impl FnOnce(&T) -> &str,
    ) -> Result<Option<T>, CliError> {
        match self.format {
            Some(Format::Json | Format::Jsonl) => self.out.line(answer.text.trim_end())?,
            Some(Format::Name) => self.out.name(name(&answer.document))?,
            Some(Format::Table | Format::Plain) | None => return Ok(Some(answer.document)),
        }
        Ok(None)
    }

    /// Prints the name with `-o name` after a request whose response has no document, and returns whether people read the
    /// output.
    pub(crate) fn is_for_people(&mut self, name: &str) -> Result<bool, CliError> {
        match self.format {
            Some(Format::Name) => self.out.line(&printable(name))?,
            Some(Format::Json | Format::Jsonl) => {}
            Some(Format::Table | Format::Plain) | None => return Ok(true),
        }
        Ok(false)
    }

    /// Prints a list if a program reads the output, and returns whether it did. `name` is printed with `-o name`.
    pub(crate) fn print_list<T>(&mut self, list: &List<T>, name: impl Fn(&T) -> &str) -> Result<bool, CliError> {
        match self.format {
            Some(Format::Json) => self.out.line(list.json().trim_end())?,
            Some(Format::Jsonl) => list.lines().try_for_each(|line| self.out.line(line))?,
            Some(Format::Name) => list.items.iter().try_for_each(|item| self.out.name(name(item)))?,
            Some(Format::Table | Format::Plain) | None => return Ok(false),
        }
        Ok(true)
    }

    /// Prints advice for people, unless they asked for quiet.
    pub(crate) fn advise(&mut self, words: &str) -> Result<(), CliError> {
        if self.out.is_for_people() && !self.quiet {
            // Both streams may be the same terminal: print the data first.
            self.out.flush()?;
            note(words);
        }
        Ok(())
    }

    /// Prints the result of a change: a line with a mark.
    pub(crate) fn done(&mut self, mark: Mark, words: &str) -> Result<(), CliError> {
        if !self.quiet {
            let mark = self.out.mark(mark);
            self.out.line(&format!("{mark} {words}"))?;
        }
        Ok(())
    }

    /// Prints a line below the result.
    pub(crate) fn detail(&mut self, words: &str) -> Result<(), CliError> {
        if !self.quiet {
            self.out.line(&format!("  {words}"))?;
        }
        Ok(())
    }
}
