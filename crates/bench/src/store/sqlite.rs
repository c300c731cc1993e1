//! SQLite by bare statements on one connection. Triggers of the schema fill and clear `active_runs`.

use std::path::Path;

use jiff::Timestamp;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, SqliteConnection};
use uuid::Uuid;

use super::Schedule;
use super::rate::{Pass, Rate};
use super::verbs::LEASE;
use crate::cpu::Meter;

const DUE: &str = "select job_id, org_id, next_run_at, last_slot_at, rescheduled_from, last_local_date
  from everbell_timers where next_run_at <= ?1 and target = ?2 order by next_run_at limit ?3";
const ACTIVE: &str = "select run_id, job_id, org_id from everbell_active_runs
  where job_id in (select unhex(value) from json_each(?1))";
const CLAIM: &str =
    "insert into everbell_runs (id, job_id, org_id, at, nonce, scheduled_at, created_at, trigger, target, catch_up, folded)
  select unhex(value ->> 0), unhex(value ->> 1), value ->> 2, value ->> 3, 0, value ->> 3, ?2, value ->> 5, value ->> 6, 0, 0
  from jsonb_each(?1) where true on conflict do nothing";
const ADVANCE: &str = "update everbell_timers set next_run_at = g.next_run_at, last_slot_at = g.last_slot_at
  from (select unhex(value ->> 1) as job_id, value ->> 2 as org_id, value ->> 4 as next_run_at, value ->> 3 as last_slot_at
        from jsonb_each(?1)) g
  where everbell_timers.job_id = g.job_id and everbell_timers.org_id = g.org_id";
const WAITING: &str =
    "select r.id, r.job_id, r.org_id, r.target, r.payload, r.trigger, r.at, r.scheduled_at, p.attempt + 1
  from everbell_active_runs p indexed by everbell_active_runs_pending cross join everbell_runs r
  where p.target = ?1 and p.status = 'pending' and p.priority = 0 and not p.held and not p.paused and p.available_at <= ?2
    and r.id = p.run_id
  order by p.available_at, p.run_id limit ?3";
const START: &str =
    "update everbell_active_runs set status = 'running', attempt = attempt + 1, runner_id = ?2, claimed_at = ?3,
    started_at = ?3, lease_until = ?4
  where run_id in (select unhex(value) from json_each(?1))";
const END: &str =
    "insert into everbell_outcomes (run_id, status, attempt, runner_id, claimed_at, started_at, finished_at)
  select a.run_id, 'succeeded', a.attempt, a.runner_id, a.claimed_at, a.started_at, e.value ->> 2
  from jsonb_each(?1) e cross join everbell_active_runs a
  where a.run_id = unhex(e.value ->> 0) and a.attempt = e.value ->> 1 and a.status = 'running'";
const CLEAR: &str = "update everbell_jobs indexed by everbell_jobs_failing set consecutive_failures = 0
  where id in (select unhex(value) from json_each(?1)) and consecutive_failures > 0";

/// Opens the file with the settings of the store, so that both have the same.
async fn open(path: &Path) -> sqlx::Result<SqliteConnection> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .row_buffer_size(1_000)
        .disable_statement_logging()
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .pragma("wal_autocheckpoint", "20000");
    SqliteConnection::connect_with(&options).await
}

/// Everything due again, and no history.
pub(crate) async fn reset(path: &Path, slot: Timestamp) -> sqlx::Result<()> {
    let mut connection = open(path).await?;
    let sql = format!(
        "delete from everbell_runs; delete from everbell_active_runs; delete from everbell_outcomes;
         update everbell_timers set next_run_at = {}, last_run_at = null, last_run_id = null,
           last_slot_at = (select created_at from everbell_jobs where id = job_id)
         where next_run_at is not null;
         pragma wal_checkpoint(truncate);",
        slot.as_microsecond()
    );
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
    connection.close().await
}

/// Claims everything, then starts and ends everything.
pub(crate) async fn lives(
    path: &Path,
    batch: u32,
    runs: u32,
    now: Timestamp,
    meter: &mut Meter,
) -> Result<Rate, Box<dyn std::error::Error>> {
    let mut connection = open(path).await?;
    let schedule = Schedule::new(now)?;
    let pass = Pass::begin(meter).await?;
    let claimed = claim(&mut connection, batch, &schedule).await?;
    let pass = pass.claimed().await?;
    let ended = run(&mut connection, batch, now).await?;
    let rate = pass.ended(runs).await?;
    assert_eq!((claimed, ended), (runs, runs), "every run lives once");
    connection.close().await?;
    Ok(rate)
}

fn array(rows: impl Iterator<Item = String>) -> String {
    format!("[{}]", rows.collect::<Vec<_>>().join(","))
}

async fn claim(connection: &mut SqliteConnection, batch: u32, schedule: &Schedule) -> sqlx::Result<u32> {
    type Timer = (Uuid, String, i64, i64, Option<i64>, Option<String>);
    let now = schedule.now.as_microsecond();
    let mut total = 0;
    loop {
        let mut tx = connection.begin_with("begin immediate").await?;
        let due: Vec<Timer> = sqlx::query_as(DUE).bind(now).bind("noop").bind(batch).fetch_all(&mut *tx).await?;
        if due.is_empty() {
            tx.rollback().await?;
            return Ok(total);
        }
        let row = |(job, org, slot, ..): &Timer| {
            let (at, next, id) = schedule.fire(*job, *slot);
            let next = next.map_or_else(|| "null".to_owned(), |next| next.to_string());
            let (id, job, trigger) = (id.simple(), job.simple(), &schedule.trigger);
            format!(r#"["{id}","{job}","{org}",{at},{next},"{trigger}","noop"]"#)
        };
        let rows = array(due.iter().map(row));
        let jobs = array(due.iter().map(|(job, ..)| format!("\"{}\"", job.simple())));
        let active: Vec<(Uuid, Uuid, String)> = sqlx::query_as(ACTIVE).bind(jobs).fetch_all(&mut *tx).await?;
        assert!(active.is_empty(), "nothing overlaps");
        total += sqlx::query(CLAIM).bind(&rows).bind(now).execute(&mut *tx).await?.rows_affected() as u32;
        sqlx::query(ADVANCE).bind(&rows).execute(&mut *tx).await?;
        tx.commit().await?;
    }
}

async fn run(connection: &mut SqliteConnection, batch: u32, now: Timestamp) -> sqlx::Result<u32> {
    type Started = (Uuid, Uuid, String, String, Option<String>, String, i64, i64, i64);
    let (until, now) = ((now + LEASE).as_microsecond(), now.as_microsecond());
    let mut total = 0;
    loop {
        let mut tx = connection.begin_with("begin immediate").await?;
        let query = sqlx::query_as(WAITING).bind("noop").bind(now).bind(batch);
        let started: Vec<Started> = query.fetch_all(&mut *tx).await?;
        if started.is_empty() {
            return Ok(total);
        }
        let ids = array(started.iter().map(|run| format!("\"{}\"", run.0.simple())));
        let query = sqlx::query(START).bind(ids).bind(Uuid::from_u128(3)).bind(now).bind(until);
        query.execute(&mut *tx).await?;
        tx.commit().await?;
        let rows = array(started.iter().map(|run| format!("[\"{}\",{},{now}]", run.0.simple(), run.8)));
        let jobs = array(started.iter().map(|run| format!("\"{}\"", run.1.simple())));
        let mut tx = connection.begin_with("begin immediate").await?;
        total += sqlx::query(END).bind(rows).execute(&mut *tx).await?.rows_affected() as u32;
        sqlx::query(CLEAR).bind(jobs).execute(&mut *tx).await?;
        tx.commit().await?;
    }
}
