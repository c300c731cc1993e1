//! The pruner: deletes history and remembered answers past their retention, a little at a time.

use std::sync::Arc;
use std::time::Duration;

use everbell_core::counting::COUNTER_RETENTION;
use everbell_core::store::{FUTURE_TOLERANCE, PruneBefore, Pruned, REQUEST_RETENTION, StoreResult};
use jiff::Timestamp;
use tokio::sync::Notify;
use tracing::info;

use super::trust::TrustedTime;
use super::{Shared, Step, Wait};
use crate::clock::{earlier, later};
use crate::events::Event;

/// How much is deleted at once.
const MAX_PRUNED_ROWS: u32 = 1_000;
/// The pause between two bites, in which others get at the database.
const BATCH_PAUSE: Duration = Duration::from_millis(200);
/// How often to look when there is nothing left to delete.
const PRUNE_INTERVAL: Duration = Duration::from_mins(10);
/// How long after the start the first history is deleted: what is wrong with the clock shows by then.
const FIRST_PRUNE_AFTER: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub(crate) struct Pruner {
    shared: Arc<Shared>,
    /// The time that history is pruned by; `None` before the first look.
    trusted: Option<TrustedTime>,
    /// Whether it was behind the clock at the last look.
    held: bool,
}

impl Pruner {
    pub(super) fn new(shared: &Arc<Shared>) -> Pruner {
        Pruner { shared: Arc::clone(shared), trusted: None, held: false }
    }

    /// Learns from the database how far the clock can be trusted.
    async fn begin(&self, now: Timestamp) -> StoreResult<TrustedTime> {
        let trace = self.shared.store.clock_trace().await?;
        if let Some(newest) = trace.newest_at.filter(|newest| *newest > later(now, FUTURE_TOLERANCE)) {
            self.shared.events.publish(Event::FutureEntries { newest });
        }
        // A database without a trusted time has one from before: its youngest entry.
        let last = trace.trusted_at.or(trace.newest_at);
        Ok(TrustedTime::new(last, now, self.shared.clock.monotonic()))
    }

    /// The present, as far as it is trusted; written down for the next start.
    async fn trusted_now(&mut self, mut trusted: TrustedTime) -> StoreResult<Timestamp> {
        let Shared { store, clock, events, anchoring, .. } = &*self.shared;
        let now = self.shared.now();
        let time = trusted.advance(now, clock.monotonic(), anchoring.last_step());
        self.trusted = Some(trusted);
        let held = trusted.is_held(now);
        if std::mem::replace(&mut self.held, held) != held {
            events.publish(Event::PruningHeld { trusted: held.then_some(time) });
        }
        store.write_trusted_time(time).await?;
        Ok(time)
    }
}

impl Step for Pruner {
    const NAME: &'static str = "pruner";

    async fn step(&mut self) -> StoreResult<Wait> {
        let Some(trusted) = self.trusted else {
            let trusted = self.begin(self.shared.now()).await?;
            self.trusted_now(trusted).await?;
            return Ok(Wait::For(FIRST_PRUNE_AFTER));
        };
        let now = self.trusted_now(trusted).await?;
        // Without a retention everything is kept: nothing is older than the epoch.
        let before = |keep: Option<Duration>| keep.map_or(Timestamp::UNIX_EPOCH, |keep| earlier(now, keep));
        let before = PruneBefore {
            history: before(self.shared.options.retention),
            audit: before(self.shared.options.audit_retention),
            requests: earlier(now, REQUEST_RETENTION),
        };
        let pruned = self.shared.store.prune(before, MAX_PRUNED_ROWS).await?;
        let Pruned { runs, gaps, audit, answers, jobs, inbox } = pruned;
        if pruned != Pruned::default() {
            info!(runs, gaps, audit, answers, jobs, inbox, "pruned");
        }
        let counters = self.shared.store.prune_counters(earlier(now, COUNTER_RETENTION), MAX_PRUNED_ROWS).await?;
        let more = [runs, gaps, audit, answers, jobs, inbox, counters].contains(&u64::from(MAX_PRUNED_ROWS));
        Ok(Wait::For(if more { BATCH_PAUSE } else { PRUNE_INTERVAL }))
    }

    fn signal(_: &Shared) -> Option<&Notify> {
        None
    }
}
