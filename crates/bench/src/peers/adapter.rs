//! Everbell's own program under the bench, with the protocol of all peers.

use everbell::{EngineOptions, Everbell, Payload, State};
use jiff::Timestamp;

use super::protocol::{Bench, BenchTask, Problem, Witness};

/// The most jobs of one `enqueue_many`.
const SEEDED_AT_ONCE: u32 = 10_000;

async fn noop(Payload(n): Payload<u32>, State(witness): State<Witness>) {
    witness.call(n);
}

/// Does one piece of work.
pub(super) fn run() -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("start a runtime: {error}"))?;
    runtime.block_on(serve()).map_err(|error| error.to_string())
}

async fn serve() -> Result<(), Problem> {
    let (bench, work, witness) = Bench::connect().await?;
    let mut options = EngineOptions::default();
    if work.best {
        options.concurrency = 2_000;
    }
    let builder = Everbell::builder().database(work.database.as_str()).state(witness.clone()).target("noop", noop);
    let bell = builder.options(options).build().await?;
    seed(&bell, &work).await?;
    bench.ready(env!("CARGO_PKG_VERSION")).await?;
    let mut finished = Ok(());
    bell.run_until(async { finished = bench.finish(&work, &witness).await }).await?;
    finished
}

async fn seed(bell: &Everbell, work: &BenchTask) -> Result<(), Problem> {
    let at = |n| work.due_ms(n).map(Timestamp::from_millisecond).transpose();
    if work.spread_ms > 0 {
        for n in 0..work.jobs {
            let job = bell.jobs().enqueue("noop", &n);
            match at(n)? {
                Some(at) => job.at(at).await?,
                None => job.await?,
            };
        }
        return Ok(());
    }
    for first in (0..work.jobs).step_by(SEEDED_AT_ONCE as usize) {
        let some = bell.jobs().enqueue_many("noop", first..work.jobs.min(first + SEEDED_AT_ONCE));
        match at(first)? {
            Some(at) => some.at(at).await?,
            None => some.await?,
        };
    }
    Ok(())
}
