//! The resumer: ends what has a time to end, pauses and waits for runs of several jobs.

use std::sync::Arc;
use std::time::Duration;

use everbell_core::change::{self, JobChange, JobView};
use everbell_core::plan::Missed;
use everbell_core::store::{JobRef, StoreError, StoreResult};
use everbell_core::{Invalid, JobId};
use jiff::Timestamp;
use tokio::sync::Notify;

use super::{EVERBELL, Shared, Step, Wait, audit};
use crate::clock::between;
use crate::events::Event;

/// How many pauses are ended at once.
const MAX_RESUMED_JOBS: u32 = 100;
/// How many waits of chains are ended at once.
const MAX_EXPIRED_GROUPS: u32 = 100;
/// The longest time between two looks when no pause is known to end and no signal comes; twice that where the changes of
/// others are heard of.
const POLL_INTERVAL: Duration = Duration::from_secs(30);
/// Looks that a signal asks for are at least so far apart: most signals are about something else.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Resumer {
    shared: Arc<Shared>,
    /// When it looked last, by the monotonic clock.
    last: Option<Duration>,
}

impl Resumer {
    pub(super) fn new(shared: &Arc<Shared>) -> Resumer {
        Resumer { shared: Arc::clone(shared), last: None }
    }

    /// Resumes a job if its pause still ends: an operator may have paused it again, or resumed it.
    async fn resume(&self, job: JobId, now: Timestamp) -> StoreResult<()> {
        let decide = |view: &JobView| over(view, now);
        let key = self.shared.store.get_job(&JobRef::Id(job)).await?.job.definition.key.clone();
        let entry = audit("job.resume", format!("job:{key}"), Some("its pause is over".to_owned()), now);
        match self.shared.store.change_job(&JobRef::Id(job), None, &decide, &entry).await {
            Ok(changed) => {
                self.shared.events.publish(Event::Resumed { job, key });
                self.shared.events.publish_change(&changed);
                self.shared.signals.plan.notify_one();
                Ok(())
            }
            Err(StoreError::Invalid(_) | StoreError::Conflict { .. } | StoreError::Stale { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn over(view: &JobView, now: Timestamp) -> Result<JobChange, Invalid> {
    let until = view.job.state.pause.as_ref().and_then(|pause| pause.until);
    if until.is_none_or(|until| until > now) {
        return Err(Invalid::new("until", "the pause is not over"));
    }
    change::resume(view, Missed::Skip, EVERBELL, now)
}

impl Step for Resumer {
    const NAME: &'static str = "resumer";

    async fn step(&mut self) -> StoreResult<Wait> {
        let now = self.shared.now();
        let begun = self.shared.clock.monotonic();
        let left = self.last.map_or(Duration::ZERO, |last| MIN_INTERVAL.saturating_sub(begun.saturating_sub(last)));
        if !left.is_zero() {
            return Ok(Wait::For(left));
        }
        let ending = self.shared.store.pauses_ending(MAX_RESUMED_JOBS).await?;
        for (job, _) in ending.iter().filter(|(_, until)| *until <= now) {
            self.resume(*job, now).await?;
        }
        let deadline = self.shared.store.expire_run_groups(MAX_EXPIRED_GROUPS, now).await?;
        self.last = Some(begun);
        let next = ending.iter().map(|(_, until)| *until).find(|until| *until > now);
        let next = next.into_iter().chain(deadline).min();
        let poll = if self.shared.store.hears_others() { 2 * POLL_INTERVAL } else { POLL_INTERVAL };
        Ok(Wait::For(next.map_or(poll, |next| between(now, next).min(poll))))
    }

    fn signal(shared: &Shared) -> Option<&Notify> {
        Some(&shared.signals.resume)
    }
}
