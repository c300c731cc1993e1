//! Calendars, and the jobs that use them.

use async_trait::async_trait;
use everbell_core::calendar::{CalendarName, MAX_CALENDARS};
use everbell_core::store::{
    AuditEntry, CalendarStore, MAX_CALENDAR_JOBS, NewCalendar, StoreError, StoreResult, StoredCalendar,
};
use everbell_core::{Definition, Job};

use super::PostgresStore;
use super::audit::insert_audit;
use super::connect::{Conn, on};
use super::statement::{Backend, Statement};
use crate::micros::Micros;
use crate::rows::calendars::{CALENDARS_PATTERN, CalendarColumns, expect_current, names_of, too_many};
use crate::rows::{JobColumns, readable};

const WRITING: &str = "writing a calendar";
const DELETING: &str = "deleting a calendar";

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
            let row = CalendarColumns::new(&written);
            let query = sqlx::query(include_str!("sql/put_calendar.sql"))
                .bind(row.name)
                .bind(row.version)
                .bind(row.applied_version)
                .bind(row.content)
                .bind(row.source)
                .bind(row.updated_by)
                .bind(row.created_at)
                .bind(row.updated_at);
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
