//! How many connections fit into the limit of open files, which runs and the database share with them.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::Config;
use everbell_http::Limits;

/// Open files of the process besides connections and runs: the database, the listener, the runtime.
const BASE_FILES: u64 = 128;
/// Open files of a run: its pipes, or its connection.
const FILES_PER_RUN: u64 = 4;
/// Connections for probes, beyond all others.
const PROBE_CONNECTIONS: u64 = 32;

/// Raises the soft limit as far as everything needs, and returns how many connections there may be.
pub(super) fn limits(config: &Config) -> Limits {
    let configured = u64::from(config.server.max_connections);
    let others = BASE_FILES + FILES_PER_RUN * u64::from(config.engine.concurrency);
    let available = raise(configured + PROBE_CONNECTIONS + others);
    let (connections, probes) = shared_out(available, configured, others);
    if connections < configured {
        tracing::warn!(
            open_files = available,
            connections,
            configured,
            "the limit of open files is too low for the configured number of connections; raise it (`ulimit -n`, `LimitNOFILE=`)"
        );
    }
    let per_address = (!config.server.trust_proxy).then_some(config.server.max_connections_per_address as usize);
    Limits { connections: connections as usize, per_address, probes: probes as usize }
}

/// Connections get what others leave, and a quarter at least.
fn shared_out(available: u64, configured: u64, others: u64) -> (u64, u64) {
    let probes = (available / 16).clamp(1, PROBE_CONNECTIONS);
    let left = available.saturating_sub(others + probes).max(available / 4).max(1);
    (configured.min(left), probes)
}

/// Raises the soft limit to `needed`, or as far as it may, and returns what it is then. Programs that the server starts
/// inherit it, so it is not raised further than that.
fn raise(needed: u64) -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let (Some(soft), hard) = (current, maximum.unwrap_or(u64::MAX)) else { return u64::MAX };
    let wanted = needed.min(hard);
    if wanted <= soft {
        return soft;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }) {
        Ok(()) => wanted,
        Err(error) => {
            tracing::warn!(%error, wanted, "cannot raise the limit of open files");
            soft
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_room_for_runs() {
        assert_eq!(shared_out(65_536, 1_024, 1_152), (1_024, 32));
        assert_eq!(shared_out(1_024, 1_024, 1_152), (256, 32), "a quarter if nothing is left");
        assert_eq!(shared_out(1_500, 1_024, 1_152), (375, 32));
        assert_eq!(shared_out(64, 1_024, 1_152), (16, 4));
        assert_eq!(shared_out(u64::MAX, 10, 1_152), (10, 32));
        assert_eq!(shared_out(2_000, 1_024, 1_152).0, 816);
    }
}
