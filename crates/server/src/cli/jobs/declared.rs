//! Jobs as files declare them: out of a server, into it, and what differs.

mod apply;
pub(crate) mod crontab;
mod diff;
pub(crate) mod export;
mod foreseen;
mod plan;
mod toml_text;

use clap::Subcommand;
use jiff::Timestamp;

use crate::cli::output::Output;
use crate::cli::{CliError, Exit};

#[derive(Debug, Subcommand)]
pub(crate) enum DeclaredCommand {
    /// Write jobs as `[[job]]` blocks, which `jobs apply` and everbell.toml read
    #[command(before_help = export::EXAMPLES)]
    Export(export::ExportArgs),
    /// Make the jobs of a server those of a file
    ///
    /// Shows first what it would do. Paused jobs stay paused; the same file again changes nothing. Exits with 5 if
    /// somebody changes a job meanwhile, or if a job belongs to the configuration of the server.
    #[command(before_help = apply::EXAMPLES)]
    Apply(apply::ApplyArgs),
    /// Make jobs of the lines of a crontab
    ///
    /// Tells for each line what becomes of it. A job gets `{"command": "…"}` as its payload, for a target that knows what
    /// to do with it. The same file again changes nothing. Exits with 1 if a line had to be left out.
    #[command(before_help = crontab::EXAMPLES)]
    ImportCrontab(crontab::CrontabArgs),
    /// Tell what differs between two versions of a job: the newest and the one before, if none are named
    #[command(before_help = diff::EXAMPLES)]
    Diff(diff::DiffArgs),
}

pub(super) fn run(command: &DeclaredCommand, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    match command {
        DeclaredCommand::Export(args) => export::run(args, now, output),
        DeclaredCommand::Apply(args) => apply::run(args, now, output),
        DeclaredCommand::ImportCrontab(args) => crontab::run(args, now, output),
        DeclaredCommand::Diff(args) => diff::run(args, now, output),
    }
}
