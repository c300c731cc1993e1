//! Calendars, and the jobs that use them.

use async_trait::async_trait;
use everbell_core::calendar::{CalendarName, MAX_CALENDARS};
use everbell_core::freeze::Freeze;
use everbell_core::store::{
    AuditEntry, CalendarStore, MAX_CALENDAR_JOBS, MAX_FREEZES, NewCalendar, StoreError, StoreResult, StoredCalendar,
};
use everbell_core::{Definition, Job, JobId, JobStatus, Timer};
use jiff::Timestamp;
use uuid::Uuid;

use super::MemoryStore;
use super::state::{State, micros};
use crate::rows::calendars::{expect_current, too_many};
use crate::rows::freezes::{FreezeColumns, forgotten_before, too_many_freezes};

#[async_trait]
impl CalendarStore for MemoryStore {
    async fn calendars(&self) -> StoreResult<Vec<StoredCalendar>> {
        self.with(|state| Ok(state.calendars.values().cloned().collect()))
    }

    async fn put_calendar(
        &self,
        calendar: &NewCalendar,
        expected_version: Option<u32>,
        audit: &AuditEntry,
    ) -> StoreResult<StoredCalendar> {
        self.once_quietly(audit, |state| {
            let before = state.calendars.get(&calendar.name);
            let version = before.map_or(0, |before| before.calendar.version());
            let (expected, found) = (expected_version.map(u64::from), Some(u64::from(version)));
            StoreError::expect_revision("calendar", &calendar.name, expected, found)?;
            if before.is_none() && state.calendars.len() >= MAX_CALENDARS {
                return Err(too_many().into());
            }
            let written = StoredCalendar::next(before, calendar, &audit.actor, micros(audit.at));
            state.calendars.insert(calendar.name.clone(), written.clone());
            state.write_audit(audit);
            Ok(written)
        })
    }

    async fn calendar_applied(&self, name: &CalendarName, version: u32) -> StoreResult<bool> {
        self.with(|state| {
            let current = state.calendars.get_mut(name).filter(|stored| stored.calendar.version() == version);
            let Some(stored) = current else { return Ok(false) };
            stored.applied_version = version;
            Ok(true)
        })
    }

    async fn delete_calendar(&self, name: &CalendarName, audit: &AuditEntry) -> StoreResult<()> {
        self.once_quietly(audit, |state| {
            if !state.calendars.contains_key(name) {
                return Err(StoreError::not_found("calendar", name));
            }
            if let Some(what) = StoredCalendar::in_use(name, &state.calendar_jobs()) {
                return Err(StoreError::Conflict { what });
            }
            state.calendars.remove(name);
            state.write_audit(audit);
            Ok(())
        })
    }

    async fn calendar_jobs(&self) -> StoreResult<Vec<Job>> {
        self.with(|state| Ok(state.calendar_jobs()))
    }

    async fn freezes(&self, ending_after: Timestamp) -> StoreResult<Vec<Freeze>> {
        self.with(|state| Ok(state.freezes_after(micros(ending_after))))
    }

    async fn add_freeze(&self, freeze: &Freeze, audit: &AuditEntry) -> StoreResult<()> {
        self.once_quietly(audit, |state| {
            if state.freezes_after(micros(audit.at)).len() >= MAX_FREEZES {
                return Err(too_many_freezes().into());
            }
            let forgotten = forgotten_before(micros(audit.at));
            state.freezes.retain(|_, freeze| freeze.ends_at >= forgotten);
            state.freezes.insert(freeze.id, FreezeColumns::new(freeze).read()?);
            state.write_audit(audit);
            Ok(())
        })
    }

    async fn end_freeze(&self, id: Uuid, audit: &AuditEntry) -> StoreResult<Freeze> {
        self.once(audit, |state| {
            let found = state.freezes.get(&id).ok_or_else(|| StoreError::not_found("freeze", id))?;
            let (starts_at, ends_at) = (found.starts_at, found.ends_at);
            let ended = found.ended_at(micros(audit.at), &audit.actor)?;
            state.freezes.insert(id, ended.clone());
            let State { timers, jobs, .. } = state;
            let is_one_time = |job: &JobId| jobs.get(job).is_some_and(|job| job.definition.is_one_time());
            let waits = |timer: &&mut Timer| {
                timer.next_run_at == Some(ends_at) && timer.rescheduled_from.is_some() && is_one_time(&timer.job_id)
            };
            for timer in timers.values_mut().filter(|_| audit.at > starts_at).filter(waits) {
                timer.next_run_at = Some(micros(audit.at));
            }
            state.write_audit(audit);
            Ok(ended)
        })
    }
}

impl State {
    /// Freezes that end after this time, the earliest start first.
    fn freezes_after(&self, at: Timestamp) -> Vec<Freeze> {
        let ends_later =
            |freeze: &&Freeze| freeze.ends_at > at && freeze.ended.as_ref().is_none_or(|(ended, _)| *ended > at);
        let mut freezes: Vec<Freeze> = self.freezes.values().filter(ends_later).cloned().collect();
        freezes.sort_by_key(|freeze| (freeze.starts_at, freeze.id));
        freezes
    }

    fn calendar_jobs(&self) -> Vec<Job> {
        let is_user =
            |job: &&Job| job.state.status != JobStatus::Retired && !job.definition.policies.calendars.is_empty();
        let mut jobs: Vec<Job> = self.jobs.values().filter(is_user).cloned().collect();
        jobs.sort_by(|a, b| a.definition.key.cmp(&b.definition.key));
        jobs.truncate(MAX_CALENDAR_JOBS as usize);
        jobs
    }

    /// Refuses a job whose calendars are not the current ones.
    pub(super) fn check_calendars(&self, definition: &Definition) -> StoreResult<()> {
        let versions = self.calendars.iter();
        let versions = versions.map(|(name, stored)| (name.to_string(), i64::from(stored.calendar.version())));
        expect_current(definition, &versions.collect())
    }
}
