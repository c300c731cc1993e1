//! `everbell orgs`.

mod check;
mod export;
pub(crate) mod import;
mod list;
mod org_updates;
mod overrides;
mod show;
mod write;

use clap::{Args, Subcommand};
use jiff::Timestamp;

use super::output::Output;
use super::{CliError, Exit};

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell orgs
  everbell orgs set acme --timezone Europe/Paris
  everbell orgs show acme";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct OrgsArgs {
    #[command(subcommand)]
    command: Option<OrgsCommand>,
    #[command(flatten)]
    list: list::ListArgs,
}

#[derive(Debug, Subcommand)]
enum OrgsCommand {
    /// List orgs with their time zone and local time
    #[command(before_help = list::EXAMPLES)]
    List(list::ListArgs),
    /// Show an org, and when each job fires for it
    #[command(before_help = show::EXAMPLES, visible_alias = "get")]
    Show(show::ShowArgs),
    /// Create or update an org; only the named fields change
    #[command(before_help = write::SET_EXAMPLES, visible_alias = "edit")]
    Set(write::SetArgs),
    /// Show what a move to another time zone would change
    #[command(before_help = check::EXAMPLES, visible_alias = "what-if")]
    Check(check::CheckArgs),
    /// Create and update up to 10,000 orgs, all or none of them
    ///
    /// The file holds JSON lines such as `{"id":"acme","timezone":"Europe/Paris"}`, optionally with `name`, `enabled` and
    /// `settings`, or CSV with a header such as `id,timezone,name,enabled`.
    #[command(before_help = import::EXAMPLES)]
    Import(import::ImportArgs),
    /// Write all orgs as JSON lines, which `orgs import` reads
    ///
    /// Overrides are not part of it; `everbell db copy` moves everything to another database.
    #[command(before_help = export::EXAMPLES)]
    Export(export::ExportArgs),
    /// Override the local time of a job for an org, or turn the job off for it
    #[command(before_help = overrides::EXAMPLES)]
    Override(overrides::OverrideArgs),
    /// Rebuild the timers of a job for every org
    #[command(before_help = org_updates::REBUILD_EXAMPLES)]
    Rebuild(org_updates::OrgUpdateArgs),
    /// Stop creating runs for every org of a job; existing runs stay
    #[command(before_help = org_updates::STOP_EXAMPLES)]
    Stop(org_updates::OrgUpdateArgs),
    /// Delete an org; its runs stay
    #[command(before_help = write::DELETE_EXAMPLES, visible_alias = "rm")]
    Delete(write::DeleteArgs),
}

pub(crate) fn run(args: &OrgsArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    match &args.command {
        None => list::run(&args.list, now, output),
        Some(OrgsCommand::List(args)) => list::run(args, now, output),
        Some(OrgsCommand::Show(args)) => show::run(args, now, output),
        Some(OrgsCommand::Set(args)) => write::set(args, now, output),
        Some(OrgsCommand::Check(args)) => check::run(args, now, output),
        Some(OrgsCommand::Import(args)) => import::run(args, now, output),
        Some(OrgsCommand::Export(args)) => export::run(args, now, output),
        Some(OrgsCommand::Override(args)) => overrides::run(args, now, output),
        Some(OrgsCommand::Rebuild(args)) => org_updates::rebuild(args, now, output),
        Some(OrgsCommand::Stop(args)) => org_updates::stop(args, now, output),
        Some(OrgsCommand::Delete(args)) => write::delete(args, now, output),
    }
}
