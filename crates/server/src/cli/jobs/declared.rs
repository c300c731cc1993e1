//! Jobs as files declare them: out of a server, into it, and what differs.

mod apply;
mod diff;
mod export;
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
    /// Tell what differs between two versions of a job: the newest and the one before, if none are named
    #[command(before_help = diff::EXAMPLES)]
    Diff(diff::DiffArgs),
}

pub(super) fn run(command: &DeclaredCommand, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    match command {
        DeclaredCommand::Export(args) => export::run(args, now, output),
        DeclaredCommand::Apply(args) => apply::run(args, now, output),
        DeclaredCommand::Diff(args) => diff::run(args, now, output),
    }
}
