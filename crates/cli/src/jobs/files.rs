//! Jobs in files: exported, applied, and imported from crontabs.

mod apply;
pub(crate) mod crontab;
mod export;
mod importing;
mod machine_zone;
pub(super) mod plan;
mod plan_check;
mod state;

pub(crate) use apply::{Done, is_for_programs};
pub(crate) use importing::{Importing, expect_target};
pub(crate) use machine_zone::machine_zone;
pub use state::PausedJob;

use clap::Subcommand;
use jiff::Timestamp;

use crate::output::Output;
use crate::{CliError, Exit, Program};

#[derive(Debug, Subcommand)]
pub(crate) enum FileCommand {
    /// Write jobs as `[[job]]` blocks, which `jobs apply` and everbell.toml read
    #[command(before_help = export::EXAMPLES)]
    Export(export::ExportArgs),
    /// Make the jobs of a server match a file
    ///
    /// Shows the changes and asks for confirmation. Paused jobs stay paused. Applying the same file twice changes nothing.
    /// Exits with 5 if a job has changed in the meantime, or is declared in the configuration of the server.
    #[command(before_help = apply::EXAMPLES)]
    Apply(apply::ApplyArgs),
    /// Import jobs from a crontab; the same as `everbell import crontab`
    ///
    /// Shows what happens to each line. The jobs are paused, and have the label `imported` with the name of the file.
    /// Importing the same file twice changes nothing. Exits with 1 if a line cannot be imported.
    #[command(before_help = crontab::OLD_EXAMPLES)]
    ImportCrontab(crontab::CrontabArgs),
}

pub(super) fn run(
    command: &FileCommand,
    program: Program,
    now: Timestamp,
    output: &mut Output,
) -> Result<Exit, CliError> {
    match command {
        FileCommand::Export(args) => export::run(args, now, output),
        FileCommand::Apply(args) => apply::run(args, program, now, output),
        FileCommand::ImportCrontab(args) => crontab::run(args, now, output),
    }
}
