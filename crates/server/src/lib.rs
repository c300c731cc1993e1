//! What the `everbell` binary is made of: server, scheduler, targets and command line.

mod cli;
mod clock;
mod config;
mod elapsed;
mod embed;
mod form;
mod http;
mod observe;
mod preview;
mod secret;
mod serve;
mod targets;
mod time_input;
mod trail;
mod ui;

use std::ffi::OsString;
use std::process::ExitCode;

pub use embed::{WeakToken, router};

use cli::output::Output;
use cli::{CliError, Command, Exit};
use config::{Config, Environment};

/// Reads the command line, runs one command, and tells the exit code.
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.collect();
    if cli::completions::answered(&args) || targets::answered(&args) {
        return ExitCode::SUCCESS;
    }
    let is_healthcheck = args.get(1).is_some_and(|word| word == "healthcheck");
    let exit = cli::parse(args.into_iter()).and_then(|cli| run(&cli.command)).unwrap_or_else(|error| {
        error.report();
        error.exit()
    });
    // Containers know two answers, and reserve the others.
    if is_healthcheck && exit != cli::Exit::Success { cli::Exit::Failed.into() } else { exit.into() }
}

/// Keeps other programs of the same user, such as the commands of targets, from reading the memory, the environment and the
/// open files of a server, and a crash from writing its secrets into a core dump. Programs that it starts are not affected.
fn deny_inspection() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
            cli::warn(format!("other programs of this user can read the secrets of the server: {error}"));
        }
    }
}

fn run(command: &Command) -> Result<Exit, CliError> {
    let mut output = Output::stdout();
    let exit = match command {
        Command::Config { command } => {
            let environment = Environment::new(std::env::vars_os());
            cli::config::run(command, &environment, clock::now(), &mut output)?
        }
        Command::Serve(args) => {
            deny_inspection();
            let environment = Environment::new(std::env::vars_os());
            let config = Config::load(&args.flags(), &environment)?;
            // The server prints from a thread of its own, which waits for whoever holds standard output.
            drop(output);
            return serve::run(&config);
        }
        Command::Cron { command } => cli::cron::run(command, clock::now(), &mut output)?,
        Command::Jobs(args) => cli::jobs::run(args, clock::now(), &mut output)?,
        Command::Runs(args) => cli::runs::run(args, clock::now(), &mut output)?,
        Command::Orgs(args) => cli::orgs::run(args, clock::now(), &mut output)?,
        Command::Next(args) => cli::next::run(args, clock::now(), &mut output)?,
        Command::Targets(args) => cli::targets::run(args, clock::now(), &mut output)?,
        Command::Instances(args) => cli::instances::run(args, clock::now(), &mut output)?,
        Command::Sessions(args) => cli::sessions::run(args, clock::now(), &mut output)?,
        Command::Tokens(args) => cli::tokens::run(args, clock::now(), &mut output)?,
        Command::Audit(args) => cli::audit::run(args, clock::now(), &mut output)?,
        Command::Status(args) => cli::status::run(args, clock::now(), &mut output)?,
        Command::Api(args) => cli::api::run(args, clock::now(), &mut output)?,
        Command::Help { words } => cli::topics::run(words, &mut output)?,
        Command::Db { command } => {
            let environment = Environment::new(std::env::vars_os());
            cli::db::run(command, &environment, &mut output)?
        }
        Command::Doctor(args) => cli::doctor::run(args, clock::now(), &mut output)?,
        Command::Healthcheck(args) => cli::healthcheck::run(args)?,
        Command::Completions(args) => cli::completions::run(args, &mut output)?,
        Command::Man(args) => cli::man::run(args, &mut output)?,
        Command::Version(args) => cli::version::run(args, &mut output)?,
    };
    output.flush()?;
    Ok(exit)
}
