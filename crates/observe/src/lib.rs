//! The server as seen from outside: metrics, readiness, the log, and notifications to systemd.

mod health;
mod log_queue;
pub mod logs;
mod metrics;
mod notify;
mod pulse;
mod timed;

pub use health::{Duties, Report, readiness};
pub use metrics::Metrics;
pub use notify::Notifier;
pub use timed::Timed;
