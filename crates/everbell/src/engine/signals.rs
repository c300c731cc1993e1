//! [`Signals`]: what makes a loop look before its time. A signal only wakes; what there is to do is in the database.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use everbell_core::store::Store;
use jiff::Timestamp;
use tokio::sync::Notify;

/// A flag for each loop: set while the loop is busy, it is seen when the loop wants to wait.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    pub(crate) plan: Notify,
    pub(crate) claim: Notify,
    pub(crate) record: Notify,
    pub(crate) beat: Notify,
    pub(crate) resume: Notify,
    pub(crate) reconcile: Notify,
    /// When runs that will be tried again may start.
    retries: Mutex<BTreeSet<Timestamp>>,
}

/// The pause between two wake-ups: a busy database has more to tell than anybody can look at.
const WAKE_DEBOUNCE: Duration = Duration::from_millis(2);

/// So many retries are known by their time; more of them are found by polling.
const MAX_KNOWN_RETRIES: usize = 10_000;

impl Signals {
    /// Somebody did something that may concern everybody.
    pub(crate) fn wake_all(&self) {
        self.plan.notify_one();
        self.claim.notify_one();
        self.beat.notify_one();
        self.resume.notify_one();
        self.reconcile.notify_one();
    }

    /// A run may start then, and not before.
    pub(crate) fn claim_at(&self, at: Timestamp) {
        let mut retries = self.retries.lock().unwrap_or_else(PoisonError::into_inner);
        if retries.len() < MAX_KNOWN_RETRIES {
            retries.insert(at);
        }
        drop(retries);
        self.claim.notify_one();
    }

    /// When the next run that will be tried again may start, after `now`.
    pub(crate) fn next_retry(&self, now: Timestamp) -> Option<Timestamp> {
        let mut retries = self.retries.lock().unwrap_or_else(PoisonError::into_inner);
        *retries = retries.split_off(&now);
        retries.remove(&now);
        retries.first().copied()
    }

    /// Passes on what the store hears, for ever. It listens again before it wakes, and who is woken looks after that, so
    /// nothing falls between.
    pub(crate) async fn relay(&self, store: &dyn Store) {
        let mut woken = listening(store).await;
        loop {
            match woken {
                Heard::Already => {}
                Heard::Later(later) => later.await,
            }
            woken = listening(store).await;
            self.wake_all();
            // What happens now is heard together.
            tokio::time::sleep(WAKE_DEBOUNCE).await;
        }
    }
}

enum Heard<'a> {
    Already,
    Later(Pin<Box<dyn Future<Output = ()> + Send + 'a>>),
}

/// Begins to listen: what happens from now on is heard.
async fn listening(store: &dyn Store) -> Heard<'_> {
    let mut woken: Pin<Box<dyn Future<Output = ()> + Send + '_>> = Box::pin(store.woken());
    let first = pin!(std::future::poll_fn(|context| Poll::Ready(woken.as_mut().poll(context)))).await;
    match first {
        Poll::Ready(()) => Heard::Already,
        Poll::Pending => Heard::Later(woken),
    }
}
