//! A typed client of everbell's HTTP API.
//!
//! A [`Client`] has a method for each resource: [`jobs`](Client::jobs), [`runs`](Client::runs), [`orgs`](Client::orgs) and
//! so on. Their methods return a [`Call`], which is awaited for its document, or a [`Pages`], which reads a list page by
//! page. Documents are types of [`everbell_wire`].
//!
//! ```no_run
//! use everbell_client::{Client, PauseRequest};
//!
//! # async fn example() -> Result<(), everbell_client::Error> {
//! let client = Client::builder("http://127.0.0.1:7070").token("evb_...").build()?;
//! let job = client.jobs().get("daily-briefing").await?;
//! let pause = PauseRequest { reason: "SMTP down, INC-88".to_owned(), ..PauseRequest::default() };
//! client.jobs().pause(&job.job_key, &pause).if_match(job.revision).await?;
//! # Ok(())
//! # }
//! ```
//!
//! Calls must be awaited in a tokio runtime with its timer and I/O enabled.

mod access;
mod bulk;
mod calendars;
mod call;
mod client;
mod cluster;
mod error;
mod events;
mod jobs;
mod notify;
mod orgs;
mod pages;
mod path;
mod query;
mod remote;
mod reports;
mod request;
mod runs;

pub use everbell_core::TraceContext;
pub use everbell_wire as wire;
pub use reqwest::{Method, Url};

pub use access::{Audit, Sessions, Tokens};
pub use bulk::{BulkAction, BulkActionRequest, BulkFilter, RerunFilter, RerunRequest};
pub use calendars::{Calendars, Freezes};
pub use call::{Call, RawResponse, Response, WithJson};
pub use client::{Client, ClientBuilder, DEFAULT_TIMEOUT};
pub use cluster::{Cron, Instances, Targets};
pub use error::{Error, Refusal};
pub use events::{Event, Events};
pub use jobs::Jobs;
pub use notify::{Notify, Problems};
pub use orgs::Orgs;
pub use pages::{List, MAX_PAGE_SIZE, Pages};
pub use query::{
    AllGapsQuery, AuditQuery, BackfillQuery, DeliveryQuery, EventQuery, GapQuery, JobOrgQuery, JobQuery, NextQuery,
    OrgQuery, ProblemQuery, RunQuery, TopQuery,
};
pub use remote::{RunComplete, RunFail, RunHeartbeat, RunLog, RunProgressReport};
pub use reports::Reports;
pub use request::{
    BackfillRequest, BackfillSettings, CalendarInput, CronPreviewRequest, FreezeInput, MissedSlots, OrgInput,
    OrgSelection, OverridePut, PauseRequest, ProblemAcknowledge, ProblemMute, RescheduleRequest, ResumeRequest,
    RunNowRequest, SkipNextRequest, TokenCreate, TryTargetRequest,
};
pub use runs::Runs;

/// The examples of `docs/client.md`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/client.md")]
struct ClientGuide;
