//! The greeting: the first lines that a person sees.

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::thread;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::first_token::WayIn;
use crate::config::{Config, without_password};
use everbell_cli::clock;
use everbell_observe::logs::Format;

/// Prints where the server is, and how to come in: as text, or as one line of JSON where logs are for programs. A thread does
/// it: standard output may have no reader.
pub(super) fn print(config: &Config, address: SocketAddr, way: &WayIn) -> io::Result<()> {
    let greeting = Greeting::new(config, address, way);
    let text = match config.log.format {
        Format::Text => greeting.to_text(),
        Format::Json => format!("{}\n", greeting.to_json(clock::wall())),
    };
    let write = move || {
        let mut stdout = io::stdout().lock();
        if let Err(error) = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            tracing::warn!(%error, "could not write the greeting to standard output");
        }
    };
    thread::Builder::new().name("greeting".to_owned()).spawn(write).map(drop)
}

/// The content of the greeting.
struct Greeting<'a> {
    first: String,
    database: String,
    ui: Option<String>,
    /// Where the API and its documentation are, and how to sign in.
    api: Option<(String, String, String)>,
    targets: Vec<&'a str>,
    jobs: usize,
    /// The configuration is missing, so there is a job to begin with.
    demo: bool,
}

impl<'a> Greeting<'a> {
    fn new(config: &'a Config, address: SocketAddr, way: &WayIn) -> Greeting<'a> {
        let answers = config.server.role.answers();
        let mount = config.api.mounts.first().map_or("", String::as_str);
        let base = config.server.public_url.clone().unwrap_or_else(|| format!("http://{address}"));
        Greeting {
            first: format!("everbell {} listening on http://{address}", env!("CARGO_PKG_VERSION")),
            database: without_password(config.database.reveal()),
            ui: (answers && config.ui.enabled).then(|| format!("{base}/")),
            api: answers.then(|| (format!("{base}{mount}"), format!("{base}/docs/api"), token_line(way))),
            targets: config.targets.iter().map(|target| target.label.as_str()).collect(),
            jobs: config.schedules.len(),
            demo: config.file.is_none(),
        }
    }

    fn to_text(&self) -> String {
        let mut lines = vec![self.first.clone(), format!("  database  {}", self.database)];
        lines.extend(self.ui.as_ref().map(|ui| format!("  web UI    {ui}")));
        if let Some((api, documentation, token)) = &self.api {
            lines.push(format!("  API       {api}  (documentation: {documentation})"));
            lines.push(format!("  token     {token}"));
        }
        let labels = if self.targets.is_empty() { "none".to_owned() } else { self.targets.join(", ") };
        lines.push(format!("  targets   {labels}"));
        lines.push(format!("  jobs      {} configured", self.jobs));
        if self.demo {
            lines.push("  No everbell.toml found: the job `demo` prints a message every minute. `everbell init` writes a configuration.".to_owned());
        }
        lines.join("\n") + "\n"
    }

    /// Shaped as a line of the log.
    fn to_json(&self, now: Timestamp) -> Value {
        let api = self.api.as_ref();
        json!({
            "timestamp": format!("{now:.3}"),
            "level": "INFO",
            "message": self.first,
            "database": self.database,
            "ui": self.ui,
            "api": api.map(|(api, _, _)| api),
            "documentation": api.map(|(_, documentation, _)| documentation),
            "token": api.map(|(_, _, token)| token),
            "targets": self.targets,
            "jobs": self.jobs,
            "target": module_path!(),
        })
    }
}

fn token_line(way: &WayIn) -> String {
    match way {
        // Others may read a journal or the log of a container.
        WayIn::First { token, file } if io::stdout().is_terminal() => {
            format!("{}  (shown only once; saved in {})", token.reveal(), file.display())
        }
        WayIn::First { file, .. } => format!("the first admin token is in {}", file.display()),
        WayIn::Configured => "as configured".to_owned(),
        WayIn::Kept(file) => format!("in {}", file.display()),
        WayIn::Made => "created earlier".to_owned(),
        WayIn::Nobody => "no valid admin token is left; start once with EVERBELL_ADMIN_TOKEN to get access".to_owned(),
    }
}
