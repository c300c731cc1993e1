//! The heartbeat: this instance lives, and keeps the leases of its runs. What it hears in return stops handlers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use everbell_core::settle::{Next, Transition};
use everbell_core::store::{LeaseReport, StoreResult};
use everbell_core::{Failure, FailureCode, RunStatus};
use jiff::Timestamp;
use tokio::sync::Notify;
use tracing::warn;

use super::inflight::{Attempt, Stop};
use super::{Shared, Step, Wait};
use crate::clock::later;

/// Heartbeats that a signal asks for are at least so far apart.
const CLOSEST: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Heartbeat {
    shared: Arc<Shared>,
    /// When the leases were extended last.
    last: Option<Timestamp>,
    /// When that was, by the monotonic clock.
    beat_at: Option<Duration>,
    /// Runs that are leased to this instance and not known here, as of the last time.
    unknown: BTreeSet<Attempt>,
}

impl Heartbeat {
    pub(super) fn new(shared: &Arc<Shared>) -> Heartbeat {
        Heartbeat { shared: Arc::clone(shared), last: None, beat_at: None, unknown: BTreeSet::new() }
    }

    /// Extends the leases, stops handlers whose runs are lost or unwanted, and gives back what is not known here.
    async fn extend(&mut self, now: Timestamp) -> StoreResult<()> {
        let Shared { store, inflight, options, .. } = &*self.shared;
        let held = inflight.attempts();
        // After an outage leases may have run out that nobody took. They are still ours: so those count that were good
        // when they were extended last.
        let since = self.last.unwrap_or(now).min(now);
        let until = later(now, options.lease.duration);
        let reports = store.extend_leases(self.shared.instance, since, until).await?;
        self.last = Some(now);
        let reported: BTreeSet<Attempt> = reports.iter().map(|report| (report.run, report.attempt)).collect();
        for attempt in held.into_iter().filter(|attempt| !reported.contains(attempt)) {
            inflight.stop(attempt, &Stop::LeaseLost);
        }
        for (report, by) in reports.iter().filter_map(|report| Some((report, report.cancel_by.as_ref()?))) {
            inflight.stop((report.run, report.attempt), &Stop::Canceled { by: by.clone() });
        }
        self.give_back(&reports, now).await
    }

    /// Runs that were leased to this instance while the answer was lost: nobody here works on them. A claim that is on
    /// its way looks the same, so it must have been unknown twice.
    async fn give_back(&mut self, reports: &[LeaseReport], now: Timestamp) -> StoreResult<()> {
        let attempts = reports.iter().map(|report| (report.run, report.attempt));
        let unknown: BTreeSet<Attempt> = attempts.filter(|attempt| !self.shared.inflight.contains(*attempt)).collect();
        let lost: Vec<Transition> =
            unknown.intersection(&self.unknown).map(|attempt| back_to_pending(*attempt, now)).collect();
        self.unknown = unknown;
        if !lost.is_empty() {
            warn!(runs = lost.len(), "giving back runs whose claim was not heard");
            self.shared.store.record(&lost, now).await?;
            self.shared.signals.claim.notify_one();
        }
        Ok(())
    }
}

impl Step for Heartbeat {
    const NAME: &'static str = "heartbeat";

    async fn step(&mut self) -> StoreResult<Wait> {
        let now = self.shared.now();
        let every = self.shared.options.lease.heartbeat;
        let begun = self.shared.clock.monotonic();
        if let Some(beat_at) = self.beat_at {
            // Woken before its time: a cancellation perhaps, which matters to whoever has something to cancel.
            let soonest = if self.shared.inflight.is_working() { CLOSEST.min(every) } else { every };
            let left = soonest.saturating_sub(begun.saturating_sub(beat_at));
            if !left.is_zero() {
                return Ok(Wait::For(left));
            }
        }
        let draining = self.shared.store.heartbeat(&self.shared.instance(now)).await?;
        self.shared.set_draining(draining);
        self.extend(now).await?;
        self.beat_at = Some(begun);
        Ok(Wait::For(every.saturating_sub(self.shared.clock.monotonic().saturating_sub(begun))))
    }

    fn signal(shared: &Shared) -> Option<&Notify> {
        Some(&shared.signals.beat)
    }
}

/// A run that never began here, for somebody to take.
fn back_to_pending((run_id, attempt): Attempt, now: Timestamp) -> Transition {
    let failure = Failure::new(FailureCode::LOST, "the answer to its claim was lost before it began");
    Transition { run_id, attempt, from: RunStatus::Running, to: Next::Retry { not_before: now, failure }, output: None }
}
