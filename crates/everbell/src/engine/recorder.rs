//! The recorder: writes the outcomes of runs, in groups.
//!
//! Outcomes that arrive while a group is being written form the next group. The first outcome of a group waits a moment
//! for others, but only while handlers are at work: a lone one is written at once. While the database is away outcomes
//! stay here; there are never more of them than runs in flight.

use std::sync::Arc;

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

    /// Writes a batch of the group, which stays as it is if that fails.
    async fn write(&mut self) -> StoreResult<()> {
        let count = self.group.len().min(self.batch.get() as usize);
        let written = self.group.write(count).await;
        self.batch.learn(&written);
        written
    }
}

impl Step for Recorder {
    const NAME: &'static str = "recorder";

    async fn step(&mut self) -> StoreResult<Wait> {
        self.gather();
        if self.group.is_empty() {
            return Ok(Wait::ForSignal);
        }
        let batch = self.shared.options.batch as usize;
        if self.group.len() < batch && !self.shared.options.linger.is_zero() && self.shared.inflight.is_working() {
            tokio::time::sleep(self.shared.options.linger).await;
            self.gather();
        }
        self.write().await?;
        self.shared.tell_of_room();
        Ok(Wait::No)
    }

    fn signal(shared: &Shared) -> Option<&Notify> {
        Some(&shared.signals.record)
    }
}
