//! Calendars: named sets of days on which jobs fire, or do not.

use everbell::Calendars;
use everbell::client::{CalendarEffect, CalendarWritten};
use everbell_core::Job;
use everbell_core::calendar::CalendarName;
use everbell_core::store::StoredCalendar;
use everbell_wire as wire;
use everbell_wire::body::calendar::{DATES, TIMEZONE, WEEKLY, read_content};
use everbell_wire::form::{Field, Kind as Value, optional};

use super::actions::REASON;
use crate::problem::Problem;
use crate::request::{ApiRequest, ApiResponse, refuse};

/// The body of a calendar, which replaces all of its days.
pub const CALENDAR: &[Field] = &[
    TIMEZONE,
    DATES,
    WEEKLY,
    optional(
        "ics",
        Value::Text { min: 1, max: 1_000_000 },
        "The text of an iCalendar file, whose events are added to `dates`. Events with times take whole days; of repetitions only `RRULE:FREQ=YEARLY` is supported.",
    ),
    optional("reason", REASON, "The reason, for the audit trail."),
];

pub(crate) const WRITE: &[Field] =
    &[optional("dryRun", Value::Flag, "Return which runs would be added or removed, without changing anything.")];

impl ApiRequest {
    /// Returns the calendars client of the caller.
    pub fn calendars(&self) -> Calendars {
        self.actor.calendars(&self.app.bell)
    }
}

pub(crate) async fn list(request: ApiRequest) -> Result<ApiResponse, Problem> {
    ApiResponse::ok(&wire::Items { items: documents(&request).await? })
}

/// Every calendar, with the jobs that name it.
pub async fn documents(request: &ApiRequest) -> Result<Vec<wire::Calendar>, Problem> {
    let jobs = request.app.bell.store().calendar_jobs().await?;
    let all = request.calendars().list().await?;
    Ok(all.iter().map(|stored| document(stored, &jobs)).collect())
}

pub(crate) async fn get(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let stored = request.calendars().get(request.part("name")).await?;
    let jobs = request.calendars().jobs_of(stored.calendar.name()).await?;
    Ok(ApiResponse::ok(&document(&stored, &jobs))?.header("etag", format!("\"{}\"", stored.calendar.version())))
}

fn document(stored: &StoredCalendar, jobs: &[Job]) -> wire::Calendar {
    let users = jobs.iter().filter(|job| job.definition.policies.calendars.names(stored.calendar.name()));
    wire::Calendar::new(stored, users.map(|job| job.definition.key.to_string()).collect())
}

/// Creates or replaces a calendar, or says what that would change.
pub async fn put(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let mut form = request.body(CALENDAR);
    let ics = form.text("ics").map(str::to_owned);
    let content = read_content(&mut form, ics.as_deref());
    let reason = form.text("reason").map(str::to_owned);
    refuse(form.faults())?;
    let Some(content) = content else { return Err(Problem::body(Vec::new())) };
    let calendars = match reason.as_deref() {
        Some(reason) => request.calendars().because(reason),
        None => request.calendars(),
    };
    let name = request.part("name");
    CalendarName::new(name).map_err(|invalid| Problem::at("path", "name", &invalid.reason))?;
    let effects = calendars.preview(name, content.clone()).await?.iter().map(effect).collect();
    let dry_run = request.query(WRITE).flag("dryRun");
    let (written, updated, failed) = if dry_run {
        let before = calendars.list().await?.into_iter().find(|stored| stored.calendar.name().as_str() == name);
        (before, Vec::new(), Vec::new())
    } else {
        let version = request.if_match.map(|version| u32::try_from(version).unwrap_or(u32::MAX));
        let CalendarWritten { calendar, jobs, failed, .. } = calendars.put_if(name, content, version).await?;
        (Some(calendar), jobs, failed)
    };
    let calendar = match &written {
        Some(stored) => Some(document(stored, &calendars.jobs_of(stored.calendar.name()).await?)),
        None => None,
    };
    let answer = wire::CalendarWritten {
        calendar,
        dry_run,
        effects,
        updated_jobs: updated.iter().map(ToString::to_string).collect(),
        failed_jobs: failed
            .into_iter()
            .map(|(key, reason)| wire::CalendarFailure { job_key: key.to_string(), reason })
            .collect(),
    };
    let response = ApiResponse::ok(&answer)?;
    Ok(match written {
        Some(stored) => response.header("etag", format!("\"{}\"", stored.calendar.version())),
        None => response,
    })
}

fn effect(effect: &CalendarEffect) -> wire::CalendarEffect {
    let zone = effect.job.spec.as_ref().map_or("UTC", |spec| spec.zone().name());
    wire::CalendarEffect {
        job_key: effect.job.key.to_string(),
        timezone: zone.to_owned(),
        added: effect.added.0,
        removed: effect.removed.0,
        added_fires: effect.added.1.clone(),
        removed_fires: effect.removed.1.clone(),
    }
}

pub(crate) async fn delete(request: ApiRequest) -> Result<ApiResponse, Problem> {
    request.calendars().delete(request.part("name")).await?;
    Ok(ApiResponse::nothing())
}
