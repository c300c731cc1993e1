//! The heartbeat: this instance lives, and keeps the leases of its runs. What it hears in return stops handlers.
//!
//! One row is written, however many runs are held: the lease of the instance covers them all. Which runs those are is
//! compared with the store only if there is a sign that they may differ.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use everbell_core::settle::{Next, Transition};
use everbell_core::store::{Beat, LeaseReport, Recorded, StoreResult, WorkSeen};
use everbell_core::{Failure, FailureCode, RunStatus};
use jiff::Timestamp;
use tokio::sync::Notify;
use tracing::warn;

use super::inflight::Attempt;
use super::{Shared, Step, Wait};
use crate::clock::later;
use crate::events::{Event, Round};
use crate::run_signals::Stop;
use crate::targets::Targets;

/// Heartbeats that a signal asks for are at least so far apart.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// The heartbeats after which this instance compares the runs that it holds with those that the store knows, whatever it
/// heard. Everything that makes a difference is noticed at once by other signs; this is for unforeseen signs.
const COMPARE_EVERY_BEATS: u32 = 12;

#[derive(Debug)]
pub(crate) struct Heartbeat {
    shared: Arc<Shared>,
    /// When the lease was last renewed.
    last: Option<Timestamp>,
    /// When that was, by the monotonic clock.
    beat_at: Option<Duration>,
    /// When the runs were last compared, by the monotonic clock, and the losses of this instance by then; `None` if they have
    /// to be compared with the next heartbeat.
    compared: Option<(Duration, u64)>,
    /// Runs that are leased to this instance and not known here, as of the last time, with the claim that had begun last when
    /// they were reported first.
    unknown: BTreeMap<Attempt, u64>,
    /// Until when claims may be carried out that were given up, by the monotonic clock.
    doubts_until: Option<Duration>,
    /// The targets that the last heartbeat has announced.
    announced: Option<Arc<Targets>>,
    /// Whether this instance counts as alive between two heartbeats, however far they are apart.
    is_alive_between: bool,
}

impl Heartbeat {
    pub(super) fn new(shared: &Arc<Shared>) -> Heartbeat {
        Heartbeat {
            shared: Arc::clone(shared),
            last: None,
            beat_at: None,
            compared: None,
            unknown: BTreeMap::new(),
            doubts_until: None,
            announced: None,
            is_alive_between: false,
        }
    }

    /// For tests, whose clock leaps from one event to the next: a heartbeat that follows another one of this instance ends no
    /// absence.
    pub(crate) fn assume_alive_between_beats(&mut self) {
        self.is_alive_between = true;
    }

    /// Writes that this instance is alive, which renews the lease on every run that it holds, and stops handlers whose
    /// runs are lost or canceled. `sent` is the monotonic time, read before `now`.
    async fn beat(&mut self, now: Timestamp, sent: Duration) -> StoreResult<()> {
        let shared = Arc::clone(&self.shared);
        let Shared { store, options, inflight, claims, last_beat, signals, .. } = &*shared;
        let until = later(now, options.lease.duration);
        let since_last = |at| if self.is_alive_between { Duration::ZERO } else { sent.saturating_sub(at) };
        if shared.may_end_absence(self.beat_at.map(since_last)) {
            shared.note_absence(now).await?;
        }
        let beat = store.heartbeat(&shared.instance(now), Some(until), shared.may_rest()).await?;
        shared.has_begun();
        shared.set_draining(beat.draining);
        self.look(beat.work, now, sent);
        let may_have_lapsed = beat.has_lapsed || beat.has_unleased;
        last_beat.note(sent, may_have_lapsed);
        if may_have_lapsed {
            signals.reap.notify_one();
        }
        if claims.take_dropped() {
            // A claim that was given up may be carried out later than it could be answered.
            self.doubts_until = Some(sent + 4 * options.lease.claim_within());
        }
        if self.must_compare(&beat, sent) {
            // Until it has succeeded.
            self.compared = None;
            self.compare(&beat, now, until, sent).await?;
            self.compared = Some((sent, beat.losses));
        } else {
            inflight.renew_all(sent);
        }
        self.last = Some(now);
        for (report, by) in beat.to_cancel.iter().filter_map(|report| Some((report, report.cancel_by.as_ref()?))) {
            inflight.stop((report.run, report.attempt), &Stop::Canceled { by: by.clone() });
        }
        Ok(())
    }

    /// Wakes the planner and the claimer if there is work for them. They hardly look by themselves while heartbeats do.
    fn look(&self, work: Option<WorkSeen>, now: Timestamp, sent: Duration) {
        let Shared { signals, last_beat, claims, .. } = &*self.shared;
        let looked_before = last_beat.note_look(work.is_some());
        let Some(WorkSeen { is_due, is_pending }) = work else {
            if looked_before {
                // They have to look by themselves again.
                signals.plan.notify_one();
                signals.claim.notify_one();
            }
            return;
        };
        if is_due {
            signals.plan.notify_one();
        } else {
            self.shared.looked(Round::Plan, now, sent, Some(0));
        }
        if is_pending {
            claims.note_pending();
            signals.claim.notify_one();
        }
    }

    /// Whether the runs that this instance holds may be others than those that the store knows.
    fn must_compare(&self, beat: &Beat, sent: Duration) -> bool {
        let lease = &self.shared.options.lease;
        let since = |at: Duration| sent.saturating_sub(at);
        let is_compared = self
            .compared
            .is_some_and(|(at, losses)| losses == beat.losses && since(at) < COMPARE_EVERY_BEATS * lease.heartbeat);
        let is_late = self.beat_at.is_none_or(|at| since(at) > lease.fence_after());
        let doubts = self.doubts_until.is_some_and(|until| sent < until);
        !is_compared || is_late || doubts || beat.is_new || beat.has_unleased || !self.unknown.is_empty()
    }

    /// Compares the runs that this instance holds with those that the store knows: stops handlers whose runs are lost or
    /// canceled, and returns runs that are unknown here.
    async fn compare(&mut self, beat: &Beat, now: Timestamp, until: Timestamp, sent: Duration) -> StoreResult<()> {
        let Shared { store, inflight, instance, .. } = &*self.shared;
        let held = inflight.attempts();
        let reports = if beat.has_unleased {
            // After an outage, leases may have expired that no other instance took. They are still ours, so those count
            // that were valid at the last heartbeat.
            let since = self.last.unwrap_or(now).min(now);
            store.extend_leases(*instance, since, until).await?
        } else {
            store.held_runs(*instance).await?
        };
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
            claims.note_pending();
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
        let targets = self.shared.targets.now();
        let announces = self.announced.as_ref().is_some_and(|announced| !Arc::ptr_eq(announced, &targets));
        if let Some(beat_at) = self.beat_at.filter(|_| !announces) {
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
        if error.is_some() {
            self.shared.last_beat.note_failure();
            // The database may be another one by the next: one that took over may lack the last claims.
            self.compared = None;
        }
        self.shared.events.publish(Event::Heartbeat { begun, error });
        written?;
        self.beat_at = Some(begun);
        self.announced = Some(targets);
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
