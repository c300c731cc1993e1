//! The parts of the configuration that the API and the probes need.

use crate::config::Config;
use crate::notify::ChannelSettings;
use crate::targets::SHELL_LABEL;
use everbell_http::{ApiOptions, Channel, Served};
use everbell_observe::Duties;

/// Returns how the API behaves.
pub(super) fn api(config: &Config) -> ApiOptions {
    ApiOptions {
        settings: config.api.clone(),
        run_history: config.auth.run_history,
        trust_proxy: config.server.trust_proxy,
        listen: Some(config.server.listen.ip()),
        metrics_token: config.auth.metrics_token.clone(),
        templates: config.templates.clone(),
        channels: config.channels.iter().map(|channel| described(config, channel)).collect(),
        targets: config.described_targets.clone(),
        // Whether it is allowed here or not: another instance may serve it.
        program_targets: vec![SHELL_LABEL.to_owned()],
        environment: config.ui.environment.clone(),
        ui: config.ui.enabled,
        public_url: config.server.public_url.clone(),
        keep: config.engine.retention,
        cancel_grace: config.engine.cancel_grace,
        request_timeout: config.server.request_timeout,
        served: if config.server.role.answers() { Served::All } else { Served::Probes },
    }
}

fn described(config: &Config, channel: &ChannelSettings) -> Channel {
    let rules = config.rules.iter().filter(|rule| rule.to.contains(&channel.name));
    Channel {
        name: channel.name.clone(),
        kind: channel.type_name(),
        rules: rules.map(|rule| rule.name.clone()).collect(),
    }
}

/// Returns the loops whose pulse decides whether this process is ready.
pub(super) fn duties(config: &Config) -> Duties {
    Duties {
        schedules: config.server.role.schedules() && !config.targets.is_empty(),
        poll: config.engine.poll,
        heartbeat: config.engine.lease.heartbeat,
    }
}
