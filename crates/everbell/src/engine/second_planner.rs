//! The second planner: while more timers are due than one batch takes, plans others beside the planner.
//!
//! Each waits for the database and for this process by turns, so that two at different points keep both at work. It only
//! plans what can start at once: how long a backlog may wait for room is the [planner](super::planner)'s decision.

use std::sync::Arc;

use everbell_core::Target;
use everbell_core::store::StoreResult;
use tokio::sync::Notify;

use super::batch::BatchSize;
use super::planner::look;
use super::{Shared, Step, Wait};

#[derive(Debug)]
pub(crate) struct SecondPlanner {
    shared: Arc<Shared>,
    batch: BatchSize,
}

impl SecondPlanner {
    pub(super) fn new(shared: &Arc<Shared>) -> SecondPlanner {
        SecondPlanner { shared: Arc::clone(shared), batch: BatchSize::new(shared.options.batch) }
    }
}

impl Step for SecondPlanner {
    const NAME: &'static str = "second planner";

    async fn step(&mut self) -> StoreResult<Wait> {
        let shared = Arc::clone(&self.shared);
        // It pays where two transactions can write at once.
        if !shared.signals.is_behind() || shared.is_draining() || !shared.store.can_partition() {
            return Ok(Wait::ForSignal);
        }
        shared.anchored_now().await?;
        let targets = shared.targets.now();
        let rooms = shared.reserve_for_slots(&targets, self.batch.get());
        if rooms.limit == 0 {
            return Ok(Wait::ForSignal);
        }
        let ready: Vec<Target> = targets.names().filter(|one| rooms.has(one)).cloned().collect();
        let looked = look(&shared, rooms.limit, self.batch, &ready, Some(&rooms)).await;
        drop(rooms);
        shared.tell_claimer();
        self.batch.learn(&looked);
        // What the planner has locked at this moment is not seen here, so less than asked for does not mean that no more is due.
        Ok(if looked?.full { Wait::No } else { Wait::ForSignal })
    }

    fn signal(shared: &Shared) -> Option<&Notify> {
        Some(&shared.signals.plan_aside)
    }
}
