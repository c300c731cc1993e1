//! Calendars: named sets of days on which jobs fire, or do not.

use everbell_core::store::StoredCalendar;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::job::Source;

/// A calendar.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Calendar {
    /// Its name.
    pub name: String,
    /// 1, 2, 3, …; grows with each edit. The ETag.
    pub version: u32,
    /// The owner.
    pub source: Source,
    /// The IANA time zone of the days; null for the zone of the job, or of the org.
    pub timezone: Option<String>,
    /// Dates, ranges, and dates of every year, with their names. Events of an iCalendar text are among them.
    pub dates: Vec<String>,
    /// Days of every week.
    pub weekly: Vec<String>,
    /// The keys of the current jobs that use it.
    pub jobs: Vec<String>,
    /// Whether every job uses the days of this version. Briefly false after an edit.
    pub applied: bool,
    /// The actor who wrote this version.
    pub updated_by: String,
    /// When the first version was created.
    pub created_at: Timestamp,
    /// When this version was written.
    pub updated_at: Timestamp,
}

/// A calendar that was written, or would be.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CalendarWritten {
    /// The calendar as it is now; in a dry run, the unchanged calendar, or null if there is none.
    pub calendar: Option<Calendar>,
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// The runs that are added or removed in the next 90 days.
    pub effects: Vec<CalendarEffect>,
    /// The keys of the jobs that got a new version.
    pub updated_jobs: Vec<String>,
    /// The jobs that could not be brought up to date yet. They are tried again within minutes.
    pub failed_jobs: Vec<CalendarFailure>,
}

/// The runs of a job that an edit of a calendar adds or removes in the next 90 days.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CalendarEffect {
    /// The key of the job. For a per-org job, the runs in the zone of the job are compared.
    pub job_key: String,
    /// The zone of the job.
    pub timezone: String,
    /// How many runs are added.
    pub added: u64,
    /// How many runs are removed.
    pub removed: u64,
    /// The times of the first 20 added runs.
    pub added_fires: Vec<Timestamp>,
    /// The times of the first 20 removed runs.
    pub removed_fires: Vec<Timestamp>,
}

/// A job that does not have the days of its calendar yet.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CalendarFailure {
    /// The key of the job.
    pub job_key: String,
    /// Why it could not be changed.
    pub reason: String,
}

/// A freeze: a period in which schedules do not fire.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Freeze {
    /// Its id.
    pub id: String,
    /// The first instant that may not fire.
    pub from: Timestamp,
    /// The first instant that may fire again.
    pub until: Timestamp,
    /// Whether it is in force now.
    pub in_force: bool,
    /// The reason, which is shown with it.
    pub reason: String,
    /// Only jobs with this label, as `name=value` or `name`; null for all jobs.
    pub label: Option<String>,
    /// The keys of jobs that are exempt from the freeze.
    pub except: Vec<String>,
    /// The actor who announced it.
    pub created_by: String,
    /// When it was announced.
    pub created_at: Timestamp,
    /// When it was ended before its time; null if it was not.
    pub ended_at: Option<Timestamp>,
    /// The actor who ended it.
    pub ended_by: Option<String>,
}

impl Freeze {
    /// The document of a freeze at this time.
    pub fn new(freeze: &everbell_core::freeze::Freeze, now: Timestamp) -> Freeze {
        let ended = freeze.ended.clone();
        Freeze {
            id: freeze.id.to_string(),
            from: freeze.starts_at,
            until: freeze.ends_at,
            in_force: freeze.is_in_force(now),
            reason: freeze.reason.clone(),
            label: freeze.label_text(),
            except: freeze.except.iter().map(ToString::to_string).collect(),
            created_by: freeze.created_by.clone(),
            created_at: freeze.created_at,
            ended_at: ended.as_ref().map(|(at, _)| *at),
            ended_by: ended.map(|(_, by)| by),
        }
    }
}

impl Calendar {
    /// The document of a calendar that these jobs name.
    pub fn new(stored: &StoredCalendar, jobs: Vec<String>) -> Calendar {
        let (calendar, content) = (&stored.calendar, stored.calendar.content());
        Calendar {
            name: calendar.name().to_string(),
            version: calendar.version(),
            source: stored.source.into(),
            timezone: content.timezone.as_ref().map(|zone| zone.name().to_owned()),
            dates: content.entries.iter().map(ToString::to_string).collect(),
            weekly: content.weekly.words().into_iter().map(str::to_owned).collect(),
            jobs,
            applied: stored.applied_version >= calendar.version(),
            updated_by: stored.updated_by.clone(),
            created_at: stored.created_at,
            updated_at: stored.updated_at,
        }
    }
}
