//! Everything is due at once: how many whole lives of runs in a second, and what does each cost?

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use everbell::{EngineOptions, Everbell, State};
use everbell_core::store::Store;
use everbell_store::ConnectOptions;
use everbell_store::testing::execute;
use jiff::Timestamp;
use sqlx::{Connection, PgConnection};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::options::Options;
use super::{Fresh, Outcome};
use crate::cpu::{self, Meter};
use crate::measure::Stopwatch;
use crate::population::{self, Database, count};
use crate::store::rate::{Cost, median};
use crate::store::{plain, sqlite};
use crate::table::{Table, thousands};

/// The time at which every job is due, and the one at which plain SQL works: the next slot is later.
const DUE: &str = "2026-01-01T00:00:00Z";
const PLAIN_NOW: &str = "2026-06-15T00:00:00Z";
/// The batch of plain SQL, and on PostgreSQL its connections: where it is fastest.
const PLAIN_BATCH: u32 = 500;
const PLAIN_CONNECTIONS: usize = 2;

/// Everything due again, and no history.
const RESET: &str = "truncate everbell.runs, everbell.active_runs, everbell.outcomes;
    update everbell.timers t set next_run_at = timestamptz '2026-01-01T00:00:00Z', last_slot_at = j.created_at,
      last_run_at = null, last_run_id = null
    from everbell.jobs j where j.id = t.job_id and j.job_key <> 'template';
    analyze;";

/// Counts handlers down.
#[derive(Clone)]
struct Left(Arc<(AtomicU32, Notify)>);

async fn noop(State(left): State<Left>) {
    if left.0.0.fetch_sub(1, Ordering::Relaxed) == 1 {
        left.0.1.notify_one();
    }
}

/// The jobs of a drain, and the instances that drain them, each with a store of its own and the same number of handlers.
#[derive(Clone, Copy)]
pub(super) struct Drain<'a> {
    pub(super) jobs: u32,
    pub(super) concurrency: u32,
    pub(super) stores: &'a [Arc<dyn Store>],
}

/// The stores of instances. They know the definitions that they have read, like those of instances that have been up for a
/// while.
pub(super) async fn stores(database: &Fresh, instances: usize, options: &Options) -> Outcome<Vec<Arc<dyn Store>>> {
    let mut opening = ConnectOptions::default();
    opening.max_connections = options.connections;
    let mut stores = Vec::new();
    for _ in 0..instances {
        stores.push(everbell_store::connect_with(&database.url(), &opening).await?);
    }
    Ok(stores)
}

/// Lives in a second, and what one costs.
pub(super) struct Drained {
    pub(super) rate: f64,
    pub(super) cost: Cost,
}

pub(super) async fn measure(server: &str, options: &Options) -> Outcome<()> {
    let heading = ["database", "concurrency", "due jobs", "runs/s", "plain", "ratio", "µs/run", "plain", "load"];
    let mut table = Table::new(1, &heading);
    for jobs in options.drains() {
        for concurrency in options.concurrencies() {
            for (name, database) in super::wanted(server, options).await {
                let cells = rounds(&database, jobs, concurrency, options).await?;
                let size = vec![name.to_owned(), thousands(u64::from(concurrency)), thousands(u64::from(jobs))];
                table.row([size, cells, vec![cpu::load()]].concat());
            }
        }
    }
    table.print("Drain: no-op jobs that are all due; a life is claim, start and end, all recorded");
    println!(
        "\n`plain`: the same lives as plain SQL in batches of {PLAIN_BATCH}, by turns; `ratio`: the engine to plain SQL."
    );
    println!("`µs/run`: time on a processor, client + server, which tells more than the clock while others are busy.");
    println!("Medians of {} rounds after one to warm up. `load`: of the machine in the last minute.", options.rounds);
    Ok(())
}

/// The engine and plain SQL by turns, each first in every other round.
async fn rounds(database: &Fresh, jobs: u32, concurrency: u32, options: &Options) -> Outcome<Vec<String>> {
    fill(database, jobs).await?;
    let stores = stores(database, 1, options).await?;
    let turn = Drain { jobs, concurrency, stores: &stores };
    // To warm up.
    drain(database, turn).await?;
    let (mut engine, mut plain) = (Vec::new(), Vec::new());
    for round in 0..options.rounds {
        for half in 0..2 {
            if (round + half) % 2 == 0 {
                engine.push(drain(database, turn).await?);
            } else {
                plain.push(drain_plain(database, jobs).await?);
            }
        }
    }
    let rate = |all: &[Drained]| thousands(median(all.iter().map(|one| one.rate)).round() as u64);
    let ratio = median(engine.iter().zip(&plain).map(|(engine, plain)| engine.rate / plain.rate));
    let cost = |all: &[Drained]| Cost::median(all.iter().map(|one| one.cost));
    let ratio = format!("{ratio:.2}");
    Ok(vec![rate(&engine), rate(&plain), ratio, cost(&engine), cost(&plain)])
}

/// Creates the jobs.
pub(super) async fn fill(database: &Fresh, jobs: u32) -> Outcome<()> {
    let store = everbell_store::connect(&database.url()).await?;
    population::template(&*store, "2025-06-01T00:00:00Z".parse()?).await?;
    population::copies(database.place(), jobs, DUE.parse()?).await?;
    // An instance would find that it has no next fire, and give it one.
    let retire = match database.place() {
        Database::Postgres(_) => "update everbell.jobs set status = 'retired' where job_key = 'template'",
        Database::Sqlite(_) => "update everbell_jobs set status = 'retired' where job_key = 'template'",
    };
    execute(&database.url(), retire).await;
    Ok(())
}

async fn reset(database: &Fresh) -> Outcome<()> {
    match database.place() {
        Database::Postgres(url) => {
            sqlx::raw_sql(RESET).execute(&mut PgConnection::connect(url).await?).await?;
        }
        Database::Sqlite(path) => sqlite::reset(path, DUE.parse()?).await?,
    }
    Ok(())
}

async fn meter(database: &Fresh) -> Outcome<Meter> {
    Ok(match database.place() {
        Database::Postgres(url) => Meter::WithBackends(PgConnection::connect(url).await?),
        Database::Sqlite(_) => Meter::Client,
    })
}

pub(super) async fn drain(database: &Fresh, plan: Drain<'_>) -> Outcome<Drained> {
    let Drain { jobs, concurrency, stores } = plan;
    reset(database).await?;
    let left = Left(Arc::new((AtomicU32::new(jobs), Notify::new())));
    let mut bells = Vec::new();
    for store in stores {
        let builder = Everbell::builder().store(Arc::clone(store)).state(left.clone()).target("noop", noop);
        bells.push(builder.options(EngineOptions::default().concurrency(concurrency)).build().await?);
    }
    let mut meter = meter(database).await?;
    let (began, watch) = (meter.read().await?, Stopwatch::start());
    let (end, ended) = tokio::sync::watch::channel(());
    let mut running = JoinSet::new();
    for bell in bells {
        let mut ended = ended.clone();
        running.spawn(async move { bell.run_until(async move { drop(ended.changed().await) }).await });
    }
    tokio::select! {
        () = left.0.1.notified() => {}
        Some(ended) = running.join_next() => {
            ended??;
            return Err("an instance ended too early".into());
        }
    }
    // Every handler was called; what is left is to record the last of them.
    while count(database.place(), "select count(*) from everbell.active_runs").await? > 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let (seconds, spent) = (watch.seconds(), meter.read().await? - began);
    drop(end);
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    let recorded = count(database.place(), "select count(*) from everbell.outcomes").await?;
    assert_eq!(recorded, i64::from(jobs), "every run lives once");
    Ok(Drained { rate: f64::from(jobs) / seconds, cost: Cost::new(spent, jobs) })
}

async fn drain_plain(database: &Fresh, jobs: u32) -> Outcome<Drained> {
    reset(database).await?;
    let (now, mut meter): (Timestamp, Meter) = (PLAIN_NOW.parse()?, meter(database).await?);
    let rate = match database.place() {
        Database::Postgres(url) => plain::lives(url, PLAIN_BATCH, PLAIN_CONNECTIONS, jobs, now, &mut meter).await?,
        Database::Sqlite(path) => sqlite::lives(path, PLAIN_BATCH, jobs, now, &mut meter).await?,
    };
    Ok(Drained { rate: rate.lives, cost: rate.life })
}
