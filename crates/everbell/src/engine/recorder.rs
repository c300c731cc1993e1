//! The recorder: writes the outcomes of runs, in groups.
//!
//! Outcomes that arrive while a group is being written form the next group. The first outcome of a group waits a moment
//! for others, but only while handlers are at work: a lone one is written at once. While the database is away outcomes
//! stay here; [`Inflight`](super::Inflight) bounds their number.

use std::sync::Arc;
use std::time::Duration;

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
    /// When the claimer has to look for runs that waited for one that ended, by the monotonic clock.
    look_at: Option<Duration>,
}

/// How long the claimer leaves the end of runs alone that no other run is likely to wait for. A run by hand may, or one that was
/// created in the moment in which they ended.
const LOOK_AFTER: Duration = Duration::from_millis(100);

impl Recorder {
    pub(super) fn new(shared: &Arc<Shared>, queue: mpsc::UnboundedReceiver<Done>) -> Recorder {
        Recorder {
            shared: Arc::clone(shared),
            queue,
            group: OutcomeGroup::new(shared),
            batch: BatchSize::new(shared.options.batch),
            look_at: None,
        }
    }

    fn gather(&mut self) {
        while self.group.len() < self.shared.options.batch as usize
            && let Ok(done) = self.queue.try_recv()
        {
            self.group.push(done);
        }
    }

    /// Writes a batch of the group, which stays as it is if that fails. Returns whether a run may have waited for one of
    /// these.
    async fn write(&mut self) -> StoreResult<bool> {
        let count = self.group.len().min(self.batch.get() as usize);
        let written = self.group.write(count).await;
        self.batch.learn(&written);
        written
    }

    /// Wakes the claimer, at once or a moment later: most looks that follow the end of runs find nothing.
    fn tell_claimer(&mut self, may_have_waited: bool) {
        if may_have_waited {
            self.look_at = None;
            self.shared.signals.claim.notify_one();
        } else {
            let now = self.shared.clock.monotonic();
            self.look_at.get_or_insert(now + LOOK_AFTER);
        }
    }

    /// Wakes the claimer if it is time. Returns how long that will take.
    fn look_in(&mut self) -> Option<Duration> {
        let left = self.look_at?.saturating_sub(self.shared.clock.monotonic());
        if left.is_zero() {
            self.tell_claimer(true);
        }
        self.look_at.map(|_| left)
    }
}

impl Step for Recorder {
    const NAME: &'static str = "recorder";

    async fn step(&mut self) -> StoreResult<Wait> {
        self.gather();
        let look_in = self.look_in();
        if self.group.is_empty() {
            return Ok(look_in.map_or(Wait::ForSignal, Wait::For));
        }
        let batch = self.shared.options.batch as usize;
        if self.group.len() < batch && !self.shared.options.linger.is_zero() && self.shared.inflight.is_working() {
            tokio::time::sleep(self.shared.options.linger).await;
            self.gather();
        }
        let may_have_waited = self.write().await?;
        self.tell_claimer(may_have_waited);
        self.shared.tell_of_room();
        Ok(Wait::No)
    }

    fn signal(shared: &Shared) -> Option<&Notify> {
        Some(&shared.signals.record)
    }
}
