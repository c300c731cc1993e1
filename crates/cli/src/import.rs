//! `everbell import`: jobs from other schedulers.

use clap::Subcommand;
use jiff::Timestamp;

use crate::jobs::crontab;
use crate::output::Output;
use crate::{CliError, Exit};

pub(crate) const EXAMPLES: &str = "\
Examples:
  everbell import crontab crontab.txt --dry-run
  everbell import crontab /etc/crontab /etc/cron.d/* --dry-run
  crontab -l | everbell import crontab - --yes";

#[derive(Debug, Subcommand)]
pub(crate) enum ImportCommand {
    /// Import jobs from crontabs
    ///
    /// Shows what happens to each line, and where its meaning differs. The jobs run their commands with the target `shell`.
    /// They are paused, and have the label `imported` with the name of the file: `everbell jobs resume --label` starts
    /// them. Importing the same file twice changes nothing. Exits with 1 if a line cannot be imported.
    #[command(before_help = crontab::EXAMPLES)]
    Crontab(crontab::CrontabArgs),
}

pub(crate) fn run(command: &ImportCommand, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    match command {
        ImportCommand::Crontab(args) => crontab::run(args, now, output),
    }
}
