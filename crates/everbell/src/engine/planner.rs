//! The planner: due timers become runs and gaps. Read, decide and commit are one transaction of the store; the decision
//! is [`plan`](everbell_core::plan::plan), or [`org::plan`](everbell_core::org::plan) for the timer of an org.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use everbell_core::plan::Plan;
use everbell_core::store::{Due, Planned, StoreResult};
use everbell_core::{JobId, JobKey, Target};
use jiff::Timestamp;
use tokio::sync::Notify;

use super::batch::BatchSize;
use super::{Shared, Step, Wait};
use crate::clock::between;
use crate::events::{Event, Round};

#[derive(Debug)]
pub(crate) struct Planner {
    shared: Arc<Shared>,
    targets: Vec<Target>,
    batch: BatchSize,
}

impl Planner {
    pub(super) fn new(shared: &Arc<Shared>) -> Planner {
        let batch = BatchSize::new(shared.options.batch);
        Planner { targets: shared.targets.names().cloned().collect(), shared: Arc::clone(shared), batch }
    }
}

impl Step for Planner {
    const NAME: &'static str = "planner";

    /// Plans what is due for the targets that this instance serves, then sleeps until the next fire.
    async fn step(&mut self) -> StoreResult<Wait> {
        let Shared { store, signals, events, .. } = &*self.shared;
        if self.targets.is_empty() || self.shared.is_draining() {
            return Ok(Wait::ForSignal);
        }
        let now = self.shared.anchored_now().await?;
        let begun = self.shared.clock.monotonic();
        let limit = self.batch.get();
        let keys = Mutex::default();
        let plan = |due: &Due, now: Timestamp| noting_keys(due, decide(due, now), &keys);
        let planned = store.plan_due(now, limit, &self.targets, &plan).await;
        self.batch.learn(&planned);
        self.shared.looked(Round::Plan, now, begun, planned.as_ref().ok().map(|planned| planned.timers as usize));
        let planned = planned?;
        if planned.runs.iter().any(|run| run.skipped.is_none()) {
            signals.claim.notify_one();
        }
        let full = planned.timers >= limit;
        let next = planned.next_due_at;
        for event in into_events(planned, &keys.into_inner().unwrap_or_else(PoisonError::into_inner)) {
            events.publish(event);
        }
        if full {
            return Ok(Wait::No);
        }
        let now = self.shared.now();
        self.shared.anchoring.note_next_due(next.map(|next| self.shared.clock.monotonic() + between(now, next)));
        let poll = self.shared.poll();
        Ok(Wait::For(next.map_or(poll, |next| between(now, next).min(poll))))
    }

    fn signal(shared: &Shared) -> Option<&Notify> {
        Some(&shared.signals.plan)
    }
}

/// The first of the two decisions, with what the store has read for it.
pub(crate) fn decide(due: &Due, now: Timestamp) -> Plan {
    due.plan(now)
}

/// The keys of jobs with events besides their runs.
pub(crate) type Keys = HashMap<JobId, JobKey>;

/// Remembers the key of a job whose plan has gaps or errors: what a store returns about them has only its id.
fn noting_keys(due: &Due, plan: Plan, keys: &Mutex<Keys>) -> Plan {
    if !plan.gaps.is_empty() || plan.error.is_some() || plan.org_error.is_some() {
        let mut keys = keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.entry(due.job.id).or_insert_with(|| due.job.key.clone());
    }
    plan
}

/// Returns the events of a round of planning.
pub(crate) fn into_events(planned: Planned, keys: &Keys) -> impl Iterator<Item = Event> {
    let fired = planned.runs.into_iter().map(|run| Event::Fired {
        run: run.id,
        job: run.job,
        slot: run.slot_at,
        skipped: run.skipped,
    });
    let gaps = planned.gaps.into_iter().map(|(job, gap)| Event::Gap { job, key: keys.get(&job).cloned(), gap });
    let errored =
        planned.errored.into_iter().map(|(job, reason)| Event::Errored { job, key: keys.get(&job).cloned(), reason });
    let orgs = planned.org_errors.into_iter().map(|(job, org, reason)| {
        let key = keys.get(&job).cloned();
        Event::OrgErrored { job, key, org, reason }
    });
    fired.chain(gaps).chain(errored).chain(orgs)
}
