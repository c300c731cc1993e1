//! The same on SQLite: write-ahead log, `synchronous=FULL`, batches as JSON arrays.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, SqliteConnection};
use uuid::Uuid;

use super::layouts::{BATCHES, CONNECTIONS};
use super::life::{NOW, all_targets};
use super::race::{Worker, race};
use super::rows::{Due, EPOCH, SECOND, TRIGGER, job, org, payload, run_id, target};
use super::sqlite_layout::Layout;
use super::{Plan, best};
use crate::table::{Table, thousands};

/// A folder that goes away at the end.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn create() -> sqlx::Result<Folder> {
        let path = std::env::temp_dir().join(format!("everbell-bench-sqlite-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Folder(path))
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _best_effort = std::fs::remove_dir_all(&self.0);
    }
}

pub(super) async fn connect(file: &Path) -> sqlx::Result<SqliteConnection> {
    let options =
        SqliteConnectOptions::new().filename(file).create_if_missing(true).busy_timeout(Duration::from_secs(20));
    let options = options.journal_mode(SqliteJournalMode::Wal).synchronous(SqliteSynchronous::Full);
    options.pragma("wal_autocheckpoint", "20000").connect().await
}

pub(super) async fn run(plan: &Plan) -> sqlx::Result<()> {
    let folder = Folder::create()?;
    let file = |layout: Layout| folder.file(&format!("{layout:?}.db"));
    for layout in Layout::ALL {
        prepare(&mut connect(&file(layout)).await?, layout, plan.timers).await?;
    }
    let names: Vec<&str> = Layout::ALL.iter().map(|layout| layout.name()).collect();
    let mut table = Table::new(0, &[&["batch", "connections"], names.as_slice()].concat());
    for batch in BATCHES {
        for connections in CONNECTIONS {
            let mut rates = vec![Vec::new(); Layout::ALL.len()];
            for _ in 0..plan.rounds {
                for (layout, rates) in Layout::ALL.into_iter().zip(&mut rates) {
                    let mut workers = Vec::new();
                    for _ in 0..connections {
                        workers.push(Life { connection: connect(&file(layout)).await?, layout, batch });
                    }
                    rates.push(race(workers, plan.seconds).await?.per_second);
                }
            }
            let cells = [batch.to_string(), connections.to_string()].into_iter();
            table.row(cells.chain(rates.iter().map(|rates| thousands(best(rates) as u64))).collect());
        }
    }
    table.print("## SQLite: whole lives of no-op runs per second (claim, start, finish)");
    drop(folder);
    super::sqlite_history::run(plan).await
}

/// Creates the tables, and timers that are all due.
pub(super) async fn prepare(connection: &mut SqliteConnection, layout: Layout, timers: u64) -> sqlx::Result<()> {
    connection.execute(AssertSqlSafe(layout.tables())).await?;
    let rows = (0..timers).fold(String::new(), |mut rows, n| {
        let comma = if n == 0 { "" } else { "," };
        let _infallible = write!(rows, "{comma}[{n},\"{}\",\"{}\"]", job(n).simple(), org(n));
        rows
    });
    let seed = "insert into seed select value->>0, unhex(value->>1), value->>2 from json_each(?1)";
    sqlx::query(seed).bind(format!("[{rows}]")).execute(&mut *connection).await?;
    let fill = "insert into timers select job_id, org_id, ?1 + n * 1000, null, null from seed";
    sqlx::query(fill).bind(EPOCH).execute(connection).await?;
    Ok(())
}

struct Life {
    connection: SqliteConnection,
    layout: Layout,
    batch: i64,
}

impl Life {
    async fn claim(&mut self) -> sqlx::Result<()> {
        let mut transaction = self.connection.begin_with("begin immediate").await?;
        let due = sqlx::query_as::<_, (Uuid, String, i64, bool)>(self.layout.due()).bind(NOW.0).bind(self.batch);
        let due = due.fetch_all(&mut *transaction).await?;
        let due: Vec<Due> =
            due.into_iter().map(|(job, org, at, _)| Due { job, org, at, place: String::new() }).collect();
        let rows = format!("[{}]", due.iter().map(claim_row).collect::<Vec<_>>().join(","));
        for sql in self.layout.claim() {
            sqlx::query(*sql).bind(NOW.0).bind(&rows).execute(&mut *transaction).await?;
        }
        transaction.commit().await
    }

    async fn start(&mut self) -> sqlx::Result<Vec<(Uuid, i32, Option<String>)>> {
        let targets = format!("[\"{}\"]", all_targets().join("\",\""));
        let mut transaction = self.connection.begin_with("begin immediate").await?;
        let started = sqlx::query_as(self.layout.start()).bind(NOW.0).bind(targets).bind(self.batch);
        let started = started.bind(Uuid::from_u128(1)).bind(NOW.0 + 30 * SECOND).fetch_all(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(started)
    }

    async fn finish(&mut self, started: Vec<(Uuid, i32, Option<String>)>) -> sqlx::Result<u64> {
        let row = |(id, attempt, _): &(Uuid, i32, _)| {
            let fails = id.as_u128().is_multiple_of(1000);
            let (status, failure) =
                if fails { (3, "\"http_status\",\"503 Service Unavailable\"") } else { (2, "null,null") };
            format!("[\"{}\",{attempt},{status},{failure}]", id.simple())
        };
        let rows = format!("[{}]", started.iter().map(row).collect::<Vec<_>>().join(","));
        let mut transaction = self.connection.begin_with("begin immediate").await?;
        let mut finished = 0;
        for sql in self.layout.finish() {
            finished = sqlx::query(*sql).bind(NOW.0).bind(&rows).execute(&mut *transaction).await?.rows_affected();
        }
        transaction.commit().await?;
        Ok(finished)
    }
}

fn claim_row(due: &Due) -> String {
    let payload = payload(due.job).map_or("null".to_owned(), |text| format!("\"{}\"", text.replace('"', "\\\"")));
    let (id, job, org, slot, next) = (run_id(due).simple(), due.job.simple(), &due.org, due.at, due.at + 60 * SECOND);
    format!("[\"{id}\",\"{job}\",\"{org}\",{slot},{next},\"{TRIGGER}\",\"{}\",{payload},false,0]", target(due.job))
}

impl Worker for Life {
    async fn life(&mut self) -> sqlx::Result<u64> {
        self.claim().await?;
        let started = self.start().await?;
        self.finish(started).await
    }
}
