//! What the pages of the web UI ask the stores, with many jobs and a long history.

mod fill;
mod questions;

use std::sync::Arc;

use everbell_core::store::Store;
use everbell_store::testing::{Durability, postgres_url_with};

use crate::engine::{Fresh, Outcome};
use crate::population;
use crate::table::{Table, thousands};

/// How much there is. A tenth of the runs are of one job.
#[derive(Clone, Copy)]
struct Amount {
    jobs: u32,
    runs: u32,
    days: u32,
}

const FULL: Amount = Amount { jobs: 10_000, runs: 1_000_000, days: 180 };
const QUICK: Amount = Amount { jobs: 1_000, runs: 50_000, days: 180 };
/// Everything within a day: what the counts cost then.
const CROWDED: Amount = Amount { days: 1, ..FULL };

/// Measures and prints everything; `--quick` with less of it, `--crowded` with all runs in one day.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let amount = match arguments {
        [] => FULL,
        ["--quick"] => QUICK,
        ["--crowded"] => CROWDED,
        _ => return Err("only --quick or --crowded; see --help".to_owned()),
    };
    let server = postgres_url_with(Durability::Durable);
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on(measure(amount, &server)).map_err(|error| error.to_string())
}

async fn measure(amount: Amount, server: &str) -> Outcome<()> {
    let mut columns = Vec::new();
    for (_, database) in Fresh::both(server).await {
        let store = everbell_store::connect(&database.url()).await?;
        population::template(&*store, fill::begin(amount)).await?;
        population::copies(database.place(), amount.jobs, fill::END.parse()?).await?;
        fill::history(database.place(), amount).await?;
        columns.push(asked(&store, amount).await?);
    }
    let mut table = Table::new(1, &["question", "rows", "PostgreSQL ms", "p95", "SQLite ms", "p95"]);
    let (postgres, sqlite) = (&columns[0], &columns[1]);
    for (one, other) in postgres.iter().zip(sqlite) {
        let time = |millis: f64| format!("{millis:.1}");
        table.row(vec![
            one.question.to_owned(),
            one.rows.to_string(),
            time(one.median),
            time(one.p95),
            time(other.median),
            time(other.p95),
        ]);
    }
    let Amount { jobs, runs, days } = amount;
    table.print(&format!(
        "What pages ask: {} jobs, {} runs in {days} days, {} of them of one job",
        thousands(u64::from(jobs)),
        thousands(u64::from(runs)),
        thousands(u64::from(runs / 10))
    ));
    println!("\nEach is asked {} times, after once to warm up.", questions::TIMES);
    Ok(())
}

async fn asked(store: &Arc<dyn Store>, amount: Amount) -> Outcome<Vec<questions::Answered>> {
    let mut answers = questions::about_jobs(&**store).await?;
    answers.extend(questions::about_runs(&**store).await?);
    answers.extend(questions::in_small(&**store, amount).await?);
    Ok(answers)
}
