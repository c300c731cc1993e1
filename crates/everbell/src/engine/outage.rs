//! [`Outage`]: the database is away, reported once when that starts and once when it ends.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use everbell_core::store::StoreError;

use crate::events::{Event, Events};

/// Loops that cannot reach the database, each with the start of its failure by the monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct Outage(Mutex<Option<State>>);

#[derive(Debug)]
struct State {
    since: Duration,
    failing: BTreeSet<&'static str>,
}

impl Outage {
    /// A loop could not reach it.
    pub(super) fn began(&self, name: &'static str, now: Duration, error: &StoreError, events: &Events) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_none() {
            events.publish(Event::OutageBegan { error: error.to_string() });
        }
        state.get_or_insert_with(|| State { since: now, failing: BTreeSet::new() }).failing.insert(name);
    }

    /// A loop could.
    pub(super) fn over(&self, name: &'static str, now: Duration, events: &Events) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(outage) = state.as_mut() else { return };
        outage.failing.remove(name);
        if outage.failing.is_empty() {
            events.publish(Event::OutageEnded { after: now.saturating_sub(outage.since) });
            *state = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use everbell_store::memory::FaultPoint;

    use super::*;

    #[test]
    fn an_outage_is_told_once_whoever_notices() {
        let (outage, events) = (Outage::default(), Events::new(Vec::new()));
        let mut heard = events.listen();
        let at = Duration::from_secs;
        let error = FaultPoint::Before.error();
        outage.over("planner", at(0), &events);
        for (name, second) in [("planner", 1), ("claimer", 2), ("planner", 3)] {
            outage.began(name, at(second), &error, &events);
        }
        outage.over("planner", at(5), &events);
        outage.over("heartbeat", at(5), &events);
        assert!(matches!(&*heard.try_recv().unwrap(), Event::OutageBegan { .. }));
        assert!(heard.try_recv().is_err(), "the claimer still cannot reach it");
        outage.over("claimer", at(7), &events);
        let ended = heard.try_recv().unwrap();
        assert!(matches!(&*ended, Event::OutageEnded { after } if after.as_secs() == 6), "{ended:?}");
        assert!(heard.try_recv().is_err());
    }
}
