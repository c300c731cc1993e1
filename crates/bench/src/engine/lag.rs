//! How long after its slot does a handler begin?

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use everbell::clock::Clock;
use everbell::{EngineOptions, Everbell, Run, Schedule, State};
use tokio::sync::Notify;

use super::Outcome;
use crate::population::Fresh;
use crate::table::Table;

/// The lags that handlers saw, in seconds.
#[derive(Clone)]
struct Lags {
    clock: Arc<Mutex<Option<Arc<dyn Clock>>>>,
    seen: Arc<Mutex<Vec<f64>>>,
    wanted: usize,
    all: Arc<Notify>,
}

async fn note(run: Run, State(lags): State<Lags>) {
    let clock = lags.clock.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let Some(clock) = clock else { return };
    let lag = clock.now().duration_since(run.scheduled_at()).as_secs_f64();
    let mut seen = lags.seen.lock().unwrap_or_else(PoisonError::into_inner);
    seen.push(lag);
    if seen.len() == lags.wanted {
        lags.all.notify_one();
    }
}

pub(super) async fn measure(server: &str) -> Outcome<()> {
    let mut table = Table::new(2, &["jobs", "database", "p50 ms", "p99 ms", "max ms"]);
    for (title, jobs, over) in
        [("500 over 30 s", 500, Duration::from_secs(30)), ("1,000 in the same second", 1_000, Duration::ZERO)]
    {
        for (name, database) in Fresh::both(server).await {
            let mut lags = lag(&database, jobs, over).await?;
            lags.sort_by(f64::total_cmp);
            let at = |share: f64| format!("{:.1}", 1e3 * lags[((lags.len() - 1) as f64 * share).round() as usize]);
            table.row(vec![title.to_owned(), name.to_owned(), at(0.5), at(0.99), at(1.0)]);
        }
    }
    table.print("Fire lag: from the slot to the first line of the handler");
    Ok(())
}

async fn lag(database: &Fresh, jobs: u32, over: Duration) -> Outcome<Vec<f64>> {
    let lags = Lags { clock: Arc::default(), seen: Arc::default(), wanted: jobs as usize, all: Arc::default() };
    let builder = Everbell::builder().database(database.url()).state(lags.clone()).target("note", note);
    // Room for all of them at once: what is measured is the engine, not the wait for a place.
    let mut options = EngineOptions::default();
    options.concurrency = 2_000;
    let bell = builder.options(options).build().await?;
    *lags.clock.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(bell.clock()));
    let run = bell.run_until(async {
        // Time enough to write all of them down first.
        let begin = bell.now() + Duration::from_secs(10);
        for number in 0..jobs {
            let at = begin + over * number / jobs;
            let made = bell.jobs().create(Schedule::once(format!("once-{number}"), at).target("note")).await;
            if let Err(error) = made {
                eprintln!("{error}");
                return;
            }
        }
        lags.all.notified().await;
    });
    run.await?;
    let seen = lags.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(seen)
}
