//! graphile_worker under the bench of peers.

#[path = "../../protocol.rs"]
mod protocol;

use std::time::Duration;

use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, JobSpecBuilder, LocalQueueConfig, TaskHandler, WorkerContext, WorkerOptions,
};
use protocol::{Bench, Problem, Witness};
use serde::{Deserialize, Serialize};

const SEEDED_AT_ONCE: usize = 10_000;

#[derive(Clone, Serialize, Deserialize)]
struct Noop {
    n: u32,
}

impl TaskHandler for Noop {
    const IDENTIFIER: &'static str = "noop";

    async fn run(self, context: WorkerContext) -> impl IntoTaskHandlerResult {
        let witness = context.get_ext::<Witness>().ok_or("no witness")?;
        witness.call(self.n);
        Ok::<(), String>(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Problem> {
    let (bench, work, witness) = Bench::connect().await?;
    let mut options = WorkerOptions::default()
        .database_url(&work.database)
        .schema("graphile_worker")
        .define_job::<Noop>()
        .add_extension(witness.clone());
    if work.best {
        options = options
            .concurrency(24)
            .max_pg_conn(26)
            .poll_interval(Duration::from_millis(20))
            .local_queue(LocalQueueConfig::default().with_size(500))
            .complete_job_batch_delay(Duration::ZERO)
            .fail_job_batch_delay(Duration::ZERO);
    }
    let worker = options.init().await?;
    let utils = worker.create_utils();
    let specs: Vec<(Noop, JobSpec)> = (0..work.jobs)
        .map(|n| {
            let at = work.due_ms(n).and_then(chrono::DateTime::from_timestamp_millis);
            let spec = at.map_or_else(JobSpec::default, |at| JobSpecBuilder::new().run_at(at).build());
            (Noop { n }, spec)
        })
        .collect();
    for some in specs.chunks(SEEDED_AT_ONCE) {
        let some: Vec<(Noop, &JobSpec)> = some.iter().map(|(job, spec)| (job.clone(), spec)).collect();
        utils.add_jobs::<Noop>(&some).await?;
    }
    bench.ready("0.14.1").await?;
    tokio::select! {
        ended = worker.run() => ended?,
        finished = bench.finish(&work, &witness) => finished?,
    }
    std::process::exit(0);
}
