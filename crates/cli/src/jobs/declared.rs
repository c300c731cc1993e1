//! Jobs as files declare them: out of a server, into it, and what differs.

mod apply;
pub(crate) mod crontab;
mod diff;
pub(crate) mod export;
mod foreseen;
mod plan;

use clap::Subcommand;
use jiff::Timestamp;

use crate::output::Output;
use crate::{CliError, Exit, Program};

#[derive(Debug, Subcommand)]
pub(crate) enum DeclaredCommand {
    /// Write jobs as `[[job]]` blocks, which `jobs apply` and everbell.toml read
    #[command(before_help = export::EXAMPLES)]
    Export(export::ExportArgs),
    /// Make the jobs of a server match a file
    ///
    /// Shows first what it would do. Paused jobs stay paused; the same file again changes nothing. Exits with 5 if
    /// somebody changes a job meanwhile, or if a job belongs to the configuration of the server.
    #[command(before_help = apply::EXAMPLES)]
    Apply(apply::ApplyArgs),
    /// Import jobs from a crontab
    ///
    /// Tells for each line what becomes of it. A job gets `{"command": "…"}` as its payload, for a target that knows what
    /// to do with it. The same file again changes nothing. Exits with 1 if a line had to be left out.
    #[command(before_help = crontab::EXAMPLES)]
    ImportCrontab(crontab::CrontabArgs),
    /// Compare two versions of a job, by default the newest two
    #[command(before_help = diff::EXAMPLES)]
    Diff(diff::DiffArgs),
}

pub(super) fn run(
    command: &DeclaredCommand,
    program: Program,
    now: Timestamp,
    output: &mut Output,
) -> Result<Exit, CliError> {
    match command {
        DeclaredCommand::Export(args) => export::run(args, now, output),
        DeclaredCommand::Apply(args) => apply::run(args, program, now, output),
        DeclaredCommand::ImportCrontab(args) => crontab::run(args, now, output),
        DeclaredCommand::Diff(args) => diff::run(args, now, output),
    }
}
