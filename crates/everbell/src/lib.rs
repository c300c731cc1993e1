//! Durable cron inside your own program: schedules in a database, handlers in Rust, exactly one outcome for every slot.
//!
//! ```
//! use everbell::{Event, Everbell, Payload, Run, RunError, Schedule, State};
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Greeting {
//!     name: String,
//! }
//!
//! #[derive(Clone)]
//! struct Salute(&'static str);
//!
//! async fn greet(Payload(to): Payload<Greeting>, State(salute): State<Salute>, run: Run) -> Result<usize, RunError> {
//!     let text = format!("{} {}, it is {}", salute.0, to.name, run.scheduled_at());
//!     run.log(&text);
//!     Ok(text.len()) // shown as the result of the run
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let bell = Everbell::builder()
//!         .database("sqlite::memory:") // or `sqlite:everbell.db`, or `postgres://…` for many instances
//!         .state(Salute("hello"))
//!         .target("greet", greet)
//!         .schedule(
//!             Schedule::cron("morning", "0 8 * * mon-fri")
//!                 .tz("Europe/Paris")
//!                 .target("greet")
//!                 .payload(Greeting { name: "Ana".to_owned() }),
//!         )
//!         .build() // checks everything, migrates the database, syncs the schedules
//!         .await?;
//!
//!     let mut events = bell.events();
//!     bell.jobs().run_now("morning").await?; // no need to wait for the morning
//!     bell.run_until(async {
//!         while !matches!(events.recv().await.as_deref(), Some(Event::Finished { .. }) | None) {}
//!     })
//!     .await?;
//!     Ok(())
//! }
//! ```
//!
//! # Contents
//!
//! - **Describe**: [`Builder`] takes targets ([`Handler`]: async functions with the arguments [`Payload`], [`State`],
//!   [`Run`], [`Everbell`] and [`Jobs`]) and [`Schedule`]s. A [`TypedTarget`] lets the compiler check payloads.
//!   [`Builder::plan`] returns what would change in the database ([`SyncPlan`]), and [`Builder::build`] does it.
//! - **Run**: [`Everbell::run_until`], or [`Everbell::start`] in the background, fires schedules and runs handlers until
//!   it is asked to stop, under [`EngineOptions`]. Any number of programs may do that with the same PostgreSQL.
//! - **Enqueue**: [`Jobs::enqueue`] runs a target once, now or later; [`guides::queue`] has keys, priorities, many at once
//!   and plain SQL.
//! - **Act**: [`Jobs`] (create, pause, resume, edit, run now, explain, purge) and [`Runs`] (cancel, rerun, try), each with an
//!   audit entry. [`client`] has the details.
//! - **Tenants**: [`Orgs`] manages them, each with its time zone. A job that is [`Schedule::per_org`] fires for each at
//!   its own local time.
//! - **Fail**: a handler returns a [`RunError`], or any error; the job's schedule says how often it is retried. The
//!   error may ask for a later attempt, for none, or for a pause of the job.
//! - **Stop**: [`shutdown_signal`] resolves on SIGTERM and SIGINT. The [`guides`] say what happens to runs in a
//!   [deploy](guides::shutdown) and in a [crash](guides::crashes).
//! - **Watch**: [`Everbell::events`] sends every [`Event`] as it happens; [`Builder::observe`] sees them without
//!   missing one. Handlers continue the trace of the request that enqueued them: [`Builder::tracing`].
//! - **Test** with [`testing`]: a whole instance under a clock that the test moves.
//! - **Together with your own data**: [`Jobs::create_in`], [`Jobs::retire_in`] and `run_now(…).in_tx(…)` write jobs and
//!   runs in a transaction of yours: [`guides::transactions`]. Tables are in a schema of their own, `everbell` (on SQLite
//!   they have that prefix), whatever the application's tables are called.
//! - **Time** comes from the database: [`clock`].
//! - **Read on** in the [`guides`].
//! - [`signatures`] has what signatures name and programs rarely write. What this crate documents is its promise;
//!   `everbell::core`, which is hidden here, serves our other crates and may change in any release.
//!
//! # Features
//!
//! | feature | what it adds | default |
//! |---|---|---|
//! | `postgres` | [`PostgresStore`] | yes |
//! | `sqlite` | [`SqliteStore`], with SQLite itself | yes |
//! | `tls` | encrypted connections to PostgreSQL (rustls with ring); without it, connect only over a trusted network | yes |
//! | `testing` | [`testing`]; turn it on in `[dev-dependencies]` | no |
//! | `upkeep` | `upkeep` and `copy`: inspecting, backing up and moving a database, as the server does | no |
//! | `tower` | `Builder::layer`: layers of tower around handlers | no |
//!
//! # Words
//!
//! A **job** is a definition with a key and a version; a **slot** is an instant at which its schedule says "fire"; a **run**
//! is one execution, a **gap** a range of slots that got none; a **target** is the label of a handler; an **instance** is one
//! running process.

#![cfg_attr(not(feature = "testing"), allow(dead_code, unused_imports, reason = "what only the test kit needs"))]

pub mod client;
pub mod clock;
pub mod guides;

mod app_name;
mod bell;
mod build_error;
mod builder;
mod engine;
mod error;
mod events;
mod extract;
mod handler;
mod inbox;
mod layer;
mod lease;
mod parent_job;
mod parts;
mod remote_side;
mod run;
mod run_signals;
mod run_token;
mod running;
mod schedule;
mod shutdown_signal;
pub mod signatures;
mod storable;
mod sync;
mod target_label;
mod targets;
#[cfg(feature = "testing")]
pub mod testing;
mod trace;
mod typed;

#[doc(hidden)]
pub use everbell_core as core;
pub use everbell_core::calendar::{CalendarContent, Roll};
pub use jiff::{self, Timestamp, Zoned};

pub use bell::Everbell;
pub use build_error::BuildError;
pub use builder::Builder;
pub use client::{Calendars, Explanation, Freezes, Jobs, Orgs, Reports, Rows, RunNow, Runs};
pub use engine::{EngineFailed, EngineOptions};
pub use error::{IntoRunError, RunError};
pub use events::{Event, EventStream, Round, RunInfo};
pub use extract::{FromRun, Payload, State, States};
pub use handler::{Handler, HandlerFn, IntoOutcome};
#[cfg(feature = "tower")]
pub use layer::{HandlerError, HandlerService, RunResult};
pub use lease::Lease;
pub use parent_job::{ParentJob, ParentJobs};
pub use run::Run;
pub use run_token::RUN_TOKEN_PREFIX;
pub use running::Running;
pub use schedule::Schedule;
pub use shutdown_signal::shutdown_signal;
pub use sync::{CalendarAction, CalendarStep, Removed, SyncAction, SyncPlan, SyncStep};
pub use target_label::{TakesPayload, TargetLabel, WithoutPayload};
pub use targets::{Action, PayloadCheck, TargetOptions};
pub use trace::Tracing;
pub use typed::TypedTarget;

#[cfg(feature = "postgres")]
pub use everbell_store::postgres::PostgresStore;
#[cfg(feature = "sqlite")]
pub use everbell_store::sqlite::SqliteStore;
pub use everbell_store::{AppConnection, changes_only_credentials, check_address};
pub use everbell_store::{ConnectOptions, connect, connect_with, deadline, with_deadline};
#[cfg(feature = "upkeep")]
pub use everbell_store::{copy, upkeep};

pub use everbell_core::after::ChainOn;
pub use everbell_core::change::Edit;
pub use everbell_core::cron::{DstFold, DstGap};
pub use everbell_core::freeze::Freeze;
pub use everbell_core::org::{Org, OrgWrite, OverrideWrite};
pub use everbell_core::store::{
    Bucket, Canceled, Changed, Cursor, GapFilter, Instance, JobFilter, JobRow, OrgFilter, OrgWritten, Page,
    PageRequest, PurgedJob, RecentRuns, RunFilter, RunHistogram, RunSummary, SlotOutcome, StoreError, StoreResult,
    UnavailableReason,
};
pub use everbell_core::{
    Backoff, CatchUp, Definition, EarlierAttempt, FailureCode, Gap, GapReason, InstanceId, Invalid, Job, JobId, JobKey,
    JobState, JobStatus, Json, Made, OnLeaseLoss, OnLost, OrgId, Overlap, Run as RunRecord, RunId, RunStatus, Scope,
    SkipReason, Source, Target, Timer, TraceContext, Trigger, TriggerType,
};
