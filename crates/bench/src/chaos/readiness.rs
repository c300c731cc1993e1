//! A log of `/readyz` of each instance during an experiment.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::clock::{pause, true_time};
use super::http;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(8);

/// One answer, or none.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) at: f64,
    pub(crate) pid: u32,
    /// Absent without an answer.
    pub(crate) status: Option<u16>,
}

/// Threads that ask twice a second.
#[derive(Default)]
pub(crate) struct Readiness {
    samples: Arc<Mutex<Vec<Sample>>>,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Readiness {
    /// Watches these addresses, and no others.
    pub(crate) fn watch(&mut self, instances: Vec<(String, u32)>) {
        self.stop();
        self.over = Arc::default();
        for (address, pid) in instances {
            let (samples, over) = (Arc::clone(&self.samples), Arc::clone(&self.over));
            self.threads.push(std::thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let answer = http::request(&address, "GET", "/readyz", &[], None, REQUEST_TIMEOUT);
                    let status = answer.ok().map(|answer| answer.status);
                    lock(&samples).push(Sample { at: true_time(), pid, status });
                    pause(Duration::from_millis(500));
                }
            }));
        }
    }

    pub(crate) fn stop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _panicked = thread.join();
        }
    }

    /// Returns the answers between two times.
    pub(crate) fn between(&self, from: f64, to: f64) -> Vec<Sample> {
        let samples = lock(&self.samples);
        samples.iter().filter(|sample| (from..=to).contains(&sample.at)).cloned().collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
