//! What a person sees first.

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::thread;

use super::first_token::WayIn;
use crate::config::{Config, without_password};

/// Prints where the server is, and how to come in. A thread does it: standard output may have no reader.
pub(super) fn print(config: &Config, address: SocketAddr, way: &WayIn) -> io::Result<()> {
    let mut lines = vec![format!("everbell {} listening on http://{address}", env!("CARGO_PKG_VERSION"))];
    lines.push(format!("  database  {}", without_password(config.database.reveal())));
    if config.server.role.answers() {
        let mount = config.api.mounts.first().map_or("", String::as_str);
        let base = config.server.public_url.clone().unwrap_or_else(|| format!("http://{address}"));
        if config.ui.enabled {
            lines.push(format!("  web UI    {base}/"));
        }
        lines.push(format!("  API       {base}{mount}  (documentation: {base}/docs/api)"));
        lines.push(format!("  token     {}", token_line(way)));
    }
    let jobs = config.schedules.len();
    let labels: Vec<&str> = config.targets.iter().map(|target| target.label.as_str()).collect();
    let labels = if labels.is_empty() { "none".to_owned() } else { labels.join(", ") };
    lines.push(format!("  targets   {labels}"));
    lines.push(format!("  jobs      {jobs} configured"));
    if config.file.is_none() {
        lines.push("  There is no everbell.toml here: the job `demo` prints a message every minute.".to_owned());
    }
    let text = lines.join("\n") + "\n";
    let write = move || {
        let mut stdout = io::stdout().lock();
        if let Err(error) = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            tracing::warn!(%error, "the greeting could not be written to standard output");
        }
    };
    thread::Builder::new().name("greeting".to_owned()).spawn(write).map(drop)
}

fn token_line(way: &WayIn) -> String {
    match way {
        // Others may read a journal or the log of a container.
        WayIn::First { token, file } if io::stdout().is_terminal() => {
            format!("{}  (shown this once; kept in {})", token.reveal(), file.display())
        }
        WayIn::First { file, .. } => format!("the first admin token is in {}", file.display()),
        WayIn::Configured => "as configured".to_owned(),
        WayIn::Kept(file) => format!("in {}", file.display()),
        WayIn::Made => "those that were made before".to_owned(),
        WayIn::Nobody => "no admin token is valid any more; start once with EVERBELL_ADMIN_TOKEN to come in".to_owned(),
    }
}
