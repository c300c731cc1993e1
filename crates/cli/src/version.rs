//! `everbell version`.

use clap::Args;
use everbell_core::Zone;
use serde::Serialize;

use super::output::Output;
use super::{CliError, Exit};

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell version
  everbell version --json
  everbell --version";

#[derive(Debug, Args)]
pub(crate) struct VersionArgs {
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    version: &'static str,
    zone_data: &'static str,
}

pub(crate) fn run(args: &VersionArgs, output: &mut Output) -> Result<Exit, CliError> {
    let document = Document { version: env!("CARGO_PKG_VERSION"), zone_data: Zone::data_version() };
    if args.json {
        output.json(&document)?;
    } else {
        output.line(&format!("everbell {}", document.version))?;
        output.line(&format!("time zone data {} (embedded)", document.zone_data))?;
    }
    Ok(Exit::Success)
}
