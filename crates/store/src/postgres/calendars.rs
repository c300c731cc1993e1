//! Calendars, and the jobs that use them.

use async_trait::async_trait;
use everbell_core::calendar::{CalendarName, MAX_CALENDARS};
use everbell_core::freeze::Freeze;
use everbell_core::store::{
    AuditEntry, CalendarStore, MAX_CALENDAR_JOBS, MAX_FREEZES, NewCalendar, StoreError, StoreResult, StoredCalendar,
};
use everbell_core::{Definition, Job};
use jiff::Timestamp;
use uuid::Uuid;

use super::PostgresStore;
use super::audit::insert_audit;
use super::connect::{Conn, on};
use super::statement::{Backend, Statement};
use crate::micros::Micros;
use crate::rows::binds::bind_calendar;
use crate::rows::calendars::{CALENDARS_PATTERN, CalendarColumns, expect_current, names_of, too_many};
use crate::rows::freezes::{FreezeColumns, forgotten_before, too_many_freezes};
use crate::rows::{JobColumns, TimerColumns, readable};

const WRITING: &str = "writing a calendar";
const DELETING: &str = "deleting a calendar";
const FREEZING: &str = "writing a freeze";

#[async_trait]
impl CalendarStore for PostgresStore {
    async fn calendars(&self) -> StoreResult<Vec<StoredCalendar>> {
        let query = sqlx::query_as(include_str!("sql/calendars.sql"));
        let rows: Vec<CalendarColumns> = self.within("reading calendars", query.fetch_all_on(&self.pool)).await?;
        Ok(readable(rows, |row| row.name.clone(), CalendarColumns::read).0)
    }

    async fn put_calendar(
        &self,
        calendar: &NewCalendar,
        expected_version: Option<u32>,
        audit: &AuditEntry,
    ) -> StoreResult<StoredCalendar> {
        let mut tx = self.begin(WRITING).await?;
        let done = async {
            let before = lock(&mut tx, WRITING, &calendar.name).await?;
            let version = before.as_ref().map_or(0, |before| before.calendar.version());
            let (expected, found) = (expected_version.map(u64::from), Some(u64::from(version)));
            StoreError::expect_revision("calendar", &calendar.name, expected, found)?;
            if before.is_none() {
                let query = sqlx::query_as(include_str!("sql/count_calendars.sql"));
                let (all,): (i64,) = on(WRITING, query.fetch_one_on(&mut tx)).await?;
                if all >= MAX_CALENDARS as i64 {
                    return Err(too_many().into());
                }
            }
            let audit = AuditEntry { at: Micros::from(audit.at).into(), ..audit.clone() };
            let written = StoredCalendar::next(before.as_ref(), calendar, &audit.actor, audit.at);
            let query = bind_calendar!(sqlx::query(include_str!("sql/put_calendar.sql")), &written);
            if on(WRITING, query.execute_on(&mut tx)).await?.rows_affected() == 0 {
                let what = format!("calendar `{}` was written by another request", calendar.name);
                return Err(StoreError::Conflict { what });
            }
            insert_audit(&mut tx, &audit).await?;
            Ok(written)
        };
        let done = done.await;
        self.finish_transaction(WRITING, tx, done, |_| false).await
    }

    async fn calendar_applied(&self, name: &CalendarName, version: u32) -> StoreResult<bool> {
        let query = sqlx::query(include_str!("sql/calendar_applied.sql")).bind(name.to_string());
        let query = query.bind(i64::from(version));
        Ok(self.alone(WRITING, query.execute_on(&self.pool)).await?.rows_affected() > 0)
    }

    async fn delete_calendar(&self, name: &CalendarName, audit: &AuditEntry) -> StoreResult<()> {
        let mut tx = self.begin(DELETING).await?;
        let done = async {
            // With the lock, no job that names it can be written any more.
            if lock(&mut tx, DELETING, name).await?.is_none() {
                return Err(StoreError::not_found("calendar", name));
            }
            if let Some(what) = StoredCalendar::in_use(name, &self.users(&mut tx).await?) {
                return Err(StoreError::Conflict { what });
            }
            let query = sqlx::query(include_str!("sql/delete_calendar.sql")).bind(name.to_string());
            on(DELETING, query.execute_on(&mut tx)).await?;
            insert_audit(&mut tx, audit).await
        };
        let done = done.await;
        self.finish_transaction(DELETING, tx, done, |()| false).await
    }

    async fn calendar_jobs(&self) -> StoreResult<Vec<Job>> {
        self.users(&self.pool).await
    }

    async fn freezes(&self, ending_after: Timestamp) -> StoreResult<Vec<Freeze>> {
        let query = sqlx::query_as(include_str!("sql/freezes.sql")).bind(Micros::from(ending_after));
        let rows: Vec<FreezeColumns> = self.within("reading freezes", query.fetch_all_on(&self.pool)).await?;
        Ok(readable(rows, |row| row.id, FreezeColumns::read).0)
    }

    async fn add_freeze(&self, freeze: &Freeze, audit: &AuditEntry) -> StoreResult<()> {
        if self.freezes(audit.at).await?.len() >= MAX_FREEZES {
            return Err(too_many_freezes().into());
        }
        let mut tx = self.begin(FREEZING).await?;
        let done = async {
            let forgotten = Micros::from(forgotten_before(audit.at));
            let query = sqlx::query(include_str!("sql/forget_freezes.sql")).bind(forgotten);
            on(FREEZING, query.execute_on(&mut tx)).await?;
            let row = FreezeColumns::new(freeze);
            let query = sqlx::query(include_str!("sql/add_freeze.sql"))
                .bind(row.id)
                .bind(row.starts_at)
                .bind(row.ends_at)
                .bind(row.reason)
                .bind(row.scope)
                .bind(row.created_by)
                .bind(row.created_at)
                .bind(row.ended_at)
                .bind(row.ended_by);
            on(FREEZING, query.execute_on(&mut tx)).await?;
            insert_audit(&mut tx, audit).await
        };
        let done = done.await;
        self.finish_transaction(FREEZING, tx, done, |()| false).await
    }

    async fn end_freeze(&self, id: Uuid, audit: &AuditEntry) -> StoreResult<Freeze> {
        let mut tx = self.begin(FREEZING).await?;
        let done = async {
            let query = sqlx::query_as(include_str!("sql/lock_freeze.sql")).bind(id);
            let row: Option<FreezeColumns> = on(FREEZING, query.fetch_optional_on(&mut tx)).await?;
            let found = row.ok_or_else(|| StoreError::not_found("freeze", id))?.read()?;
            let at = Micros::from(audit.at);
            let ended = found.ended_at(at.into(), &audit.actor)?;
            let query = sqlx::query(include_str!("sql/end_freeze.sql")).bind(id).bind(at).bind(audit.actor.clone());
            on(FREEZING, query.execute_on(&mut tx)).await?;
            if audit.at > found.starts_at {
                let query = sqlx::query(include_str!("sql/wake_frozen_timers.sql"));
                let query = query.bind(Micros::from(found.ends_at)).bind(at);
                on(FREEZING, query.execute_on(&mut tx)).await?;
            }
            insert_audit(&mut tx, audit).await?;
            Ok(ended)
        };
        let done = done.await;
        self.finish_transaction(FREEZING, tx, done, |_| true).await
    }
}

impl PostgresStore {
    /// The current jobs that name calendars.
    async fn users(&self, backend: impl Backend) -> StoreResult<Vec<Job>> {
        let query = sqlx::query_as(include_str!("sql/calendar_jobs.sql")).bind(CALENDARS_PATTERN);
        let query = query.bind(i64::from(MAX_CALENDAR_JOBS));
        let rows: Vec<JobColumns> = on("reading jobs with calendars", query.fetch_all_on(backend)).await?;
        Ok(readable(rows, |row: &JobColumns| row.id, |row: JobColumns| row.read(&self.known)).0)
    }
}

async fn lock(conn: Conn<'_, '_>, what: &str, name: &CalendarName) -> StoreResult<Option<StoredCalendar>> {
    let query = sqlx::query_as(include_str!("sql/lock_calendar.sql")).bind(name.to_string());
    let row: Option<CalendarColumns> = on(what, query.fetch_optional_on(conn)).await?;
    row.map(CalendarColumns::read).transpose()
}

/// The freezes that may concern slots of these timers that are due.
pub(super) async fn freezes_of(
    conn: Conn<'_, '_>,
    timers: &[TimerColumns],
    now: Timestamp,
) -> StoreResult<Vec<Freeze>> {
    let Some(oldest) = timers.iter().map(|timer| timer.last_slot_at).min() else { return Ok(Vec::new()) };
    let query = sqlx::query_as(include_str!("sql/freezes_between.sql")).bind(oldest).bind(Micros::from(now));
    let rows: Vec<FreezeColumns> = on("reading freezes", query.fetch_all_on(conn)).await?;
    Ok(readable(rows, |row| row.id, FreezeColumns::read).0)
}

/// Refuses a job whose calendars are not the current ones, which stay so until the transaction ends.
pub(super) async fn check_calendars(conn: Conn<'_, '_>, what: &str, definition: &Definition) -> StoreResult<()> {
    let names = names_of(definition);
    if names.is_empty() {
        return Ok(());
    }
    let query = sqlx::query_as(include_str!("sql/share_calendars.sql")).bind(names);
    let versions: Vec<(String, i64)> = on(what, query.fetch_all_on(conn)).await?;
    expect_current(definition, &versions.into_iter().collect())
}
