//! The recorder: writes the outcomes of runs, in groups.
//!
//! Outcomes that arrive while a group is being written form the next group. The first outcome of a group waits a moment
//! for others, but only while handlers are at work: a lone one is written at once. While the database is away outcomes
//! stay here; there are never more of them than runs in flight.

use std::sync::Arc;

use everbell_core::settle::{Next, Transition};
use everbell_core::store::{Recorded, StoreError, StoreResult};
use everbell_core::{Failure, FailureCode, Run, RunStatus};
use jiff::Timestamp;
use tokio::sync::{Notify, mpsc};
use tracing::error;

use super::batch::BatchSize;
use super::executor::Done;
use super::{Shared, Step, Wait, pauses};
use crate::clock::between;
use crate::events::Event;

#[derive(Debug)]
pub(crate) struct Recorder {
    shared: Arc<Shared>,
    queue: mpsc::UnboundedReceiver<Done>,
    group: Vec<Done>,
    batch: BatchSize,
    /// The number of outcomes at the start of the group that may already be written: the answer to a commit was lost.
    in_doubt: usize,
}

impl Recorder {
    pub(super) fn new(shared: &Arc<Shared>, queue: mpsc::UnboundedReceiver<Done>) -> Recorder {
        Recorder {
            shared: Arc::clone(shared),
            queue,
            group: Vec::new(),
            batch: BatchSize::new(shared.options.batch),
            in_doubt: 0,
        }
    }

    fn gather(&mut self) {
        while self.group.len() < self.shared.options.batch as usize
            && let Ok(done) = self.queue.try_recv()
        {
            self.group.push(done);
        }
    }

    /// Writes a batch of the group, which stays as it is if that fails.
    async fn write(&mut self) -> StoreResult<()> {
        let now = self.shared.now();
        let count = self.group.len().min(self.batch.get() as usize);
        let transitions = self.group[..count].iter().filter_map(|done| done.transition.clone());
        let transitions: Vec<Transition> = transitions.collect();
        let recorded = self.shared.store.record(&transitions, now).await;
        self.batch.learn(&recorded);
        let recorded = match recorded {
            Ok(recorded) => recorded,
            Err(error) if error.is_transient() => {
                if matches!(error, StoreError::Unavailable { maybe_done: true, .. }) {
                    self.in_doubt = self.in_doubt.max(count);
                }
                return Err(error);
            }
            Err(error) => {
                let recorded = self.one_by_one(count, &error, now).await;
                if recorded.is_err() {
                    // Some of them may be written when one fails.
                    self.in_doubt = self.in_doubt.max(count);
                }
                recorded?
            }
        };
        let mut recorded = recorded.into_iter();
        let written: Vec<Done> = self.group.drain(..count).collect();
        for done in written {
            let in_doubt = self.in_doubt > 0;
            self.in_doubt = self.in_doubt.saturating_sub(1);
            let applied = match done.transition.as_ref().and_then(|_| recorded.next()) {
                Some(Recorded::Applied { .. }) => true,
                Some(Recorded::LeaseLost) if in_doubt => is_written(&self.shared, &done).await,
                Some(Recorded::LeaseLost) | None => false,
            };
            self.shared.inflight.remove(done.attempt());
            self.follow_up(done, applied).await;
        }
        Ok(())
    }

    /// One of them cannot be written as it is: it must not take the others with it, and is written as a plain failure.
    async fn one_by_one(&mut self, count: usize, error: &StoreError, now: Timestamp) -> StoreResult<Vec<Recorded>> {
        error!(%error, "could not record outcomes together; recording them one by one");
        let store = &self.shared.store;
        let mut recorded = Vec::new();
        for done in &mut self.group[..count] {
            let Some(transition) = &mut done.transition else { continue };
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

    /// Follows up on an outcome: publishes events, wakes the claimer, pauses the job.
    async fn follow_up(&self, done: Done, applied: bool) {
        let Shared { events, signals, .. } = &*self.shared;
        let Done { run, job, started_at, transition, pause } = done;
        match transition.map(|transition| transition.to).filter(|_| applied) {
            Some(Next::Finish { status, finished_at, failure, .. }) => {
                let (code, message) = failure.map(|failure| (failure.code, failure.message)).unzip();
                events.publish(Event::Finished { run, status, code, message, took: between(started_at, finished_at) });
                match (job.filter(|_| status == RunStatus::Failed), pause) {
                    (Some(job), Some(reason)) => {
                        pauses::pause_asked(&self.shared, job.id, &job.key, &reason).await;
                    }
                    (Some(job), None) if job.policies.pause_after_failures.is_some() => {
                        pauses::pause_failing(&self.shared, job.id, &job.key).await;
                    }
                    _ => {}
                }
            }
            Some(Next::Retry { not_before, failure, .. }) => {
                signals.claim_at(not_before);
                events.publish(Event::Retrying { run, code: failure.code, not_before });
            }
            None => events.publish(Event::LeaseLost { run }),
        }
    }
}

impl Step for Recorder {
    const NAME: &'static str = "recorder";

    async fn step(&mut self) -> StoreResult<Wait> {
        self.gather();
        if self.group.is_empty() {
            return Ok(Wait::ForSignal);
        }
        let batch = self.shared.options.batch as usize;
        if self.group.len() < batch && !self.shared.options.linger.is_zero() && self.shared.inflight.is_working() {
            tokio::time::sleep(self.shared.options.linger).await;
            self.gather();
        }
        self.write().await?;
        self.shared.signals.claim.notify_one();
        Ok(Wait::No)
    }

    fn signal(shared: &Shared) -> Option<&Notify> {
        Some(&shared.signals.record)
    }
}

/// Whether a transition was written although the answer to its commit was lost.
async fn is_written(shared: &Shared, done: &Done) -> bool {
    let Some(transition) = &done.transition else { return false };
    let Ok(Run { attempt, status, finished_at, .. }) = shared.store.get_run(transition.run_id).await else {
        return false;
    };
    match &transition.to {
        Next::Finish { status: wanted, finished_at: when, .. } => {
            let same_time = finished_at.is_some_and(|at| at.as_microsecond() == when.as_microsecond());
            attempt == transition.attempt && status == *wanted && same_time
        }
        // Another instance may have started it again by now.
        Next::Retry { .. } => attempt > transition.attempt || status == RunStatus::Pending,
    }
}

/// Returns a plain failure, which can always be written.
fn plain_failure(transition: &Transition, error: &StoreError, now: Timestamp) -> Transition {
    let message = format!("its outcome could not be recorded: {error}");
    let failure = Some(Failure::new(FailureCode::HANDLER_ERROR, &message));
    let to = Next::Finish { status: RunStatus::Failed, finished_at: now, failure, result: None };
    Transition { to, output: None, ..transition.clone() }
}
