//! The output saver: saves what runs have printed while they are at work, so that it can be read on every instance, and is not
//! lost with this one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use everbell_core::RunId;
use everbell_core::store::StoreResult;
use tokio::sync::Notify;

use super::{Shared, Step, Wait};

/// How long a run is at work before something is kept, and how long until more is: most runs are done before, and cost
/// nothing.
const SAVE_INTERVAL: Duration = Duration::from_secs(2);
/// How often to look.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Of how many runs something is kept at once. The others have their turn with the next look.
const MAX_SAVED_RUNS: usize = 32;

#[derive(Debug)]
pub(crate) struct OutputSaver {
    shared: Arc<Shared>,
}

impl OutputSaver {
    pub(super) fn new(shared: &Arc<Shared>) -> OutputSaver {
        OutputSaver { shared: Arc::clone(shared) }
    }
}

impl Step for OutputSaver {
    const NAME: &'static str = "output_saver";

    async fn step(&mut self) -> StoreResult<Wait> {
        let Shared { store, inflight, .. } = &*self.shared;
        let now = self.shared.clock.monotonic();
        let unsaved_outputs = inflight.unsaved_outputs(now, SAVE_INTERVAL, MAX_SAVED_RUNS);
        let outputs: Vec<_> = unsaved_outputs.iter().filter_map(|(run, _)| run.output_so_far()).collect();
        if !outputs.is_empty() {
            let kept: BTreeSet<RunId> = store.save_outputs(&outputs).await?.into_iter().collect();
            for (run, bytes) in unsaved_outputs.iter().filter(|(run, _)| kept.contains(&run.id())) {
                inflight.kept((run.id(), run.attempt()), *bytes, now);
            }
        }
        Ok(Wait::For(LOOK_INTERVAL))
    }

    fn signal(_: &Shared) -> Option<&Notify> {
        None
    }
}
