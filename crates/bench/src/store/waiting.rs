//! A claim and a plan cost the same however many runs or timers wait that cannot start now.

mod fill;

use std::sync::Arc;

use everbell_core::store::Store;
use everbell_store::postgres::PostgresStore;
use everbell_store::sqlite::SqliteStore;
use everbell_store::testing::{Durability, postgres_url_with};

use self::fill::{KINDS, Kind};
use super::{CREATED_AT, SLOT, verbs};
use crate::cpu;

use crate::measure::Stopwatch;
use crate::population::{self, Database, Fresh};
use crate::table::{Table, thousands};

/// How many wait, in databases that are measured by turns.
const WAITING: [u32; 3] = [0, 1_000, 100_000];
/// The runs of each plan and claim, which are due later than everything that waits.
const BATCH: u32 = 50;
/// Turns of each measurement, of which the median counts. The first ones find cold caches.
const TURNS: usize = 41;
const WARM_UP: usize = 5;

/// Measures and prints.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let wanted = |name: &str| match arguments {
        [] => Ok(true),
        ["--postgres"] => Ok(name == "PostgreSQL"),
        ["--sqlite"] => Ok(name == "SQLite"),
        _ => Err(format!("`{}` is not known; see --help", arguments.join(" "))),
    };
    let names = ["PostgreSQL", "SQLite"].into_iter().filter_map(|name| match wanted(name) {
        Ok(true) => Some(Ok(name)),
        Ok(false) => None,
        Err(reason) => Some(Err(reason)),
    });
    let names: Vec<&str> = names.collect::<Result<_, _>>()?;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on(measure(&names)).map_err(|error| error.to_string())
}

async fn measure(names: &[&str]) -> Result<(), Box<dyn std::error::Error>> {
    let server = postgres_url_with(Durability::Durable);
    for name in names {
        let heading = ["what waits", "claim, µs", "1,000", "100,000", "plan, µs", "1,000", "100,000", "load"];
        let mut table = Table::new(1, &heading);
        for kind in KINDS {
            let mut databases = Vec::new();
            for waiting in WAITING {
                databases.push(Prepared::new(&server, name, kind, waiting).await?);
            }
            for _ in 0..TURNS {
                for database in &mut databases {
                    database.turn().await?;
                }
            }
            table.row(row(kind, &databases));
        }
        table.print(&format!("{name}: claims and plans of {BATCH} runs, by how many others wait"));
    }
    println!("\n`claim` and `plan`: with nothing that waits; beside them, how many times that with 1,000 and 100,000.");
    println!("Medians of {} turns. `load`: of the machine, in the last minute.", TURNS - WARM_UP);
    Ok(())
}

/// A database in which something waits, and what turns in it have taken, in microseconds.
struct Prepared {
    /// Deleted when it is dropped.
    _database: Fresh,
    store: Arc<dyn Store>,
    claims: Vec<f64>,
    plans: Vec<f64>,
}

impl Prepared {
    async fn new(server: &str, name: &str, kind: Kind, waiting: u32) -> Result<Prepared, Box<dyn std::error::Error>> {
        let [postgres, sqlite] = Fresh::both(server).await;
        let (_, database) = if name == postgres.0 { postgres } else { sqlite };
        let store: Arc<dyn Store> = match database.place() {
            Database::Postgres(url) => Arc::new(PostgresStore::connect(url).await?),
            Database::Sqlite(path) => Arc::new(SqliteStore::open(path).await?),
        };
        population::template(&*store, CREATED_AT.parse()?).await?;
        population::copies(database.place(), BATCH * TURNS as u32, SLOT.parse()?).await?;
        fill::fill(database.place(), kind, waiting, SLOT.parse()?).await?;
        Ok(Prepared { _database: database, store, claims: Vec::new(), plans: Vec::new() })
    }

    /// Plans, starts and ends a batch.
    async fn turn(&mut self) -> Result<(), Box<dyn std::error::Error>> {
        let begun = Stopwatch::start();
        let planned = verbs::plan(&*self.store, BATCH).await?;
        self.plans.push(begun.seconds() * 1e6);
        assert_eq!(planned.runs.len(), BATCH as usize, "nothing that waits is planned instead");
        let begun = Stopwatch::start();
        let claims = verbs::start(&*self.store, BATCH).await?;
        self.claims.push(begun.seconds() * 1e6);
        assert!(claims.iter().all(|claim| claim.run.attempt == 1), "nothing that waits starts instead");
        assert_eq!(verbs::end(&*self.store, &claims).await?, BATCH, "every run lives once");
        Ok(())
    }
}

fn row(kind: Kind, databases: &[Prepared]) -> Vec<String> {
    let figures = |times: fn(&Prepared) -> &[f64]| {
        let medians: Vec<f64> = databases.iter().map(|database| median(&times(database)[WARM_UP..])).collect();
        let ratios = medians[1..].iter().map(|many| format!("{:.2}", many / medians[0])).collect::<Vec<_>>();
        [vec![thousands(medians[0].round() as u64)], ratios].concat()
    };
    [vec![kind.name().to_owned()], figures(|one| &one.claims), figures(|one| &one.plans), vec![cpu::load()]].concat()
}

fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
