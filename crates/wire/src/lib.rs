//! The documents of everbell's HTTP API.
//!
//! Each document is a type. The server serializes it and describes it in OpenAPI; the command line and other clients
//! deserialize it, so a renamed member is a compile error on both sides. JSON members are in `camelCase`; times are RFC 3339
//! in UTC.
//!
//! Deserialization is tolerant: an unknown choice, such as a status of a newer server, becomes `Other`, and unknown members
//! are ignored.

mod notices;
mod text;
mod words;

/// The media type of JSON lines.
pub const JSON_LINES: &str = "application/x-ndjson";

pub mod access;
mod after;
pub mod backfill;
pub mod body;
pub mod bulk;
pub mod calendar;
pub mod cluster;
pub mod crontab;
pub mod declaration;
pub mod elapsed;
pub mod event;
pub mod example;
pub mod form;
pub mod gap;
pub mod icalendar;
#[cfg(feature = "import")]
pub mod import;
pub mod job;
pub mod job_body;
mod job_schedule;
pub mod job_toml;
pub mod markup;
pub mod notify;
pub mod org;
pub mod org_csv;
pub mod org_job;
pub mod page;
pub mod percent;
pub mod policies;
pub mod preview;
pub mod problem;
mod raw;
pub mod reload;
mod remote;
pub mod report;
pub mod run;
mod run_status;
pub mod secret;
mod started_run;
pub mod stats;
pub mod target;
pub mod target_toml;
pub mod template;
pub mod time_input;
pub mod top;
pub mod what_if;

pub use access::{AuditEntry, EndedSessions, NewToken, Role, Session, Token};
pub use backfill::{Backfill, BackfillOrgs, BackfillReport, BackfillSlot, StoppedBackfill};
pub use bulk::{Bulk, BulkItem, RerunItem, Reruns};
pub use calendar::{Calendar, CalendarEffect, CalendarFailure, CalendarWritten, Freeze};
pub use cluster::{Instance, Status};
pub use declaration::{JobDeclaration, Source};
pub use event::RunEvent;
pub use example::Example;
pub use gap::{Explanation, Gap};
pub use job::{ChangedField, Job, LastRun, NewVersion, Paused, PurgedJob, Resumed, Resumption, Superseded};
pub use job_body::JobBody;
pub use notify::{JobProblem, NotifyChannel, NotifyDelivery, ProblemNote};
pub use org::{Imported, Org};
pub use org_job::{JobOrgs, OrgJob, OrgOverride, OrgUpdate, OrgUpdateStarted, Override};
pub use page::{Items, Page};
pub use policies::Policies;
pub use preview::{Fire, Fires, Preview, Warning};
pub use problem::{Fault, FaultCode, Problem, ProblemCode};
pub use raw::Raw;
pub use reload::{ConfigChange, Reloaded};
pub use remote::{RemoteRun, RemoteSide, RunProgress};
pub use report::{ClusterStats, NextFire, NextFires, Outage, OutageJob};
pub use run::{Canceled, OrgRun, Run, RunNow, RunNowOrgs, RunsNow, StartedRun};
pub use stats::Stats;
pub use target::{Target, TargetRuns, TargetTrend, TargetType, TargetWritten, Targets};
pub use template::Template;
pub use text::{clock_face, printable, shell};
pub use top::{Top, TopBy, TopItem};
pub use what_if::{JobWhatIf, WhatIf, WhatIfDay};
