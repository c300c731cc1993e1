//! The cost of several instances to the database: the same jobs, drained by one and by four.

use super::Outcome;
use super::drain::{self, Drain, Drained};
use super::options::Options;
use crate::cpu;
use crate::population::Fresh;
use crate::store::rate::{Cost, median};
use crate::table::{Table, thousands};

const INSTANCES: [usize; 2] = [1, 4];
/// The default of an instance.
const CONCURRENCY: u32 = 256;

pub(super) async fn measure(server: &str, options: &Options) -> Outcome<()> {
    let jobs = options.drains().pop().unwrap_or(100_000);
    let heading = ["instances", "due jobs", "runs/s", "µs/run", "runs for a second of database CPU", "ratio", "load"];
    let mut table = Table::new(0, &heading);
    for (_, database) in super::wanted(server, options).await.filter(|(_, one)| matches!(one, Fresh::Postgres(_))) {
        drain::fill(&database, jobs).await?;
        let stores = [
            drain::stores(&database, INSTANCES[0], options).await?,
            drain::stores(&database, INSTANCES[1], options).await?,
        ];
        let mut drained: [Vec<Drained>; 2] = Default::default();
        let plan = |which: usize| Drain { jobs, concurrency: CONCURRENCY, stores: &stores[which] };
        // To warm up: each of them reads some of the definitions.
        for which in 0..2 {
            drain::drain(&database, plan(which)).await?;
        }
        for round in 0..options.rounds {
            for turn in 0..2 {
                let which = ((round + turn) % 2) as usize;
                drained[which].push(drain::drain(&database, plan(which)).await?);
            }
        }
        let work = |all: &[Drained]| 1e6 / median(all.iter().map(|one| one.cost.server));
        let alone = work(&drained[0]);
        for (instances, all) in INSTANCES.iter().zip(&drained) {
            table.row(vec![
                instances.to_string(),
                thousands(u64::from(jobs)),
                thousands(median(all.iter().map(|one| one.rate)).round() as u64),
                Cost::median(all.iter().map(|one| one.cost)),
                thousands(work(all).round() as u64),
                format!("{:.2}", work(all) / alone),
                cpu::load(),
            ]);
        }
    }
    table.print("Instances: no-op jobs that are all due, drained on PostgreSQL by one instance and by four, by turns");
    println!("\nAll instances are in this process. Medians of {} rounds after one to warm up.", options.rounds);
    Ok(())
}
