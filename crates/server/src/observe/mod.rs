//! How the server is seen from outside: metrics, readiness, the log, and what it tells systemd.

pub(crate) mod health;
pub(crate) mod logs;
pub(crate) mod metrics;
pub(crate) mod notify;
pub(crate) mod pulse;
pub(crate) mod timed;
