//! Whole lives of no-op runs through the verbs of a store.

use std::sync::Arc;

use everbell_core::plan::{self, PlanContext};
use everbell_core::settle::{Outcome, Settling, settle};
use everbell_core::store::{Claim, Due, PlanDue, Planned, StartRuns, Store, StoreResult, TargetRoom};
use everbell_core::{InstanceId, RunStatus, Target};
use jiff::{SignedDuration, Timestamp};
use tokio::task::JoinSet;

use super::SLOT;
use super::rate::{Pass, Rate};
use crate::cpu::Meter;

pub(super) const LEASE: SignedDuration = SignedDuration::from_secs(30);

/// The time at which everything happens.
pub(super) fn now() -> Timestamp {
    let slot: Timestamp = SLOT.parse().unwrap_or(Timestamp::UNIX_EPOCH);
    slot + SignedDuration::from_secs(1)
}

/// Plans everything that is due, then starts and ends everything, with this many concurrent tasks.
pub(super) async fn lives(
    store: &Arc<dyn Store>,
    batch: u32,
    tasks: usize,
    runs: u32,
    meter: &mut Meter,
) -> Result<Rate, Box<dyn std::error::Error>> {
    let pass = Pass::begin(meter).await?;
    let planned = all(store, tasks, move |store| claim(store, batch)).await?;
    let pass = pass.claimed().await?;
    let ended = all(store, tasks, move |store| run(store, batch)).await?;
    assert_eq!((planned, ended), (runs, runs), "every run lives once");
    Ok(pass.ended(runs).await?)
}

async fn all<F>(
    store: &Arc<dyn Store>,
    tasks: usize,
    work: impl Fn(Arc<dyn Store>) -> F,
) -> Result<u32, Box<dyn std::error::Error>>
where
    F: Future<Output = StoreResult<u32>> + Send + 'static,
{
    let mut working = JoinSet::new();
    for _ in 0..tasks {
        working.spawn(work(Arc::clone(store)));
    }
    let mut total = 0;
    while let Some(done) = working.join_next().await {
        total += done??;
    }
    Ok(total)
}

pub(super) async fn claim(store: Arc<dyn Store>, batch: u32) -> StoreResult<u32> {
    let mut total = 0;
    loop {
        let planned = plan(&*store, batch).await?;
        total += planned.runs.len() as u32;
        if planned.timers == 0 {
            return Ok(total);
        }
    }
}

async fn run(store: Arc<dyn Store>, batch: u32) -> StoreResult<u32> {
    let mut total = 0;
    loop {
        let claims = start(&*store, batch).await?;
        if claims.is_empty() {
            return Ok(total);
        }
        total += end(&*store, &claims).await?;
    }
}

/// Plans this many due timers once, and starts nothing.
pub(super) async fn plan(store: &dyn Store, batch: u32) -> StoreResult<Planned> {
    let targets = [Target::new("noop")?];
    let decide = |due: &Due, now: Timestamp| {
        let seen = PlanContext { active: &due.active, upstream_succeeded_at: None, org_spec: None, frozen: &[] };
        plan::plan(&due.job, &due.timer, &seen, now)
    };
    store.plan_due(&PlanDue::new(now(), batch, &targets), &decide).await
}

/// Starts this many pending runs once.
pub(super) async fn start(store: &dyn Store, batch: u32) -> StoreResult<Vec<Claim>> {
    let targets = [TargetRoom { target: Target::new("noop")?, room: batch, backfills: true }];
    let instance = InstanceId::new(now(), [3; 10]);
    let request = StartRuns { instance, targets: &targets, limit: batch, now: now(), lease_until: now() + LEASE };
    store.start_runs(&request).await
}

/// Ends runs that succeeded.
pub(super) async fn end(store: &dyn Store, claims: &[Claim]) -> StoreResult<u32> {
    let transitions: Vec<_> = claims
        .iter()
        .filter_map(|claim| {
            let run = Settling::new(claim.run.id, RunStatus::Running, claim.run.attempt, None);
            settle(&run, Outcome::Succeeded { result: None }, now())
        })
        .collect();
    Ok(store.record(&transitions, now()).await?.len() as u32)
}
