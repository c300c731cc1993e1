//! How long until an instance works, however many timers there are.

use std::time::Duration;

use everbell::{Event, Everbell, Schedule};

use super::{Fresh, Outcome};
use crate::measure::Stopwatch;
use crate::population;
use crate::table::{Table, thousands};

async fn noop() {}

pub(super) async fn measure(server: &str, quick: bool) -> Outcome<()> {
    let timers = if quick { 100_000 } else { 1_000_000 };
    let mut table = Table::new(1, &["database", "timers", "start ms", "first fire ms", "memory MiB"]);
    for (name, database) in Fresh::both(server).await {
        let cells = many(&database, timers).await?;
        table.row([vec![name.to_owned(), thousands(u64::from(timers))], cells].concat());
    }
    table.print("Start with many timers: until the engine is built, and until a run that was due has begun");
    Ok(())
}

async fn many(database: &Fresh, timers: u32) -> Outcome<Vec<String>> {
    let setup = Everbell::builder().database(database.url()).target("noop", noop).build().await?;
    population::template(&**setup.store(), "2025-06-01T00:00:00Z".parse()?).await?;
    population::copies(database.place(), timers, "2199-01-01T00:00:00Z".parse()?).await?;
    let soon = setup.now() + Duration::from_millis(100);
    setup.jobs().create(Schedule::once("due", soon).target("noop")).await?;
    drop(setup);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let watch = Stopwatch::start();
    let bell = Everbell::builder().database(database.url()).target("noop", noop).build().await?;
    let built = watch.seconds();
    let mut events = bell.events();
    let mut began = None;
    bell.run_until(async {
        while !matches!(events.recv().await.as_deref(), Some(Event::Started { .. }) | None) {}
        began = Some(watch.seconds());
    })
    .await?;
    let began = began.ok_or("the engine ended too early")?;
    Ok(vec![format!("{:.0}", 1e3 * built), format!("{:.0}", 1e3 * began), format!("{:.0}", resident_mib())])
}

fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    let kib = line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0);
    kib as f64 / 1024.0
}
