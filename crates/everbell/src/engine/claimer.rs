//! The claimer: takes pending runs, as many as there is room for, and hands them to the executor.
//!
//! An answer that comes too late starts nothing: its leases may have been taken from this instance by then. The claimer
//! does not wait for it, and the heartbeat gives its runs back.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use everbell_core::Target;
use everbell_core::store::{Claim, StartRuns, StoreError, StoreResult, UnavailableReason};
use tokio::sync::Notify;

use super::batch::BatchSize;
use super::inflight::Take;
use super::{Shared, Step, Wait, executor};
use crate::clock::{between, later};
use crate::events::Round;

#[derive(Debug)]
pub(crate) struct Claimer {
    shared: Arc<Shared>,
    batch: BatchSize,
    /// When it last looked, by the monotonic clock.
    looked_at: Option<Duration>,
}

/// The most runs that a look takes when none is known to wait.
const MAX_UNEXPECTED_RUNS: u32 = 50;

impl Claimer {
    pub(super) fn new(shared: &Arc<Shared>) -> Claimer {
        Claimer { shared: Arc::clone(shared), batch: BatchSize::new(shared.options.batch), looked_at: None }
    }

    /// There is no room. The recorder signals when there is; if a run may wait for it by then, its place is not for new slots.
    fn wait_for_room(&self) -> Wait {
        let Shared { options, clock, claims, signals, .. } = &*self.shared;
        let (now, monotonic) = (self.shared.now(), clock.monotonic());
        let has_looked = self.looked_at.is_some_and(|at| monotonic.saturating_sub(at) < options.poll);
        if !has_looked || signals.has_due_retry(now) {
            claims.note_pending();
        }
        let retry = signals.next_retry(now);
        Wait::For(retry.map_or(options.poll, |retry| between(now, retry).min(options.poll)))
    }

    /// Asks for runs. What is not answered in time is dropped, whether or not the database has done it.
    async fn claim(&self, request: &StartRuns<'_>, sent: Duration) -> StoreResult<Vec<Claim>> {
        let Shared { store, options, clock, .. } = &*self.shared;
        let within = options.lease.claim_within();
        let answer = tokio::select! {
            biased;
            answer = store.start_runs(request) => answer,
            () = clock.sleep(within) => Err(late(within)),
        };
        match answer {
            // An instance that stood still finds the answer before it notices that time has passed.
            Ok(started) if !started.is_empty() && self.shared.is_late(sent) => {
                self.shared.drop_claims(Some(started.len()));
                Err(late(within))
            }
            Err(error) if error.may_be_done() => {
                self.shared.drop_claims(None);
                Err(error)
            }
            answer => answer,
        }
    }
}

fn late(within: Duration) -> StoreError {
    let what = format!("starting runs: no answer within {} s", within.as_secs_f64());
    StoreError::Unavailable { what, reason: UnavailableReason::TimedOut(within), maybe_done: true, source: None }
}

impl Step for Claimer {
    const NAME: &'static str = "claimer";

    async fn step(&mut self) -> StoreResult<Wait> {
        let Shared { options, inflight, claims: noted, signals, targets, .. } = &*self.shared;
        let targets = targets.now();
        if self.shared.is_draining() || targets.is_empty() {
            return Ok(Wait::ForSignal);
        }
        let look = noted.look();
        let waits = targets.names().any(|target| noted.may_wait(target));
        // Most looks follow the end of runs and find nothing: they leave places to new slots.
        let most = if waits { self.batch.get() } else { self.batch.get().min(MAX_UNEXPECTED_RUNS) };
        let rooms = inflight.reserve(&targets, Take::Pending, most, |_| true);
        if rooms.targets.is_empty() {
            return Ok(self.wait_for_room());
        }
        self.shared.anchored_now().await?;
        // Before the time of day, from which the database counts the lease.
        let begun = self.shared.clock.monotonic();
        let now = self.shared.now();
        let limit = rooms.limit;
        let request = StartRuns {
            instance: self.shared.instance,
            targets: &rooms.targets,
            limit,
            now,
            lease_until: later(now, options.lease.duration),
        };
        let under_way = self.shared.claims.begin();
        let claims = self.claim(&request, begun).await;
        self.batch.learn(&claims);
        self.shared.looked(Round::Start, now, begun, claims.as_ref().ok().map(Vec::len));
        let claims = claims?;
        self.looked_at = Some(begun);
        let full = claims.len() >= limit as usize || rooms.may_have_more(&claims);
        // Of a target that had no room, or not more than it filled, runs may still be pending.
        let (seen, unseen): (Vec<&Target>, Vec<&Target>) =
            targets.names().partition(|target| !full && rooms.has_left(target, &claims));
        noted.saw_all(look, seen.into_iter());
        noted.saw_not_all(unseen.into_iter());
        if !claims.is_empty() {
            signals.anchor.notify_one();
        }
        for claim in claims {
            executor::start(&self.shared, claim, begun);
        }
        // From here on its runs are known.
        drop(under_way);
        drop(rooms);
        if signals.planner_waits.load(Ordering::SeqCst) {
            signals.plan.notify_one();
        }
        let retry = signals.next_retry(now);
        if full {
            return Ok(Wait::No);
        }
        let now = self.shared.now();
        let poll = self.shared.poll();
        Ok(Wait::For(retry.map_or(poll, |retry| between(now, retry).min(poll))))
    }

    fn signal(shared: &Shared) -> Option<&Notify> {
        Some(&shared.signals.claim)
    }
}
