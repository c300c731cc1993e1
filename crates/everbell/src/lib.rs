//! Durable cron inside your own program.

pub mod client;
pub mod clock;

mod bell;
mod builder;
mod engine;
mod error;
mod events;
mod extract;
mod handler;
mod nearest;
mod run;
mod schedule;
mod sync;
mod targets;
pub mod testing;

pub use everbell_core as core;
pub use jiff::{Timestamp, Zoned};

pub use bell::Everbell;
pub use builder::{BuildError, Builder};
pub use client::{Explanation, Jobs, RunNow, Runs};
pub use engine::{EngineFailed, EngineOptions};
pub use error::{IntoRunError, RunError};
pub use events::{Event, RunInfo};
pub use extract::{FromRun, Payload, State, States};
pub use handler::{Handler, IntoOutcome};
pub use run::Run;
pub use schedule::{Made, Schedule};
pub use sync::{Removed, SyncAction, SyncPlan, SyncStep};
pub use targets::{Action, TargetOptions};

pub use everbell_core::change::Edit;
pub use everbell_core::cron::{DstFold, DstGap};
pub use everbell_core::store::{Canceled, Changed, JobFilter, JobRow, PageRequest, RunFilter, StoreError, StoreResult};
pub use everbell_core::{
    Backoff, CatchUp, FailureCode, Invalid, JobId, JobKey, JobStatus, Json, Overlap, Run as RunRecord, RunId,
    RunStatus, Target,
};
