//! The remote reaper: ends runs whose remote side was silent for its lease, and those that took too long.
//!
//! A remote side cannot be heard while no instance answers, so each instance judges its silence only after it could have
//! heard it for a whole lease: see [`HeldRun::expire`]. As for all leases, a step of the clock ends none.

use std::sync::Arc;
use std::time::Duration;

use everbell_core::remote::HeldRun;
use everbell_core::settle::settle;
use everbell_core::store::{StoreError, StoreResult};
use jiff::Timestamp;
use tokio::sync::Notify;

use super::reachable::Reachable;
use super::{Shared, Step, Wait, remote};
use crate::clock::{between, later};

/// How often to look for runs that other instances have handed over.
const LOOK_EVERY: Duration = Duration::from_mins(1);

/// The shortest wait between two looks.
const MIN_WAIT: Duration = Duration::from_millis(50);

/// How many runs are looked at in one step; see [`next_limit`].
const MAX_RUNS: u32 = 100;

#[derive(Debug)]
pub(crate) struct RemoteReaper {
    shared: Arc<Shared>,
    reachable: Reachable,
    /// How many runs the next step looks at.
    limit: u32,
}

impl RemoteReaper {
    pub(super) fn new(shared: &Arc<Shared>) -> RemoteReaper {
        RemoteReaper { shared: Arc::clone(shared), reachable: Reachable::default(), limit: MAX_RUNS }
    }

    /// For how long this instance could have heard remote sides.
    fn heard_for(&mut self, reached: Duration) -> Duration {
        let Shared { anchoring, last_beat, .. } = &*self.shared;
        let since = self.reachable.since(last_beat, reached);
        let since = anchoring.last_step().map_or(since, |step| step.max(since));
        reached.saturating_sub(since)
    }

    async fn reap(&mut self) -> StoreResult<Wait> {
        let shared = Arc::clone(&self.shared);
        let horizon = later(shared.now(), LOOK_EVERY);
        let held = shared.store.remote_runs(horizon, self.limit).await?;
        if held.iter().any(|run| run.due_at() <= shared.now()) {
            // The clock may have been set back since it was asked last: then every lease looks over.
            shared.anchor().await?;
        }
        let heard_for = self.heard_for(shared.clock.monotonic());
        let mut wait = LOOK_EVERY;
        let mut ended = 0;
        for run in &held {
            let now = shared.now();
            match run.expire(now, heard_for).and_then(|outcome| settle(&run.settling, outcome, now)) {
                Some(transition) => {
                    let claim = match shared.store.get_run(run.settling.id).await {
                        Err(StoreError::NotFound { .. }) => continue,
                        claim => claim?,
                    };
                    remote::end(&*shared.store, &shared.events, transition, &claim, now).await?;
                    ended += 1;
                }
                None => wait = wait.min(next_look(run, now, heard_for)),
            }
        }
        if ended > 0 {
            shared.claims.note_pending();
            shared.signals.claim.notify_one();
        }
        let may_hide_more =
            held.len() >= self.limit as usize && held.last().is_some_and(|run| run.due_at() <= shared.now());
        self.limit = next_limit(self.limit, may_hide_more, ended);
        Ok(if may_hide_more { Wait::No } else { Wait::For(wait.max(MIN_WAIT)) })
    }
}

/// How many runs to look at next. While there are as many silent runs as are looked at, and their silence cannot be judged yet,
/// they would hide those behind them, which may be past their deadlines.
fn next_limit(limit: u32, may_hide_more: bool, ended: u32) -> u32 {
    if may_hide_more && ended == 0 { limit.saturating_mul(4) } else { MAX_RUNS }
}

/// How long a run that is not over need not be looked at.
fn next_look(run: &HeldRun, now: Timestamp, heard_for: Duration) -> Duration {
    if run.lease_until < now {
        return run.patience(heard_for).min(between(now, run.deadline));
    }
    // It holds until its last moment.
    between(now, run.due_at()).saturating_add(Duration::from_millis(1))
}

impl Step for RemoteReaper {
    const NAME: &'static str = "remote_reaper";

    async fn step(&mut self) -> StoreResult<Wait> {
        let waited = self.reap().await;
        self.reachable.after(waited)
    }

    fn signal(shared: &Shared) -> Option<&Notify> {
        Some(&shared.remote.handed_over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silent_runs_that_cannot_be_judged_hide_no_others() {
        let more = next_limit(MAX_RUNS, true, 0);
        assert!(more > MAX_RUNS && next_limit(more, true, 0) > more && next_limit(u32::MAX, true, 0) == u32::MAX);
        // With those behind them something ends, or there are no more.
        assert_eq!((next_limit(more, true, 3), next_limit(more, false, 0)), (MAX_RUNS, MAX_RUNS));
    }
}
