//! [`CliError`], and messages on standard error.

use std::fmt;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use everbell_core::UnknownZone;
use everbell_core::cron::ParseError;

use super::exit::Exit;
use super::refusal::Refusal;
use everbell_wire::time_input;

impl From<time_input::Refusal> for CliError {
    fn from(refusal: time_input::Refusal) -> CliError {
        CliError::Invalid { message: refusal.reason, hint: refusal.hint }
    }
}

/// Why a command failed.
#[derive(Debug)]
pub enum CliError {
    /// An error of clap about the command line; also the output of `--help` and `--version`.
    Usage(clap::Error),
    /// A value is not valid.
    Invalid {
        /// The problem, in one sentence.
        message: String,
        /// A next step.
        hint: Option<String>,
    },
    /// A cron expression that cannot be parsed.
    Expression(ParseError),
    /// A time zone that does not exist.
    Zone(UnknownZone),
    /// A configuration that cannot be used.
    Config {
        /// The number of problems.
        problems: usize,
        /// A line for each problem.
        text: String,
    },
    /// An operation failed.
    Failed {
        /// The problem, in one sentence.
        message: String,
        /// A next step.
        hint: Option<String>,
    },
    /// The server refused a request.
    Refused(Box<Refusal>),
    /// The server did not respond.
    Unreachable {
        /// The problem, in one sentence.
        message: String,
        /// A next step.
        hint: String,
    },
    /// The user pressed Ctrl-C.
    Interrupted,
    /// Standard input or output failed.
    Io(io::Error),
}

impl CliError {
    /// A value that cannot be used.
    pub fn invalid(message: impl Into<String>) -> CliError {
        CliError::Invalid { message: message.into(), hint: None }
    }

    /// Returns the exit code of the process.
    pub fn exit(&self) -> Exit {
        match self {
            CliError::Usage(error) if error.exit_code() == 0 => Exit::Success,
            // The reader has seen enough, as `head` has after ten lines.
            CliError::Io(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Success,
            CliError::Io(_) | CliError::Failed { .. } => Exit::Failed,
            CliError::Refused(refusal) => refusal.exit(),
            CliError::Unreachable { .. } => Exit::Unreachable,
            CliError::Interrupted => Exit::Interrupted,
            CliError::Usage(_)
            | CliError::Invalid { .. }
            | CliError::Expression(_)
            | CliError::Zone(_)
            | CliError::Config { .. } => Exit::Usage,
        }
    }

    fn map_refusal(self, change: impl FnOnce(Refusal) -> Refusal) -> CliError {
        match self {
            CliError::Refused(refusal) => change(*refusal).into(),
            other => other,
        }
    }

    /// Prints the error on standard error. Failures to print are ignored.
    pub fn report(&self) {
        match self {
            CliError::Usage(error) => drop(error.print()),
            CliError::Io(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            // The user who interrupted it knows.
            CliError::Interrupted => {}
            _ => print("error", AnsiColor::Red, self),
        }
    }
}

/// Prints a warning on standard error.
pub fn warn(message: impl fmt::Display) {
    print("warning", AnsiColor::Yellow, message);
}

/// Prints a message that is neither data nor an error.
pub(crate) fn note(message: impl fmt::Display) {
    let _ = writeln!(anstream::stderr(), "{message}");
}

fn print(label: &str, color: AnsiColor, message: impl fmt::Display) {
    let style = Style::new().bold().fg_color(Some(color.into()));
    let _ = writeln!(anstream::stderr(), "{style}{label}:{style:#} {message}");
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CliError::Usage(error) => write!(f, "{error}"),
            CliError::Invalid { message, hint } | CliError::Failed { message, hint } => {
                f.write_str(message)?;
                hint.as_ref().map_or(Ok(()), |hint| write!(f, "\n  hint: {hint}"))
            }
            CliError::Expression(error) => {
                write!(f, "invalid cron expression\n{}\n  allowed: {}", error.render(), error.allowed())?;
                error.hint().map_or(Ok(()), |hint| write!(f, "\n  hint: {hint}"))
            }
            CliError::Zone(error) => write!(f, "{error}"),
            CliError::Refused(refusal) => write!(f, "{refusal}"),
            CliError::Unreachable { message, hint } => write!(f, "{message}\n  hint: {hint}"),
            CliError::Interrupted => f.write_str("interrupted"),
            // A line each, so that editors can jump to them.
            CliError::Config { problems: 1, text } => write!(f, "the configuration is not valid\n{text}"),
            CliError::Config { problems, text } => write!(f, "the configuration has {problems} problems\n{text}"),
            CliError::Io(error) => write!(f, "standard input or output failed: {error}"),
        }
    }
}

/// Adds the context of a command to a refusal.
pub(crate) trait RefusalContext<T> {
    /// Names what the command tried to do, such as: create job `night`.
    fn with_action(self, action: impl FnOnce() -> String) -> Result<T, CliError>;

    /// Adds a hint to a refusal with this status, unless it has one.
    fn or_hint(self, status: u16, hint: impl FnOnce() -> String) -> Result<T, CliError>;

    /// If an object is missing, adds a hint at the command that lists such objects.
    fn or_list(self) -> Result<T, CliError>;
}

impl<T> RefusalContext<T> for Result<T, CliError> {
    fn with_action(self, action: impl FnOnce() -> String) -> Result<T, CliError> {
        self.map_err(|error| error.map_refusal(|refusal| refusal.with_action(action())))
    }

    fn or_hint(self, status: u16, hint: impl FnOnce() -> String) -> Result<T, CliError> {
        let hint = |refusal: &Refusal| (refusal.status() == status).then(hint);
        self.map_err(|error| error.map_refusal(|refusal| refusal.or_hint(hint)))
    }

    fn or_list(self) -> Result<T, CliError> {
        let hint = |refusal: &Refusal| refusal.list_hint().filter(|_| refusal.status() == 404);
        self.map_err(|error| error.map_refusal(|refusal| refusal.or_hint(hint)))
    }
}

impl From<Refusal> for CliError {
    fn from(refusal: Refusal) -> CliError {
        CliError::Refused(Box::new(refusal))
    }
}

impl From<ParseError> for CliError {
    fn from(error: ParseError) -> CliError {
        CliError::Expression(error)
    }
}

impl From<UnknownZone> for CliError {
    fn from(error: UnknownZone) -> CliError {
        CliError::Zone(error)
    }
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> CliError {
        CliError::Io(error)
    }
}
