//! A loop: `let wait = step(); wait for it, a signal, or the end`.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use everbell_core::store::StoreResult;
use tokio::sync::{Notify, watch};
use tracing::error;

use super::{Shared, random};

/// The time at which a loop looks again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// At once: there is more.
    No,
    /// After this much time, or when it is woken.
    For(Duration),
    /// As soon as it is signaled.
    ForSignal,
}

/// One turn of a loop, and what there is to know about it.
pub(crate) trait Step: Send + 'static {
    /// For the log.
    const NAME: &'static str;

    /// Looks, decides, commits.
    fn step(&mut self) -> impl Future<Output = StoreResult<Wait>> + Send;

    /// The signal that wakes it early.
    fn signal(shared: &Shared) -> Option<&Notify>;
}

const MIN_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(5);

/// Repeats a step until it is asked to stop, which it notices between two steps only: a started step is finished, so
/// nothing is taken from the store without being known here. A shutdown waits a bounded time for that.
pub(super) async fn drive<S: Step>(mut work: S, shared: Arc<Shared>, mut stop: watch::Receiver<bool>) {
    let mut failures = 0;
    while !*stop.borrow() {
        let (wait, may_wake) = match work.step().await {
            Ok(wait) => {
                failures = 0;
                shared.outage.over(S::NAME, shared.clock.monotonic(), &shared.events);
                (wait, true)
            }
            Err(error) => {
                if error.is_transient() {
                    shared.outage.began(S::NAME, shared.clock.monotonic(), &error, &shared.events);
                } else {
                    error!(step = S::NAME, %error, "a step failed; retrying");
                }
                failures += 1;
                (Wait::For(backoff(failures, random()[0])), false)
            }
        };
        let time = match wait {
            Wait::No => continue,
            Wait::For(time) => Some(time),
            Wait::ForSignal => None,
        };
        let signal = S::signal(&shared).filter(|_| may_wake);
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => {}
            () = passed(&shared, time) => {}
            () = woken(signal) => {}
        }
    }
}

async fn passed(shared: &Shared, time: Option<Duration>) {
    match time {
        Some(time) => shared.clock.sleep(time).await,
        None => std::future::pending().await,
    }
}

async fn woken(signal: Option<&Notify>) {
    match signal {
        Some(signal) => signal.notified().await,
        None => std::future::pending().await,
    }
}

/// Twice as long after each failure, and never the same on two instances: between a half and the whole of it.
fn backoff(failures: u32, dice: u8) -> Duration {
    let longest = MIN_BACKOFF.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(MAX_BACKOFF);
    longest.mul_f64(0.5 + f64::from(dice) / 512.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_a_bound_and_differ() {
        assert_eq!(backoff(1, 0), Duration::from_millis(50));
        assert!(backoff(1, 255) < Duration::from_millis(100));
        assert_eq!(backoff(3, 0), Duration::from_millis(200));
        assert!(backoff(u32::MAX, 255) < MAX_BACKOFF);
    }
}
