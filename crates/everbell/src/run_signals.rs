//! [`RunSignals`]: what an instance tells the handler of a run and its supervisor while they work.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::Notify;

/// Why a handler shall stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Its cancellation was asked for.
    Canceled { by: String },
    /// The run does not belong to this instance any more.
    LeaseLost,
    /// The instance ends.
    Shutdown,
}

/// One allocation for each run, with a place to wait for each signal: a heartbeat renews thousands of leases, and must not
/// wake those that wait for something else.
#[derive(Debug)]
pub(crate) struct RunSignals {
    /// When the request that granted or renewed its lease last was sent, by the monotonic clock, in nanoseconds.
    renewed: AtomicU64,
    renewals: Notify,
    stop: OnceLock<Stop>,
    stops: Notify,
    canceled: AtomicBool,
    cancels: Notify,
}

impl RunSignals {
    /// Of a run whose lease was granted by a request that was sent at `granted`.
    pub(crate) fn new(granted: Duration) -> Arc<RunSignals> {
        Arc::new(RunSignals {
            renewed: AtomicU64::new(nanoseconds(granted)),
            renewals: Notify::new(),
            stop: OnceLock::new(),
            stops: Notify::new(),
            canceled: AtomicBool::new(false),
            cancels: Notify::new(),
        })
    }

    /// Returns when the request that last renewed the lease was sent.
    pub(crate) fn renewed(&self) -> Duration {
        Duration::from_nanos(self.renewed.load(Ordering::SeqCst))
    }

    /// The lease was renewed by a request that was sent then. Requests may be answered in another order than they were sent.
    pub(crate) fn renew(&self, sent: Duration) {
        let sent = nanoseconds(sent);
        if self.renewed.fetch_max(sent, Ordering::SeqCst) < sent {
            self.renewals.notify_waiters();
        }
    }

    /// Resolves when the lease was renewed later than that, with the time of it.
    pub(crate) async fn renewed_after(&self, seen: Duration) -> Duration {
        until(&self.renewals, || Some(self.renewed()).filter(|renewed| *renewed > seen)).await
    }

    /// Asks the supervisor to stop the handler. The first reason counts: returns whether this was it.
    pub(crate) fn ask(&self, why: &Stop) -> bool {
        let is_first = self.stop.set(why.clone()).is_ok();
        if is_first {
            self.stops.notify_waiters();
        }
        is_first
    }

    /// Resolves when the handler shall stop.
    pub(crate) async fn asked(&self) -> Stop {
        until(&self.stops, || self.stop.get().cloned()).await
    }

    /// Asks the handler to stop.
    pub(crate) fn cancel(&self) {
        self.canceled.store(true, Ordering::SeqCst);
        self.cancels.notify_waiters();
    }

    /// Whether the handler was asked to stop.
    pub(crate) fn is_canceled(&self) -> bool {
        self.canceled.load(Ordering::SeqCst)
    }

    /// Resolves when the handler is asked to stop.
    pub(crate) async fn canceled(&self) {
        until(&self.cancels, || self.is_canceled().then_some(())).await;
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Looks now and after each change.
async fn until<T>(changed: &Notify, look: impl Fn() -> Option<T>) -> T {
    loop {
        // Before the look: what changes after it is not missed.
        let change = changed.notified();
        if let Some(found) = look() {
            return found;
        }
        change.await;
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_renewal_is_heard_once_and_an_older_one_never() {
        let signals = RunSignals::new(5 * SECOND);
        let mut later = pin!(signals.renewed_after(5 * SECOND));
        assert!(poll(later.as_mut()).is_pending());
        signals.renew(4 * SECOND);
        assert!(poll(later.as_mut()).is_pending(), "its answer came late");
        assert_eq!(signals.renewed(), 5 * SECOND);
        signals.renew(6 * SECOND);
        assert_eq!(poll(later.as_mut()), Poll::Ready(6 * SECOND));
        assert!(poll(pin!(signals.renewed_after(6 * SECOND))).is_pending());
    }

    #[test]
    fn the_first_reason_to_stop_counts() {
        let signals = RunSignals::new(SECOND);
        let mut asked = pin!(signals.asked());
        assert!(poll(asked.as_mut()).is_pending());
        assert!(signals.ask(&Stop::Shutdown));
        assert!(!signals.ask(&Stop::LeaseLost));
        assert_eq!(poll(asked.as_mut()), Poll::Ready(Stop::Shutdown));
        assert_eq!(poll(pin!(signals.asked())), Poll::Ready(Stop::Shutdown), "also for those who ask later");
    }

    #[test]
    fn a_handler_hears_that_it_shall_stop() {
        let signals = RunSignals::new(SECOND);
        let mut canceled = pin!(signals.canceled());
        assert!(poll(canceled.as_mut()).is_pending() && !signals.is_canceled());
        signals.cancel();
        assert!(poll(canceled.as_mut()).is_ready() && signals.is_canceled());
    }
}
