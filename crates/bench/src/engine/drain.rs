//! Everything is due at once: how many whole lives of runs in a second?

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use everbell::{EngineOptions, Everbell, State};
use tokio::sync::Notify;

use super::{Fresh, Outcome};
use crate::measure::Stopwatch;
use crate::population::{self, count};
use crate::table::{Table, thousands};

/// Counts handlers down.
#[derive(Clone)]
struct Left(Arc<(AtomicU32, Notify)>);

async fn noop(State(left): State<Left>) {
    if left.0.0.fetch_sub(1, Ordering::Relaxed) == 1 {
        left.0.1.notify_one();
    }
}

pub(super) async fn measure(server: &str, quick: bool) -> Outcome<()> {
    let sizes: &[u32] = if quick { &[1_000, 10_000] } else { &[1_000, 10_000, 100_000] };
    let mut table = Table::new(1, &["database", "due jobs", "seconds", "runs/s"]);
    for size in sizes {
        for (name, database) in Fresh::both(server).await {
            let seconds = drain(&database, *size).await?;
            let rate = thousands((f64::from(*size) / seconds).round() as u64);
            table.row(vec![name.to_owned(), thousands(u64::from(*size)), format!("{seconds:.2}"), rate]);
        }
    }
    table.print("Drain: no-op jobs that are all due; a life is claim, start and end, all recorded");
    Ok(())
}

async fn drain(database: &Fresh, jobs: u32) -> Outcome<f64> {
    let left = Left(Arc::new((AtomicU32::new(jobs), Notify::new())));
    let mut options = EngineOptions::default();
    options.concurrency = 2_000;
    let builder = Everbell::builder().database(database.url()).state(left.clone()).target("noop", noop);
    let bell = builder.options(options).build().await?;
    population::template(&**bell.store(), "2025-06-01T00:00:00Z".parse()?).await?;
    population::copies(database.place(), jobs, "2026-01-01T00:00:00Z".parse()?).await?;
    let watch = Stopwatch::start();
    let done = async {
        left.0.1.notified().await;
        // Every handler was called; what is left is to record the last of them.
        while count(database.place(), "select count(*) from everbell.outcomes").await.unwrap_or(0) < i64::from(jobs) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    bell.run_until(done).await?;
    Ok(watch.seconds())
}
