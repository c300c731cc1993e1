//! Durable cron inside your own program.

pub mod clock;
mod engine;
mod events;
mod run;
mod targets;
pub mod testing;

pub use engine::{EngineFailed, EngineOptions};
pub use events::{Event, RunInfo};
pub use run::Run;
pub use targets::{Action, TargetOptions};
