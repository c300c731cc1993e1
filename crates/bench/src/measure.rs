//! How long something takes: many passes, several rounds, the median of them.

use std::hint::black_box;
use std::time::{Duration, Instant};

const ROUNDS: usize = 9;
const SHORTEST_ROUND: Duration = Duration::from_millis(8);

/// Something to be timed: one pass does `items` things.
pub(crate) struct Workload<'a> {
    pub(crate) items: u32,
    pub(crate) pass: Box<dyn Fn() -> i64 + 'a>,
}

/// Nanoseconds for one thing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    pub(crate) median: f64,
    /// Half the distance between the quarters, as a share of the median: how far to trust it.
    pub(crate) spread: f64,
}

/// Times all of them in turns, so that a busy moment of the machine falls on each alike.
pub(crate) fn time(workloads: &[Workload<'_>]) -> Vec<Timing> {
    let passes: Vec<u32> = workloads.iter().map(passes_of_a_round).collect();
    let mut rounds = vec![Vec::with_capacity(ROUNDS); workloads.len()];
    for _ in 0..ROUNDS {
        for ((work, passes), samples) in workloads.iter().zip(&passes).zip(&mut rounds) {
            let each = f64::from(*passes) * f64::from(work.items);
            samples.push(round(work, *passes).as_secs_f64() * 1e9 / each);
        }
    }
    rounds.into_iter().map(summary).collect()
}

/// Enough passes that reading the clock twice does not count; the search for it warms the caches.
fn passes_of_a_round(work: &Workload<'_>) -> u32 {
    let mut passes = 1;
    while round(work, passes) < SHORTEST_ROUND {
        passes *= 2;
    }
    passes
}

#[allow(clippy::disallowed_methods, reason = "measuring time is reading a clock")]
fn round(work: &Workload<'_>, passes: u32) -> Duration {
    let started = Instant::now();
    for _ in 0..passes {
        black_box((work.pass)());
    }
    started.elapsed()
}

/// Runs from its making, for work that no loop here can repeat.
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[allow(clippy::disallowed_methods, reason = "measuring time is reading a clock")]
    pub(crate) fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

fn summary(mut samples: Vec<f64>) -> Timing {
    samples.sort_by(f64::total_cmp);
    let (low, median, high) = (samples[ROUNDS / 4], samples[ROUNDS / 2], samples[ROUNDS - 1 - ROUNDS / 4]);
    Timing { median, spread: (high - low) / 2.0 / median }
}
