//! Targets that live instances serve, and jobs that wait for one that no instance serves.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use everbell_core::store::{Instance, JobFilter, PageRequest, StoreResult};
use everbell_core::{InstanceId, Invalid, JobKey, JobStatus, Target, nearest};

use jiff::Timestamp;

use super::in_transaction::Reader;
use crate::clock::earlier;
use crate::parts::Parts;

/// How often, and after which pause, a target that was added a moment ago is looked for among the live instances.
const ANNOUNCEMENT_LOOKS: u32 = 10;
const ANNOUNCEMENT_PAUSE: Duration = Duration::from_millis(100);
/// The most targets that a refusal names.
const MAX_NAMED_TARGETS: usize = 5;
/// The most jobs without a served target that are named, of all targets together.
pub(crate) const MAX_NAMED_JOBS: u32 = 1_000;

/// The targets that live instances serve, and those that jobs need but no live instance serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TargetReport {
    /// The targets that live instances serve.
    pub served: Vec<ServedTarget>,
    /// The targets that current jobs name but no live instance serves: those jobs do not fire.
    pub unserved: Vec<UnservedTarget>,
}

/// A target, and the instances that serve it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServedTarget {
    /// The target.
    pub target: Target,
    /// The live instances, oldest first.
    pub instances: Vec<InstanceId>,
    /// The number of current jobs that name it.
    pub jobs: u64,
}

impl ServedTarget {
    #[doc(hidden)]
    pub fn new(target: Target, instances: Vec<InstanceId>, jobs: u64) -> ServedTarget {
        ServedTarget { target, instances, jobs }
    }
}

impl UnservedTarget {
    #[doc(hidden)]
    pub fn new(target: Target, count: u64, jobs: Vec<JobKey>) -> UnservedTarget {
        UnservedTarget { target, count, jobs }
    }
}

/// A target, and the jobs that need it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnservedTarget {
    /// The target.
    pub target: Target,
    /// The number of current jobs that name it.
    pub count: u64,
    /// Those jobs, in order; of many only the first, or none. [`count`](Self::count) counts them all.
    pub jobs: Vec<JobKey>,
}

/// Whether jobs of a known target fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TargetStatus {
    /// This program or a live instance serves it.
    Served,
    /// No live instance serves it at this moment: its jobs do not fire until one does.
    Unserved,
}

impl Parts {
    pub(crate) fn alive_since(&self) -> Timestamp {
        earlier(self.clock.now(), self.options.lease.duration)
    }

    /// Returns the instances that sent a heartbeat within a lease, oldest first.
    pub(crate) async fn live_instances(&self) -> StoreResult<Vec<Instance>> {
        let since = self.alive_since();
        let instances = self.store.list_instances().await?;
        Ok(instances.into_iter().filter(|instance| instance.heartbeat_at >= since).collect())
    }

    /// Returns the report with at most this many waiting jobs by name, of all targets together.
    pub(crate) async fn target_report(&self, named: u32) -> StoreResult<TargetReport> {
        let mut served: BTreeMap<Target, Vec<InstanceId>> = BTreeMap::new();
        for instance in self.live_instances().await? {
            for target in instance.targets {
                served.entry(target).or_default().push(instance.id);
            }
        }
        let mut jobs: BTreeMap<Target, u64> = BTreeMap::new();
        for group in self.store.count_targets().await? {
            *jobs.entry(group.target).or_default() += group.jobs;
        }
        let lone: Vec<Target> = jobs.keys().filter(|target| !served.contains_key(*target)).cloned().collect();
        let mut waiting = self.waiting_jobs(lone, named).await?;
        let served = served.into_iter().map(|(target, instances)| {
            let jobs = jobs.remove(&target).unwrap_or(0);
            ServedTarget { target, instances, jobs }
        });
        let served = served.collect();
        let unserved = jobs.into_iter().map(|(target, count)| {
            let jobs = waiting.remove(&target).unwrap_or_default();
            UnservedTarget { target, count, jobs }
        });
        Ok(TargetReport { served, unserved: unserved.collect() })
    }

    /// Returns the first of the current jobs that name these targets.
    async fn waiting_jobs(&self, target: Vec<Target>, named: u32) -> StoreResult<BTreeMap<Target, Vec<JobKey>>> {
        let mut waiting: BTreeMap<Target, Vec<JobKey>> = BTreeMap::new();
        if target.is_empty() || named == 0 {
            return Ok(waiting);
        }
        let status = vec![JobStatus::Active, JobStatus::Paused];
        let filter = JobFilter { status, target, ..JobFilter::default() };
        for row in self.store.list_jobs(&filter, &PageRequest { limit: named, after: None }).await?.items {
            let definition = &row.job.definition;
            waiting.entry(definition.target.clone()).or_default().push(definition.key.clone());
        }
        Ok(waiting)
    }

    /// Refuses a target that is unknown: neither this program nor a live instance serves it, the program does not say
    /// that it knows it, and no current job has it. A target that only its jobs know is not served at this moment.
    pub(super) async fn expect_known(&self, target: &Target) -> StoreResult<TargetStatus> {
        self.expect_known_by(target, &mut Reader::Store(&*self.store)).await
    }

    /// Like `expect_known`, by what a transaction of the application sees.
    pub(super) async fn expect_known_by(&self, target: &Target, reader: &mut Reader<'_>) -> StoreResult<TargetStatus> {
        let targets = self.targets.now();
        if targets.serves(target) {
            return Ok(TargetStatus::Served);
        }
        let mut known: BTreeSet<Target> = targets.names().cloned().collect();
        let since = self.alive_since();
        let live = reader.list_instances().await?.into_iter().filter(|instance| instance.heartbeat_at >= since);
        known.extend(live.flat_map(|instance| instance.targets));
        if known.contains(target) {
            return Ok(TargetStatus::Served);
        }
        if self.known.contains(target) || reader.has_jobs_of(target).await? {
            return Ok(TargetStatus::Unserved);
        }
        known.extend(self.known.iter().cloned());
        Err(unknown(target, &known).into())
    }

    /// Waits a moment for a live instance that serves a target of this program: a target that was added is announced by a
    /// heartbeat that follows at once.
    async fn is_announced_soon(&self, target: &Target) -> StoreResult<bool> {
        for _ in 0..ANNOUNCEMENT_LOOKS {
            tokio::time::sleep(ANNOUNCEMENT_PAUSE).await;
            let live = self.live_instances().await?;
            if live.iter().any(|instance| !instance.draining && instance.targets.contains(target)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Refuses a target that no live instance serves now.
    pub(super) async fn expect_served(&self, target: &Target) -> StoreResult<()> {
        // Read first: an instance that stops starting meanwhile is listed.
        let starts = self.starting.any();
        let live = self.live_instances().await?;
        let working = live.into_iter().filter(|instance| !instance.draining);
        let known: BTreeSet<Target> = working.flat_map(|instance| instance.targets).collect();
        if known.contains(target) {
            return Ok(());
        }
        let targets = self.targets.now();
        if targets.serves(target) {
            if starts || self.is_announced_soon(target).await? {
                return Ok(());
            }
            let reason = format!("no live instance serves `{target}` at this moment; start one");
            return Err(Invalid::new("target", reason).into());
        }
        Err(unknown(target, &known).into())
    }
}

fn unknown(target: &Target, known: &BTreeSet<Target>) -> Invalid {
    let names = nearest(target.as_str(), known.iter().map(Target::as_str), MAX_NAMED_TARGETS);
    let more = match known.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Invalid::new("target", format!("unknown target `{target}`; known: {}{more}", listed(&names)))
}

/// Formats names for people: `a`, `b`.
pub(crate) fn listed(names: &[&str]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
