//! The pruner: deletes history and answers to requests that nobody wants any more, a little at a time.

use std::sync::Arc;
use std::time::Duration;

use everbell_core::store::{Pruned, REQUEST_KEPT, StoreResult};
use jiff::Timestamp;
use tokio::sync::Notify;
use tracing::info;

use super::{Shared, Step, Wait};
use crate::clock::earlier;

/// How much is deleted at once.
const BATCH: u32 = 1_000;
/// The pause between two bites, in which others get at the database.
const BREATH: Duration = Duration::from_millis(200);
/// How often to look when there is nothing left to delete.
const EVERY: Duration = Duration::from_mins(10);

#[derive(Debug)]
pub(crate) struct Pruner {
    shared: Arc<Shared>,
}

impl Pruner {
    pub(super) fn new(shared: &Arc<Shared>) -> Pruner {
        Pruner { shared: Arc::clone(shared) }
    }
}

impl Step for Pruner {
    const NAME: &'static str = "pruner";

    async fn step(&mut self) -> StoreResult<Wait> {
        let now = self.shared.now();
        // Who keeps everything has nothing from before the beginning.
        let before = self.shared.options.retention.map_or(Timestamp::UNIX_EPOCH, |keep| earlier(now, keep));
        let pruned = self.shared.store.prune(before, earlier(now, REQUEST_KEPT), BATCH).await?;
        let Pruned { runs, gaps, audit, answers } = pruned;
        if runs + gaps + audit + answers > 0 {
            info!(runs, gaps, audit, answers, "pruned");
        }
        let more = [runs, gaps, audit, answers].contains(&u64::from(BATCH));
        Ok(Wait::For(if more { BREATH } else { EVERY }))
    }

    fn signal(_: &Shared) -> Option<&Notify> {
        None
    }
}
