//! The recorder: writes the outcomes of runs, in groups.
//!
//! Outcomes that arrive while a group is being written form the next group. The first outcome of a group waits a moment
//! for others, but only while handlers are at work: a lone one is written at once. While the database is away outcomes
//! stay here; there are never more of them than runs in flight. Those of a job that another session holds locked wait apart,
//! and the others do not wait for them.

use std::sync::Arc;
use std::time::Duration;

use everbell_core::store::StoreResult;
use tokio::sync::{Notify, mpsc};

use super::batch::BatchSize;
use super::executor::Done;
use super::locked_jobs::LockedJobs;
use super::outcome_group::OutcomeGroup;
use super::{Shared, Step, Wait};

/// How often to look at outcomes that wait for a lock.
const LOCKED_INTERVAL: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(crate) struct Recorder {
    shared: Arc<Shared>,
    queue: mpsc::UnboundedReceiver<Done>,
    group: OutcomeGroup,
    batch: BatchSize,
    locked: LockedJobs,
}

impl Recorder {
    pub(super) fn new(shared: &Arc<Shared>, queue: mpsc::UnboundedReceiver<Done>) -> Recorder {
        Recorder {
            shared: Arc::clone(shared),
            queue,
            group: OutcomeGroup::new(shared),
            batch: BatchSize::new(shared.options.batch),
            locked: LockedJobs::default(),
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
        self.locked.adopt(&mut self.group);
        let count = self.group.len().min(self.batch.get() as usize);
        if count == 0 {
            return Ok(());
        }
        let written = self.group.write(count).await;
        self.batch.learn(&written);
        match written {
            Err(error) if error.is_locked() => self.locked.record_by_job(&mut self.group, count).await,
            answer => answer,
        }
    }
}

impl Step for Recorder {
    const NAME: &'static str = "recorder";

    async fn step(&mut self) -> StoreResult<Wait> {
        self.locked.look();
        self.gather();
        if self.group.is_empty() {
            return Ok(if self.locked.is_empty() { Wait::ForSignal } else { Wait::For(LOCKED_INTERVAL) });
        }
        let batch = self.shared.options.batch as usize;
        if self.group.len() < batch && !self.shared.options.linger.is_zero() && self.shared.inflight.is_working() {
            tokio::time::sleep(self.shared.options.linger).await;
            self.gather();
        }
        self.write().await?;
        self.shared.signals.claim.notify_one();
        Ok(Wait::No)
    }

    fn signal(shared: &Shared) -> Option<&Notify> {
        Some(&shared.signals.record)
    }
}
