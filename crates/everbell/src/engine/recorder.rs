//! The recorder: writes the outcomes of runs, in groups.
//!
//! Outcomes that arrive while a group is being written form the next group. The first outcome of a group waits a moment
//! for others, but only while handlers are at work: a lone one is written at once. In a herd it waits longer, because runs
//! that are due come before the records of others, and because large groups cost less. While the database is away outcomes
//! stay here; there are never more of them than runs in flight.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use everbell_core::store::StoreResult;
use tokio::sync::{Notify, mpsc};

use super::batch::BatchSize;
use super::executor::Done;
use super::outcome_group::OutcomeGroup;
use super::{Shared, Step, Wait};

#[derive(Debug)]
pub(crate) struct Recorder {
    shared: Arc<Shared>,
    queue: mpsc::UnboundedReceiver<Done>,
    group: OutcomeGroup,
    batch: BatchSize,
}

impl Recorder {
    pub(super) fn new(shared: &Arc<Shared>, queue: mpsc::UnboundedReceiver<Done>) -> Recorder {
        Recorder {
            shared: Arc::clone(shared),
            queue,
            group: OutcomeGroup::new(shared),
            batch: BatchSize::new(shared.options.batch),
        }
    }

    fn gather(&mut self) {
        while self.group.len() < self.shared.options.batch as usize
            && let Ok(done) = self.queue.try_recv()
        {
            self.group.push(done);
        }
    }

    /// Lets others join the group: for a moment while handlers are at work, and longer while the planner has more to plan
    /// and places enough.
    async fn linger(&mut self) {
        let shared = Arc::clone(&self.shared);
        let Shared { options, inflight, signals, .. } = &*shared;
        for waits in 0..MAX_LINGERS_IN_A_HERD {
            let is_herd = || signals.planning.load(Ordering::SeqCst) && inflight.is_half_empty();
            let is_worth = is_herd() || (waits == 0 && inflight.is_working());
            if self.group.len() >= options.batch as usize || options.linger.is_zero() || !is_worth {
                return;
            }
            tokio::time::sleep(options.linger).await;
            self.gather();
        }
    }

    /// Writes a batch of the group, which stays as it is if that fails.
    async fn write(&mut self) -> StoreResult<()> {
        let count = self.group.len().min(self.batch.get() as usize);
        let written = self.group.write(count).await;
        self.batch.learn(&written);
        written
    }
}

/// The most waits for others while the planner has more to plan.
const MAX_LINGERS_IN_A_HERD: u32 = 10;

impl Step for Recorder {
    const NAME: &'static str = "recorder";

    async fn step(&mut self) -> StoreResult<Wait> {
        self.gather();
        if self.group.is_empty() {
            return Ok(Wait::ForSignal);
        }
        self.linger().await;
        self.write().await?;
        self.shared.tell_of_room();
        Ok(Wait::No)
    }

    fn signal(shared: &Shared) -> Option<&Notify> {
        Some(&shared.signals.record)
    }
}
