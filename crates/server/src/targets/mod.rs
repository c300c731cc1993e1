//! Targets: print, call over HTTP, run a command.
//!
//! Targets come from the configuration file only. The API names them by their label and can never define a URL or a
//! command, with one exception that the configuration has to allow: the `shell` target runs the command in the payload.

mod command;
mod http;
mod log;
mod redact;
mod result;
mod shell;
#[cfg(test)]
mod tests;
mod trace;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use everbell::{Action, PayloadCheck, Target, TargetOptions};

use everbell_observe::Metrics;
use everbell_wire::secret::Secret;

pub(crate) use self::command::supervisor::{Supervisor, ran_as_supervisor};

pub(crate) use self::command::{passed_environment, problems as command_problems, redact, run_as};
pub(crate) use self::http::Http;

/// A field of the settings, and what is wrong with it. Never shows a secret.
pub(crate) type Problem = (&'static str, String);

/// A target as it is configured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TargetSettings {
    /// The label that jobs name.
    pub(crate) label: String,
    /// How many at once, and how long one may take.
    pub(crate) options: TargetOptions,
    pub(crate) kind: Kind,
}

impl TargetSettings {
    /// Everything that is wrong with them, each with the name of its field; what only shows when a run begins, such as a
    /// program that is missing, is no problem yet.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        let label = Target::new(&self.label).err().map(|invalid| ("label", invalid.reason));
        let kind = match &self.kind {
            Kind::Log => Vec::new(),
            Kind::Http(settings) => http::Http::new(settings).err().unwrap_or_default(),
            Kind::Command(settings) => command::problems(settings),
            Kind::Shell(settings) => shell::problems(settings),
        };
        label.into_iter().chain(kind).collect()
    }

    /// Returns the action of the target; or the first problem of the settings, the label aside.
    pub(crate) fn action(&self, metrics: &Metrics, supervisor: &Supervisor) -> Result<Action, Problem> {
        match &self.kind {
            Kind::Log => Ok(log::action()),
            Kind::Http(settings) => http::action(settings, metrics),
            Kind::Command(settings) => command::action(settings, supervisor),
            Kind::Shell(settings) => Ok(shell::action(settings, supervisor)),
        }
    }

    /// Returns the check of payloads when jobs are written. Only the `shell` target knows what it reads.
    pub(crate) fn payload_check(&self) -> PayloadCheck {
        match &self.kind {
            Kind::Shell(settings) => {
                let settings = settings.clone();
                Arc::new(move |payload| shell::check_payload(&settings, payload))
            }
            Kind::Log | Kind::Http(_) | Kind::Command(_) => Arc::new(|_| Ok(())),
        }
    }

    /// The word of its type.
    pub(crate) fn type_name(&self) -> &'static str {
        match &self.kind {
            Kind::Log => "log",
            Kind::Http(_) => "http",
            Kind::Command(_) => "command",
            Kind::Shell(_) => SHELL_LABEL,
        }
    }

    /// Whether its runs start programs, which the supervisor has to know.
    pub(crate) fn runs_programs(&self) -> bool {
        matches!(self.kind, Kind::Command(_) | Kind::Shell(_))
    }
}

/// The kinds of targets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// Prints the payload.
    Log,
    Http(HttpSettings),
    Command(CommandSettings),
    /// Runs the command that the payload names, as cron would.
    Shell(ShellSettings),
}

/// A call over HTTP.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HttpSettings {
    pub(crate) url: String,
    /// Default `POST`. `GET`, `HEAD` and `DELETE` send no body: the headers describe the run.
    pub(crate) method: String,
    /// Further headers. Their values may be secrets.
    pub(crate) headers: BTreeMap<String, Secret>,
    /// Keys of Standard Webhooks signatures, `whsec_…` or plain text: each signs, so that keys can be changed without a pause.
    pub(crate) signing_keys: Vec<Secret>,
    /// How long the whole call may take: default 30 s.
    pub(crate) timeout: Duration,
    /// The response statuses that count as a success: default 200 to 299.
    pub(crate) success: Vec<RangeInclusive<u16>>,
    /// Certificates to trust in addition to the system's, in PEM.
    pub(crate) ca_file: Option<PathBuf>,
    /// Whether addresses of the machine itself and of private networks may be called: default yes. Link-local addresses,
    /// where clouds keep their metadata, need [`HttpSettings::allow_link_local`] as well.
    pub(crate) allow_private: bool,
    /// Default no.
    pub(crate) allow_link_local: bool,
    /// Where the API can be reached from outside, for targets that report about their runs later.
    pub(crate) api_url: Option<String>,
}

impl HttpSettings {
    /// A call of this URL, with the defaults of everything else.
    pub(crate) fn new(url: impl Into<String>) -> HttpSettings {
        HttpSettings {
            url: url.into(),
            method: "POST".to_owned(),
            headers: BTreeMap::new(),
            signing_keys: Vec::new(),
            timeout: Duration::from_secs(30),
            success: vec![200..=299],
            ca_file: None,
            allow_private: true,
            allow_link_local: false,
            api_url: None,
        }
    }
}

/// A program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CommandSettings {
    /// The program and its arguments; never a shell.
    pub(crate) argv: Vec<String>,
    /// Default: the folder of the server.
    pub(crate) cwd: Option<PathBuf>,
    /// The user that it runs as: default that of the server.
    pub(crate) user: Option<String>,
    /// The group: default that of the user.
    pub(crate) group: Option<String>,
    /// Variables that the program gets.
    pub(crate) env: BTreeMap<String, Secret>,
    /// Variables of the server that it gets too. Nothing else of the server's environment is passed on but `PATH`,
    /// `HOME`, `LANG` and `TZ`.
    pub(crate) pass_env: Vec<String>,
    /// Exit codes that are a success: default 0.
    pub(crate) success: Vec<i32>,
}

impl CommandSettings {
    /// This program with these arguments, and the defaults of everything else.
    pub(crate) fn new(argv: Vec<String>) -> CommandSettings {
        CommandSettings {
            argv,
            cwd: None,
            user: None,
            group: None,
            env: BTreeMap::new(),
            pass_env: Vec::new(),
            success: vec![0],
        }
    }
}

/// The label of the built-in `shell` target.
pub(crate) const SHELL_LABEL: &str = "shell";

/// The built-in `shell` target, where the configuration allows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ShellSettings {
    /// Variables that every command gets. They are hidden in its output; those of a payload are not.
    pub(crate) env: BTreeMap<String, Secret>,
    /// The users that a payload may name; any if absent.
    pub(crate) users: Option<Vec<String>>,
}
