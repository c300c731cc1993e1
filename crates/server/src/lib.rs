//! What the `everbell` binary is made of: server, scheduler, targets and command line.

mod cli;
mod clock;
mod form;
mod http;
mod observe;
mod preview;
mod secret;
mod targets;
mod time_input;
mod trail;

use std::ffi::OsString;
use std::process::ExitCode;

use cli::output::Output;
use cli::{CliError, Command, Exit};

/// Reads the command line, runs one command, and tells the exit code.
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let exit = cli::parse(args).and_then(|cli| run(&cli.command)).unwrap_or_else(|error| {
        error.report();
        error.exit()
    });
    exit.into()
}

fn run(command: &Command) -> Result<Exit, CliError> {
    let mut output = Output::stdout();
    let exit = match command {
        Command::Cron { command } => cli::cron::run(command, clock::now(), &mut output)?,
        Command::Version(args) => cli::version::run(args, &mut output)?,
    };
    output.flush()?;
    Ok(exit)
}
