//! [`CalendarStore`]: calendars, the jobs that use them, and freezes.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use uuid::Uuid;

use super::interceptor::{Call, Interceptor, audit_entry, verbs};
use super::{AuditEntry, StoreResult};
use crate::calendar::{Calendar, CalendarContent, CalendarName};
use crate::freeze::Freeze;
use crate::job::{Job, Source};

verbs! {
    /// Keeps calendars and freezes. The days that a job follows are in its definition: see [`crate::calendar`].
    pub trait CalendarStore {
        /// Every calendar, by name. A calendar that cannot be read is left out.
        async fn calendars(&self) -> StoreResult<Vec<StoredCalendar>>;

        /// Writes the next version of a calendar, or its first. `expected_version` that is not the current one (0: there
        /// is none) is a [`StoreError::Conflict`](super::StoreError::Conflict). More than
        /// [`MAX_CALENDARS`](crate::calendar::MAX_CALENDARS) are [`StoreError::Invalid`](super::StoreError::Invalid).
        /// Jobs keep the days that they have until their next version.
        async fn put_calendar(
            &self,
            calendar: &NewCalendar,
            expected_version: Option<u32>,
            audit: &AuditEntry,
        ) -> StoreResult<StoredCalendar>;

        /// Notes that every job has the days of this version. Returns whether it is still the current one.
        async fn calendar_applied(&self, name: &CalendarName, version: u32) -> StoreResult<bool>;

        /// Deletes a calendar. A current job that names it is a [`StoreError::Conflict`](super::StoreError::Conflict) that
        /// names the jobs.
        async fn delete_calendar(&self, name: &CalendarName, audit: &AuditEntry) -> StoreResult<()>;

        /// The current jobs that name a calendar, by key, at most
        /// [`MAX_CALENDAR_JOBS`]. A job that cannot be read is left out.
        async fn calendar_jobs(&self) -> StoreResult<Vec<Job>>;

        /// The freezes that end after this time, the earliest start first. One that cannot be read is left out.
        async fn freezes(&self, ending_after: Timestamp) -> StoreResult<Vec<Freeze>>;

        /// Writes a freeze. More than [`MAX_FREEZES`] that are not over are
        /// [`StoreError::Invalid`](super::StoreError::Invalid). Those that ended a year ago are deleted.
        async fn add_freeze(&self, freeze: &Freeze, audit: &AuditEntry) -> StoreResult<()>;

        /// Ends a freeze at the time of the entry, by its actor: see [`Freeze::ended_at`]. One-time jobs that waited for
        /// its end are due then.
        async fn end_freeze(&self, id: Uuid, audit: &AuditEntry) -> StoreResult<Freeze>;
    }
}

/// The most jobs that are read at once to see which use a calendar.
pub const MAX_CALENDAR_JOBS: u32 = 20_000;

/// The most freezes that are not over.
pub const MAX_FREEZES: usize = 200;

/// How long a freeze is kept after its end: slots of a job that rested as long are still explained by it.
pub const FREEZE_RETENTION: Duration = Duration::from_hours(24 * 366);

/// A calendar to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCalendar {
    /// Its name.
    pub name: CalendarName,
    /// Its days.
    pub content: CalendarContent,
    /// Its owner: operators, or a configuration file.
    pub source: Source,
}

/// A calendar as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCalendar {
    /// The current version.
    pub calendar: Arc<Calendar>,
    /// Its owner.
    pub source: Source,
    /// The version that every job has. A lower one means that an edit was interrupted.
    pub applied_version: u32,
    /// The actor who wrote the current version.
    pub updated_by: String,
    /// When its first version was written.
    pub created_at: Timestamp,
    /// When the current version was written.
    pub updated_at: Timestamp,
}

/// A refusal of a delete: at most this many jobs are named.
const MAX_NAMED_JOBS: usize = 10;

impl StoredCalendar {
    /// The next version, as it is written by an edit at `at`. `before` is the current one.
    pub fn next(before: Option<&StoredCalendar>, new: &NewCalendar, by: &str, at: Timestamp) -> StoredCalendar {
        let version = before.map_or(0, |before| before.calendar.version()) + 1;
        StoredCalendar {
            calendar: Arc::new(Calendar::new(new.name.clone(), version, new.content.clone())),
            source: new.source,
            // No job can use a calendar that was not there.
            applied_version: before.map_or(1, |before| before.applied_version),
            updated_by: by.to_owned(),
            created_at: before.map_or(at, |before| before.created_at),
            updated_at: at,
        }
    }

    /// Why a calendar cannot be deleted while these jobs use it.
    pub fn in_use(name: &CalendarName, jobs: &[Job]) -> Option<String> {
        let users: Vec<&str> = jobs
            .iter()
            .filter(|job| job.definition.policies.calendars.names(name))
            .map(|job| job.definition.key.as_str())
            .collect();
        let named = users.iter().take(MAX_NAMED_JOBS).copied().collect::<Vec<_>>().join(", ");
        match users.len() {
            0 => None,
            1..=MAX_NAMED_JOBS => Some(format!("calendar `{name}` is used by {named}; edit these jobs first")),
            all => Some(format!(
                "calendar `{name}` is used by {named} and {} more; edit these jobs first",
                all - MAX_NAMED_JOBS
            )),
        }
    }
}
