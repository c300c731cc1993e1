//! How the server is seen from outside: metrics, readiness, the log, and what it tells systemd.

mod health;
mod log_queue;
pub(crate) mod logs;
mod metrics;
mod notify;
mod pulse;
mod timed;

pub(crate) use health::{Duties, Report, readiness};
pub(crate) use metrics::Metrics;
pub(crate) use notify::Notifier;
pub(crate) use timed::Timed;
