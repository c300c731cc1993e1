//! [`ApiOptions`]: how the API behaves.

use std::net::IpAddr;
use std::time::Duration;

use everbell::{EngineOptions, Everbell};

use super::access::Role;
use super::defined::{Channel, ConfiguredTarget};
use super::limit::Rate;
use everbell_wire::Template;
use everbell_wire::secret::Secret;

/// How the API behaves.
#[derive(Clone, Debug)]
pub struct ApiOptions {
    /// Section `[api]` of the configuration.
    pub settings: ApiSettings,
    /// The least role that reads runs.
    pub run_history: Role,
    /// Whether a proxy in front reports the address of the client.
    pub trust_proxy: bool,
    /// Where the server listens, unless another program does.
    pub listen: Option<IpAddr>,
    /// The token for `/metrics`. Without it, only this machine has access.
    pub metrics_token: Option<Secret>,
    /// The routes that are served.
    pub served: Served,
    /// Named expressions that forms offer.
    pub templates: Vec<Template>,
    /// The notification channels of this server.
    pub channels: Vec<Channel>,
    /// The targets that this server defines.
    pub targets: Vec<ConfiguredTarget>,
    /// Targets that run the program in a payload: only admins say which.
    pub program_targets: Vec<String>,
    /// Where people reach this server, if that was said.
    pub public_url: Option<String>,
    /// How long history is kept; nothing means for good.
    pub keep: Option<Duration>,
    /// How long a run that is canceled may take to stop.
    pub cancel_grace: Duration,
    /// How long the answer to a request may take.
    pub request_timeout: Duration,
    /// Whether there are pages.
    pub ui: bool,
    /// The name of this installation, shown on pages.
    pub environment: Option<String>,
}

/// `[api]` of the configuration.
#[derive(Clone, Debug)]
pub struct ApiSettings {
    /// At least one; each begins with a slash and does not end with one.
    pub mounts: Vec<String>,
    /// Whether the routes of earlier schedulers are served too.
    pub compat: bool,
    /// Whether an edit without `If-Match` is refused.
    pub require_if_match: bool,
    /// 409 or 200.
    pub run_now_overlap_status: u16,
    /// Whether the API reference is served.
    pub docs: bool,
    /// How often each token may write; nothing without a limit.
    pub write_limit: Option<Rate>,
}

/// The extent of the served routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// The API, its reference and probes.
    All,
    /// Probes and metrics, by a process that only schedules.
    Probes,
    /// The API and nothing beside it, inside of another program.
    Embedded,
}

impl ApiOptions {
    /// Inside another program.
    pub(crate) fn embedded(bell: &Everbell) -> ApiOptions {
        let EngineOptions { retention, cancel_grace, .. } = bell.options();
        ApiOptions { keep: *retention, cancel_grace: *cancel_grace, ..ApiOptions::for_another_program() }
    }

    fn for_another_program() -> ApiOptions {
        let settings = ApiSettings {
            mounts: vec![String::new()],
            compat: false,
            require_if_match: false,
            run_now_overlap_status: 409,
            docs: false,
            write_limit: None,
        };
        ApiOptions {
            settings,
            run_history: Role::Viewer,
            trust_proxy: false,
            listen: None,
            metrics_token: None,
            served: Served::Embedded,
            templates: Template::built_in(),
            channels: Vec::new(),
            targets: Vec::new(),
            program_targets: Vec::new(),
            environment: None,
            ui: false,
            public_url: None,
            keep: None,
            cancel_grace: Duration::ZERO,
            request_timeout: everbell::ConnectOptions::default().request_timeout,
        }
    }

    #[cfg(test)]
    pub(crate) fn for_tests() -> ApiOptions {
        ApiOptions::for_another_program()
    }

    /// Whether the web UI is served.
    pub fn has_pages(&self) -> bool {
        self.ui && self.served != Served::Probes
    }

    /// Whether a path is below a mount.
    pub fn is_mounted(&self, path: &str) -> bool {
        (self.served == Served::Embedded && !self.ui)
            || path.starts_with("/api/")
            || self.settings.mounts.iter().any(|mount| path.starts_with(mount.as_str()))
    }
}
