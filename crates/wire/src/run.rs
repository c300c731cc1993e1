//! Runs and gaps.

use everbell_core::{self as core, SkipReason, Trigger, Zone};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::raw::parsed;
pub use crate::run_status::RunStatus;
pub use crate::started_run::StartedRun;
use crate::words::words;
use crate::{OrgUpdateStarted, Raw, RemoteSide};

words!(
    /// The trigger of a run.
    TriggerType from core::TriggerType {
        /// A schedule.
        Scheduled = "scheduled",
        /// A request by a client.
        Manual = "manual",
        /// A trial of a target, without a job.
        AdHoc = "ad_hoc",
        /// The end of a run of another job.
        After = "after",
    }
);

words!(
    /// The origin of a run, in more detail than `triggerType`.
    Origin {
        /// A slot, in time.
        Slot = "slot",
        /// A slot that was missed at first.
        CatchUp = "catch_up",
        /// A backfill.
        Backfill = "backfill",
        /// A request by a client.
        Manual = "manual",
        /// A trial of a target, without a job.
        AdHoc = "ad_hoc",
        /// The end of a run of another job.
        After = "after",
    }
);

words!(
    /// Why a slot was skipped.
    Skip {
        /// An earlier run of the job was active.
        Overlap = "overlap",
        /// The job that it depends on had no recent success.
        Dependency = "dependency",
        /// An operator skipped it.
        Operator = "operator",
    }
);

words!(
    /// The result of a request to run a job.
    RunNowOutcome {
        /// It starts.
        Started = "started",
        /// It waits for active runs of its job.
        Queued = "queued",
        /// It was skipped.
        Skipped = "skipped",
        /// It was not created.
        Refused = "refused",
    }
);

words!(
    /// The result of a request to cancel a run.
    CancelOutcome {
        /// It is canceled.
        Canceled = "canceled",
        /// Its handler was asked to stop.
        Requested = "requested",
    }
);

/// A run. The first seventeen members never change their meaning.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Its id.
    pub id: String,
    /// An alias of `jobId`.
    #[schema(deprecated)]
    pub job_definition_id: Option<String>,
    /// The key of the job.
    pub job_key: Option<String>,
    /// The version of the job.
    pub job_version: Option<u32>,
    /// Its target.
    pub target: String,
    /// Its input.
    #[schema(value_type = Value)]
    pub payload_snapshot: Option<Raw>,
    /// How the run came about. This is the member to filter and group by; `origin` says which kind of slot it was, and
    /// `triggerLabel` names the schedule or the actor.
    pub trigger_type: TriggerType,
    /// When it was to start.
    pub scheduled_at: Timestamp,
    /// When its current or last attempt started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// Its state.
    pub status: RunStatus,
    /// Why it failed, as a stable word.
    pub failure_code: Option<String>,
    /// Why it failed, in words.
    pub failure_message: Option<String>,
    /// More about the failure.
    pub failure_details: Option<Value>,
    /// The instance that executes or executed it; null once its remote side holds it.
    pub runner_instance_id: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
    /// The id of the job's version; null for a trial of a target.
    pub job_id: Option<String>,
    /// How long its last attempt took.
    pub duration_ms: Option<i64>,
    /// How late its first attempt started; null for later attempts.
    pub lag_ms: Option<i64>,
    /// The detail of `triggerType`: a slot on time, a slot that was missed at first, or a backfill.
    pub origin: Origin,
    /// `triggerType` with the schedule or the actor, for people: `schedule:0 8 * * *` or `manual:token:ops`.
    pub trigger_label: String,
    /// Its slot; null for a requested run.
    pub slot_at: Option<Timestamp>,
    /// Its slot in the zone of the job, or of the org if that has not moved since.
    pub slot_at_local: Option<String>,
    /// The number of the current or last attempt, from 1; 0 before the first.
    pub attempt: u32,
    /// The attempts before the current or last one, oldest first. An attempt that never started is not listed.
    #[serde(default)]
    #[schema(required = true)]
    pub earlier_attempts: Vec<EarlierAttempt>,
    /// When the next attempt may start, for a run that is retried.
    pub next_attempt_at: Option<Timestamp>,
    /// How many earlier slots were folded into it.
    pub folded_slots: u64,
    /// Whether it waits until active runs of its job have ended.
    pub queued: bool,
    /// When its instance claimed it.
    pub claimed_at: Option<Timestamp>,
    /// When its lease ends unless it is renewed.
    pub lease_until: Option<Timestamp>,
    /// Whether it was asked to stop.
    pub cancel_requested: bool,
    /// The actor that asked it to stop.
    pub cancel_requested_by: Option<String>,
    /// Why its slot was skipped.
    pub skip_reason: Option<Skip>,
    /// Why its slot was skipped, in words.
    pub skip_detail: Option<String>,
    /// The active run that caused the skip.
    pub active_run_id: Option<String>,
    /// Its org, for a job with scope `per_org`.
    pub org_id: Option<String>,
    /// The local date of its slot in the zone of its org.
    #[schema(format = Date)]
    pub local_date: Option<String>,
    /// The backfill that created it.
    pub backfill_id: Option<String>,
    /// The run of another job whose end started this one.
    pub upstream_run_id: Option<String>,
    /// All runs of other jobs that this one waited for: the one that ended last comes first.
    #[serde(default)]
    pub upstream_run_ids: Vec<String>,
    /// The runs of other jobs that this one started when it ended: at most 100, and only for a single run.
    pub started_runs: Option<Vec<StartedRun>>,
    /// A key that is the same for the same slot on every instance and in every attempt.
    pub idempotency_key: String,
    /// The W3C trace of the request that created the run or its one-time job; null if that had none, and for slots of
    /// recurring jobs. The calls of a target then begin a trace with the id of the run, without dashes.
    #[serde(default)]
    pub trace_id: Option<String>,
    /// Its remote side, while that holds it; only for a single run.
    #[serde(default)]
    #[schema(required = false)]
    pub remote: Option<RemoteSide>,
    /// The result of its handler.
    pub result: Option<Value>,
    /// The end of what its current or last attempt printed; only for a single run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub output: Option<String>,
}

/// An attempt of a run that ended and was followed by another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EarlierAttempt {
    /// Its number, from 1.
    pub attempt: u32,
    /// Why it ended, as a stable word: `lost`, `shutdown`, or the code of the failure.
    pub failure_code: String,
    /// When it ended; for a lost attempt, when that was noticed.
    pub ended_at: Timestamp,
    /// Whether it used up one of the `maxAttempts` of the job.
    pub counts: bool,
    /// The attempt in words, such as `attempt 1 was lost`.
    pub detail: String,
}

impl From<&core::EarlierAttempt> for EarlierAttempt {
    fn from(earlier: &core::EarlierAttempt) -> EarlierAttempt {
        EarlierAttempt {
            attempt: earlier.attempt,
            failure_code: earlier.code.as_str().to_owned(),
            ended_at: earlier.ended_at,
            counts: earlier.counts,
            detail: earlier.to_string(),
        }
    }
}

/// A requested run.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunNow {
    /// Whether it starts.
    pub outcome: RunNowOutcome,
    /// The run.
    pub run: Run,
    /// The next run of the schedule, which does not change.
    pub next_run_at: Option<Timestamp>,
}

/// Requested runs for orgs.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunNowOrgs {
    /// One entry for each org that was named.
    pub items: Vec<OrgRun>,
    /// The org update that creates the runs, if they are for all orgs.
    #[serde(rename = "sweep")]
    pub org_update: Option<OrgUpdateStarted>,
}

/// A requested run for one of several orgs.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrgRun {
    /// The org.
    pub org_id: String,
    /// Whether it starts.
    pub outcome: RunNowOutcome,
    /// The run; null if it was refused.
    pub run: Option<Run>,
    /// Why it was refused.
    pub detail: Option<String>,
}

/// The response to a request for runs: one, or several for orgs.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum RunsNow {
    /// One run.
    One(Box<RunNow>),
    /// Runs for orgs.
    Orgs(RunNowOrgs),
}

/// The result of canceling a run.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Canceled {
    /// Whether it is canceled.
    pub outcome: CancelOutcome,
    /// The run.
    pub run: Run,
}

impl Run {
    /// The run without what its target got, returned or printed.
    #[must_use]
    pub fn without_contents(self) -> Run {
        Run {
            payload_snapshot: None,
            failure_code: None,
            failure_message: None,
            failure_details: None,
            earlier_attempts: Vec::new(),
            remote: self.remote.map(|remote| RemoteSide { progress: None, ..remote }),
            result: None,
            output: None,
            ..self
        }
    }

    /// A run without its output, for lists. The zone is that of its job.
    pub fn new(run: &core::Run, zone: Option<&Zone>) -> Run {
        let failure = run.failure.as_ref();
        let local = run.slot_at.zip(zone).map(|(slot, zone)| slot.to_zoned(zone.as_jiff().clone()).to_string());
        Run {
            id: run.id.to_string(),
            job_definition_id: run.job_id.map(|id| id.to_string()),
            job_id: run.job_id.map(|id| id.to_string()),
            job_key: run.job_key.as_ref().map(ToString::to_string),
            job_version: run.job_version,
            target: run.target.to_string(),
            payload_snapshot: Raw::from_stored(&run.payload),
            trigger_type: run.trigger.kind().into(),
            scheduled_at: run.scheduled_at,
            started_at: run.started_at,
            finished_at: run.finished_at,
            status: run.status.into(),
            failure_code: failure.map(|failure| failure.code.as_str().to_owned()),
            failure_message: failure.map(|failure| failure.message.clone()),
            failure_details: parsed(failure.and_then(|failure| failure.details.as_ref())),
            runner_instance_id: run.claimed.filter(|_| !run.is_handed_over()).map(|(_, instance)| instance.to_string()),
            created_at: run.created_at,
            updated_at: run.finished_at.or(run.started_at).unwrap_or(run.created_at),
            duration_ms: millis_between(run.started_at, run.finished_at),
            // Of another attempt it would be the wait between attempts.
            lag_ms: millis_between(Some(run.scheduled_at), run.started_at.filter(|_| run.attempt <= 1)),
            origin: origin(run),
            trigger_label: run.trigger.to_string(),
            slot_at: run.slot_at,
            slot_at_local: local,
            attempt: run.attempt,
            earlier_attempts: run.earlier_attempts.iter().map(EarlierAttempt::from).collect(),
            next_attempt_at: run.next_attempt_at,
            folded_slots: run.folded,
            queued: run.held,
            claimed_at: run.claimed.map(|(at, _)| at),
            lease_until: run.lease_until,
            cancel_requested: run.cancel_by.is_some(),
            cancel_requested_by: run.cancel_by.clone(),
            skip_reason: run.skip.as_ref().map(|skip| Skip::from_word(skip.as_str())),
            skip_detail: run.skip.as_ref().map(ToString::to_string),
            active_run_id: match &run.skip {
                Some(SkipReason::Overlap { blocking }) => Some(blocking.to_string()),
                _ => None,
            },
            org_id: run.org.as_ref().map(ToString::to_string),
            local_date: run.local_date.map(|date| date.to_string()),
            backfill_id: match &run.trigger {
                Trigger::Backfill(id) => Some(id.to_string()),
                _ => None,
            },
            upstream_run_id: run.trigger.upstream().first().map(ToString::to_string),
            upstream_run_ids: run.trigger.upstream().iter().map(ToString::to_string).collect(),
            started_runs: None,
            idempotency_key: run.idempotency_key(),
            trace_id: run.trace_context.as_ref().map(|context| context.trace_id().to_owned()),
            remote: run.remote.as_ref().map(RemoteSide::from),
            result: parsed(run.result.as_ref()),
            output: None,
        }
    }

    /// A run with its output.
    pub fn with_output(run: &core::Run, zone: Option<&Zone>) -> Run {
        Run { output: Some(run.output.clone().unwrap_or_default()), ..Run::new(run, zone) }
    }
}

fn origin(run: &core::Run) -> Origin {
    match &run.trigger {
        Trigger::Schedule(_) if run.catch_up => Origin::CatchUp,
        Trigger::Schedule(_) => Origin::Slot,
        Trigger::Backfill(_) => Origin::Backfill,
        Trigger::Manual(_) => Origin::Manual,
        Trigger::AdHoc(_) => Origin::AdHoc,
        Trigger::After(_) | Trigger::AfterAll(_) => Origin::After,
        other => Origin::Other(other.kind().to_string()),
    }
}

/// Milliseconds from one time to the other; never negative.
pub(crate) fn millis_between(from: Option<Timestamp>, to: Option<Timestamp>) -> Option<i64> {
    let (from, to) = from.zip(to)?;
    Some(((to.as_microsecond() - from.as_microsecond()) / 1_000).max(0))
}
