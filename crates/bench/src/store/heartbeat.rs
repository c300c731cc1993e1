//! A heartbeat costs the same however many runs the instance holds.

use std::sync::Arc;

use everbell_core::store::{Instance, StartRuns, Store, TargetRoom};
use everbell_core::{InstanceId, Target};
use everbell_store::postgres::PostgresStore;
use everbell_store::sqlite::SqliteStore;
use everbell_store::testing::{Durability, postgres_url_with};
use jiff::SignedDuration;

use super::{CREATED_AT, SLOT, verbs};

use crate::measure::Stopwatch;
use crate::population::{self, Database, Fresh};
use crate::table::{Table, thousands};

/// The runs that are held in the second measurement.
const HELD_RUNS: u32 = 10_000;
/// Heartbeats in each measurement, of which the median counts.
const BEATS: usize = 301;

/// Measures and prints.
pub(crate) fn run() -> Result<(), String> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on(measure()).map_err(|error| error.to_string())
}

async fn measure() -> Result<(), Box<dyn std::error::Error>> {
    let server = postgres_url_with(Durability::Durable);
    let mut table = Table::new(1, &["database", "with 1, µs", "with 10,000, µs", "ratio", "held runs, µs"]);
    for (name, database) in Fresh::both(&server).await {
        let store: Arc<dyn Store> = match database.place() {
            Database::Postgres(url) => Arc::new(PostgresStore::connect(url).await?),
            Database::Sqlite(path) => Arc::new(SqliteStore::open(path).await?),
        };
        population::template(&*store, CREATED_AT.parse()?).await?;
        population::copies(database.place(), HELD_RUNS, SLOT.parse()?).await?;
        verbs::claim(Arc::clone(&store), 500).await?;
        hold(&*store, 1).await?;
        let with_one = beats(&*store).await?;
        hold(&*store, HELD_RUNS - 1).await?;
        let with_many = beats(&*store).await?;
        let compared = Stopwatch::start();
        assert_eq!(store.held_runs(instance().id).await?.len(), HELD_RUNS as usize, "all of them are held");
        let compared = compared.seconds() * 1e6;
        let micros = |micros: f64| thousands(micros.round() as u64);
        let ratio = format!("{:.2}", with_many / with_one);
        table.row(vec![name.to_owned(), micros(with_one), micros(with_many), ratio, micros(compared)]);
    }
    table.print("A heartbeat of an instance that holds 1 run and 10,000, and the list of the runs that it holds");
    println!(
        "\nMedians of {BEATS} heartbeats; an instance asks for the list once a minute, or if runs were taken from it."
    );
    Ok(())
}

fn instance() -> Instance {
    let id = InstanceId::new(verbs::now(), [3; 10]);
    Instance::new(id, "bench".to_owned(), std::process::id(), String::new(), verbs::now())
}

/// Starts this many runs, which stay in flight.
async fn hold(store: &dyn Store, runs: u32) -> Result<(), Box<dyn std::error::Error>> {
    let mut left = runs;
    while left > 0 {
        let limit = left.min(500);
        let targets = [TargetRoom { target: Target::new("noop")?, room: limit, backfills: true }];
        let (now, lease_until) = (verbs::now(), verbs::now() + verbs::LEASE);
        let request = StartRuns { instance: instance().id, targets: &targets, limit, now, lease_until };
        let started = store.start_runs(&request).await?.len() as u32;
        if started == 0 {
            return Err(format!("{left} of {runs} runs could not start").into());
        }
        left -= started;
    }
    Ok(())
}

/// The median time of a heartbeat, in microseconds.
async fn beats(store: &dyn Store) -> Result<f64, Box<dyn std::error::Error>> {
    let mut times = Vec::with_capacity(BEATS);
    for number in 0..BEATS {
        let heartbeat_at = verbs::now() + SignedDuration::from_secs(number as i64);
        let beat = everbell_core::with!(Instance { heartbeat_at, ..instance() });
        let started = Stopwatch::start();
        store.heartbeat(&beat, Some(heartbeat_at + verbs::LEASE), false).await?;
        times.push(started.seconds() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[BEATS / 2])
}
