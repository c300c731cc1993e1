//! Which tables and indexes? Decided by plain SQL, before there is code: `docs/schema.md` has the answer.
#![allow(clippy::cast_precision_loss, reason = "counts of runs and bytes are far below 2^52")]

mod history;
mod indexes;
mod layout;
mod layouts;
mod life;
mod race;
mod rows;
mod sqlite;
mod sqlite_history;
mod sqlite_layout;

use everbell_store::testing::{Durability, postgres_url_with};

/// How much of everything.
struct Plan {
    /// Of one measurement.
    seconds: f64,
    /// The best of so many counts.
    rounds: usize,
    timers: u64,
    /// Runs in the history.
    history: i64,
}

const FULL: Plan = Plan { seconds: 0.5, rounds: 2, timers: 20_000, history: 1_000_000 };
const QUICK: Plan = Plan { seconds: 0.1, rounds: 1, timers: 5_000, history: 50_000 };

/// Measures and prints everything.
pub(crate) fn run(is_quick: bool) -> Result<(), String> {
    let plan = if is_quick { QUICK } else { FULL };
    let server = postgres_url_with(Durability::Durable);
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on(measure(&plan, &server)).map_err(|error| error.to_string())
}

async fn measure(plan: &Plan, server: &str) -> sqlx::Result<()> {
    layouts::run(plan, server).await?;
    history::run(plan, server).await?;
    sqlite::run(plan).await
}

/// What the machine can do: everything that disturbs only slows down.
fn best(rates: &[f64]) -> f64 {
    rates.iter().copied().fold(0.0, f64::max)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
