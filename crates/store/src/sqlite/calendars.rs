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

use super::SqliteStore;
use super::audit::insert_audit;
use super::transaction::Tx;
use crate::micros::Micros;
use crate::rows::binds::bind_calendar;
use crate::rows::calendars::{CALENDARS_PATTERN, CalendarColumns, expect_current, names_of, too_many};
use crate::rows::freezes::{FreezeColumns, forgotten_before, too_many_freezes};
use crate::rows::{JobColumns, TimerColumns, readable};

#[async_trait]
impl CalendarStore for SqliteStore {
    async fn calendars(&self) -> StoreResult<Vec<StoredCalendar>> {
        let rows: Vec<CalendarColumns> =
            self.read("reading calendars", sqlx::query(include_str!("sql/calendars.sql"))).await?;
        Ok(readable(rows, |row| row.name.clone(), CalendarColumns::read).0)
    }

    async fn put_calendar(
        &self,
        calendar: &NewCalendar,
        expected_version: Option<u32>,
        audit: &AuditEntry,
    ) -> StoreResult<StoredCalendar> {
        let mut held = self.writer("writing a calendar").await?;
        let mut tx = held.begin().await?;
        let before = find(&mut tx, &calendar.name).await?;
        let version = before.as_ref().map_or(0, |before| before.calendar.version());
        let (expected, found) = (expected_version.map(u64::from), Some(u64::from(version)));
        StoreError::expect_revision("calendar", &calendar.name, expected, found)?;
        if before.is_none() {
            let (all,): (i64,) = tx.one(sqlx::query(include_str!("sql/count_calendars.sql"))).await?;
            if all >= MAX_CALENDARS as i64 {
                return Err(too_many().into());
            }
        }
        let audit = AuditEntry { at: Micros::from(audit.at).into(), ..audit.clone() };
        let written = StoredCalendar::next(before.as_ref(), calendar, &audit.actor, audit.at);
        let query = bind_calendar!(sqlx::query(include_str!("sql/put_calendar.sql")), &written);
        tx.run(query).await?;
        insert_audit(&mut tx, &audit).await?;
        tx.commit().await?;
        Ok(written)
    }

    async fn calendar_applied(&self, name: &CalendarName, version: u32) -> StoreResult<bool> {
        let mut held = self.writer("writing a calendar").await?;
        let mut tx = held.begin().await?;
        let query = sqlx::query(include_str!("sql/calendar_applied.sql")).bind(name.to_string());
        let is_current = tx.run(query.bind(i64::from(version))).await? > 0;
        tx.commit().await?;
        Ok(is_current)
    }

    async fn delete_calendar(&self, name: &CalendarName, audit: &AuditEntry) -> StoreResult<()> {
        let mut held = self.writer("deleting a calendar").await?;
        let mut tx = held.begin().await?;
        if find(&mut tx, name).await?.is_none() {
            return Err(StoreError::not_found("calendar", name));
        }
        if let Some(what) = StoredCalendar::in_use(name, &self.users(&mut tx).await?) {
            return Err(StoreError::Conflict { what });
        }
        tx.run(sqlx::query(include_str!("sql/delete_calendar.sql")).bind(name.to_string())).await?;
        insert_audit(&mut tx, audit).await?;
        tx.commit().await
    }

    async fn calendar_jobs(&self) -> StoreResult<Vec<Job>> {
        let mut held = self.reader("reading jobs with calendars").await?;
        let mut tx = held.begin().await?;
        self.users(&mut tx).await
    }

    async fn freezes(&self, ending_after: Timestamp) -> StoreResult<Vec<Freeze>> {
        let mut held = self.reader("reading freezes").await?;
        let mut tx = held.begin().await?;
        freezes_after(&mut tx, ending_after).await
    }

    async fn add_freeze(&self, freeze: &Freeze, audit: &AuditEntry) -> StoreResult<()> {
        let mut held = self.writer("writing a freeze").await?;
        let mut tx = held.begin().await?;
        if freezes_after(&mut tx, audit.at).await?.len() >= MAX_FREEZES {
            return Err(too_many_freezes().into());
        }
        let forgotten = Micros::from(forgotten_before(audit.at));
        tx.run(sqlx::query(include_str!("sql/forget_freezes.sql")).bind(forgotten)).await?;
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
        tx.run(query).await?;
        insert_audit(&mut tx, audit).await?;
        tx.commit().await
    }

    async fn end_freeze(&self, id: Uuid, audit: &AuditEntry) -> StoreResult<Freeze> {
        let mut held = self.writer("writing a freeze").await?;
        let mut tx = held.begin().await?;
        let row: Option<FreezeColumns> = tx.first(sqlx::query(include_str!("sql/lock_freeze.sql")).bind(id)).await?;
        let found = row.ok_or_else(|| StoreError::not_found("freeze", id))?.read()?;
        let at = Micros::from(audit.at);
        let ended = found.ended_at(at.into(), &audit.actor)?;
        tx.run(sqlx::query(include_str!("sql/end_freeze.sql")).bind(id).bind(at).bind(audit.actor.clone())).await?;
        if audit.at > found.starts_at {
            let query = sqlx::query(include_str!("sql/wake_frozen_timers.sql"));
            tx.run(query.bind(Micros::from(found.ends_at)).bind(at)).await?;
        }
        insert_audit(&mut tx, audit).await?;
        tx.commit_and_wake().await?;
        Ok(ended)
    }
}

async fn freezes_after(tx: &mut Tx<'_>, at: Timestamp) -> StoreResult<Vec<Freeze>> {
    let rows: Vec<FreezeColumns> = tx.all(sqlx::query(include_str!("sql/freezes.sql")).bind(Micros::from(at))).await?;
    Ok(readable(rows, |row| row.id, FreezeColumns::read).0)
}

/// The freezes that may concern slots of these timers that are due.
pub(super) async fn freezes_of(tx: &mut Tx<'_>, timers: &[TimerColumns], now: Timestamp) -> StoreResult<Vec<Freeze>> {
    let Some(oldest) = timers.iter().map(|timer| timer.last_slot_at).min() else { return Ok(Vec::new()) };
    let query = sqlx::query(include_str!("sql/freezes_between.sql")).bind(oldest).bind(Micros::from(now));
    let rows: Vec<FreezeColumns> = tx.all(query).await?;
    Ok(readable(rows, |row| row.id, FreezeColumns::read).0)
}

impl SqliteStore {
    /// The current jobs that name calendars.
    async fn users(&self, tx: &mut Tx<'_>) -> StoreResult<Vec<Job>> {
        let query = sqlx::query(include_str!("sql/calendar_jobs.sql")).bind(CALENDARS_PATTERN);
        let rows: Vec<JobColumns> = tx.all(query.bind(MAX_CALENDAR_JOBS)).await?;
        Ok(readable(rows, |row: &JobColumns| row.id, |row: JobColumns| row.read(&self.known)).0)
    }
}

async fn find(tx: &mut Tx<'_>, name: &CalendarName) -> StoreResult<Option<StoredCalendar>> {
    let query = sqlx::query(include_str!("sql/lock_calendar.sql")).bind(name.to_string());
    let row: Option<CalendarColumns> = tx.first(query).await?;
    row.map(CalendarColumns::read).transpose()
}

/// Refuses a job whose calendars are not the current ones.
pub(super) async fn check_calendars(tx: &mut Tx<'_>, definition: &Definition) -> StoreResult<()> {
    let names = names_of(definition);
    if names.is_empty() {
        return Ok(());
    }
    let names = serde_json::to_string(&names).unwrap_or_else(|_| "[]".to_owned());
    let query = sqlx::query(include_str!("sql/share_calendars.sql")).bind(names);
    let versions: Vec<(String, i64)> = tx.all(query).await?;
    expect_current(definition, &versions.into_iter().collect())
}
