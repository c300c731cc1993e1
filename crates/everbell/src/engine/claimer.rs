//! The claimer: takes pending runs, as many as there is room for, and hands them to the executor.

use std::sync::Arc;

use everbell_core::store::{StartRuns, StoreResult};
use tokio::sync::Notify;

use super::{Shared, Step, Wait, executor};
use crate::clock::{between, later};
use crate::events::Round;

#[derive(Debug)]
pub(crate) struct Claimer {
    shared: Arc<Shared>,
}

impl Claimer {
    pub(super) fn new(shared: &Arc<Shared>) -> Claimer {
        Claimer { shared: Arc::clone(shared) }
    }
}

impl Step for Claimer {
    const NAME: &'static str = "claimer";

    async fn step(&mut self) -> StoreResult<Wait> {
        let Shared { store, options, inflight, .. } = &*self.shared;
        let (targets, room) = inflight.room(&self.shared.targets);
        if targets.is_empty() || self.shared.is_draining() {
            // The recorder tells when there is room again.
            return Ok(Wait::ForSignal);
        }
        let (now, begun) = (self.shared.now(), self.shared.clock.monotonic());
        let limit = room.min(options.batch);
        let request = StartRuns {
            instance: self.shared.instance,
            targets: &targets,
            limit,
            now,
            lease_until: later(now, options.lease.duration),
        };
        let claims = store.start_runs(&request).await;
        self.shared.looked(Round::Start, now, begun, claims.as_ref().ok().map(Vec::len));
        let claims = claims?;
        let full = claims.len() >= limit as usize;
        for claim in claims {
            executor::start(&self.shared, claim, begun);
        }
        let retry = self.shared.signals.next_retry(now);
        if full {
            return Ok(Wait::No);
        }
        let now = self.shared.now();
        Ok(Wait::For(retry.map_or(options.poll, |retry| between(now, retry).min(options.poll))))
    }

    fn signal(shared: &Shared) -> Option<&Notify> {
        Some(&shared.signals.claim)
    }
}
