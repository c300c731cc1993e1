//! Since when the database answers, as a loop sees it that judges the silence of others.

use std::time::Duration;

use everbell_core::store::StoreResult;

use super::last_beat::LastBeat;

/// Since when the database answers without a failure in between, by the monotonic clock.
#[derive(Debug, Default)]
pub(super) struct Reachable(Option<Duration>);

impl Reachable {
    /// Since when it answers the loop and the heartbeats of its instance. `reached` is the time of the last answer.
    pub(super) fn since(&mut self, last_beat: &LastBeat, reached: Duration) -> Duration {
        let since = *self.0.get_or_insert(reached);
        last_beat.restored_at(reached).map_or(since, |restored| restored.max(since))
    }

    /// Counts from the next answer on if a step of the loop failed.
    pub(super) fn after<T>(&mut self, step: StoreResult<T>) -> StoreResult<T> {
        if step.is_err() {
            self.0 = None;
        }
        step
    }
}
