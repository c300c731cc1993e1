//! The queries of the web UI's pages, with many jobs and a long history.

mod fill;
mod queries;
mod served;

use std::sync::Arc;

use everbell_core::store::Store;
use everbell_store::testing::{Durability, postgres_url_with};
use jiff::Timestamp;

use crate::engine::Outcome;
use crate::population::Fresh;
use crate::population::{self, Database};
use crate::table::{Table, thousands};

/// How much there is, and when its history ends.
#[derive(Clone, Copy)]
struct Amount {
    jobs: u32,
    runs: u32,
    days: u32,
    end: Timestamp,
}

const FULL: Amount = Amount { jobs: 10_000, runs: 1_000_000, days: 180, end: fill::END };
const QUICK: Amount = Amount { jobs: 1_000, runs: 50_000, ..FULL };
/// Everything within a day: what the counts cost then.
const CROWDED: Amount = Amount { days: 1, ..FULL };

/// Measures and prints everything; `--quick` with less of it, `--crowded` with all runs in one day, `--served` the pages
/// themselves.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().map_err(|error| error.to_string())?;
    let amount = match arguments {
        [] => FULL,
        ["--quick"] => QUICK,
        ["--crowded"] => CROWDED,
        ["--served"] => return served::run(&runtime).map_err(|error| error.to_string()),
        _ => return Err("only --quick, --crowded or --served; see --help".to_owned()),
    };
    let server = postgres_url_with(Durability::Durable);
    runtime.block_on(measure(amount, &server)).map_err(|error| error.to_string())
}

async fn measure(amount: Amount, server: &str) -> Outcome<()> {
    let mut columns = Vec::new();
    for (_, database) in Fresh::both(server).await {
        let store = everbell_store::connect(&database.url()).await?;
        populate(&*store, database.place(), amount).await?;
        columns.push(asked(&store, amount).await?);
    }
    let mut table = Table::new(1, &["query", "rows", "PostgreSQL ms", "p95", "SQLite ms", "p95"]);
    let (postgres, sqlite) = (&columns[0], &columns[1]);
    for (one, other) in postgres.iter().zip(sqlite) {
        let time = |millis: f64| format!("{millis:.1}");
        table.row(vec![
            one.query.to_owned(),
            one.rows.to_string(),
            time(one.median),
            time(one.p95),
            time(other.median),
            time(other.p95),
        ]);
    }
    let Amount { jobs, runs, days, .. } = amount;
    table.print(&format!(
        "What pages ask: {} jobs, {} runs in {days} days, {} of them of each of {} jobs",
        thousands(u64::from(jobs)),
        thousands(u64::from(runs)),
        thousands(u64::from(runs / 10)),
        fill::BUSY
    ));
    println!("\nEach is asked {} times, after once to warm up.", queries::TIMES);
    Ok(())
}

/// Jobs and their history.
async fn populate(store: &dyn Store, place: Database<'_>, amount: Amount) -> Outcome<()> {
    population::template(store, fill::begin(amount)).await?;
    population::copies(place, amount.jobs, amount.end).await?;
    fill::history(place, amount).await
}

async fn asked(store: &Arc<dyn Store>, amount: Amount) -> Outcome<Vec<queries::TimedQuery>> {
    let mut answers = queries::about_jobs(&**store).await?;
    answers.extend(queries::about_runs(&**store).await?);
    answers.extend(queries::in_small(&**store, amount).await?);
    Ok(answers)
}
