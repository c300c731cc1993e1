//! The verbs of the stores beside the same writes as plain SQL, on the same server in the same run.
#![allow(clippy::cast_precision_loss, reason = "counts of runs are far below 2^52")]

mod plain;
mod sqlite;
mod verbs;

use std::sync::Arc;

use everbell_core::store::Store;
use everbell_store::postgres::PostgresStore;
use everbell_store::sqlite::SqliteStore;
use everbell_store::testing::{Durability, TestDatabase, postgres_url_with};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::table::{Table, thousands};

/// Claims and whole lives in a second.
#[derive(Clone, Copy, Debug)]
struct Rate {
    claims: f64,
    lives: f64,
}

/// Batch size, connections, and how many runs are enough to tell.
const CASES: [(u32, usize, u32); 12] = [
    (1, 1, 1_000),
    (1, 2, 1_000),
    (1, 4, 1_000),
    (10, 1, 5_000),
    (10, 2, 5_000),
    (10, 4, 5_000),
    (100, 1, 20_000),
    (100, 2, 20_000),
    (100, 4, 20_000),
    (500, 1, 20_000),
    (500, 2, 20_000),
    (500, 4, 20_000),
];

/// Measures and prints everything.
pub(crate) fn run() -> Result<(), String> {
    let server = postgres_url_with(Durability::Durable);
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on(measure(&server)).map_err(|error| error.to_string())
}

async fn measure(server: &str) -> Result<(), Box<dyn std::error::Error>> {
    let heading = ["batch", "connections", "claims/s", "plain", "ratio", "lives/s", "plain", "ratio"];
    let mut table = Table::new(0, &heading);
    for (batch, connections, runs) in CASES {
        let (store, plain) = postgres(server, batch, connections, runs).await?;
        table.row(cells(batch, connections, store, plain));
    }
    table.print("PostgreSQL: a claim is a timer planned and its run inserted; a life is claim, start and end");
    let mut table = Table::new(0, &heading);
    // SQLite has one writer, so more connections would only wait for each other.
    for (batch, connections, runs) in CASES.into_iter().filter(|case| case.1 == 1) {
        let (store, plain) = sqlite(batch, runs).await?;
        table.row(cells(batch, connections, store, plain));
    }
    table.print("SQLite, synchronous=FULL");
    println!(
        "\n`ratio`: the store to plain SQL; 1.00 would be no cost at all. Each is the better of two rounds, in turns."
    );
    Ok(())
}

/// A fresh database each, the two in turns, the better of two rounds.
async fn postgres(
    server: &str,
    batch: u32,
    connections: usize,
    runs: u32,
) -> Result<(Rate, Rate), Box<dyn std::error::Error>> {
    let (mut store_best, mut plain_best) = (ZERO, ZERO);
    for _ in 0..2 {
        let database = TestDatabase::create_on(server).await;
        let store: Arc<dyn Store> = Arc::new(PostgresStore::connect(database.url()).await?);
        let mut connection = PgConnection::connect(database.url()).await?;
        verbs::template(&*store).await?;
        sqlx::raw_sql(AssertSqlSafe(copies(runs))).execute(&mut connection).await?;
        // An instance reads each definition once in its life; what is measured is the rest of it.
        verbs::lives(&store, batch.max(100), connections, runs).await?;
        sqlx::raw_sql(RESET).execute(&mut connection).await?;
        store_best = better(store_best, verbs::lives(&store, batch, connections, runs).await?);
        sqlx::raw_sql(RESET).execute(&mut connection).await?;
        plain_best = better(plain_best, plain::lives(database.url(), batch, connections, runs).await?);
    }
    Ok((store_best, plain_best))
}

async fn sqlite(batch: u32, runs: u32) -> Result<(Rate, Rate), Box<dyn std::error::Error>> {
    let (mut store_best, mut plain_best) = (ZERO, ZERO);
    for round in 0..2 {
        let folder = std::env::temp_dir().join(format!("everbell-bench-{}-{batch}-{round}", std::process::id()));
        let path = folder.join("bench.db");
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&path).await?);
        verbs::template(&*store).await?;
        sqlite::copies(&path, runs).await?;
        verbs::lives(&store, batch.max(100), 1, runs).await?;
        sqlite::reset(&path).await?;
        store_best = better(store_best, verbs::lives(&store, batch, 1, runs).await?);
        drop(store);
        sqlite::reset(&path).await?;
        plain_best = better(plain_best, sqlite::lives(&path, batch, runs).await?);
        std::fs::remove_dir_all(&folder)?;
    }
    Ok((store_best, plain_best))
}

const ZERO: Rate = Rate { claims: 0.0, lives: 0.0 };

fn better(a: Rate, b: Rate) -> Rate {
    Rate { claims: a.claims.max(b.claims), lives: a.lives.max(b.lives) }
}

/// As many jobs like the template as are wanted, all due at once.
fn copies(runs: u32) -> String {
    format!(
        "insert into jobs
         select (jsonb_populate_record(j, jsonb_build_object('id', gen_random_uuid(), 'job_key', 'copy-' || n))).*
         from jobs j, generate_series(1, {runs}) n where j.job_key = 'template';
         update timers set next_run_at = null;
         insert into timers (job_id, target, next_run_at, last_slot_at)
         select j.id, j.target, timestamptz '{}', j.created_at from jobs j where j.job_key <> 'template';
         analyze;",
        verbs::SLOT
    )
}

/// Everything due again, and no history.
const RESET: &str = "truncate runs, active_runs, outcomes;
    update timers t set next_run_at = timestamptz '2027-01-01T00:00:00Z', last_slot_at = j.created_at
    from jobs j where j.id = t.job_id and j.job_key <> 'template';
    analyze;";

fn cells(batch: u32, connections: usize, store: Rate, plain: Rate) -> Vec<String> {
    let number = |rate: f64| thousands(rate.round() as u64);
    vec![
        batch.to_string(),
        connections.to_string(),
        number(store.claims),
        number(plain.claims),
        format!("{:.2}", store.claims / plain.claims),
        number(store.lives),
        number(plain.lives),
        format!("{:.2}", store.lives / plain.lives),
    ]
}
