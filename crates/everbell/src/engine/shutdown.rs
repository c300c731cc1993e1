//! An instance from its start to its orderly end.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tracing::{error, info, warn};

use super::drive::drive;
use super::{AbortAll, Engine, Shared, Step};
use crate::run_signals::Stop;

/// How long a shutdown waits for a step that has started. A claim whose answer comes later never starts; its lease
/// expires.
const STEP_TIMEOUT: Duration = Duration::from_secs(6);
/// How long recording may take once every handler has ended or was dropped.
const RECORD_TIMEOUT: Duration = Duration::from_secs(6);
/// How long the rest may take: the last steps, and the removal of this instance from the list.
const LAST_TIMEOUT: Duration = Duration::from_secs(3);

/// A loop of the engine ended without being asked to: a defect. The process should be restarted.
#[derive(Debug)]
pub struct EngineFailed {
    what: String,
}

impl EngineFailed {
    pub(crate) fn new(what: impl Into<String>) -> EngineFailed {
        EngineFailed { what: what.into() }
    }
}

impl fmt::Display for EngineFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a loop of the engine ended unexpectedly: {}; start the process again", self.what)
    }
}

impl std::error::Error for EngineFailed {}

/// The two groups of loops, stopped in this order: those that take work, then those that keep it alive.
struct Stops {
    taking: watch::Sender<bool>,
    keeping: watch::Sender<bool>,
}

impl Engine {
    /// Runs the loops until `shutdown` resolves. Then it takes no more work, lets handlers finish for a while, stops
    /// the others, and records everything. Dropping the future ends all of it at once.
    ///
    /// The end takes at most the two grace periods of the options and 12 s, whatever the database does.
    pub(crate) async fn run_until(mut self, shutdown: impl Future<Output = ()>) -> Result<(), EngineFailed> {
        let shared = Arc::clone(&self.shared);
        let _guard = AbortAll::new(&shared);
        info!(instance = %shared.instance, targets = shared.targets.now().names().count(), "engine started");
        let mut shutdown = pin!(shutdown);
        let mut asked = false;
        {
            let mut looked = pin!(self.first_look());
            // Polled before anything starts: a future that listens for signals begins to do so with its first poll. And polled
            // meanwhile: one that uses the database may hold the connection that the first look waits for.
            poll_fn(|waker| {
                asked = asked || shutdown.as_mut().poll(waker).is_ready();
                looked.as_mut().poll(waker)
            })
            .await;
        }
        let shutdown = async {
            if !asked {
                shutdown.await;
            }
        };
        let stops = Stops { taking: watch::channel(false).0, keeping: watch::channel(false).0 };
        let (mut taking, mut keeping) = self.spawn(&stops);
        let failed = tokio::select! {
            () = shutdown => None,
            failed = ended(&mut taking) => Some(failed),
            failed = ended(&mut keeping) => Some(failed),
            () = shared.signals.relay(&*shared.store, &shared.claims) => None,
            () = shared.follow_targets() => None,
        };
        info!(instance = %shared.instance, "engine stopping");
        let (began, planned_until) = (Instant::now(), shared.now());
        stops.taking.send_replace(true);
        if !end_within(STEP_TIMEOUT, &mut taking).await {
            // What an abandoned claim has leased is given back by the next heartbeat.
            shared.drop_claims(None);
        }
        wind_down(&shared, began).await;
        stops.keeping.send_replace(true);
        end_within(LAST_TIMEOUT, &mut keeping).await;
        let leave = shared.store.leave(shared.instance, planned_until, shared.now());
        match timeout(LAST_TIMEOUT, leave).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(%error, "could not deregister this instance; others will notice that it is gone"),
            Err(_) => warn!("could not deregister this instance in time; others will notice that it is gone"),
        }
        info!(instance = %shared.instance, "engine stopped");
        failed.map_or(Ok(()), |what| Err(EngineFailed { what }))
    }

    /// Registers the instance, and takes over what others left behind before anything new is planned. The loops retry
    /// failures.
    async fn first_look(&mut self) {
        let heard = self.heartbeat.step().await;
        let looked = self.claimer.step().await;
        for error in [heard.err(), looked.err()].into_iter().flatten() {
            error!(%error, "the first read of the database failed; retrying");
        }
    }

    fn spawn(self, stops: &Stops) -> (JoinSet<()>, JoinSet<()>) {
        let Engine { planner, second_planner, claimer, resumer, backfiller, repairer, reconciler, pruner, .. } = self;
        let Engine { counter, recorder, heartbeat, reaper, remote_reaper, output_saver, anchor, shared, guard, .. } =
            self;
        // The waiting task holds its own guard.
        guard.disarm();
        let (mut taking, mut keeping) = (JoinSet::new(), JoinSet::new());
        let stop = || stops.taking.subscribe();
        taking.spawn(drive(planner, Arc::clone(&shared), stop()));
        taking.spawn(drive(second_planner, Arc::clone(&shared), stop()));
        taking.spawn(drive(claimer, Arc::clone(&shared), stop()));
        taking.spawn(drive(resumer, Arc::clone(&shared), stop()));
        taking.spawn(drive(backfiller, Arc::clone(&shared), stop()));
        taking.spawn(drive(repairer, Arc::clone(&shared), stop()));
        taking.spawn(drive(reconciler, Arc::clone(&shared), stop()));
        taking.spawn(drive(pruner, Arc::clone(&shared), stop()));
        taking.spawn(drive(counter, Arc::clone(&shared), stop()));
        let stop = || stops.keeping.subscribe();
        keeping.spawn(drive(recorder, Arc::clone(&shared), stop()));
        keeping.spawn(drive(heartbeat, Arc::clone(&shared), stop()));
        keeping.spawn(drive(reaper, Arc::clone(&shared), stop()));
        keeping.spawn(drive(remote_reaper, Arc::clone(&shared), stop()));
        keeping.spawn(drive(output_saver, Arc::clone(&shared), stop()));
        keeping.spawn(drive(anchor, shared, stop()));
        (taking, keeping)
    }
}

/// Resolves when a loop ends, with the reason.
async fn ended(loops: &mut JoinSet<()>) -> String {
    match loops.join_next().await {
        Some(Err(error)) => error.to_string(),
        Some(Ok(())) => "it returned".to_owned(),
        None => std::future::pending().await,
    }
}

/// Waits for loops to end, and abandons those that do not, because the database does not answer them.
/// Returns whether all have ended.
async fn end_within(time: Duration, loops: &mut JoinSet<()>) -> bool {
    let ended = timeout(time, async { while loops.join_next().await.is_some() {} }).await;
    if ended.is_err() {
        warn!(loops = loops.len(), "the database does not answer; abandoning pending requests");
        loops.abort_all();
    }
    ended.is_ok()
}

/// Lets handlers finish, then stops them; returns when every outcome is recorded, or when that takes too long.
async fn wind_down(shared: &Shared, began: Instant) {
    let options = &shared.options;
    if emptied_within(shared, options.shutdown_grace.saturating_sub(began.elapsed())).await {
        return;
    }
    info!(runs = shared.inflight.attempts().len(), "stopping the remaining runs");
    shared.inflight.stop_all(&Stop::Shutdown);
    if !emptied_within(shared, options.cancel_grace + RECORD_TIMEOUT).await {
        let runs = shared.inflight.attempts().len();
        error!(runs, "could not record the last outcomes; those runs count as lost when their leases expire");
    }
}

async fn emptied_within(shared: &Shared, time: std::time::Duration) -> bool {
    tokio::select! {
        biased;
        () = shared.inflight.emptied() => true,
        () = shared.clock.sleep(time) => false,
    }
}
