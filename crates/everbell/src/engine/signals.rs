//! [`Signals`]: what makes a loop look before its time. A signal only wakes; what there is to do is in the database.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use everbell_core::store::Store;
use jiff::Timestamp;
use tokio::sync::Notify;

use super::{Claims, Shared};

/// A flag for each loop: set while the loop is busy, it is seen when the loop wants to wait.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    pub(crate) plan: Notify,
    pub(crate) claim: Notify,
    pub(crate) record: Notify,
    pub(crate) beat: Notify,
    pub(crate) reap: Notify,
    pub(crate) anchor: Notify,
    pub(crate) resume: Notify,
    pub(crate) reconcile: Notify,
    pub(crate) backfill: Notify,
    /// Whether a run of a backfill ended here since the backfiller looked.
    backfill_ended: AtomicBool,
    pub(crate) plan_aside: Notify,
    /// Whether the planner waits for room.
    pub(crate) planner_waits: AtomicBool,
    /// Whether more timers are due than the planner has planned.
    behind: AtomicBool,
    /// When retries may start.
    retries: Mutex<BTreeSet<Timestamp>>,
}

/// The pause between two wake-ups: a busy database sends more notifications than the loops need.
const WAKE_DEBOUNCE: Duration = Duration::from_millis(2);

/// The most retries whose times are remembered; further ones are found by polling.
const MAX_KNOWN_RETRIES: usize = 10_000;

impl Signals {
    /// Wakes all loops after a change that may concern any of them.
    pub(crate) fn wake_all(&self) {
        self.plan.notify_one();
        self.claim.notify_one();
        self.beat.notify_one();
        self.resume.notify_one();
        self.reconcile.notify_one();
        self.backfill.notify_one();
    }

    /// Whether more timers are due than the planner has planned.
    pub(super) fn is_behind(&self) -> bool {
        self.behind.load(Ordering::SeqCst)
    }

    /// The planner has left due timers behind, or has not. The second planner helps while it does.
    pub(super) fn set_behind(&self, behind: bool) {
        self.behind.store(behind, Ordering::SeqCst);
        if behind {
            self.plan_aside.notify_one();
        }
    }

    /// A run of a backfill ended: there is a place for the next one.
    pub(crate) fn note_backfill_ended(&self) {
        self.backfill_ended.store(true, Ordering::SeqCst);
        self.backfill.notify_one();
    }

    /// Whether a run of a backfill ended since the last call.
    pub(crate) fn take_backfill_ended(&self) -> bool {
        self.backfill_ended.swap(false, Ordering::SeqCst)
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

    /// Whether a retry may start by now that the claimer has not looked for.
    pub(crate) fn has_due_retry(&self, now: Timestamp) -> bool {
        let retries = self.retries.lock().unwrap_or_else(PoisonError::into_inner);
        retries.first().is_some_and(|first| *first <= now)
    }

    /// Returns when the next retry may start, after `now`.
    pub(crate) fn next_retry(&self, now: Timestamp) -> Option<Timestamp> {
        let mut retries = self.retries.lock().unwrap_or_else(PoisonError::into_inner);
        *retries = retries.split_off(&now);
        retries.remove(&now);
        retries.first().copied()
    }

    /// Relays the store's wake-ups, forever. It listens again before it wakes the loops, and they look after that, so
    /// no change is missed.
    pub(crate) async fn relay(&self, store: &dyn Store, claims: &Claims) {
        let mut woken = listening(store).await;
        loop {
            match woken {
                Heard::Already => {}
                Heard::Later(later) => later.await,
            }
            woken = listening(store).await;
            claims.note_pending();
            self.wake_all();
            // Wake-ups within the pause are handled together.
            tokio::time::sleep(WAKE_DEBOUNCE).await;
        }
    }
}

impl Shared {
    /// Places are free, or not reserved any more: the claimer may have found none before.
    pub(super) fn tell_claimer(&self) {
        if self.targets.now().names().any(|target| self.claims.may_wait(target)) {
            self.signals.claim.notify_one();
        }
    }

    /// Wakes the loops whenever the targets of this instance are replaced, forever. The heartbeat informs the other instances.
    pub(super) async fn follow_targets(&self) {
        let mut replaced = self.targets.watch();
        while replaced.changed().await.is_ok() {
            self.claims.note_pending();
            self.signals.wake_all();
        }
        std::future::pending::<()>().await;
    }

    /// Handlers have ended, so places are free: for pending runs, if any may wait, and for the planner, if it waits.
    pub(super) fn tell_of_room(&self) {
        self.tell_claimer();
        if self.signals.is_behind() {
            self.signals.plan_aside.notify_one();
        }
        if self.signals.planner_waits.load(Ordering::SeqCst) {
            self.signals.plan.notify_one();
        }
    }
}

enum Heard<'a> {
    Already,
    Later(Pin<Box<dyn Future<Output = ()> + Send + 'a>>),
}

/// Starts to listen: changes from now on are noticed.
async fn listening(store: &dyn Store) -> Heard<'_> {
    let mut woken: Pin<Box<dyn Future<Output = ()> + Send + '_>> = Box::pin(store.woken());
    let first = pin!(std::future::poll_fn(|context| Poll::Ready(woken.as_mut().poll(context)))).await;
    match first {
        Poll::Ready(()) => Heard::Already,
        Poll::Pending => Heard::Later(woken),
    }
}
