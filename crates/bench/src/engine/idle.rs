//! The cost of having many jobs and nothing to do.

use std::time::Duration;

use everbell::Everbell;

use super::{Fresh, Outcome};
use crate::cpu;
use crate::population::{self, Database, count};
use crate::table::{Table, thousands};

const WATCHED: Duration = Duration::from_secs(20);

async fn noop() {}

pub(super) async fn measure(server: &str) -> Outcome<()> {
    let mut table = Table::new(1, &["database", "jobs", "transactions/s", "CPU %"]);
    for (name, database) in Fresh::both(server).await {
        let (transactions, cpu) = idle(&database, 10_000).await?;
        let transactions = transactions.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}"));
        table.row(vec![name.to_owned(), thousands(10_000), transactions, format!("{cpu:.2}")]);
    }
    table.print(
        "Idle: nothing due for 20 s; the CPU is that of the engine, the database not counted (SQLite is inside)",
    );
    Ok(())
}

/// The first looks are not the usual ones, and the server counts what an idle connection did up to ten seconds later.
const WARM_UP: Duration = Duration::from_secs(16);

/// Transactions in a second, and the share of one core.
async fn idle(database: &Fresh, jobs: u32) -> Outcome<(Option<f64>, f64)> {
    let bell = Everbell::builder().database(database.url()).target("noop", noop).build().await?;
    population::template(&**bell.store(), "2025-06-01T00:00:00Z".parse()?).await?;
    population::copies(database.place(), jobs, "2199-01-01T00:00:00Z".parse()?).await?;
    let mut measured = None;
    bell.run_until(async {
        tokio::time::sleep(WARM_UP).await;
        let (cpu, transactions) = (cpu::own().as_secs_f64(), transactions(database.place()).await);
        tokio::time::sleep(WATCHED).await;
        let now = self::transactions(database.place()).await;
        measured = Some((now.zip(transactions), cpu::own().as_secs_f64() - cpu));
    })
    .await?;
    let (transactions, cpu) = measured.ok_or("the engine ended too early")?;
    // The two questions about transactions are transactions themselves.
    let rate = transactions.map(|(now, before)| (now - before - 2) as f64 / WATCHED.as_secs_f64());
    Ok((rate, 100.0 * cpu / WATCHED.as_secs_f64()))
}

async fn transactions(place: Database<'_>) -> Option<i64> {
    let Database::Postgres(_) = place else { return None };
    // What the server counts arrives there a moment later.
    let query = "select xact_commit + xact_rollback from pg_stat_database where datname = current_database()";
    count(place, query).await.ok()
}
