//! Targets: which are served, and a trial of one.

use std::collections::BTreeMap;
use std::time::Duration;

use everbell::core::store::PageRequest;
use everbell::{Everbell, JobKey, RunFilter, RunStatus, StoreResult, Target};
use everbell_core::InstanceId;
use everbell_wire as wire;

use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResponse};
use everbell_wire::form::{Field, Kind as Value, optional};

use super::runs::tried;

pub(crate) const TRY: &[Field] = &[optional("payload", Value::Json, "The input of the target. Default: {}.")];

/// The newest ended runs that failure rates are made of, and how old the oldest of them may be.
const MAX_SAMPLED_RUNS: u32 = 1_000;
const MAX_SAMPLE_AGE: Duration = Duration::from_hours(24);

/// How many of the recent runs of a target failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recent {
    /// The number of runs that ended.
    pub runs: u64,
    /// The number of runs that failed.
    pub failures: u64,
}

impl Recent {
    /// The share that failed, from 0 to 1.
    pub fn failure_rate(self) -> Option<f64> {
        let small = |count: u64| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        (self.runs > 0).then(|| small(self.failures) / small(self.runs))
    }
}

/// The recent runs of each target.
pub async fn recent(bell: &Everbell) -> StoreResult<BTreeMap<Target, Recent>> {
    let filter = RunFilter {
        status: vec![RunStatus::Succeeded, RunStatus::Failed],
        from: bell.now().checked_sub(MAX_SAMPLE_AGE).ok(),
        ..RunFilter::default()
    };
    let page = bell.runs().list(&filter, &PageRequest { limit: MAX_SAMPLED_RUNS, after: None }).await?;
    let mut targets: BTreeMap<Target, Recent> = BTreeMap::new();
    for run in page.items {
        let recent = targets.entry(run.target).or_default();
        recent.runs += 1;
        recent.failures += u64::from(run.status == RunStatus::Failed);
    }
    Ok(targets)
}

pub(crate) async fn list(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let report = request.app.bell.targets().await?;
    let may_read_runs = request.actor.role >= request.app.options().run_history;
    let recent = if may_read_runs { Some(recent(&request.app.bell).await?) } else { None };
    let document = |target: &Target, instances: &[InstanceId], jobs: u64, waiting: &[JobKey]| {
        let recent = recent.as_ref().map(|recent| recent.get(target).copied().unwrap_or_default());
        wire::Target {
            target: target.to_string(),
            instances: instances.iter().map(ToString::to_string).collect(),
            jobs,
            waiting_jobs: waiting.iter().map(ToString::to_string).collect(),
            recent_runs: recent.map(|recent| recent.runs),
            recent_failures: recent.map(|recent| recent.failures),
            failure_rate: recent.and_then(Recent::failure_rate),
        }
    };
    let served = report.served.iter().map(|served| document(&served.target, &served.instances, served.jobs, &[]));
    let unserved =
        report.unserved.iter().map(|unserved| document(&unserved.target, &[], unserved.count, &unserved.jobs));
    let mut items: Vec<wire::Target> = served.chain(unserved).collect();
    items.sort_by(|a, b| a.target.cmp(&b.target));
    ApiResponse::ok(&wire::Targets { items })
}

/// Runs a target once, without a job.
pub async fn try_once(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let target = request.part("target");
    request.expect_payload_allowed(target)?;
    let payload = request.raw("payload");
    let tried_run = match &payload {
        Some(payload) => request.runs().try_target(target, payload).await,
        None => request.runs().try_target(target, serde_json::json!({})).await,
    };
    match tried_run {
        Ok(run) => tried(&request, &run),
        Err(everbell::StoreError::Invalid(invalid)) if invalid.field == "target" => {
            Err(Problem::new(Kind::NotFound, invalid.reason).with("subject", "target").with("name", target))
        }
        Err(error) => Err(error.into()),
    }
}
