//! The claimer: takes pending runs, as many as there is room for, and hands them to the executor.
//!
//! An answer that comes too late starts nothing: its leases may have been taken from this instance by then. The claimer
//! does not wait for it, and the heartbeat gives its runs back.

use std::sync::Arc;
use std::time::Duration;

use everbell_core::store::{Claim, StartRuns, StoreError, StoreResult, UnavailableReason};
use tokio::sync::Notify;
use tracing::warn;

use super::batch::BatchSize;
use super::{Shared, Step, Wait, executor};
use crate::clock::{between, later};
use crate::events::Round;

#[derive(Debug)]
pub(crate) struct Claimer {
    shared: Arc<Shared>,
    batch: BatchSize,
}

impl Claimer {
    pub(super) fn new(shared: &Arc<Shared>) -> Claimer {
        Claimer { shared: Arc::clone(shared), batch: BatchSize::new(shared.options.batch) }
    }

    /// Asks for runs. What is not answered in time is dropped, whether or not the database has done it.
    async fn claim(&self, request: &StartRuns<'_>, sent: Duration) -> StoreResult<Vec<Claim>> {
        let Shared { store, options, clock, claims, signals, .. } = &*self.shared;
        let within = options.lease.claim_within();
        let answer = tokio::select! {
            biased;
            answer = store.start_runs(request) => answer,
            () = clock.sleep(within) => Err(late(within)),
        };
        // An instance that stood still finds the answer before it notices that time has passed.
        let is_late = clock.monotonic().saturating_sub(sent) > within;
        let answer = match answer {
            Ok(started) if is_late && !started.is_empty() => {
                warn!(runs = started.len(), "dropped a claim whose answer came too late; its runs are released");
                Err(late(within))
            }
            answer => answer,
        };
        if matches!(answer, Err(StoreError::Unavailable { maybe_done: true, .. })) {
            claims.note_dropped();
            signals.beat.notify_one();
        }
        answer
    }
}

fn late(within: Duration) -> StoreError {
    let what = format!("starting runs: no answer within {} s", within.as_secs_f64());
    StoreError::Unavailable { what, reason: UnavailableReason::TimedOut(within), maybe_done: true, source: None }
}

impl Step for Claimer {
    const NAME: &'static str = "claimer";

    async fn step(&mut self) -> StoreResult<Wait> {
        let Shared { options, inflight, .. } = &*self.shared;
        let rooms = inflight.room(&self.shared.targets);
        if rooms.targets.is_empty() || self.shared.is_draining() {
            // The recorder signals when there is room again.
            return Ok(Wait::ForSignal);
        }
        self.shared.anchored_now().await?;
        // Before the time of day, from which the database counts the lease.
        let begun = self.shared.clock.monotonic();
        let now = self.shared.now();
        let limit = rooms.limit.min(self.batch.get());
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
        let full = claims.len() >= limit as usize || rooms.may_have_more(&claims);
        if !claims.is_empty() {
            self.shared.signals.anchor.notify_one();
        }
        for claim in claims {
            executor::start(&self.shared, claim, begun);
        }
        // From here on its runs are known.
        drop(under_way);
        let retry = self.shared.signals.next_retry(now);
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
