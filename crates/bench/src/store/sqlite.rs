//! The same writes on SQLite as bare statements on one connection. Triggers of the schema fill and clear `active_runs`.

use std::path::Path;

use jiff::Timestamp;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, Connection, SqliteConnection};

use super::verbs::SLOT;
use super::{CREATED_AT, Rate};
use crate::measure::Stopwatch;

async fn open(path: &Path) -> sqlx::Result<SqliteConnection> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .pragma("wal_autocheckpoint", "20000");
    SqliteConnection::connect_with(&options).await
}

fn micros(text: &str) -> i64 {
    text.parse().map_or(0, |t: Timestamp| t.as_microsecond())
}

/// Everything due again, and no history.
pub(super) async fn reset(path: &Path) -> sqlx::Result<()> {
    let mut connection = open(path).await?;
    let sql = format!(
        "delete from runs; delete from active_runs; delete from outcomes;
         update timers set next_run_at = {}, last_slot_at = {} where next_run_at is not null;",
        micros(SLOT),
        micros(CREATED_AT)
    );
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
    connection.close().await
}

pub(super) async fn lives(path: &Path, batch: u32, runs: u32) -> Result<Rate, Box<dyn std::error::Error>> {
    let mut connection = open(path).await?;
    let watch = Stopwatch::start();
    let claimed = claim(&mut connection, batch).await?;
    let at_claim = watch.seconds();
    let ended = run(&mut connection, batch).await?;
    let at_end = watch.seconds();
    assert_eq!((claimed, ended), (runs, runs), "every run lives once");
    connection.close().await?;
    Ok(Rate { claims: f64::from(runs) / at_claim, lives: f64::from(runs) / at_end, cpu: 0.0 })
}

async fn claim(connection: &mut SqliteConnection, batch: u32) -> sqlx::Result<u32> {
    let (slot, now, next) = (micros(SLOT), micros(SLOT) + 1_000_000, micros("2028-01-01T00:00:00Z"));
    let at: Timestamp = SLOT.parse().unwrap_or(Timestamp::UNIX_EPOCH);
    let mut total = 0;
    loop {
        let mut tx = connection.begin_with("begin immediate").await?;
        let due = "select job_id from timers where next_run_at <= ? order by next_run_at limit ?";
        let jobs: Vec<uuid::Uuid> = sqlx::query_scalar(due).bind(now).bind(batch).fetch_all(&mut *tx).await?;
        if jobs.is_empty() {
            tx.rollback().await?;
            return Ok(total);
        }
        let id = |job: &uuid::Uuid| everbell_core::RunId::for_slot(everbell_core::JobId::from_uuid(*job), None, at);
        let rows: Vec<String> =
            jobs.iter().map(|job| format!("[\"{}\",\"{}\"]", id(job).as_uuid().simple(), job.simple())).collect();
        let rows = format!("[{}]", rows.join(","));
        let insert = "insert into runs (id, job_id, org_id, at, nonce, scheduled_at, created_at, trigger, target, catch_up, folded)
            select unhex(value ->> 0), unhex(value ->> 1), '', ?2, 0, ?2, ?3, 'schedule:0 0 1 1 *', 'noop', 0, 0
            from json_each(?1) where true on conflict do nothing";
        sqlx::query(insert).bind(&rows).bind(slot).bind(now).execute(&mut *tx).await?;
        let advance = "update timers set next_run_at = ?2, last_slot_at = ?3
            where org_id = '' and job_id in (select unhex(value ->> 1) from json_each(?1))";
        sqlx::query(advance).bind(&rows).bind(next).bind(slot).execute(&mut *tx).await?;
        tx.commit().await?;
        total += jobs.len() as u32;
    }
}

async fn run(connection: &mut SqliteConnection, batch: u32) -> sqlx::Result<u32> {
    let now = micros(SLOT) + 1_000_000;
    let mut total = 0;
    loop {
        let start = "update active_runs set status = 'running', attempt = attempt + 1, runner_id = x'03', claimed_at = ?1,
              started_at = ?1, lease_until = ?1
            where run_id in (select run_id from active_runs where target = 'noop' and status = 'pending' and available_at <= ?1
                             order by available_at, run_id limit ?2)
            returning run_id";
        let started: Vec<uuid::Uuid> =
            sqlx::query_scalar(start).bind(now).bind(batch).fetch_all(&mut *connection).await?;
        if started.is_empty() {
            return Ok(total);
        }
        let rows: Vec<String> = started.iter().map(|id| format!("\"{}\"", id.simple())).collect();
        let rows = format!("[{}]", rows.join(","));
        let mut tx = connection.begin_with("begin immediate").await?;
        let end = "insert into outcomes (run_id, status, attempt, runner_id, claimed_at, started_at, finished_at)
            select run_id, 'succeeded', attempt, runner_id, claimed_at, started_at, ?2 from active_runs
            where run_id in (select unhex(value) from json_each(?1)) and status = 'running' and attempt = 1";
        total += sqlx::query(end).bind(&rows).bind(now).execute(&mut *tx).await?.rows_affected() as u32;
        tx.commit().await?;
    }
}
