//! Actions on jobs, runs and orgs: [`Jobs`], [`Runs`] and [`Orgs`].
//!
//! Each action is a decision of core, committed by one call of the store together with an audit entry: actor, reason,
//! and what changed. The HTTP API, the command line and the web pages do nothing else.

mod backfill;
mod backfill_changes;
mod backfill_for_all;
mod backfill_reports;
mod calendars;
mod changes;
mod counters;
mod covering;
mod create_or_replace;
mod edit;
mod enqueue;
mod enqueue_many;
mod explain;
mod fires;
mod freezes;
mod in_transaction;
mod inbox;
mod jobs;
mod names;
mod once;
mod org_jobs;
mod org_schedules;
mod org_updates;
mod orgs;
mod purge;
mod remote;
mod reports;
mod rows;
mod run_now;
mod runs;
mod served;
mod trail;
mod what_if;

use std::sync::Arc;

use everbell_core::storable_text;
use everbell_core::store::{AuditEntry, JobRef, Origin, RequestKey, StoreError, StoreResult};
use everbell_core::{Definition, Invalid, JobStatus, Json, Target, TraceContext};
use jiff::Timestamp;
use serde::Serialize;

use backfill::BackfillOptions;
pub use backfill::{BackfillBegun, BackfillPlan, BackfillSlot};
pub use backfill_changes::BackfillEdit;
pub use backfill_for_all::{BackfillOfAll, BackfillSize};
pub use backfill_reports::{BackfillDetails, BackfillReport};
pub(crate) use calendars::current_calendars;
pub use calendars::{CalendarEffect, CalendarWritten, Calendars};
pub use changes::{Change, Editing, Pausing, Rescheduling, Resuming, Retiring, Skipping, Verb};
pub use counters::WindowCounters;
pub use edit::Revising;
pub use enqueue::{Enqueue, EnqueueOutcome, EnqueueTarget, Enqueued};
pub use enqueue_many::EnqueueMany;
pub use explain::Explanation;
pub use freezes::{Freezes, NewFreeze};
pub use jobs::Jobs;
pub use names::IntoJobRef;
pub use org_schedules::OrgSchedules;
pub use org_updates::OrgUpdateStarted;
pub use orgs::Orgs;
pub use remote::{RemoteAnswer, RemoteReport, Reporter};
pub use reports::{ClusterStats, MAX_NEXT_FIRES, NextFire, NextFires, NextRequest, Reports, freeze_at};
pub use rows::Rows;
pub use run_now::{OrgRunNow, RunNow, RunNowRequest};
pub use runs::Runs;
pub(crate) use runs::ad_hoc;
pub(crate) use served::{MAX_NAMED_JOBS, listed};
pub use served::{ServedTarget, TargetReport, TargetStatus, UnservedTarget};
pub(crate) use trail::{Facts, audit_entry, before_and_after, facts};
pub use what_if::JobWhatIf;

use crate::parts::Parts;
use crate::trace::CreatorTrace;

/// The number of attempts while other writers are faster.
pub(crate) const MAX_ATTEMPTS: u32 = 10;

/// The longest name of an actor and the longest reason, in bytes.
const MAX_ACTOR_BYTES: usize = 200;
const MAX_REASON_BYTES: usize = 2_000;

/// The actor and reason of an action, and the parts that it needs.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) parts: Arc<Parts>,
    pub(crate) actor: String,
    reason: Option<String>,
    /// The request that is carried out, if it can be retried.
    request: Option<RequestKey>,
    origin: Origin,
    /// Whether an unknown target is accepted: the caller is no longer there, and its workers may only be away.
    accepts_any_target: bool,
    creator_trace: CreatorTrace,
    /// How backfills run.
    backfill: BackfillOptions,
}

impl Context {
    pub(crate) fn new(parts: &Arc<Parts>) -> Context {
        Context {
            parts: Arc::clone(parts),
            actor: "code".to_owned(),
            reason: None,
            request: None,
            origin: Origin::default(),
            accepts_any_target: false,
            creator_trace: CreatorTrace::default(),
            backfill: BackfillOptions::default(),
        }
    }

    pub(crate) fn accept_any_target(self) -> Context {
        Context { accepts_any_target: true, ..self }
    }

    /// Refuses an unknown target, unless any is accepted. Returns whether an instance serves it.
    async fn expect_known(
        &self,
        target: &Target,
        reader: &mut in_transaction::Reader<'_>,
    ) -> StoreResult<TargetStatus> {
        match self.parts.expect_known_by(target, reader).await {
            Err(StoreError::Invalid(_)) if self.accepts_any_target => Ok(TargetStatus::Unserved),
            answer => answer,
        }
    }

    fn by(self, actor: &str) -> Context {
        Context { actor: storable_text(actor, MAX_ACTOR_BYTES), ..self }
    }

    fn because(self, reason: &str) -> Context {
        Context { reason: Some(storable_text(reason, MAX_REASON_BYTES)), ..self }
    }

    fn with_origin(self, origin: Origin) -> Context {
        Context { origin, ..self }
    }

    pub(crate) fn in_trace(self, context: Option<TraceContext>) -> Context {
        Context { creator_trace: CreatorTrace::Given(context), ..self }
    }

    /// Returns the trace that new runs and one-time jobs continue.
    fn trace_context(&self) -> Option<TraceContext> {
        match &self.creator_trace {
            CreatorTrace::Given(context) => context.clone(),
            CreatorTrace::Current => self.parts.targets.now().tracing.current(),
        }
    }

    /// The same, or else this one: a choice of no trace is a choice too.
    fn trace_context_or(&self, other: Option<TraceContext>) -> Option<TraceContext> {
        match &self.creator_trace {
            CreatorTrace::Given(context) => context.clone(),
            CreatorTrace::Current => self.parts.targets.now().tracing.current().or(other),
        }
    }

    fn now(&self) -> Timestamp {
        self.parts.clock.now()
    }

    /// Adds the current version to the refusal of a change of an earlier one.
    async fn name_current_version<T>(&self, job: &JobRef, answer: StoreResult<T>) -> StoreResult<T> {
        let Err(StoreError::Invalid(invalid)) = &answer else { return answer };
        if !invalid.is_retired() {
            return answer;
        }
        let old = self.parts.store.get_job(job).await?.job.definition;
        let newest = self.parts.store.get_job(&JobRef::Key(old.key.clone())).await?.job;
        let current = Some(&newest.definition).filter(|_| newest.state.status != JobStatus::Retired);
        let current = current.map(|definition| (definition.version, definition.id));
        Err(Invalid::retired_version(&old.key, old.version, current).into())
    }

    /// Creates an audit entry about a change from `before` to `after`.
    fn entry(
        &self,
        action: &str,
        object: String,
        at: Timestamp,
        before: Option<&Facts>,
        after: Option<&Facts>,
    ) -> AuditEntry {
        let entry = audit_entry(&self.actor, action, object, self.reason.as_deref(), at, (before, after));
        AuditEntry { request: self.request.clone(), origin: self.origin.clone(), ..entry }
    }
}

/// Converts a caller's payload to JSON.
fn payload_of(payload: &impl Serialize) -> Result<Json, Invalid> {
    crate::storable::json("payload", payload).map_err(|reason| Invalid::new("payload", reason))
}

impl Parts {
    /// Refuses a payload for one run of a job that the job's target cannot read.
    fn check_run_payload(&self, job: &Definition, payload: Option<&Json>) -> Result<(), Invalid> {
        let Some(payload) = payload else { return Ok(()) };
        self.targets.now().check_payload(&job.target, payload, Some(job.key.as_str()))
    }
}

/// Joins many problems into one: the field of the first, and all texts.
pub(crate) fn refusal(problems: Vec<Invalid>) -> StoreError {
    StoreError::Invalid(joined(problems))
}

fn joined(problems: Vec<Invalid>) -> Invalid {
    let mut problems = problems.into_iter();
    let Some(mut first) = problems.next() else { return Invalid::new("schedule", "is refused") };
    for other in problems {
        first.reason.push_str("; ");
        first.reason.push_str(&other.to_string());
    }
    first
}

/// Whether the answer to a commit was lost: it may have taken effect, so a caller that knows the id reads it back.
pub(crate) fn is_in_doubt(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable { maybe_done: true, .. })
}
