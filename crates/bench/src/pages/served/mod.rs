//! The pages themselves: a real server, a long history, and a client that reads every page.

mod child;
mod pages;
mod visitor;

use everbell_store::testing::{Durability, postgres_url_with};
use tokio::runtime::Runtime;

use self::child::Served;
use self::visitor::Visitor;
use super::{Amount, FULL, fill};
use crate::engine::Outcome;
use crate::measure::Stopwatch;
use crate::population::Fresh;
use crate::table::{Table, thousands};

/// How often each page is asked for, after once to warm up.
const TIMES: usize = 7;
/// The longest time of a page, in milliseconds.
const BOUND: f64 = 100.0;

/// A page, and its milliseconds on one database.
struct Timed {
    page: String,
    kilobytes: usize,
    median: f64,
    worst: f64,
}

/// Measures and prints everything.
pub(super) fn run(runtime: &Runtime) -> Outcome<()> {
    let program = child::program()?;
    let postgres = postgres_url_with(Durability::Durable);
    let mut columns = Vec::new();
    for (name, database) in runtime.block_on(Fresh::both(&postgres)) {
        let watch = Stopwatch::start();
        let amount = runtime.block_on(filled(&database))?;
        eprintln!("{name}: filled in {:.0} s", watch.seconds());
        let served = Served::start(&program, &database.url())?;
        columns.push(looked(&Visitor::new(&served)?, amount)?);
    }
    print(&columns);
    Ok(())
}

/// A history that ends now.
async fn filled(database: &Fresh) -> Outcome<Amount> {
    let store = everbell_store::connect(&database.url()).await?;
    let amount = Amount { days: 30, end: store.now().await?, ..FULL };
    super::populate(&*store, database.place(), amount).await?;
    Ok(amount)
}

/// Every page, one after the other.
fn looked(visitor: &Visitor<'_>, amount: Amount) -> Outcome<Vec<Timed>> {
    let mut pages = Vec::new();
    for place in pages::all(visitor, amount)? {
        let (mut times, mut bytes) = (Vec::with_capacity(TIMES), 0);
        for round in 0..=TIMES {
            let watch = Stopwatch::start();
            bytes = place.visit(visitor)?.len();
            if round > 0 {
                times.push(1e3 * watch.seconds());
            }
        }
        times.sort_by(f64::total_cmp);
        let (median, worst) = (times[TIMES / 2], times[TIMES - 1]);
        pages.push(Timed { page: place.name, kilobytes: bytes.div_ceil(1_000), median, worst });
    }
    Ok(pages)
}

fn print(columns: &[Vec<Timed>]) {
    let mut table = Table::new(1, &["page", "kB", "PostgreSQL ms", "worst", "SQLite ms", "worst"]);
    let time = |millis: f64| format!("{}{millis:.1}", if millis > BOUND { "! " } else { "" });
    for (postgres, sqlite) in columns[0].iter().zip(&columns[1]) {
        table.row(vec![
            postgres.page.clone(),
            postgres.kilobytes.to_string(),
            time(postgres.median),
            time(postgres.worst),
            time(sqlite.median),
            time(sqlite.worst),
        ]);
    }
    let Amount { jobs, runs, .. } = FULL;
    table.print(&format!(
        "Pages of the web UI: {} jobs, {} runs in 30 days, {} of them of each of {} jobs",
        thousands(u64::from(jobs)),
        thousands(u64::from(runs)),
        thousands(u64::from(runs / 10)),
        fill::BUSY
    ));
    let slow = columns.iter().flatten().filter(|page| page.worst > BOUND).count();
    println!(
        "\nFrom the request to the last byte on one connection each, on this machine; each page {TIMES} times, after once."
    );
    println!("{slow} of {} were slower than {BOUND} ms at least once.", columns.iter().map(Vec::len).sum::<usize>());
}
