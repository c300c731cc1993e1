//! `everbell healthcheck`: whether the server is well, as an exit code. For containers, which may have no other client.

use std::time::Duration;

use clap::Args;

use super::client::probe;
use super::{CliError, Exit};

const PATIENCE: Duration = Duration::from_secs(5);

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell healthcheck
  everbell healthcheck live
  EVERBELL_SERVER=http://127.0.0.1:7070 everbell healthcheck ready";

#[derive(Debug, Args)]
pub(crate) struct HealthcheckArgs {
    /// Ask whether the server can do its work, `ready`, or only whether its process answers, `live`.
    // Not a choice that the parser checks: a refusal would exit with a code that containers reserve.
    #[arg(value_name = "PROBE", default_value = "ready")]
    probe: String,
}

pub(crate) fn run(args: &HealthcheckArgs) -> Result<Exit, CliError> {
    let path = match args.probe.as_str() {
        "ready" => "/readyz",
        "live" => "/livez",
        other => {
            return Err(failed(format!("there is no probe `{}`; ask for `live` or `ready`", other.escape_debug())));
        }
    };
    probe(path, PATIENCE).map_err(failed)?;
    Ok(Exit::Success)
}

fn failed(message: String) -> CliError {
    CliError::Failed { message, hint: None }
}
