//! The parts of the `everbell` binary: server, scheduler, targets and command line.

mod commands;
mod config;
mod notify;
mod serve;
#[cfg(test)]
mod snippets_tests;
mod targets;

use std::ffi::OsString;
use std::process::ExitCode;

use commands::{Cli, Command, PROGRAM};
use config::{Config, Environment};
use everbell_cli::{CliError, Exit, Output, clock};

/// Reads the command line, runs one command, and returns the exit code.
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.collect();
    if everbell_cli::answer_completions(PROGRAM, &args) || targets::ran_as_supervisor(&args) {
        return ExitCode::SUCCESS;
    }
    let is_healthcheck = args.get(1).is_some_and(|word| word == "healthcheck");
    let exit = everbell_cli::parse::<Cli>(args.into_iter()).and_then(|cli| run(&cli.command)).unwrap_or_else(|error| {
        error.report();
        error.exit()
    });
    // Containers know two answers, and reserve the others.
    if is_healthcheck && exit != Exit::Success { Exit::Failed.into() } else { exit.into() }
}

/// Keeps other programs of the same user, such as the commands of targets, from reading the memory, the environment and the
/// open files of a server, and a crash from writing its secrets into a core dump. Programs that it starts are not affected.
fn deny_inspection() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
            everbell_cli::warn(format!("other programs of this user can read the secrets of the server: {error}"));
        }
    }
}

fn run(command: &Command) -> Result<Exit, CliError> {
    let mut output = Output::stdout();
    let exit = match command {
        Command::Config { command } => {
            let environment = Environment::new(std::env::vars_os());
            commands::config::run(command, &environment, clock::now(), &mut output)?
        }
        Command::Serve(args) => {
            deny_inspection();
            let environment = Environment::new(std::env::vars_os());
            let flags = args.flags();
            let config = Config::load(&flags, &environment)?;
            // The server prints from its own thread, which waits for the lock on standard output.
            drop(output);
            return serve::run(&config, serve::Origin { flags, environment });
        }
        Command::Client(command) => command.run(PROGRAM, clock::now(), &mut output)?,
        Command::Db { command } => {
            let environment = Environment::new(std::env::vars_os());
            commands::db::run(command, &environment, &mut output)?
        }
    };
    output.flush()?;
    Ok(exit)
}
