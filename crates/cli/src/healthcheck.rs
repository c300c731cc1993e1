//! `everbell healthcheck`: the health of the server as an exit code, for containers without another client.

use std::time::Duration;

use clap::Args;

use everbell_client::{Call, Method};

use super::connection::client_without_token;
use super::{CliError, Exit};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell healthcheck
  everbell healthcheck live
  EVERBELL_SERVER=http://127.0.0.1:7070 everbell healthcheck ready";

#[derive(Debug, Args)]
pub(crate) struct HealthcheckArgs {
    /// `ready` checks whether the server can do its work, `live` only whether its process responds.
    // Not a choice that the parser checks: a refusal would exit with a code that containers reserve.
    #[arg(value_name = "PROBE", default_value = "ready")]
    probe: String,
}

pub(crate) fn run(args: &HealthcheckArgs) -> Result<Exit, CliError> {
    let path = match args.probe.as_str() {
        "ready" => "/readyz",
        "live" => "/livez",
        other => {
            return Err(failed(format!("unknown probe `{}`; use `live` or `ready`", other.escape_debug())));
        }
    };
    probe(path).map_err(failed)?;
    Ok(Exit::Success)
}

/// Reports a problem in one line.
fn probe(path: &str) -> Result<(), String> {
    let first_line = |error: CliError| error.to_string().lines().next().unwrap_or_default().to_owned();
    let client = client_without_token(REQUEST_TIMEOUT).map_err(first_line)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let call: Call<()> = client.request(Method::GET, path);
    let response = runtime.block_on(call.exchange()).map_err(|error| error.to_string())?;
    match response.status {
        200..=299 => Ok(()),
        status => Err(format!("{}{path}: {status}{}", client.server(), failed_checks(&response.text))),
    }
}

/// The checks that failed, from lines such as `[-] database: is locked`.
fn failed_checks(text: &str) -> String {
    let checks: Vec<String> =
        text.lines().filter_map(|line| line.strip_prefix("[-] ")).map(|line| line.escape_debug().to_string()).collect();
    if checks.is_empty() { String::new() } else { format!(" not ready: {}", checks.join("; ")) }
}

fn failed(message: String) -> CliError {
    CliError::Failed { message, hint: None }
}
