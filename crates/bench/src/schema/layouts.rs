//! Which layout lives fastest, by batch size and connections.

use everbell_store::testing::TestDatabase;

use super::Plan;
use super::layout::Layout;
use super::life::{Cost, connect, lives, prepare};
use crate::table::{Table, thousands};

pub(super) const BATCHES: [i64; 4] = [1, 10, 100, 500];
pub(super) const CONNECTIONS: [usize; 3] = [1, 2, 4];

pub(super) async fn run(plan: &Plan, server: &str) -> sqlx::Result<()> {
    let mut databases = Vec::new();
    for layout in Layout::ALL {
        let database = TestDatabase::create_on(server).await;
        prepare(database.url(), layout, plan.timers).await?;
        databases.push((layout, database));
    }
    let names: Vec<&str> = Layout::ALL.iter().map(|layout| layout.name()).collect();
    let mut speeds = Table::new(0, &[&["batch", "connections"], names.as_slice()].concat());
    let mut costs = Table::new(0, &[&["batch"], names.as_slice()].concat());
    for batch in BATCHES {
        for connections in CONNECTIONS {
            let mut found = vec![Cost::NONE; databases.len()];
            // In turns, so that a busy moment of the machine falls on each alike.
            for _ in 0..plan.rounds {
                for ((layout, database), found) in databases.iter().zip(&mut found) {
                    let workers = connect(database.url(), *layout, batch, connections).await?;
                    *found = found.better(lives(database.url(), workers, plan.seconds).await?);
                }
            }
            let cells = [batch.to_string(), connections.to_string()].into_iter();
            speeds.row(cells.chain(found.iter().map(|cost| thousands(cost.per_second as u64))).collect());
            if connections == 2 {
                let cells = found.iter().map(|cost| format!("{:.0} / {:.0}", cost.cpu_us, cost.wal_bytes));
                costs.row([batch.to_string()].into_iter().chain(cells).collect());
            }
        }
    }
    speeds.print("## PostgreSQL: whole lives of no-op runs per second (claim, start, finish)");
    costs.print(
        "## PostgreSQL: the same, processor time of the server in µs / bytes of log for one run (2 connections)",
    );
    Ok(())
}
