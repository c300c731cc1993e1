//! The reaper: settles runs whose instance sent no heartbeat until the lease expired. They fail, or are retried if
//! their job says so.
//!
//! On a store that no instance can be cut off from, all instances are processes of one machine. There the reaper need
//! not wait for the leases of an instance whose process is certainly gone.
//!
//! Leases are times of day, and handlers of an instance that is cut off stop by their monotonic clock. So a step of the
//! clock ends no lease: after one, the reaper waits for as long as a lease lasts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use everbell_core::settle::{Next, Outcome, Settling, Transition, settle};
use everbell_core::store::{Instance, Recorded, StoreResult};
use everbell_core::{InstanceId, Json, Run};
use jiff::Timestamp;
use tokio::sync::Notify;

use super::process::Process;
use super::reachable::Reachable;
use super::{Shared, Step, Wait, pauses};
use crate::clock::earlier;
use crate::events::Event;
use crate::run::info_of;

/// How many runs are ended at once.
const MAX_REAPED_RUNS: u32 = 100;

/// The number of leases without a heartbeat after which an instance is forgotten.
const FORGET_AFTER_LEASES: u32 = 10;

#[derive(Debug)]
pub(crate) struct Reaper {
    shared: Arc<Shared>,
    reachable: Reachable,
    /// When it last read all leases, by the monotonic clock.
    looked_at: Option<Duration>,
    /// Instances whose processes are gone, and when that was noticed by the monotonic clock.
    gone: BTreeMap<InstanceId, Duration>,
}

/// The supervisor of a killed server gets five seconds to end its programs: until then its runs may still be at work.
const PROGRAMS_END_WITHIN: Duration = Duration::from_secs(6);

/// The heartbeats after which all leases are read although no lease of an instance has lapsed: there may be a run of an
/// instance that ended before its first heartbeat.
const LOOK_EVERY_BEATS: u32 = 8;

/// How often to look while there is such an instance.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

impl Reaper {
    pub(super) fn new(shared: &Arc<Shared>) -> Reaper {
        Reaper { shared: Arc::clone(shared), reachable: Reachable::default(), looked_at: None, gone: BTreeMap::new() }
    }

    /// Instances whose processes on this machine are gone for so long that nothing of them is at work any more.
    async fn dead_neighbours(&mut self, now: Duration) -> StoreResult<Vec<InstanceId>> {
        let Shared { store, process, .. } = &*self.shared;
        let Some(own) = process.as_ref().filter(|_| !store.can_partition()) else { return Ok(Vec::new()) };
        let is_gone = |instance: &Instance| {
            let process = instance.process.as_deref().and_then(Process::parse);
            process.is_some_and(|process| own.sees_gone(&process))
        };
        let gone: Vec<InstanceId> =
            store.list_instances().await?.iter().filter(|one| is_gone(one)).map(|one| one.id).collect();
        self.gone = gone.iter().map(|id| (*id, self.gone.get(id).copied().unwrap_or(now))).collect();
        let is_over = |since: &Duration| now.saturating_sub(*since) >= PROGRAMS_END_WITHIN;
        Ok(self.gone.iter().filter(|(_, since)| is_over(since)).map(|(id, _)| *id).collect())
    }

    /// Returns how long no lease may be taken for over. `reached` is the monotonic time of the last answer.
    fn patience(&mut self, reached: Duration) -> Duration {
        let Shared { options, anchoring, last_beat, .. } = &*self.shared;
        let left = |since: Duration, patience: Duration| patience.saturating_sub(reached.saturating_sub(since));
        // After a start or an outage, every live instance gets the time for a heartbeat.
        let since = self.reachable.since(last_beat, reached);
        let after_outage = left(since, 2 * options.lease.heartbeat);
        // After a step of the clock, leases that were renewed before it may look over while handlers are at work. Those of
        // an instance that cannot renew its leases end with what was left of them.
        let after_step = anchoring.last_step().map(|step| left(step, options.lease.duration));
        after_outage.max(after_step.unwrap_or_default())
    }

    /// Whether no lease can have ended: the last heartbeat saw all others alive, and all leases were read not long ago.
    fn may_rest(&self, now: Duration) -> bool {
        let heartbeat = self.shared.options.lease.heartbeat;
        let has_looked = self.looked_at.is_some_and(|at| now.saturating_sub(at) < LOOK_EVERY_BEATS * heartbeat);
        has_looked && self.shared.last_beat.saw_all_alive(now, 2 * heartbeat)
    }

    async fn reap(&mut self) -> StoreResult<Wait> {
        let shared = Arc::clone(&self.shared);
        let Shared { store, options, inflight, .. } = &*shared;
        let begun = shared.clock.monotonic();
        let looks = !self.may_rest(begun);
        let expired = if looks { store.expired_leases(shared.now(), MAX_REAPED_RUNS).await? } else { Vec::new() };
        if !expired.is_empty() {
            // The clock may have been set back since it was asked last: then every lease looks over.
            shared.anchor().await?;
        }
        let now = shared.now();
        let reached = shared.clock.monotonic();
        let left = self.patience(reached);
        if looks {
            // Until the others had their time, what it saw decides nothing.
            self.looked_at = left.is_zero().then_some(begun);
        }
        let mut over = if left.is_zero() { expired } else { Vec::new() };
        let dead = self.dead_neighbours(reached).await?;
        for instance in &dead {
            over.extend(store.leases_of(*instance, MAX_REAPED_RUNS).await?);
        }
        // What this instance holds itself is the business of its heartbeat.
        let found = over.len();
        over.retain(|run| !inflight.contains((run.id, run.attempt)));
        let lost = self.settle_as_lost(&over, now).await?;
        self.record(&lost, now).await?;
        for instance in dead {
            if store.leases_of(instance, 1).await?.is_empty() {
                store.leave(instance, now, now).await?;
                self.gone.remove(&instance);
            }
        }
        // No instance is forgotten before that either: a step of the clock makes every heartbeat look old.
        if left.is_zero() && looks {
            store.remove_instances(earlier(now, FORGET_AFTER_LEASES * options.lease.duration)).await?;
        }
        let full = found >= MAX_REAPED_RUNS as usize && !lost.is_empty();
        let usual = if left.is_zero() { options.lease.heartbeat } else { left };
        Ok(if full { Wait::No } else { Wait::For(if self.gone.is_empty() { usual } else { usual.min(LOOK_INTERVAL) }) })
    }

    /// The next state of each run, with whose lease it was and when that ran out.
    async fn settle_as_lost(&self, over: &[Settling], now: Timestamp) -> StoreResult<Vec<Transition>> {
        if over.is_empty() {
            return Ok(Vec::new());
        }
        let store = &self.shared.store;
        let instances = store.list_instances().await?;
        let mut lost = Vec::new();
        for run in over {
            // One that cannot be read is settled all the same, without details.
            let details = match store.get_run(run.id).await {
                Ok(read) => lease_details(&read, &instances),
                Err(error) if error.is_transient() => return Err(error),
                Err(_) => None,
            };
            lost.extend(settle(run, Outcome::Lost(details), now));
        }
        Ok(lost)
    }

    async fn record(&self, lost: &[Transition], now: Timestamp) -> StoreResult<()> {
        if lost.is_empty() {
            return Ok(());
        }
        let Shared { store, events, signals, .. } = &*self.shared;
        let recorded = store.record(lost, now).await?;
        for (transition, recorded) in lost.iter().zip(recorded) {
            let run = store.get_run(transition.run_id).await.ok();
            let (consecutive_failures, retry_at) = match (recorded, &transition.to) {
                (Recorded::LeaseLost, _) => continue,
                (Recorded::Applied { .. }, Next::Retry { not_before, .. }) => (0, Some(*not_before)),
                (Recorded::Applied { consecutive_failures }, Next::Finish { .. }) => (consecutive_failures, None),
                (Recorded::Canceled { .. }, _) => {
                    run.as_ref().inspect(|run| events.publish(finished(run)));
                    continue;
                }
            };
            events.publish(Event::Reaped { run: transition.run_id, info: run.as_ref().map(info_of), retry_at });
            if let Some(at) = retry_at {
                signals.claim_at(at);
            }
            if consecutive_failures > 0
                && let Some(run) = run
                && let (Some(job), Some(key)) = (run.job_id, &run.job_key)
            {
                pauses::pause_failing(&self.shared, job, key).await;
            }
        }
        self.shared.claims.note_pending();
        self.shared.signals.claim.notify_one();
        Ok(())
    }
}

/// The event about a run that has ended.
fn finished(run: &Run) -> Event {
    let (code, message) = run.failure.clone().map(|failure| (failure.code, failure.message)).unzip();
    Event::Finished { run: info_of(run), status: run.status, code, message, took: run.duration().unwrap_or_default() }
}

/// `failureDetails` of a run that is lost: the end of its lease, and the instance that had it. The host is unknown if that
/// instance was forgotten before.
fn lease_details(run: &Run, instances: &[Instance]) -> Option<Json> {
    let instance = run.claimed.map(|(_, instance)| instance);
    let host = instance.and_then(|id| instances.iter().find(|one| one.id == id)).map(|one| one.host.as_str());
    let details = serde_json::json!({
        "leaseUntil": run.lease_until.map(|until| until.to_string()),
        "instanceId": instance.map(|id| id.to_string()),
        "host": host,
    });
    Json::parse("details", &details.to_string()).ok()
}

impl Step for Reaper {
    const NAME: &'static str = "reaper";

    async fn step(&mut self) -> StoreResult<Wait> {
        let waited = self.reap().await;
        self.reachable.after(waited)
    }

    fn signal(shared: &Shared) -> Option<&Notify> {
        Some(&shared.signals.reap)
    }
}
