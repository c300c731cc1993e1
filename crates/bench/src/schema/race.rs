//! Workers that do whole lives of runs for a while, each on a connection that it holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Barrier;
use tokio::task::JoinHandle;

use crate::measure::Stopwatch;

pub(super) trait Worker: Send + 'static {
    /// Claims, starts and finishes one batch; how many runs that were.
    fn life(&mut self) -> impl Future<Output = sqlx::Result<u64>> + Send;

    /// The process of the server that works for this connection, if there is one.
    fn backend(&self) -> Option<i32> {
        None
    }
}

/// How fast it went.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    pub(super) runs: u64,
    pub(super) per_second: f64,
    /// Processor time of the server for one run: unlike the speed, it hardly depends on what else the machine does.
    pub(super) cpu_us: f64,
}

/// All of them together. Each does one batch before the clock runs, so that statements are prepared.
pub(super) async fn race<W: Worker>(workers: Vec<W>, seconds: f64) -> sqlx::Result<Rate> {
    let stop = Arc::new(AtomicBool::new(false));
    let ready = Arc::new(Barrier::new(workers.len() + 1));
    let mut tasks: Vec<JoinHandle<sqlx::Result<(u64, u64)>>> = Vec::new();
    for mut worker in workers {
        let (stop, ready) = (Arc::clone(&stop), Arc::clone(&ready));
        tasks.push(tokio::spawn(async move {
            let warmed_up = worker.life().await;
            ready.wait().await;
            warmed_up?;
            let (mut runs, before) = (0, cpu_ns(worker.backend()));
            while !stop.load(Ordering::Relaxed) {
                runs += worker.life().await?;
            }
            Ok((runs, cpu_ns(worker.backend()) - before))
        }));
    }
    ready.wait().await;
    let watch = Stopwatch::start();
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    stop.store(true, Ordering::Relaxed);
    let (mut runs, mut cpu_ns) = (0, 0);
    for task in tasks {
        let (more_runs, more_ns) = task.await.expect("a worker does not panic")?;
        runs += more_runs;
        cpu_ns += more_ns;
    }
    Ok(Rate { runs, per_second: runs as f64 / watch.seconds(), cpu_us: cpu_ns as f64 / 1000.0 / runs as f64 })
}

/// Nanoseconds that a process has been on a processor, as Linux counts them.
fn cpu_ns(process: Option<i32>) -> u64 {
    let read = |process| std::fs::read_to_string(format!("/proc/{process}/schedstat")).ok();
    let text = process.and_then(read).unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0)
}
