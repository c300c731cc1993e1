//! A run by hand.

use std::future::IntoFuture;

use everbell_core::change::{self, JobChange, JobView};
use everbell_core::org::OrgTask;
use everbell_core::plan;
use everbell_core::store::{AuditEntry, JobRef, StoreError, StoreResult};
use everbell_core::{Invalid, Json, OrgId, Overlap, Run as RunRecord, RunId, SkipReason, TraceContext};
use everbell_store::AppConnection;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;

use super::org_jobs::expect_per_org;
use super::org_updates::{self, OrgUpdateStarted};
use super::{Context, Facts, is_in_doubt, payload_of};
use crate::clock::BoxFuture;
use crate::engine::random;

/// The result of a run by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunNow {
    /// It waits for an executor, and for nothing else.
    Started(RunRecord),
    /// It waits until the active runs of its job have ended.
    Queued(RunRecord),
    /// It is skipped, because of the job's overlap policy.
    Skipped {
        /// The skipped run.
        recorded: RunRecord,
        /// The active run that blocks it.
        blocking: RunId,
    },
}

impl RunNow {
    /// Returns the run, in any case.
    pub fn run(&self) -> &RunRecord {
        match self {
            RunNow::Started(run) | RunNow::Queued(run) | RunNow::Skipped { recorded: run, .. } => run,
        }
    }
}

/// A run by hand that is created when it is awaited. See [`Jobs::run_now`](super::Jobs::run_now).
#[derive(Clone, Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct RunNowRequest {
    context: Context,
    job: Result<JobRef, Invalid>,
    if_revision: Option<u64>,
    payload: Result<Option<Json>, Invalid>,
    overlap: Option<Overlap>,
    org: Option<OrgId>,
    in_turn: bool,
}

/// The most orgs in one request.
const MAX_ORGS: usize = 100;

/// The result of a run by hand for one of several orgs.
#[derive(Debug)]
#[non_exhaustive]
pub struct OrgRunNow {
    /// The org.
    pub org: OrgId,
    /// The run, or why there is none.
    pub outcome: StoreResult<RunNow>,
}

impl RunNowRequest {
    pub(super) fn new(context: Context, job: Result<JobRef, Invalid>) -> RunNowRequest {
        RunNowRequest { context, job, if_revision: None, payload: Ok(None), overlap: None, org: None, in_turn: false }
    }

    /// Sets another payload than the job's.
    pub fn payload(self, payload: impl Serialize) -> RunNowRequest {
        RunNowRequest { payload: payload_of(&payload).map(Some), ..self }
    }

    /// Starts it even if other runs are active.
    pub fn force(self) -> RunNowRequest {
        RunNowRequest { overlap: Some(Overlap::Allow), ..self }
    }

    /// Waits for active runs instead of being skipped.
    pub fn queue(self) -> RunNowRequest {
        RunNowRequest { overlap: Some(Overlap::Queue), ..self }
    }

    /// Creates the run only if the job is still at this revision; otherwise it fails with [`StoreError::Stale`].
    pub fn if_revision(self, revision: u64) -> RunNowRequest {
        RunNowRequest { if_revision: Some(revision), ..self }
    }

    /// Runs it for this org, of a per-org job; also for an org that the job is off for, because it was named.
    pub fn for_org(self, org: &OrgId) -> RunNowRequest {
        RunNowRequest { org: Some(org.clone()), ..self }
    }

    /// Sets the trace that the run continues, or none: default the current one of
    /// [`Builder::tracing`](crate::Builder::tracing).
    pub fn trace_context(self, context: impl Into<Option<TraceContext>>) -> RunNowRequest {
        RunNowRequest { context: self.context.in_trace(context.into()), ..self }
    }

    /// Runs it for each of these orgs, at most 100, one after the other. Each succeeds or fails by itself.
    pub async fn for_orgs(self, orgs: &[OrgId]) -> StoreResult<Vec<OrgRunNow>> {
        if orgs.is_empty() || orgs.len() > MAX_ORGS {
            let reason =
                format!("must be 1 to {MAX_ORGS} orgs, not {}; running for all orgs is a separate request", orgs.len());
            return Err(Invalid::new("orgs", reason).into());
        }
        let job = self.job.clone()?;
        let row = self.context.parts.store.get_job(&job).await?;
        expect_per_org(&row)?;
        let mut answers = Vec::with_capacity(orgs.len());
        for org in orgs {
            let context = self.context.part(org.as_str());
            let outcome = RunNowRequest { context, ..self.clone() }.for_org(org).commit(None).await;
            answers.push(OrgRunNow { org: org.clone(), outcome });
        }
        Ok(answers)
    }

    /// Runs it for every org that the job is not off for, a few at a time; the answer says whether all of them had
    /// their turn.
    pub async fn for_all_orgs(self) -> StoreResult<OrgUpdateStarted> {
        let RunNowRequest { context, job, if_revision, payload, overlap, org: _, in_turn: _ } = self;
        let (job, payload) = (job?, payload?);
        let mut after = Facts::from_iter([("payloadOverridden".to_owned(), json!(payload.is_some()))]);
        if let Some(overlap) = overlap {
            after.insert("overlap".to_owned(), json!(overlap.as_str()));
        }
        let task = OrgTask::RunNow { payload, overlap, trace_context: context.trace_context() };
        org_updates::begin(&context, job, if_revision, "job.run_now", after, &task).await
    }

    /// Waits for its turn, however many runs wait before it.
    pub(super) fn in_turn(self) -> RunNowRequest {
        RunNowRequest { in_turn: true, ..self }
    }

    pub(super) fn stored_payload(self, payload: Json) -> RunNowRequest {
        RunNowRequest { payload: Ok(Some(payload)), ..self }
    }

    /// `of` is the run that is repeated, if it is one.
    pub(super) async fn commit(self, of: Option<RunId>) -> StoreResult<RunNow> {
        let job = self.job.clone()?;
        let context = &self.context;
        if let Some(run) = context.run_before().await? {
            return context.parts.store.get_run(run).await.map(outcome);
        }
        if self.org.is_some() {
            expect_per_org(&context.parts.store.get_job(&job).await?)?;
        }
        let object = match of {
            Some(run) => format!("run:{run}"),
            None => named(context, &job).await?,
        };
        let asked = self.asked(of, object)?;
        let decide = |view: &JobView| self.decide(view, &asked);
        let store = &context.parts.store;
        let changed = match &self.org {
            Some(org) => store.change_org_job(&job, org, self.if_revision, &decide, &asked.audit).await,
            None => store.change_job(&job, self.if_revision, &decide, &asked.audit).await,
        };
        let run = match context.name_current_version(&job, changed).await {
            Ok(changed) => {
                context.parts.events.publish_change(&changed);
                changed.runs.into_iter().find(|run| run.id == asked.id)
            }
            Err(error) if is_in_doubt(&error) => Some(store.get_run(asked.id).await.map_err(|_| error)?),
            Err(error) => return Err(error),
        };
        run.map(outcome).ok_or_else(|| StoreError::not_found("run", asked.id))
    }

    /// Creates the run in a transaction of the application, like [`Jobs::create_in`](super::Jobs::create_in): it starts
    /// when that commits. The job is locked until then, so keep the transaction short. It sends no
    /// [`Event::Fired`](crate::Event::Fired), because the transaction may still be rolled back.
    pub async fn in_tx<C: AppConnection>(self, connection: &mut C) -> StoreResult<RunNow> {
        let job = self.job.clone()?;
        let mut inside = connection.enter(&*self.context.parts.store, "creating a run").await?;
        let row = inside.get_job(&job).await?;
        if self.org.is_some() {
            expect_per_org(&row)?;
        }
        let asked = self.asked(None, format!("job:{}", row.job.definition.key))?;
        let decide = |view: &JobView| self.decide(view, &asked);
        let changed = inside.change_job(&job, self.org.as_ref(), self.if_revision, &decide, &asked.audit).await?;
        inside.finish().await?;
        let run = changed.runs.into_iter().find(|run| run.id == asked.id);
        run.map(outcome).ok_or_else(|| StoreError::not_found("run", asked.id))
    }

    /// The run that is asked for now, and its audit entry about this object.
    fn asked(&self, of: Option<RunId>, object: String) -> StoreResult<Asked> {
        let payload = self.payload.clone()?;
        let now = self.context.now();
        let id = RunId::by_hand(now, random());
        let mut after = Facts::from_iter([("runId".to_owned(), json!(id.to_string()))]);
        if let Some(overlap) = self.overlap {
            after.insert("overlap".to_owned(), json!(overlap.as_str()));
        }
        if let Some(org) = &self.org {
            after.insert("orgId".to_owned(), json!(org.as_str()));
        }
        let action = if of.is_some() {
            "run.rerun"
        } else {
            after.insert("payloadOverridden".to_owned(), json!(payload.is_some()));
            "job.run_now"
        };
        let audit = self.context.entry(action, object, now, None, Some(&after));
        Ok(Asked { id, now, payload, trace_context: self.context.trace_context(), audit })
    }

    fn decide(&self, view: &JobView, asked: &Asked) -> Result<JobChange, Invalid> {
        let Context { parts, actor, .. } = &self.context;
        parts.check_run_payload(&view.job.definition, asked.payload.as_ref())?;
        change::expect_pending_room(view, 1, parts.options.max_pending_runs)?;
        let request = plan::RunNow {
            id: asked.id,
            actor,
            payload: asked.payload.clone(),
            overlap: self.overlap,
            trace_context: asked.trace_context.clone(),
        };
        if self.in_turn {
            return change::run_in_turn(view, &request, asked.now);
        }
        change::run_now(view, &request, asked.now)
    }
}

/// A run that is asked for.
struct Asked {
    id: RunId,
    now: Timestamp,
    payload: Option<Json>,
    trace_context: Option<TraceContext>,
    audit: AuditEntry,
}

impl IntoFuture for RunNowRequest {
    type Output = StoreResult<RunNow>;
    type IntoFuture = BoxFuture<'static, StoreResult<RunNow>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.commit(None))
    }
}

/// The object of an audit entry: jobs are known by their key.
async fn named(context: &Context, job: &JobRef) -> StoreResult<String> {
    Ok(match job {
        JobRef::Key(key) | JobRef::Version(key, _) => format!("job:{key}"),
        JobRef::Id(_) => format!("job:{}", context.parts.store.get_job(job).await?.job.definition.key),
    })
}

fn outcome(run: RunRecord) -> RunNow {
    match run.skip {
        Some(SkipReason::Overlap { blocking }) => RunNow::Skipped { blocking, recorded: run },
        _ if run.held => RunNow::Queued(run),
        _ => RunNow::Started(run),
    }
}
