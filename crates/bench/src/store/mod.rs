//! The verbs of the stores beside the same writes as plain SQL, on the same server in the same run.
#![allow(clippy::cast_precision_loss, reason = "counts of runs are far below 2^52")]

mod plain;
mod sqlite;
mod verbs;
mod wanted;

use std::sync::Arc;
use std::time::Duration;

use everbell_core::store::Store;
use everbell_store::postgres::PostgresStore;
use everbell_store::sqlite::SqliteStore;
use everbell_store::testing::{Durability, TestDatabase, postgres_url_with};
use sqlx::{Connection, PgConnection};

use self::wanted::{Case, Wanted};
use crate::cpu;
use crate::population::{self, Place};
use crate::table::{Table, thousands};

/// Claims and whole lives in a second, and microseconds of processors for each life, client and server together.
#[derive(Clone, Copy, Debug)]
struct Rate {
    claims: f64,
    lives: f64,
    cpu: f64,
}

impl Rate {
    fn with_cpu(self, spent: Duration, runs: u32) -> Rate {
        Rate { cpu: spent.as_secs_f64() * 1e6 / f64::from(runs), ..self }
    }
}

/// Measures and prints what is wanted.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let wanted = Wanted::read(arguments)?;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on(measure(&wanted)).map_err(|error| error.to_string())
}

async fn measure(wanted: &Wanted) -> Result<(), Box<dyn std::error::Error>> {
    let heading = [
        "batch",
        "connections",
        "claims/s",
        "plain",
        "ratio",
        "lives/s",
        "plain",
        "ratio",
        "µs/life",
        "plain",
        "start merged",
    ];
    if wanted.postgres {
        let server = postgres_url_with(Durability::Durable);
        let mut table = Table::new(0, &heading);
        for case in wanted.cases() {
            table.row(postgres(&server, &case, wanted.rounds).await?.cells(&case));
        }
        table.print("PostgreSQL: a claim is a timer planned and its run inserted; a life is claim, start and end");
    }
    if wanted.sqlite {
        let mut table = Table::new(0, &heading[..10]);
        // SQLite has one writer, so more connections would only wait for each other.
        for case in wanted.cases().filter(|case| case.connections == 1) {
            table.row(sqlite(&case, wanted.rounds).await?.cells(&case));
        }
        table.print("SQLite, synchronous=FULL");
    }
    println!("\n`ratio`: the store to plain SQL; 1.00 would be no cost at all.");
    println!("`µs/life`: time on a processor, client and server; it tells more than the clock while others are busy.");
    println!("`start merged`: lives/s of plain SQL if the claim inserted runs as running, without a start of its own.");
    println!("Each is the best of {} rounds, in turns.", wanted.rounds);
    Ok(())
}

/// The store, plain SQL, and plain SQL without a start.
struct Rates {
    store: Rate,
    plain: Rate,
    merged: Option<Rate>,
}

impl Rates {
    fn cells(&self, case: &Case) -> Vec<String> {
        let number = |rate: f64| thousands(rate.round() as u64);
        let mut cells = vec![
            case.batch.to_string(),
            case.connections.to_string(),
            number(self.store.claims),
            number(self.plain.claims),
            format!("{:.2}", self.store.claims / self.plain.claims),
            number(self.store.lives),
            number(self.plain.lives),
            format!("{:.2}", self.store.lives / self.plain.lives),
            format!("{:.0}", self.store.cpu),
            format!("{:.0}", self.plain.cpu),
        ];
        cells.extend(self.merged.map(|merged| number(merged.lives)));
        cells
    }
}

/// A fresh database each round, all in turns, the best of the rounds.
async fn postgres(server: &str, case: &Case, rounds: u32) -> Result<Rates, Box<dyn std::error::Error>> {
    let &Case { batch, connections, runs } = case;
    let (mut store_best, mut plain_best, mut merged_best) = (ZERO, ZERO, ZERO);
    for round in 0..rounds {
        let database = TestDatabase::create_on(server).await;
        let store: Arc<dyn Store> = Arc::new(PostgresStore::connect(database.url()).await?);
        let mut connection = PgConnection::connect(database.url()).await?;
        population::template(&*store, CREATED_AT.parse()?).await?;
        population::copies(Place::Postgres(database.url()), runs, verbs::SLOT.parse()?).await?;
        // An instance reads each definition once in its life; what is measured is the rest of it.
        verbs::lives(&store, batch.max(100), connections, runs).await?;
        // In another order each time: whoever comes first finds a server that was just busy with something else.
        for turn in 0..3 {
            sqlx::raw_sql(RESET).execute(&mut connection).await?;
            match (round + turn) % 3 {
                0 => {
                    let before = cpu::with_backends(&mut connection).await?;
                    let rate = verbs::lives(&store, batch, connections, runs).await?;
                    let spent = cpu::with_backends(&mut connection).await?.saturating_sub(before);
                    store_best = better(store_best, rate.with_cpu(spent, runs));
                }
                1 => plain_best = better(plain_best, plain::lives(database.url(), batch, connections, runs).await?),
                _ => {
                    merged_best =
                        better(merged_best, plain::merged_lives(database.url(), batch, connections, runs).await?);
                }
            }
        }
    }
    Ok(Rates { store: store_best, plain: plain_best, merged: Some(merged_best) })
}

async fn sqlite(case: &Case, rounds: u32) -> Result<Rates, Box<dyn std::error::Error>> {
    let &Case { batch, runs, .. } = case;
    let (mut store_best, mut plain_best) = (ZERO, ZERO);
    for round in 0..rounds {
        let folder = std::env::temp_dir().join(format!("everbell-bench-{}-{batch}-{round}", std::process::id()));
        let path = folder.join("bench.db");
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&path).await?);
        population::template(&*store, CREATED_AT.parse()?).await?;
        population::copies(Place::Sqlite(&path), runs, verbs::SLOT.parse()?).await?;
        verbs::lives(&store, batch.max(100), 1, runs).await?;
        sqlite::reset(&path).await?;
        let before = cpu::own();
        let rate = verbs::lives(&store, batch, 1, runs).await?;
        store_best = better(store_best, rate.with_cpu(cpu::own().saturating_sub(before), runs));
        drop(store);
        sqlite::reset(&path).await?;
        let before = cpu::own();
        let rate = sqlite::lives(&path, batch, runs).await?;
        plain_best = better(plain_best, rate.with_cpu(cpu::own().saturating_sub(before), runs));
        std::fs::remove_dir_all(&folder)?;
    }
    Ok(Rates { store: store_best, plain: plain_best, merged: None })
}

const ZERO: Rate = Rate { claims: 0.0, lives: 0.0, cpu: f64::INFINITY };

fn better(a: Rate, b: Rate) -> Rate {
    Rate { claims: a.claims.max(b.claims), lives: a.lives.max(b.lives), cpu: a.cpu.min(b.cpu) }
}

/// When the jobs were made: since then one slot was due.
const CREATED_AT: &str = "2026-06-01T00:00:00Z";

/// Everything due again, and no history.
const RESET: &str = "truncate runs, active_runs, outcomes;
    update timers t set next_run_at = timestamptz '2027-01-01T00:00:00Z', last_slot_at = j.created_at
    from jobs j where j.id = t.job_id and j.job_key <> 'template';
    analyze;";
