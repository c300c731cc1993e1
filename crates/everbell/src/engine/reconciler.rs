//! The reconciler: timers of orgs follow jobs, orgs and overrides, a few at a time. What each has to be is decided by
//! [`reconcile`](everbell_core::org::reconcile), in the transaction of the store.

use std::sync::Arc;
use std::time::Duration;

use everbell_core::store::StoreResult;
use jiff::Timestamp;
use tokio::sync::Notify;

use super::planner::{Keys, into_events};
use super::{Shared, Step, Wait};

/// How many orgs are looked at in one transaction.
pub(crate) const MAX_ORGS_PER_STEP: u32 = 500;
/// The longest time between two looks when no signal comes; twice that where the changes of others are heard of.
const POLL_INTERVAL: Duration = Duration::from_secs(30);
/// Looks that a signal asks for are at least so far apart: most signals are about something else.
const MIN_INTERVAL: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(crate) struct Reconciler {
    shared: Arc<Shared>,
    /// When it had nothing left to do, by the monotonic clock.
    last: Option<Duration>,
}

impl Reconciler {
    pub(super) fn new(shared: &Arc<Shared>) -> Reconciler {
        Reconciler { shared: Arc::clone(shared), last: None }
    }

    /// Reconciles a few orgs; returns whether there are more.
    pub(crate) async fn look(&self, now: Timestamp) -> StoreResult<bool> {
        let Shared { store, signals, events, .. } = &*self.shared;
        let progress = store.reconcile_orgs(now, MAX_ORGS_PER_STEP).await?;
        if progress.planned.timers > 0 {
            signals.plan.notify_one();
            signals.claim.notify_one();
        }
        into_events(progress.planned, &Keys::new()).for_each(|event| events.publish(event));
        Ok(progress.more)
    }
}

impl Step for Reconciler {
    const NAME: &'static str = "reconciler";

    async fn step(&mut self) -> StoreResult<Wait> {
        let begun = self.shared.clock.monotonic();
        let left = self.last.map_or(Duration::ZERO, |last| MIN_INTERVAL.saturating_sub(begun.saturating_sub(last)));
        if !left.is_zero() {
            return Ok(Wait::For(left));
        }
        if self.look(self.shared.now()).await? {
            return Ok(Wait::No);
        }
        self.last = Some(begun);
        Ok(Wait::For(if self.shared.store.hears_others() { 2 * POLL_INTERVAL } else { POLL_INTERVAL }))
    }

    fn signal(shared: &Shared) -> Option<&Notify> {
        Some(&shared.signals.reconcile)
    }
}
