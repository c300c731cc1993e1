//! [`Runs`]: everything that is done with runs.

use everbell_core::store::{
    Bucket, Canceled, GapFilter, JobRef, Page, PageRequest, RecentRuns, RunFilter, RunHistogram, RunSummary,
    StoreResult,
};
use everbell_core::{
    Gap, Invalid, JobId, JobStatus, OrgId, Run as RunRecord, RunId, RunStatus, Scope, Target, TraceContext, Trigger,
};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;

use super::run_now::{RunNow, RunNowRequest};
use super::{Context, Facts, is_in_doubt, payload_of};
use crate::engine::random;

/// The most runs that are counted.
const MAX_COUNTED: u32 = 10_000;

/// The most runs of a chain that are listed with the run that started them.
const MAX_STARTED_RUNS: u32 = 100;

/// Actions on runs: `bell.runs().by("ana").cancel(id).await?`.
#[derive(Clone, Debug)]
pub struct Runs {
    pub(super) context: Context,
}

impl Runs {
    pub(crate) fn new(context: Context) -> Runs {
        Runs { context }
    }

    /// Acts in the name of this actor: default `code`.
    #[must_use]
    pub fn by(self, actor: &str) -> Runs {
        Runs { context: self.context.by(actor) }
    }

    /// Sets the origin of the request, for the audit trail.
    #[must_use]
    pub fn with_origin(self, origin: everbell_core::store::Origin) -> Runs {
        Runs { context: self.context.with_origin(origin) }
    }

    /// Sets the reason, for the audit trail.
    #[must_use]
    pub fn because(self, reason: &str) -> Runs {
        Runs { context: self.context.because(reason) }
    }

    /// Sets the trace that new runs and one-time jobs continue, or none: default the current one of
    /// [`Builder::tracing`](crate::Builder::tracing).
    #[must_use]
    pub fn trace_context(self, context: impl Into<Option<TraceContext>>) -> Runs {
        Runs { context: self.context.in_trace(context.into()) }
    }

    /// Returns the runs that this run started when it ended, at most 100.
    pub async fn started_by(&self, run: &RunRecord) -> StoreResult<Vec<RunRecord>> {
        match run.finished_at {
            Some(at) => self.context.parts.store.runs_after(run.id, at, MAX_STARTED_RUNS).await,
            None => Ok(Vec::new()),
        }
    }

    /// Returns one run, with its output; so far, while it is at work.
    pub async fn get(&self, run: RunId) -> StoreResult<RunRecord> {
        self.context.parts.store.get_run(run).await
    }

    /// Lists runs, a page at a time, newest first, without their output.
    pub async fn list(&self, filter: &RunFilter, page: &PageRequest) -> StoreResult<Page<RunRecord>> {
        self.context.parts.store.list_runs(filter, page).await
    }

    /// Counts the runs that match, up to `cap`, which is 1 to 10,000.
    pub async fn count(&self, filter: &RunFilter, cap: u32) -> StoreResult<u32> {
        self.context.parts.store.count_runs(filter, cap).await
    }

    /// Returns the newest runs of each of many jobs, as summaries for charts and timelines. By job key, then newest
    /// first.
    pub async fn recent_runs(&self, recent_runs: &RecentRuns) -> StoreResult<Vec<RunSummary>> {
        self.context.parts.store.recent_runs(recent_runs).await
    }

    /// Counts runs by time and status, and on request their lags and durations.
    pub async fn count_runs_by_time(&self, histogram: &RunHistogram) -> StoreResult<Vec<Bucket>> {
        self.context.parts.store.count_runs_by_time(histogram).await
    }

    /// Lists slots that got no run, a page at a time, newest first.
    pub async fn gaps(&self, filter: &GapFilter, page: &PageRequest) -> StoreResult<Page<(JobId, Option<OrgId>, Gap)>> {
        self.context.parts.store.list_gaps(filter, page).await
    }

    /// Cancels a pending run at once, also one that waits for another attempt; asks the handler of a running one to stop. If
    /// that attempt ends in another way, because its instance is lost for example, the run is canceled instead of retried.
    pub async fn cancel(&self, run: RunId) -> StoreResult<Canceled> {
        let Context { parts, actor, .. } = &self.context;
        let found = parts.store.get_run(run).await?;
        if self.context.run_before().await? == Some(run) {
            let at_once = found.status == RunStatus::Canceled;
            return Ok(if at_once { Canceled::AtOnce } else { Canceled::Requested });
        }
        if found.status.is_terminal() {
            return Ok(Canceled::TooLate(found.status));
        }
        let status = |status: RunStatus| ("status".to_owned(), json!(status.as_str()));
        let before = Facts::from_iter([status(found.status)]);
        let after = Facts::from_iter([match found.status {
            RunStatus::Pending => status(RunStatus::Canceled),
            _ => ("cancelRequested".to_owned(), json!(true)),
        }]);
        let now = self.context.now();
        let audit = self.context.entry("run.cancel", format!("run:{run}"), now, Some(&before), Some(&after));
        parts.store.cancel_run(run, actor, now, &audit).await
    }

    /// Repeats a run: the current version of the job, with the payload of that run. Obeys the job's overlap policy. It
    /// continues the trace of the caller, or else that of the run.
    pub async fn rerun(&self, run: RunId) -> StoreResult<RunNow> {
        self.rerun_as(run, false).await
    }

    /// Repeats a run as one of many: it waits for its turn, however many runs of its job wait before it. It neither is skipped
    /// nor replaces others, whatever the job's overlap policy is.
    pub async fn rerun_in_turn(&self, run: RunId) -> StoreResult<RunNow> {
        self.rerun_as(run, true).await
    }

    /// Returns why [`rerun_in_turn`](Runs::rerun_in_turn) would refuse a run, if `before` more runs of its job were requested
    /// first.
    pub async fn check_rerun(&self, run: &RunRecord, before: u32) -> StoreResult<()> {
        let parts = &self.context.parts;
        let Some(key) = &run.job_key else {
            parts.expect_served(&run.target).await?;
            return Ok(parts.targets.now().check_payload(&run.target, &run.payload, None)?);
        };
        let row = parts.store.get_job(&JobRef::Key(key.clone())).await?;
        if row.status() == JobStatus::Retired {
            return Err(Invalid::retired().into());
        }
        match (row.job.definition.scope, &run.org) {
            (Scope::Global, Some(_)) => super::org_jobs::expect_per_org(&row)?,
            (Scope::PerOrg, None) => return Err(Invalid::new("orgId", "the job fires per org now").into()),
            _ => {}
        }
        parts.check_run_payload(&row.job.definition, Some(&run.payload))?;
        let status = vec![RunStatus::Pending, RunStatus::Running];
        let filter = RunFilter { job_key: Some(key.clone()), org: run.org.clone(), status, ..RunFilter::default() };
        let (active, limit) = (self.count(&filter, MAX_COUNTED).await?, parts.options.max_pending_runs);
        if active.saturating_add(before).saturating_add(1) > limit {
            return Err(Invalid::too_many_pending(active.saturating_add(before) as usize, 1, limit).into());
        }
        Ok(())
    }

    async fn rerun_as(&self, run: RunId, in_turn: bool) -> StoreResult<RunNow> {
        let found = self.get(run).await?;
        let context = self.context.clone().in_trace(self.context.trace_context_or(found.trace_context));
        match found.job_key {
            Some(key) => {
                let request = RunNowRequest::new(context, Ok(JobRef::Key(key)));
                let request = found.org.iter().fold(request, RunNowRequest::for_org);
                let request = if in_turn { request.in_turn() } else { request };
                request.stored_payload(found.payload).commit(Some(run)).await
            }
            None => {
                Runs { context }.insert(found.target, found.payload, "run.rerun", Some(run)).await.map(RunNow::Started)
            }
        }
    }

    /// Runs a target once, without a job. Refused when no live instance serves it.
    pub async fn try_target(&self, target: &str, payload: impl Serialize) -> StoreResult<RunRecord> {
        let (target, payload) = (Target::new(target)?, payload_of(&payload)?);
        self.insert(target, payload, "target.try", None).await
    }

    async fn insert(
        &self,
        target: Target,
        payload: everbell_core::Json,
        action: &str,
        of: Option<RunId>,
    ) -> StoreResult<RunRecord> {
        let Context { parts, actor, .. } = &self.context;
        if let Some(run) = self.context.run_before().await? {
            return parts.store.get_run(run).await;
        }
        parts.expect_served(&target).await?;
        parts.targets.now().check_payload(&target, &payload, None)?;
        let now = self.context.now();
        let mut run = ad_hoc(target, payload, actor, now);
        run.trace_context = self.context.trace_context();
        let after = Facts::from_iter([
            ("runId".to_owned(), json!(run.id.to_string())),
            ("target".to_owned(), json!(run.target.as_str())),
        ]);
        let object = format!("run:{}", of.unwrap_or(run.id));
        let audit = self.context.entry(action, object, now, None, Some(&after));
        match parts.store.insert_run(&run, &audit).await {
            Err(error) if is_in_doubt(&error) => parts.store.get_run(run.id).await.map_err(|_| error),
            answer => answer.map(|()| run),
        }
    }
}

/// A new run without a job.
pub(crate) fn ad_hoc(target: Target, payload: everbell_core::Json, actor: &str, now: Timestamp) -> RunRecord {
    let mut run = RunRecord::new(RunId::by_hand(now, random()), target, Trigger::AdHoc(actor.to_owned()), now, now);
    run.payload = payload;
    run
}
