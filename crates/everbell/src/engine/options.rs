//! [`EngineOptions`]: how much, how often and how long.

use std::time::Duration;

use everbell_core::Invalid;
use everbell_core::store::LeaseTerms;

/// Options of an instance. The defaults suit one that shares its machine and its database with others.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineOptions {
    /// The most handlers at once: default 256. A handler that has ended makes room for the next one; its outcome is recorded
    /// meanwhile. While the database is away, at most this many outcomes and four batches wait.
    pub concurrency: u32,
    /// The longest wait between two looks for work, when nothing is known to be due and no signal comes: default 5 s.
    pub poll: Duration,
    /// How long an instance may send no heartbeat before its runs are lost: default 60 s, with a heartbeat every 5 s.
    /// An instance that cannot renew its leases stops handlers after three quarters of this time.
    pub lease: LeaseTerms,
    /// How long a shutdown waits for handlers before it stops them: default 30 s. What happens to their runs is the
    /// choice of the job: see [`OnLost`](crate::OnLost).
    pub shutdown_grace: Duration,
    /// How long a handler that was asked to stop may take before it is dropped: default 10 s.
    pub cancel_grace: Duration,
    /// How long runs and gaps are kept: default 180 days; `None` keeps all.
    pub retention: Option<Duration>,
    /// How long entries of the audit trail are kept: default 730 days; `None` keeps all.
    pub audit_retention: Option<Duration>,
    /// The maximum number of timers, claims or outcomes in one transaction: default 500.
    pub batch: u32,
    /// The most pending and running runs of a job when more are asked for, by a run by hand or a backfill; for a
    /// per-org job, of each org: default 10,000.
    pub max_pending_runs: u32,
    /// How long the first outcome of a group waits for others while handlers are at work: default 2 ms.
    pub linger: Duration,
    /// The roles that it is listed with: default `scheduler`.
    pub roles: Vec<String>,
    /// Its host name.
    pub host: String,
}

impl Default for EngineOptions {
    fn default() -> Self {
        EngineOptions {
            concurrency: 256,
            poll: Duration::from_secs(5),
            lease: LeaseTerms::default(),
            shutdown_grace: Duration::from_secs(30),
            cancel_grace: Duration::from_secs(10),
            retention: Some(Duration::from_hours(180 * 24)),
            audit_retention: Some(Duration::from_hours(730 * 24)),
            batch: 500,
            max_pending_runs: 10_000,
            linger: Duration::from_millis(2),
            roles: vec!["scheduler".to_owned()],
            host: host_name(),
        }
    }
}

/// Sets an option: `EngineOptions::default().concurrency(8).poll(Duration::from_secs(1))`.
impl EngineOptions {
    /// Sets the maximum number of concurrent handlers.
    #[must_use]
    pub fn concurrency(self, runs: u32) -> EngineOptions {
        EngineOptions { concurrency: runs, ..self }
    }

    /// Sets the longest wait between two looks for work.
    #[must_use]
    pub fn poll(self, poll: Duration) -> EngineOptions {
        EngineOptions { poll, ..self }
    }

    /// Sets how long an instance may send no heartbeat before its runs are lost, and how often it sends one.
    #[must_use]
    pub fn lease(self, duration: Duration, heartbeat: Duration) -> EngineOptions {
        EngineOptions { lease: LeaseTerms { duration, heartbeat }, ..self }
    }

    /// Sets how long a shutdown waits for handlers before it cancels them.
    #[must_use]
    pub fn shutdown_grace(self, grace: Duration) -> EngineOptions {
        EngineOptions { shutdown_grace: grace, ..self }
    }

    /// Sets how long a handler that was asked to stop may take before it is dropped.
    #[must_use]
    pub fn cancel_grace(self, grace: Duration) -> EngineOptions {
        EngineOptions { cancel_grace: grace, ..self }
    }

    /// Sets how long runs and gaps are kept; `None` keeps all.
    #[must_use]
    pub fn retention(self, retention: Option<Duration>) -> EngineOptions {
        EngineOptions { retention, ..self }
    }

    /// Sets how long entries of the audit trail are kept; `None` keeps all.
    #[must_use]
    pub fn audit_retention(self, retention: Option<Duration>) -> EngineOptions {
        EngineOptions { audit_retention: retention, ..self }
    }

    /// Sets the most timers, claims or outcomes in one transaction.
    #[must_use]
    pub fn batch(self, rows: u32) -> EngineOptions {
        EngineOptions { batch: rows, ..self }
    }

    /// Sets the most pending and running runs of a job when more are asked for.
    #[must_use]
    pub fn max_pending_runs(self, runs: u32) -> EngineOptions {
        EngineOptions { max_pending_runs: runs, ..self }
    }

    /// Sets how long the first outcome of a group waits for others.
    #[must_use]
    pub fn linger(self, linger: Duration) -> EngineOptions {
        EngineOptions { linger, ..self }
    }

    /// Sets the roles that it is listed with.
    #[must_use]
    pub fn roles(self, roles: impl IntoIterator<Item = impl Into<String>>) -> EngineOptions {
        EngineOptions { roles: roles.into_iter().map(Into::into).collect(), ..self }
    }

    /// Sets its host name.
    #[must_use]
    pub fn host(self, host: impl Into<String>) -> EngineOptions {
        EngineOptions { host: host.into(), ..self }
    }
}

impl EngineOptions {
    /// Returns all invalid options at once, each with its field, such as `engine.poll`.
    pub fn problems(&self) -> Vec<Invalid> {
        let mut problems = Vec::new();
        let mut must = |holds: bool, field, reason: &str| {
            if !holds {
                problems.push(Invalid::new(field, reason));
            }
        };
        let seconds = Duration::from_secs;
        must((1..=100_000).contains(&self.concurrency), "engine.concurrency", "must be from 1 to 100000");
        must((1..=10_000).contains(&self.batch), "engine.batch", "must be from 1 to 10000");
        must((1..=1_000_000).contains(&self.max_pending_runs), "engine.maxPendingRuns", "must be from 1 to 1000000");
        let poll = Duration::from_millis(10)..=seconds(60);
        must(poll.contains(&self.poll), "engine.poll", "must be from 10 ms to 60 s");
        let lease = seconds(3)..=seconds(600);
        must(lease.contains(&self.lease.duration), "engine.lease.duration", "must be from 3 s to 600 s");
        must(
            !self.lease.heartbeat.is_zero() && self.lease.heartbeat * 3 <= self.lease.duration,
            "engine.lease.heartbeat",
            "must be more than 0 and at most a third of the lease's duration, so that two may fail",
        );
        must(self.shutdown_grace <= seconds(86_400), "engine.shutdownGrace", "must be at most 1 day");
        must(self.cancel_grace <= seconds(86_400), "engine.cancelGrace", "must be at most 1 day");
        must(self.linger <= seconds(1), "engine.linger", "must be at most 1 s");
        let long_enough = |keep: Option<Duration>| keep.is_none_or(|keep| keep >= seconds(3_600));
        let too_short = "must be at least 1 hour, or none to keep everything";
        must(long_enough(self.retention), "engine.retention", too_short);
        must(long_enough(self.audit_retention), "engine.auditRetention", too_short);
        problems
    }
}

/// Returns the host name of the machine.
fn host_name() -> String {
    let told = std::env::var("HOSTNAME").ok().or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok());
    let name = told.as_deref().map(str::trim).filter(|name| !name.is_empty()).unwrap_or("unknown");
    everbell_core::storable_text(name, 255)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_possible() {
        assert_eq!(EngineOptions::default().problems(), []);
    }

    #[test]
    fn every_problem_is_told() {
        let lease = LeaseTerms { duration: Duration::from_secs(2), heartbeat: Duration::from_secs(1) };
        let options = EngineOptions { concurrency: 0, poll: Duration::ZERO, lease, ..EngineOptions::default() };
        let fields: Vec<_> = options.problems().into_iter().map(|problem| problem.field).collect();
        assert_eq!(fields, ["engine.concurrency", "engine.poll", "engine.lease.duration", "engine.lease.heartbeat"]);
    }
}
