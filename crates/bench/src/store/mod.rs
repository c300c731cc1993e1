//! The verbs of the stores beside plain SQL, on the same server in the same run.
//!
//! Plain SQL does what no scheduler can leave out: it reads the state of due timers and the runs that are active, computes
//! the next times, writes each run and each timer with values of its own, hands out the started runs with what they need,
//! knows how many outcomes were still wanted, and ends failures in a row. It has no answer to anything unusual: no other
//! policy, no broken row, no lost connection, no wake-up.
#![allow(clippy::cast_precision_loss, reason = "counts of runs are far below 2^52")]

pub(crate) mod heartbeat;
mod options;
pub(crate) mod plain;
pub(crate) mod rate;
pub(crate) mod sqlite;
mod verbs;
pub(crate) mod waiting;

use std::sync::Arc;

use everbell_core::cron::Expression;
use everbell_core::store::Store;
use everbell_core::{JobId, RunId, Spec, Zone};
use everbell_store::postgres::PostgresStore;
use everbell_store::sqlite::SqliteStore;
use everbell_store::testing::{Durability, TestDatabase, postgres_url_with};
use jiff::Timestamp;
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use self::options::{Case, Options};
use self::rate::{HEADING, Rates};
use crate::cpu::Meter;
use crate::population::{self, Database};
use crate::table::Table;

/// Measures and prints what is wanted.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let wanted = Options::read(arguments)?;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on(measure(&wanted)).map_err(|error| error.to_string())
}

async fn measure(wanted: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let heading = [&["batch", "connections"], &HEADING[..]].concat();
    let row = |case: &Case, rates: &Rates| {
        [vec![case.batch.to_string(), case.connections.to_string()], rates.cells()].concat()
    };
    if wanted.postgres {
        let server = postgres_url_with(Durability::Durable);
        let mut table = Table::new(0, &heading);
        for case in wanted.cases() {
            table.row(row(&case, &postgres(&server, &case, wanted.rounds).await?));
        }
        table.print("PostgreSQL: a claim is a timer planned and its run inserted; a life is claim, start and end");
    }
    // SQLite has one writer, so more connections would only wait for each other.
    let cases: Vec<Case> = wanted.cases().filter(|case| wanted.sqlite && case.connections == 1).collect();
    if !cases.is_empty() {
        let mut table = Table::new(0, &heading);
        for case in cases {
            table.row(row(&case, &sqlite(&case, wanted.rounds).await?));
        }
        table.print("SQLite, synchronous=FULL");
    }
    println!("\n`ratio`: the store to plain SQL; 1.00 would be no cost at all.");
    println!("`µs`: time on a processor, client + server; it tells more than the clock while others are busy.");
    println!("Medians of {} rounds, in turns.", wanted.rounds);
    Ok(())
}

/// A fresh database each round, both in turns.
async fn postgres(server: &str, case: &Case, rounds: u32) -> Result<Rates, Box<dyn std::error::Error>> {
    let &Case { batch, connections, runs } = case;
    let mut rates = Rates::default();
    for round in 0..rounds {
        let database = TestDatabase::empty_on(server).await;
        let store: Arc<dyn Store> = Arc::new(PostgresStore::connect(database.url()).await?);
        let mut connection = PgConnection::connect(database.url()).await?;
        let mut meter = Meter::WithBackends(PgConnection::connect(database.url()).await?);
        population::template(&*store, CREATED_AT.parse()?).await?;
        population::copies(Database::Postgres(database.url()), runs, SLOT.parse()?).await?;
        // An instance reads each definition once in its life; what is measured is the rest of it.
        verbs::lives(&store, batch.max(100), connections, runs, &mut meter).await?;
        // In another order each time: the first one finds a server that was just busy with something else.
        for turn in 0..2 {
            sqlx::raw_sql(RESET).execute(&mut connection).await?;
            if (round + turn) % 2 == 0 {
                rates.store.push(verbs::lives(&store, batch, connections, runs, &mut meter).await?);
            } else {
                rates
                    .plain
                    .push(plain::lives(database.url(), batch, connections, runs, verbs::now(), &mut meter).await?);
            }
        }
    }
    Ok(rates)
}

async fn sqlite(case: &Case, rounds: u32) -> Result<Rates, Box<dyn std::error::Error>> {
    let &Case { batch, runs, .. } = case;
    let mut rates = Rates::default();
    for round in 0..rounds {
        let folder = std::env::temp_dir().join(format!("everbell-bench-{}-{batch}-{round}", std::process::id()));
        let path = folder.join("bench.db");
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&path).await?);
        population::template(&*store, CREATED_AT.parse()?).await?;
        population::copies(Database::Sqlite(&path), runs, SLOT.parse()?).await?;
        verbs::lives(&store, batch.max(100), 1, runs, &mut Meter::Client).await?;
        for turn in 0..2 {
            sqlite::reset(&path, SLOT.parse()?).await?;
            if (round + turn) % 2 == 0 {
                rates.store.push(verbs::lives(&store, batch, 1, runs, &mut Meter::Client).await?);
            } else {
                rates.plain.push(sqlite::lives(&path, batch, runs, verbs::now(), &mut Meter::Client).await?);
            }
        }
        drop(store);
        std::fs::remove_dir_all(&folder)?;
    }
    Ok(rates)
}

/// When the jobs were created: since then one slot was due.
const CREATED_AT: &str = "2026-06-01T00:00:00Z";
/// The one slot that is due.
const SLOT: &str = "2027-01-01T00:00:00Z";

/// Everything due again, and no history.
const RESET: &str = "truncate everbell.runs, everbell.active_runs, everbell.outcomes;
    update everbell.timers t set next_run_at = timestamptz '2027-01-01T00:00:00Z', last_slot_at = j.created_at
    from everbell.jobs j where j.id = t.job_id and j.job_key <> 'template';
    analyze;";

/// The part of the schedule that plain SQL needs: all jobs have the same one.
#[derive(Clone, Debug)]
struct Schedule {
    spec: Spec,
    trigger: String,
    /// The time at which everything happens.
    now: Timestamp,
}

impl Schedule {
    fn new(now: Timestamp) -> Result<Schedule, Box<dyn std::error::Error>> {
        let expression: Expression = "0 0 1 1 *".parse()?;
        let trigger = format!("schedule:{expression}");
        Ok(Schedule { spec: Spec::recurring(expression, Zone::utc(), CREATED_AT.parse()?), trigger, now })
    }

    /// The slot and the one after it, in microseconds, and the run's id.
    fn fire(&self, job: Uuid, slot: i64) -> (i64, Option<i64>, Uuid) {
        let at = Timestamp::from_microsecond(slot).unwrap_or(Timestamp::UNIX_EPOCH);
        let next = self.spec.next_after(at).map(Timestamp::as_microsecond);
        (slot, next, RunId::for_slot(JobId::from_uuid(job), None, at).as_uuid())
    }
}
