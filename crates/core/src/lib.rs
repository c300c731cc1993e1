//! The decisions of everbell: which slots exist, and what happens to each. Pure: no clock, no randomness, no I/O.
//!
//! Programs use the crate `everbell`, which exports what is meant for them. The rest may change in any release.
//!
//! # Words
//!
//! - **Job**: a [`Definition`] that never changes (key and version, target, payload, [`Spec`], [`Policies`]) and a
//!   [`JobState`] that operators change.
//! - **Timer**: the hot cursor of a job, [`Timer`]: its next fire time and its high-water mark.
//! - **Slot**: a nominal instant at which a schedule says "fire".
//! - **Run**: one execution, for a slot or by hand. **Gap**: slots that got no run, with the reason.
//! - **Target**: a label that maps to an action, which is known elsewhere.
//! - **Instance**: one running process. **Lease**: its right to finish a run. **Org**: a tenant with its own zone.
//!
//! # Reading order
//!
//! [`cron`] reads expressions and finds slots; [`Spec`] adds zone, bounds and one-time jobs. [`plan`] decides what happens
//! to slots that are due, [`settle`] how a run ends, [`change`] what operators do. [`simulate`] makes these
//! decisions on a virtual clock. [`store`] is the contract that carries them into a database.
//!
//! ```text
//! timers.next_run_at <= now ──plan──► run is pending ──start──► Claim ──handler──► Outcome ──settle──► run is terminal
//! ```
//!
//! # Example
//!
//! ```
//! use everbell_core::cron::Expression;
//! use everbell_core::{Spec, Zone};
//! use jiff::Timestamp;
//!
//! let expression: Expression = "0 8 * * mon-fri".parse()?;
//! let spec = Spec::recurring(expression, Zone::get("Europe/Paris")?, Timestamp::UNIX_EPOCH);
//!
//! // Clocks go back on Sunday, 25 October 2026: the local time stays, the instant moves.
//! let friday: Timestamp = "2026-10-23T00:00:00Z".parse()?;
//! let fires: Vec<String> = spec.slots_after(friday).take(2).map(|slot| slot.to_string()).collect();
//! assert_eq!(fires, ["2026-10-23T06:00:00Z", "2026-10-26T07:00:00Z"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod with;
mod zone;

pub mod after;
pub mod calendar;
pub mod chain;
pub mod cron;
pub mod fan_in;
mod spec;

mod comparison;
mod declaration;
mod draft;
mod edit;
mod failure;
mod frozen_span;
mod gap;
pub mod handover;
mod ids;
mod job;
mod json;
mod micros;
mod nearest;
mod output;
mod policy;
mod release;
mod run;
mod trace_context;

pub mod alert;
pub mod backfill;
pub mod change;
pub mod counting;
pub mod enqueue;
pub mod freeze;
mod jitter;
pub mod org;
pub mod outage;
pub mod places;
pub mod plan;
pub mod purge;
pub mod rearm;
pub mod remote;
pub mod repair;
pub mod settle;
pub mod simulate;

pub mod store;

pub use comparison::{Comparison, compare};
pub use declaration::{Declaration, DeclarationHash};
pub use draft::{Draft, Made, ParentDraft, Timing};
pub use failure::{EarlierAttempt, Failure, FailureCode, MAX_FAILURE_MESSAGE_BYTES};
pub use frozen_span::FrozenSpan;
pub use ids::{
    App, BackfillId, InstanceId, Invalid, JobId, JobKey, OrgId, RunId, Target, entry_id, expect_visible, is_invisible,
};
pub use jitter::fire_at;
pub use job::{Definition, Job, JobState, JobStatus, Pause, Scope, Source, Timer, Unschedulable};
pub use json::{Json, storable_text};
pub use nearest::{distance, nearest};
pub use output::{MAX_OUTPUT_BYTES, OutputSoFar};
pub use policy::{
    Backoff, CatchUp, DEFAULT_CATCH_UP_LIMIT, DEFAULT_GRACE, DEFAULT_TIMEOUT, Dependency, MAX_CATCH_UP_LIMIT,
    MAX_PRIORITY, OnLeaseLoss, OnLost, Overlap, Policies, PolicyValues,
};
pub use release::{ALIVE_FOR, Release, ReleaseId, ReleaseStatus, Releases, SEEN_EVERY};
pub use run::{
    ActiveRun, EarlierGap, Gap, GapReason, NewRun, Run, RunStatus, SkipReason, Trigger, TriggerType, idempotency_key,
};
pub use spec::{ExcludedSlots, MovedSlot, Spec, SpecError, When};
pub use trace_context::TraceContext;
pub use zone::{EARLIEST, LATEST, OffsetChange, UnknownZone, Zone};
