//! The executor: runs a handler under its timeout, stops it when it must, and settles the run.
//!
//! This is the only place where code of users runs. Each handler has its own task, so it can harm only itself.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use everbell_core::settle::{Outcome, Settling, Then, Transition, settle};
use everbell_core::store::Claim;
use everbell_core::{DEFAULT_TIMEOUT, Definition, Failure, FailureCode, OnLeaseLoss, RunStatus};
use jiff::Timestamp;
use tokio::task::{JoinError, JoinHandle};
use tracing::{Instrument, error, warn};

use super::inflight::{Attempt, Tracked};
use super::{Shared, remote, upstream};
use crate::clock::{between, later};
use crate::events::{Event, RunInfo};
use crate::lease::Lease;
use crate::run::{self, Run};
use crate::run_signals::{RunSignals, Stop};
use crate::targets::{Served, Targets};

/// How long an aborted handler may take to let go. One that does not is blocking its thread.
const ABORT_TIMEOUT: Duration = Duration::from_secs(1);

/// A handler that has ended, and what is to be written about its run.
#[derive(Debug)]
pub(crate) struct Done {
    pub(super) run: RunInfo,
    pub(super) job: Option<Arc<Definition>>,
    pub(super) started_at: Timestamp,
    /// `None` if the run belongs to another instance by now.
    pub(super) transition: Option<Transition>,
    /// Why its handler wants the job paused.
    pub(super) pause: Option<String>,
    /// Whether its remote side goes on with it.
    pub(super) handed_over: bool,
    pub(super) is_backfill: bool,
}

/// How a handler has ended.
pub(super) enum Handled {
    /// It was not called, because the lease was nearly over.
    NotCalled,
    /// Its run goes on in the hands of its remote side.
    HandedOver,
    /// With this outcome.
    Ended(Outcome),
}

impl Done {
    pub(super) fn attempt(&self) -> Attempt {
        (self.run.id, self.run.attempt)
    }
}

/// Begins to work on a run whose claim began at `begun` of the monotonic clock. Its outcome goes to the recorder.
pub(super) fn start(shared: &Arc<Shared>, claim: Claim, begun: Duration) {
    let attempt = (claim.run.id, claim.run.attempt);
    // An instance must not guess about a job that it cannot read.
    let on_loss = claim.job.as_ref().map_or(OnLeaseLoss::Stop, |job| job.policies.lease_loss());
    let tracked = shared.inflight.begin(&claim, begun, on_loss);
    let stops = on_loss == OnLeaseLoss::Stop && shared.store.can_partition();
    let lease = Lease::new(Arc::clone(&tracked.signals), shared.options.lease, stops, Arc::clone(&shared.clock));
    let supervisor = {
        let (shared, tracked) = (Arc::clone(shared), Arc::clone(&tracked));
        // A task is as large as everything that it ever holds, and each of its parts keeps a copy.
        let claim = Box::new(claim);
        tokio::spawn(async move {
            let done = work(&shared, claim, begun, Orders { tracked, lease }).await;
            if shared.inflight.ended(attempt) {
                shared.tell_of_room();
            }
            // An error means that the recorder is gone, and so is everything else.
            drop(shared.done.send(done));
            shared.signals.record.notify_one();
        })
    };
    tracked.supervised(supervisor.abort_handle());
}

/// The signals that may end a handler early.
struct Orders {
    tracked: Arc<Tracked>,
    lease: Lease,
}

async fn work(shared: &Shared, claim: Box<Claim>, begun: Duration, orders: Orders) -> Done {
    let started_at = claim.run.started_at.unwrap_or_else(|| shared.now());
    let (info, is_backfill) = (run::info(&claim), claim.run.is_backfill());
    let settling = settling(&claim);
    let job = claim.job.clone();
    let lag = between(claim.run.scheduled_at, started_at);
    shared.events.publish(Event::Started { run: info.clone(), lag });
    let targets = shared.targets.now();
    let mut handed_over = false;
    let (outcome, output) = match (&claim.run.cancel_by, targets.action_of(&claim.run.target)) {
        // Asked to stop while it waited for another attempt.
        (Some(by), _) => (Some(Outcome::Canceled { by: by.clone() }), String::new()),
        (None, Some(served)) => match upstream::read(shared, &claim).await {
            Ok(upstreams) => supervise(shared, &targets, claim, upstreams, served, orders, &mut handed_over).await,
            Err(failure) => (Some(Outcome::Failed { failure, then: Then::RETRY }), String::new()),
        },
        (None, None) => {
            (Some(failed(FailureCode::HANDLER_ERROR, "this instance does not serve its target")), String::new())
        }
    };
    let pause = match &outcome {
        Some(Outcome::Failed { then: Then::Pause(reason), .. }) => Some(reason.clone()),
        _ => None,
    };
    // A run takes as long as it takes, also if the time of day is corrected meanwhile.
    let ended_at = later(started_at, shared.clock.monotonic().saturating_sub(begun));
    let transition = outcome.and_then(|outcome| settle(&settling, outcome, shared.now()));
    let transition = transition.map(|transition| transition.finished_at(ended_at).with_output(&output));
    if handed_over {
        shared.remote.handed_over.notify_one();
    }
    Done { run: info, job, started_at, transition, pause, handed_over, is_backfill }
}

/// Runs the handler until it ends or has to: how the run ends, `None` if that is not ours to say, and what it printed.
async fn supervise(
    shared: &Shared,
    targets: &Targets,
    claim: Box<Claim>,
    upstreams: Vec<everbell_core::Run>,
    served: &Served,
    Orders { tracked, lease }: Orders,
    handed_over: &mut bool,
) -> (Option<Outcome>, String) {
    let timeout = timeout(&claim, served);
    let signals = Arc::clone(&tracked.signals);
    let tracing = targets.tracing.clone();
    let run = Run::new(*claim, upstreams, shared.events.clone(), Arc::clone(&signals), lease.clone(), tracing);
    let offer = match remote::offer(shared, &run, served, timeout).await {
        Ok(offer) => offer,
        Err(failure) => return (Some(Outcome::Failed { failure, then: Then::RETRY }), String::new()),
    };
    tracked.prints(run.clone(), shared.clock.monotonic());
    let action = Arc::clone(&served.action);
    let mut handler = {
        let (run, lease) = (run.clone(), lease.clone());
        // The call is inside of the task, so a handler that panics before its first await is caught too.
        let span = run.span().clone();
        let inflight = Arc::clone(&shared.inflight);
        let handler = async move {
            // The last look at the clock: an instance may have stood still since the claim was answered.
            if lease.is_nearly_over() {
                return Handled::NotCalled;
            }
            inflight.called(&tracked);
            let outcome = action(run.clone()).await;
            match offer {
                Some(offer) if run.remote_side().is_handed_over() => offer.hand_over(&run).await,
                _ => Handled::Ended(outcome),
            }
        };
        Handler(tokio::spawn(handler.instrument(span)))
    };
    // A handler that does little has ended by then, and needs none of the timers of an interruption.
    tokio::task::yield_now().await;
    let outcome = tokio::select! {
        biased;
        ended = &mut handler.0 => {
            let outcome = match ended.unwrap_or_else(|error| Handled::Ended(broken(error))) {
                Handled::Ended(outcome) => Some(unless_fenced(outcome, &lease)),
                Handled::HandedOver => {
                    *handed_over = true;
                    None
                }
                Handled::NotCalled => {
                    warn!(run = %run.id(), "did not start a run because its lease was nearly over");
                    None
                }
            };
            return (outcome, run.output());
        }
        outcome = interrupted(shared, &signals, &lease, timeout) => outcome,
    };
    // The handler has its grace period to stop, then it is dropped. What it returns meanwhile does not count: it may
    // have stopped half-way or finished.
    signals.cancel();
    tokio::select! {
        biased;
        _ = &mut handler.0 => {}
        () = shared.clock.sleep(shared.options.cancel_grace) => end(&mut handler, &run).await,
        () = lease.must_be_gone() => end(&mut handler, &run).await,
    }
    (outcome, run.output())
}

/// Waits until a handler has to stop: how its run ends then, `None` if that is not ours to say.
async fn interrupted(shared: &Shared, signals: &RunSignals, lease: &Lease, timeout: Duration) -> Option<Outcome> {
    tokio::select! {
        biased;
        why = signals.asked() => match why {
            Stop::Canceled { by } => Some(Outcome::Canceled { by }),
            Stop::LeaseLost => None,
            Stop::Shutdown => Some(Outcome::ShutDown("its instance shut down before it was done".to_owned())),
        },
        () = lease.must_stop() => Some(fenced()),
        () = shared.clock.sleep(timeout) => Some(Outcome::TimedOut(timeout)),
    }
}

/// Drops a handler at its next await.
async fn end(handler: &mut Handler, run: &Run) {
    handler.0.abort();
    if tokio::time::timeout(ABORT_TIMEOUT, &mut handler.0).await.is_err() {
        let (run, target_label) = (run.id(), run.target());
        error!(%run, %target_label, "a handler blocks its thread and cannot be stopped: use spawn_blocking for such work");
    }
}

/// A handler's task, which is aborted when it is dropped.
struct Handler(JoinHandle<Handled>);

impl Drop for Handler {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The shorter of the job's timeout and the target's.
fn timeout(claim: &Claim, served: &Served) -> Duration {
    let job = claim.job.as_ref().map_or(DEFAULT_TIMEOUT, |job| job.policies.timeout);
    served.options.timeout.map_or(job, |target| target.min(job))
}

pub(super) fn settling(claim: &Claim) -> Settling {
    let policies = claim.job.as_ref().map(|job| &job.policies);
    let earlier = claim.run.earlier_attempts.clone();
    Settling::new(claim.run.id, RunStatus::Running, claim.run.attempt, policies).after(earlier)
}

fn failed(code: FailureCode, message: &str) -> Outcome {
    Outcome::Failed { failure: Failure::new(code, message), then: Then::GiveUp }
}

/// It was stopped before another run of the job could start.
fn fenced() -> Outcome {
    let failure = Failure::new(FailureCode::FENCED, "its instance could not renew its lease");
    Outcome::Failed { failure, then: Then::RETRY }
}

/// A failure after the handler had to stop is most likely the stop: a supervisor may have ended the program of an instance that
/// stood still.
fn unless_fenced(outcome: Outcome, lease: &Lease) -> Outcome {
    let had_to_stop = lease.stops_in().is_some_and(|left| left.is_zero());
    if had_to_stop && matches!(outcome, Outcome::Failed { .. }) { fenced() } else { outcome }
}

/// A task that did not come to its end.
fn broken(error: JoinError) -> Outcome {
    match error.try_into_panic() {
        Ok(panic) => Outcome::Panicked(message(panic.as_ref())),
        Err(_) => Outcome::ShutDown("its runtime shut down before it was done".to_owned()),
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}
