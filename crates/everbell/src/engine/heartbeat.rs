//! The heartbeat: this instance lives, and keeps the leases of its runs. What it hears in return stops handlers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use everbell_core::settle::{Next, Transition};
use everbell_core::store::{LeaseReport, Recorded, StoreResult};
use everbell_core::{Failure, FailureCode, RunStatus};
use jiff::Timestamp;
use tokio::sync::Notify;
use tracing::warn;

use super::inflight::{Attempt, Stop};
use super::{Shared, Step, Wait};
use crate::clock::later;
use crate::events::Event;

/// Heartbeats that a signal asks for are at least so far apart.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Heartbeat {
    shared: Arc<Shared>,
    /// When the leases were last extended.
    last: Option<Timestamp>,
    /// When that was, by the monotonic clock.
    beat_at: Option<Duration>,
    /// Runs that are leased to this instance and not known here, as of the last time, with the claim that had begun last when
    /// they were reported first.
    unknown: BTreeMap<Attempt, u64>,
}

impl Heartbeat {
    pub(super) fn new(shared: &Arc<Shared>) -> Heartbeat {
        Heartbeat { shared: Arc::clone(shared), last: None, beat_at: None, unknown: BTreeMap::new() }
    }

    /// Writes that this instance is alive, and extends its leases.
    async fn beat(&mut self, now: Timestamp, sent: Duration) -> StoreResult<()> {
        let draining = self.shared.store.heartbeat(&self.shared.instance(now)).await?;
        self.shared.set_draining(draining);
        self.shared.claims.take_dropped();
        self.extend(now, sent).await
    }

    /// Extends the leases, stops handlers whose runs are lost or canceled, and returns runs that are unknown here.
    /// `sent` is the monotonic time, read before `now`.
    async fn extend(&mut self, now: Timestamp, sent: Duration) -> StoreResult<()> {
        let Shared { store, inflight, options, .. } = &*self.shared;
        let held = inflight.attempts();
        // After an outage, leases may have expired that no other instance took. They are still ours, so those count
        // that were valid at the last extension.
        let since = self.last.unwrap_or(now).min(now);
        let until = later(now, options.lease.duration);
        let reports = store.extend_leases(self.shared.instance, since, until).await?;
        self.last = Some(now);
        let reported: BTreeSet<Attempt> = reports.iter().map(|report| (report.run, report.attempt)).collect();
        inflight.renew(reported.iter().copied(), sent);
        for attempt in held.iter().filter(|attempt| !reported.contains(attempt)) {
            inflight.lose(*attempt);
        }
        for (report, by) in reports.iter().filter_map(|report| Some((report, report.cancel_by.as_ref()?))) {
            inflight.stop((report.run, report.attempt), &Stop::Canceled { by: by.clone() });
        }
        self.give_back(&reports, &held.into_iter().collect(), now).await
    }

    /// Returns runs that are leased to this instance and will never start here, because the answer to their claim was
    /// lost or dropped. A run of a claim that is still under way looks the same: see [`Claims`](super::Claims). The
    /// next attempt has a higher number, which fences late answers.
    async fn give_back(
        &mut self,
        reports: &[LeaseReport],
        held: &BTreeSet<Attempt>,
        now: Timestamp,
    ) -> StoreResult<()> {
        let Shared { store, inflight, claims, signals, .. } = &*self.shared;
        let latest = claims.latest();
        let reported = reports.iter().map(|report| (report.run, report.attempt));
        // What was held before the question may have been recorded since.
        let unknown = reported.filter(|attempt| !held.contains(attempt));
        self.unknown =
            unknown.map(|attempt| (attempt, self.unknown.get(&attempt).copied().unwrap_or(latest))).collect();
        // First whether the claims have ended, then whether their runs are known.
        let ended: Vec<Attempt> =
            self.unknown.iter().filter(|(_, claim)| claims.have_ended(**claim)).map(|(attempt, _)| *attempt).collect();
        let orphans: Vec<Transition> = ended
            .into_iter()
            .filter(|attempt| !inflight.contains(*attempt))
            .map(|attempt| back_to_pending(attempt, now))
            .collect();
        if orphans.is_empty() {
            return Ok(());
        }
        let recorded = store.record(&orphans, now).await?;
        let runs = recorded.iter().filter(|recorded| **recorded != Recorded::LeaseLost).count();
        if runs > 0 {
            warn!(runs, "released runs that were leased to this instance but never started");
            signals.claim.notify_one();
        }
        Ok(())
    }
}

impl Step for Heartbeat {
    const NAME: &'static str = "heartbeat";

    async fn step(&mut self) -> StoreResult<Wait> {
        // Before the time of day, from which the database counts the leases.
        let begun = self.shared.clock.monotonic();
        let now = self.shared.now();
        let every = self.shared.options.lease.heartbeat;
        if let Some(beat_at) = self.beat_at {
            // Woken early, perhaps by a cancellation, which matters only while runs are held.
            let is_urgent = self.shared.inflight.is_working() || self.shared.claims.were_dropped();
            let soonest = if is_urgent { MIN_INTERVAL.min(every) } else { every };
            let left = soonest.saturating_sub(begun.saturating_sub(beat_at));
            if !left.is_zero() {
                return Ok(Wait::For(left));
            }
        }
        let written = self.beat(now, begun).await;
        let error = written.as_ref().err().map(ToString::to_string);
        self.shared.events.publish(Event::Heartbeat { begun, error });
        written?;
        self.beat_at = Some(begun);
        Ok(Wait::For(every.saturating_sub(self.shared.clock.monotonic().saturating_sub(begun))))
    }

    fn signal(shared: &Shared) -> Option<&Notify> {
        Some(&shared.signals.beat)
    }
}

/// Makes a run that never started here pending again, for any instance to claim.
fn back_to_pending((run_id, attempt): Attempt, now: Timestamp) -> Transition {
    let failure = Failure::new(FailureCode::LOST, "the answer to its claim was lost before it began");
    let to = Next::Retry { not_before: now, failure, ended: None };
    Transition { run_id, attempt, from: RunStatus::Running, to, output: None }
}
