//! [`OutcomeGroup`]: outcomes that are written together, and what follows from each.

use std::sync::Arc;

use everbell_core::settle::{Next, Transition, cancel_retry};
use everbell_core::store::{Recorded, StoreError, StoreResult};
use everbell_core::{CatchUp, Definition, EarlierAttempt, Failure, FailureCode, Overlap, RunStatus, TriggerType};
use jiff::Timestamp;
use tracing::error;

use super::executor::Done;
use super::inflight::Attempt;
use super::{Shared, pauses};
use crate::clock::between;
use crate::events::Event;

/// Outcomes in the order in which they came.
#[derive(Debug)]
pub(super) struct OutcomeGroup {
    shared: Arc<Shared>,
    outcomes: Vec<Outcome>,
}

#[derive(Debug)]
struct Outcome {
    done: Done,
    /// Whether it may be written already: the answer to a commit was lost.
    in_doubt: bool,
}

impl OutcomeGroup {
    pub(super) fn new(shared: &Arc<Shared>) -> OutcomeGroup {
        OutcomeGroup { shared: Arc::clone(shared), outcomes: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.outcomes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.outcomes.is_empty()
    }

    pub(super) fn push(&mut self, done: Done) {
        self.outcomes.push(Outcome { done, in_doubt: false });
    }

    /// Writes the first outcomes. The group stays as it is if that fails. Returns whether another run may have waited for the
    /// end of one of these.
    pub(super) async fn write(&mut self, count: usize) -> StoreResult<bool> {
        let now = self.shared.now();
        let transitions = self.outcomes[..count].iter().filter_map(|outcome| outcome.done.transition.clone());
        let transitions: Vec<Transition> = transitions.collect();
        let recorded = match self.shared.store.record(&transitions, now).await {
            Ok(recorded) => recorded,
            Err(error) if error.is_transient() => {
                if matches!(error, StoreError::Unavailable { maybe_done: true, .. }) {
                    self.doubt(count);
                }
                return Err(error);
            }
            Err(error) => {
                let recorded = self.one_by_one(count, &error, now).await;
                if recorded.is_err() {
                    // Some of them may be written when one fails.
                    self.doubt(count);
                }
                recorded?
            }
        };
        let (mut answers, mut may_have_waited) = (recorded.into_iter(), false);
        let written: Vec<Outcome> = self.outcomes.drain(..count).collect();
        let attempts: Vec<Attempt> = written.iter().map(|outcome| outcome.done.attempt()).collect();
        let mut may_be_leased = false;
        for Outcome { mut done, in_doubt } in written {
            let applied = match done.transition.as_ref().and_then(|_| answers.next()) {
                Some(Recorded::Applied { .. }) => true,
                Some(Recorded::Canceled { by }) => {
                    done.transition = done.transition.and_then(|retry| cancel_retry(&retry, &by, now));
                    true
                }
                Some(Recorded::LeaseLost) if in_doubt => match &mut done.transition {
                    Some(transition) => is_written(&self.shared, transition).await,
                    None => false,
                },
                Some(Recorded::LeaseLost) | None => false,
            };
            if done.is_backfill {
                self.shared.signals.note_backfill_ended();
            }
            may_have_waited |= done.is_backfill || may_be_waited_for(&done);
            may_be_leased |= done.transition.is_none() && !done.handed_over;
            follow_up(&self.shared, done, applied).await;
        }
        self.shared.inflight.remove(attempts);
        if may_be_leased {
            // Some may still be leased to this instance, and then have to be given back.
            self.shared.claims.note_dropped();
        }
        Ok(may_have_waited)
    }

    fn doubt(&mut self, count: usize) {
        for outcome in &mut self.outcomes[..count] {
            outcome.in_doubt = true;
        }
    }

    /// One of them cannot be written as it is: it must not take the others with it, and is written as a plain failure.
    async fn one_by_one(&mut self, count: usize, error: &StoreError, now: Timestamp) -> StoreResult<Vec<Recorded>> {
        error!(%error, "could not record outcomes together; recording them one by one");
        let store = &self.shared.store;
        let mut recorded = Vec::new();
        for outcome in &mut self.outcomes[..count] {
            let Some(transition) = &mut outcome.done.transition else { continue };
            let answer = match store.record(std::slice::from_ref(transition), now).await {
                Err(error) if !error.is_transient() => {
                    error!(run = %transition.run_id, %error, "could not record an outcome; recording a failure instead");
                    *transition = plain_failure(transition, &error, now);
                    store.record(std::slice::from_ref(transition), now).await?
                }
                answer => answer?,
            };
            recorded.extend(answer);
        }
        Ok(recorded)
    }
}

/// Whether another run is likely to wait for the end of this one: one of the same job that is held back.
fn may_be_waited_for(done: &Done) -> bool {
    let waits = |job: &Arc<Definition>| {
        matches!(job.policies.overlap, Overlap::Queue | Overlap::Replace) || job.policies.catch_up == CatchUp::All
    };
    done.run.trigger != TriggerType::Scheduled || done.job.as_ref().is_none_or(waits)
}

/// Follows up on an outcome: publishes events, wakes the claimer, pauses the job.
async fn follow_up(shared: &Arc<Shared>, done: Done, applied: bool) {
    let Shared { events, signals, .. } = &**shared;
    let Done { run, job, started_at, transition, pause, handed_over, .. } = done;
    match transition.map(|transition| transition.to).filter(|_| applied) {
        Some(Next::Finish { status, finished_at, failure, .. }) => {
            let (code, message) = failure.map(|failure| (failure.code, failure.message)).unzip();
            events.publish(Event::Finished { run, status, code, message, took: between(started_at, finished_at) });
            match (job.filter(|_| status == RunStatus::Failed), pause) {
                (Some(job), Some(reason)) => {
                    pauses::pause_asked(shared, job.id, &job.key, &reason).await;
                }
                (Some(job), None) if job.policies.pause_after_failures.is_some() => {
                    pauses::pause_failing(shared, job.id, &job.key).await;
                }
                _ => {}
            }
        }
        Some(Next::Retry { not_before, failure, .. }) => {
            signals.claim_at(not_before);
            events.publish(Event::Retrying { run, code: failure.code, not_before });
        }
        None if handed_over => {}
        None => events.publish(Event::LeaseLost { run }),
    }
}

/// Whether a transition was written although the answer to its commit was lost. One to a retry becomes one to the end of a
/// run that was asked to stop, which is canceled instead.
async fn is_written(shared: &Shared, transition: &mut Transition) -> bool {
    let Ok(run) = shared.store.get_run(transition.run_id).await else { return false };
    let same_time = |one: Timestamp, other: Timestamp| one.as_microsecond() == other.as_microsecond();
    match &transition.to {
        Next::Finish { status, finished_at, .. } => {
            run.attempt == transition.attempt
                && run.status == *status
                && run.finished_at.is_some_and(|at| same_time(at, *finished_at))
        }
        Next::Retry { ended, .. } => {
            // It may have been started again by now, and it may have been reaped before.
            let is_written = ended.as_ref().is_none_or(|ended| {
                let is_this = |one: &EarlierAttempt| one.attempt == ended.attempt && one.code == ended.code;
                run.earlier_attempts.iter().any(|one| is_this(one) && same_time(one.ended_at, ended.ended_at))
            });
            if is_written
                && run.attempt == transition.attempt
                && let (RunStatus::Canceled, Some(finished_at)) = (run.status, run.finished_at)
            {
                transition.to =
                    Next::Finish { status: run.status, finished_at, failure: run.failure, result: run.result };
            }
            is_written
        }
    }
}

/// Returns a plain failure, which can always be written.
fn plain_failure(transition: &Transition, error: &StoreError, now: Timestamp) -> Transition {
    let message = format!("its outcome could not be recorded: {error}");
    let failure = Some(Failure::new(FailureCode::HANDLER_ERROR, &message));
    let to = Next::Finish { status: RunStatus::Failed, finished_at: now, failure, result: None };
    Transition { to, output: None, ..transition.clone() }
}
