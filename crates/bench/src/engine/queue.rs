//! How fast jobs are created one by one, enqueued one by one, and enqueued together.

use std::time::Duration;

use everbell::{Everbell, Schedule};

use super::Outcome;
use crate::cpu;
use crate::measure::Stopwatch;
use crate::population::Fresh;
use crate::table::{Table, thousands};

async fn noop() {}

/// How many jobs one call enqueues.
const TOGETHER: u32 = 10_000;

pub(super) async fn measure(server: &str, quick: bool) -> Outcome<()> {
    let alone = if quick { 200 } else { 2_000 };
    let mut table = Table::new(1, &["database", "create/s", "enqueue/s", "enqueue_many/s"]);
    for (name, database) in Fresh::both(server).await {
        let bell = Everbell::builder().database(database.url()).target("noop", noop).build().await?;
        let jobs = bell.jobs();
        let later = bell.now() + Duration::from_hours(24);
        let begun = Stopwatch::start();
        for n in 0..alone {
            let schedule = Schedule::once(format!("create-{n}"), later).target("noop").payload(n);
            jobs.create(schedule).await?;
        }
        let created = rate(alone, &begun);
        let begun = Stopwatch::start();
        for n in 0..alone {
            jobs.enqueue("noop", &n).at(later).await?;
        }
        let enqueued = rate(alone, &begun);
        let begun = Stopwatch::start();
        jobs.enqueue_many("noop", 0..TOGETHER).at(later).await?;
        table.row(vec![name.to_owned(), created, enqueued, rate(TOGETHER, &begun)]);
    }
    table.print(&format!(
        "Queue: {alone} jobs one after the other, {} in one call; the load of the machine was {}",
        thousands(u64::from(TOGETHER)),
        cpu::load()
    ));
    Ok(())
}

fn rate(jobs: u32, begun: &Stopwatch) -> String {
    thousands((f64::from(jobs) / begun.seconds()) as u64)
}
