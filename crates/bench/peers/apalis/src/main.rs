//! apalis with apalis-postgres under the bench of peers.

#[path = "../../protocol.rs"]
mod protocol;

use std::time::{Duration, UNIX_EPOCH};

use apalis::prelude::*;
use apalis_postgres::{Config, PgPool, PostgresStorage};
use futures::stream;
use protocol::{Bench, Problem, Witness};

#[tokio::main]
async fn main() -> Result<(), Problem> {
    let (bench, work, witness) = Bench::connect().await?;
    let pool = PgPool::connect(&work.database).await?;
    PostgresStorage::setup(&pool).await?;
    let mut config = Config::default().queue("noop");
    if work.best {
        config = config.batch_size(1_000);
    }
    let mut storage = PostgresStorage::<u32>::new(&pool).with_config(config);
    let mut tasks = stream::iter((0..work.jobs).map(|n| {
        let task = TaskBuilder::new(n);
        match work.due_ms(n) {
            Some(at) => task.run_at_time(UNIX_EPOCH + Duration::from_millis(at.unsigned_abs())).build(),
            None => task.build(),
        }
    }));
    storage.push_all(&mut tasks).await?;
    bench.ready("1.0.0").await?;
    let handler = async |n: u32, witness: Data<Witness>| -> Result<(), BoxDynError> {
        witness.call(n);
        Ok(())
    };
    if work.best {
        let storage = storage.poll_with_interval(Duration::from_millis(20));
        let worker = WorkerBuilder::new("bench").backend(storage).data(witness.clone()).concurrency(100).build(handler);
        tokio::select! {
            ended = worker.run() => ended?,
            finished = bench.finish(&work, &witness) => finished?,
        }
    } else {
        let worker = WorkerBuilder::new("bench").backend(storage).data(witness.clone()).build(handler);
        tokio::select! {
            ended = worker.run() => ended?,
            finished = bench.finish(&work, &witness) => finished?,
        }
    }
    std::process::exit(0);
}
