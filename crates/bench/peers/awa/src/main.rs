//! awa under the bench of peers.

#[path = "../../protocol.rs"]
mod protocol;

use std::time::Duration;

use awa::{Client, InsertOpts, InsertParams, JobArgs, JobResult, QueueConfig};
use protocol::{Bench, Problem};
use serde::{Deserialize, Serialize};

const SEEDED_AT_ONCE: usize = 10_000;

#[derive(Debug, Serialize, Deserialize, JobArgs)]
struct Noop {
    n: u32,
}

#[tokio::main]
async fn main() -> Result<(), Problem> {
    let (bench, work, witness) = Bench::connect().await?;
    let pool = sqlx::postgres::PgPoolOptions::new().max_connections(20).connect(&work.database).await?;
    awa::migrations::run(&pool).await?;
    let mut queue = QueueConfig::default();
    if work.best {
        queue.max_workers = 500;
        queue.claimers = 2;
        queue.claim_batch_size = 500;
        queue.poll_interval = Duration::from_millis(20);
    }
    let mut builder = Client::builder(pool.clone()).queue("noop", queue);
    if work.best {
        builder = builder.promote_interval(Duration::from_millis(20));
    }
    let called = witness.clone();
    let client = builder
        .register::<Noop, _, _>(move |job, _context| {
            let called = called.clone();
            async move {
                called.call(job.n);
                Ok(JobResult::Completed)
            }
        })
        .build()?;
    let jobs: Vec<InsertParams> = (0..work.jobs)
        .map(|n| InsertParams {
            kind: Noop::kind().to_owned(),
            args: serde_json::json!({ "n": n }),
            opts: InsertOpts {
                queue: "noop".to_owned(),
                run_at: work.due_ms(n).and_then(chrono::DateTime::from_timestamp_millis),
                ..InsertOpts::default()
            },
        })
        .collect();
    for some in jobs.chunks(SEEDED_AT_ONCE) {
        awa::insert_many_copy_from_pool(&pool, some).await?;
    }
    bench.ready("0.6.9").await?;
    client.start().await?;
    bench.finish(&work, &witness).await?;
    std::process::exit(0);
}
