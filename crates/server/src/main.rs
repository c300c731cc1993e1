//! The `everbell` command: reads the command line, runs one command, ends with its exit code.

mod cli;
mod clock;

use std::process::ExitCode;

use cli::output::Output;
use cli::{CliError, Command, Exit};

fn main() -> ExitCode {
    let exit = cli::parse(std::env::args_os()).and_then(|cli| run(&cli.command)).unwrap_or_else(|error| {
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
