//! [`LastBeat`]: what the heartbeat of this instance reported about the others, for the reaper.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The last heartbeat, by the monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct LastBeat(Mutex<State>);

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// When the last one was answered, and whether the lease of another instance may have ended by then; `None` after a
    /// failure.
    answered: Option<(Duration, bool)>,
    /// Since when heartbeats are answered, if one has failed before.
    restored_at: Option<Duration>,
    has_failed: bool,
    /// Whether it looked for work.
    looked: bool,
}

impl LastBeat {
    /// A heartbeat was answered.
    pub(super) fn note(&self, at: Duration, may_have_lapsed: bool) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut state.has_failed) {
            state.restored_at = Some(at);
        }
        state.answered = Some((at, may_have_lapsed));
    }

    /// A heartbeat was answered that looked for work, or did not. Returns whether the one before did.
    pub(super) fn note_look(&self, looked: bool) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut state.looked, looked)
    }

    /// Whether heartbeats look for work, the last one not longer ago than `within`.
    pub(super) fn looks_for_work(&self, now: Duration, within: Duration) -> bool {
        let state = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.looked && state.answered.is_some_and(|(at, _)| now.saturating_sub(at) <= within)
    }

    /// A heartbeat failed.
    pub(super) fn note_failure(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (state.answered, state.has_failed) = (None, true);
    }

    /// Whether every other instance had a lease at the last heartbeat, which was not longer ago than `within`.
    pub(super) fn saw_all_alive(&self, now: Duration, within: Duration) -> bool {
        let state = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.answered.is_some_and(|(at, may_have_lapsed)| !may_have_lapsed && now.saturating_sub(at) <= within)
    }

    /// When the database last was reached again after a heartbeat had failed: `now` if it was not reached since.
    pub(super) fn restored_at(&self, now: Duration) -> Option<Duration> {
        let state = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.has_failed { Some(now) } else { state.restored_at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beat_counts_while_it_is_young_and_until_one_fails() {
        let (beat, at) = (LastBeat::default(), Duration::from_secs);
        assert!(!beat.saw_all_alive(at(0), at(10)), "there was none yet");
        beat.note(at(5), false);
        assert!(beat.saw_all_alive(at(15), at(10)) && !beat.saw_all_alive(at(16), at(10)));
        beat.note(at(10), true);
        assert!(!beat.saw_all_alive(at(10), at(10)), "a lease may have ended");
        beat.note(at(15), false);
        beat.note_failure();
        assert!(!beat.saw_all_alive(at(15), at(10)));
    }

    #[test]
    fn the_end_of_an_outage_is_remembered() {
        let (beat, at) = (LastBeat::default(), Duration::from_secs);
        beat.note(at(5), false);
        assert_eq!(beat.restored_at(at(6)), None);
        beat.note_failure();
        assert_eq!(beat.restored_at(at(9)), Some(at(9)), "it is not over");
        beat.note(at(10), false);
        beat.note(at(15), false);
        assert_eq!(beat.restored_at(at(20)), Some(at(10)));
    }
}
