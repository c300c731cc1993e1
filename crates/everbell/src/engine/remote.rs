//! Handing runs over to their remote sides, and ending runs that those hold.

use std::sync::Arc;
use std::time::Duration;

use everbell_core::handover::Handover;
use everbell_core::settle::{Next, Outcome, Then, Transition, cancel_retry};
use everbell_core::store::{Recorded, Store, StoreResult};
use everbell_core::{Failure, FailureCode, OutputSoFar, Run as RunRecord, RunStatus};
use jiff::Timestamp;
use tokio::sync::Notify;
use tracing::{error, warn};

use super::executor::Handled;
use super::{Shared, pauses};
use crate::clock::{Clock, later};
use crate::events::{Event, Events};
use crate::run::{self, Run};
use crate::run_token::RunTokens;
use crate::targets::Served;

/// The wait between two attempts to hand over a run while the database is away.
const RETRY_WAIT: Duration = Duration::from_millis(500);

/// The state of an instance for runs that remote sides hold.
#[derive(Debug, Default)]
pub(crate) struct RemoteRuns {
    pub(super) tokens: RunTokens,
    /// Notified when a run was handed over here.
    pub(super) handed_over: Notify,
}

/// Hands a run over, once its handler has returned.
pub(super) struct Offer {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    events: Events,
    handover: Handover,
}

/// Offers a run to its remote side, if its target has one. The error is a failure of the attempt.
pub(super) async fn offer(
    shared: &Shared,
    run: &Run,
    served: &Served,
    timeout: Duration,
) -> Result<Option<Offer>, Failure> {
    let Some(lease) = served.options.remote_lease else { return Ok(None) };
    let deadline = later(run.started_at(), timeout);
    let handover = Handover { run: run.id(), attempt: run.attempt(), lease, deadline };
    let token = shared.remote.tokens.issue(&*shared.store, &handover).await.map_err(|error| {
        Failure::new(FailureCode::HANDLER_ERROR, &format!("cannot create the token of the run: {error}"))
    })?;
    run.remote_side().offer(token);
    let (store, clock) = (Arc::clone(&shared.store), Arc::clone(&shared.clock));
    Ok(Some(Offer { store, clock, events: shared.events.clone(), handover }))
}

impl Offer {
    /// Hands the run over, also if the database is away for a while: its remote side is at work.
    pub(super) async fn hand_over(self, run: &Run) -> Handled {
        let output = OutputSoFar::new(run.id(), run.attempt(), &run.output()).map(|output| output.text);
        loop {
            let until = self.handover.lease_until(self.clock.now());
            match self.store.hand_over(&self.handover, until, output.as_deref()).await {
                Ok(is_held) => {
                    if is_held {
                        self.events.publish(Event::HandedOver { run: run.info() });
                    }
                    // Its remote side may have ended it already.
                    return Handled::HandedOver;
                }
                Err(error) if error.is_transient() => {
                    warn!(run = %run.id(), %error, "could not hand over a run; retrying");
                    self.clock.sleep(RETRY_WAIT).await;
                }
                Err(error) => {
                    error!(run = %run.id(), %error, "could not hand over a run");
                    let message = format!("could not be handed over: {error}");
                    let failure = Failure::new(FailureCode::HANDLER_ERROR, &message);
                    return Handled::Ended(Outcome::Failed { failure, then: Then::GiveUp });
                }
            }
        }
    }
}

/// Ends a run that its remote side held, or the attempt of it, and follows up on that: publishes events, and pauses a job that
/// failed too often. Returns whether it was written: somebody else may have ended it first.
pub(crate) async fn end(
    store: &dyn Store,
    events: &Events,
    mut transition: Transition,
    claim: &RunRecord,
    now: Timestamp,
) -> StoreResult<bool> {
    let recorded = store.record(std::slice::from_ref(&transition), now).await?;
    let failures = match recorded.into_iter().next() {
        None | Some(Recorded::LeaseLost) => return Ok(false),
        Some(Recorded::Applied { consecutive_failures }) => consecutive_failures,
        Some(Recorded::Canceled { by }) => {
            if let Some(canceled) = cancel_retry(&transition, &by, now) {
                transition = canceled;
            }
            0
        }
    };
    let run = run::info_of(claim);
    match transition.to {
        Next::Retry { not_before, failure, .. } if failure.code == FailureCode::LOST => {
            events.publish(Event::Reaped { run: claim.id, info: Some(run), retry_at: Some(not_before) });
        }
        Next::Retry { not_before, failure, .. } => {
            events.publish(Event::Retrying { run, code: failure.code, not_before });
        }
        Next::Finish { failure: Some(failure), .. } if failure.code == FailureCode::LOST => {
            events.publish(Event::Reaped { run: claim.id, info: Some(run), retry_at: None });
            pause_failing(store, events, claim, failures, now).await;
        }
        Next::Finish { status, finished_at, failure, .. } => {
            let (code, message) = failure.map(|failure| (failure.code, failure.message)).unzip();
            let took = claim.started_at.map_or(Duration::ZERO, |started| crate::clock::between(started, finished_at));
            events.publish(Event::Finished { run, status, code, message, took });
            if status == RunStatus::Failed {
                pause_failing(store, events, claim, failures, now).await;
            }
        }
    }
    Ok(true)
}

async fn pause_failing(store: &dyn Store, events: &Events, run: &RunRecord, failures: u32, now: Timestamp) {
    if failures > 0
        && let (Some(job), Some(key)) = (run.job_id, &run.job_key)
    {
        pauses::pause_failing_in((store, events), job, key, now).await;
    }
}
