//! Whole lives of no-op runs through the verbs of a store.

use std::sync::Arc;

use everbell_core::plan::{self, PlanContext};
use everbell_core::settle::{Outcome, Settling, settle};
use everbell_core::store::{Due, PlanDue, StartRuns, Store, StoreResult, TargetRoom};
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
    let targets = [Target::new("noop")?];
    let decide = |due: &Due, now: Timestamp| {
        let seen = PlanContext { active: &due.active, upstream_succeeded_at: None, org_spec: None, frozen: &[] };
        plan::plan(&due.job, &due.timer, &seen, now)
    };
    let mut total = 0;
    loop {
        let planned = store.plan_due(&PlanDue::new(now(), batch, &targets), &decide).await?;
        total += planned.runs.len() as u32;
        if planned.timers == 0 {
            return Ok(total);
        }
    }
}

async fn run(store: Arc<dyn Store>, batch: u32) -> StoreResult<u32> {
    let targets = [TargetRoom { target: Target::new("noop")?, room: batch, backfills: true }];
    let instance = InstanceId::new(now(), [3; 10]);
    let lease_until = now() + LEASE;
    let mut total = 0;
    loop {
        let request = StartRuns { instance, targets: &targets, limit: batch, now: now(), lease_until };
        let claims = store.start_runs(&request).await?;
        if claims.is_empty() {
            return Ok(total);
        }
        let transitions: Vec<_> = claims
            .iter()
            .filter_map(|claim| {
                let run = Settling::new(claim.run.id, RunStatus::Running, claim.run.attempt, None);
                settle(&run, Outcome::Succeeded { result: None }, now())
            })
            .collect();
        total += store.record(&transitions, now()).await?.len() as u32;
    }
}
