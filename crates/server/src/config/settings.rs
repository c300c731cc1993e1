//! The sections as types.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use everbell::{ConnectOptions, EngineOptions, Removed};

use super::TargetRules;
use crate::targets::TargetSettings;
use everbell_http::ApiSettings;
use everbell_http::access;
use everbell_observe::logs;
use everbell_wire::secret::Secret;

/// `[server]`.
#[derive(Clone, Debug)]
pub(crate) struct ServerSettings {
    /// Port 0 means any that is free.
    pub(crate) listen: SocketAddr,
    /// Without a slash at its end.
    pub(crate) public_url: Option<String>,
    pub(crate) trust_proxy: bool,
    pub(crate) role: Role,
    pub(crate) max_connections: u32,
    /// How long the answer to a request may take.
    pub(crate) request_timeout: Duration,
    /// From one address, unless a proxy stands in front.
    pub(crate) max_connections_per_address: u32,
    /// Of `[database]`: whether to start beside the server of the database that this one is a copy of.
    pub(crate) allow_copy: bool,
    pub(crate) data_dir: PathBuf,
}

/// The role of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Role {
    #[default]
    All,
    /// Fires schedules and runs targets; answers only liveness probes.
    Scheduler,
    /// Answers people and programs; fires nothing.
    Api,
}

impl Role {
    pub(super) fn from_word(word: &str) -> Option<Role> {
        match word {
            "all" => Some(Role::All),
            "scheduler" => Some(Role::Scheduler),
            "api" => Some(Role::Api),
            _ => None,
        }
    }

    /// Whether it fires schedules and runs targets.
    pub(crate) fn schedules(self) -> bool {
        self != Role::Api
    }

    /// Whether it answers people and programs.
    pub(crate) fn answers(self) -> bool {
        self != Role::Scheduler
    }

    /// The roles that the instance is listed with.
    pub(super) fn names(self) -> Vec<String> {
        let names = [("scheduler", self.schedules()), ("api", self.answers())];
        names.iter().filter(|(_, is)| *is).map(|(name, _)| (*name).to_owned()).collect()
    }
}

/// `[ui]`.
#[derive(Clone, Debug)]
pub(crate) struct UiSettings {
    pub(crate) enabled: bool,
    pub(crate) environment: Option<String>,
}

/// `[auth]`.
#[derive(Clone, Debug)]
pub(crate) struct AuthSettings {
    /// Nothing means that a token is made at the first start; never that none is needed.
    pub(crate) admin_token: Option<Secret>,
    /// Nothing means that only this machine may read the metrics.
    pub(crate) metrics_token: Option<Secret>,
    pub(crate) run_history: access::Role,
}

/// `[log]`.
#[derive(Clone, Debug)]
pub(crate) struct LogSettings {
    pub(crate) format: logs::Format,
    pub(crate) filter: logs::Filter,
}

/// `[metrics]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MetricsSettings {
    pub(crate) per_job: bool,
}

/// `[jobs]`.
#[derive(Clone, Debug)]
pub(crate) struct JobsSettings {
    /// The name by which the server owns the jobs of its file.
    pub(crate) app: String,
    pub(crate) removed: Removed,
    pub(crate) adopt: bool,
}

/// All sections.
pub(super) struct Settings {
    pub(super) server: ServerSettings,
    pub(super) database: Secret,
    pub(super) connect: ConnectOptions,
    pub(super) api: ApiSettings,
    pub(super) ui: UiSettings,
    pub(super) auth: AuthSettings,
    pub(super) engine: EngineOptions,
    pub(super) log: LogSettings,
    pub(super) metrics: MetricsSettings,
    pub(super) jobs: JobsSettings,
    /// The built-in target, where it is allowed.
    pub(super) shell: Option<TargetSettings>,
    pub(super) target_rules: TargetRules,
}

impl Settings {
    /// Returns warnings about settings that are valid but may surprise.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let ServerSettings { listen, trust_proxy, .. } = &self.server;
        if !listen.ip().is_loopback() && !trust_proxy {
            warnings.push(format!(
                "{listen} can be reached from other machines, and tokens are sent unencrypted; put a proxy with TLS in \
                 front and set `trust_proxy = true`, or listen on 127.0.0.1"
            ));
        }
        if self.target_rules.editable.iter().any(|word| word == "command") {
            let warning =
                "`targets.editable` allows `command`: every admin token can run any program as the user of the server";
            warnings.push(warning.to_owned());
        }
        if self.database.reveal().ends_with(":memory:") {
            warnings.push("the database is in memory: all data is lost when the server stops".to_owned());
        }
        warnings
    }
}
