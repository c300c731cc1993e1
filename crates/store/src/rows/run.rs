//! Rows of `runs`, `active_runs` and `outcomes`, and the view that reads them together.

use std::sync::Arc;
use std::time::Duration;

use everbell_core::store::{Claim, StoreResult};
use everbell_core::{
    ActiveRun, BackfillId, Definition, Failure, FailureCode, InstanceId, Invalid, JobId, JobKey, Json, NewRun, OrgId,
    Run, RunId, RunStatus, SkipReason, Target, TraceContext, Trigger,
};
use jiff::Timestamp;
use uuid::Uuid;

use super::from_row::{by_name, by_position};
use super::{corrupt, count, earlier, json, org, word};
use crate::micros::Micros;

/// A row of the view `run_rows`.
#[allow(clippy::struct_excessive_bools, reason = "columns, not states")]
#[derive(Clone, Debug)]
pub(crate) struct RunColumns {
    pub(crate) id: Uuid,
    pub(crate) job_id: Option<Uuid>,
    pub(crate) job_key: Option<String>,
    pub(crate) job_version: Option<i32>,
    pub(crate) org_id: String,
    pub(crate) local_date: Option<String>,
    pub(crate) target: String,
    pub(crate) payload: String,
    pub(crate) trigger: String,
    pub(crate) by_slot: bool,
    pub(crate) at: Micros,
    pub(crate) scheduled_at: Micros,
    pub(crate) created_at: Micros,
    pub(crate) status: Option<String>,
    pub(crate) skip_reason: Option<String>,
    pub(crate) skip_detail: Option<String>,
    pub(crate) held: bool,
    pub(crate) catch_up: bool,
    pub(crate) folded: i64,
    pub(crate) attempt: i32,
    pub(crate) runner_id: Option<Uuid>,
    pub(crate) claimed_at: Option<Micros>,
    pub(crate) started_at: Option<Micros>,
    pub(crate) finished_at: Option<Micros>,
    pub(crate) lease_until: Option<Micros>,
    pub(crate) cancel_by: Option<String>,
    pub(crate) failure_code: Option<String>,
    pub(crate) failure_message: Option<String>,
    pub(crate) failure_details: Option<String>,
    pub(crate) next_attempt_at: Option<Micros>,
    pub(crate) result: Option<String>,
    pub(crate) earlier: Option<String>,
    pub(crate) trace_context: Option<String>,
}

by_name!(RunColumns {
    id,
    job_id,
    job_key,
    job_version,
    org_id,
    local_date,
    target,
    payload,
    trigger,
    by_slot,
    at,
    scheduled_at,
    created_at,
    status,
    skip_reason,
    skip_detail,
    held,
    catch_up,
    folded,
    attempt,
    runner_id,
    claimed_at,
    started_at,
    finished_at,
    lease_until,
    cancel_by,
    failure_code,
    failure_message,
    failure_details,
    next_attempt_at,
    result,
    earlier,
    trace_context,
});

impl RunColumns {
    pub(crate) fn read(self) -> StoreResult<Run> {
        let id = self.id;
        self.try_read().map_err(|why| corrupt("runs", id, why))
    }

    fn try_read(self) -> Result<Run, Invalid> {
        let status = self.status.as_deref().ok_or_else(|| Invalid::new("status", "neither active nor ended"))?;
        let claimed = self.claimed_at.zip(self.runner_id);
        let mut run = Run::new(
            RunId::from_uuid(self.id),
            Target::new(&self.target)?,
            trigger(&self.trigger)?,
            self.scheduled_at.into(),
            self.created_at.into(),
        );
        run.job_id = self.job_id.map(JobId::from_uuid);
        run.job_key = self.job_key.as_deref().map(JobKey::new).transpose()?;
        run.job_version = self.job_version.and_then(|version| u32::try_from(version).ok());
        run.org = org(&self.org_id)?;
        run.local_date = date(self.local_date.as_deref())?;
        run.payload = Json::parse("payload", &self.payload)?;
        run.trace_context = trace_context(self.trace_context.as_deref());
        run.slot_at = self.by_slot.then(|| self.at.into());
        run.status = word(RunStatus::ALL, RunStatus::as_str, status)?;
        run.skip = skip(self.skip_reason.as_deref(), self.skip_detail.as_deref())?;
        run.held = self.held;
        run.catch_up = self.catch_up;
        run.folded = count(self.folded);
        run.attempt = u32::try_from(self.attempt).unwrap_or(0);
        run.earlier_attempts = earlier::read(self.earlier.as_deref())?;
        run.claimed = claimed.map(|(at, runner)| (at.into(), InstanceId::from_uuid(runner)));
        run.started_at = self.started_at.map(Into::into);
        run.finished_at = self.finished_at.map(Into::into);
        run.lease_until = self.lease_until.map(Into::into);
        run.cancel_by = self.cancel_by;
        run.failure = failure(self.failure_code, self.failure_message, self.failure_details.as_deref())?;
        run.result = json("result", self.result.as_deref())?;
        run.next_attempt_at = self.next_attempt_at.map(Into::into);
        Ok(run)
    }
}

/// The values of a planned run: a row in `runs`, and one in `active_runs` unless it is skipped.
#[derive(Clone, Debug)]
pub(crate) struct RunValues {
    pub(crate) id: Uuid,
    pub(crate) job_id: Option<Uuid>,
    pub(crate) org_id: String,
    pub(crate) at: Micros,
    pub(crate) nonce: i64,
    pub(crate) scheduled_at: Micros,
    pub(crate) trigger: String,
    pub(crate) target: String,
    pub(crate) payload: Option<String>,
    pub(crate) skip_reason: Option<&'static str>,
    pub(crate) skip_detail: Option<String>,
    pub(crate) catch_up: bool,
    pub(crate) folded: i64,
    pub(crate) local_date: Option<String>,
    pub(crate) held: bool,
    pub(crate) max_concurrent: i32,
    pub(crate) backfill: bool,
    pub(crate) priority: i32,
    pub(crate) trace_context: Option<String>,
}

impl RunValues {
    /// A run that a plan of this job (and org) made.
    pub(crate) fn of_plan(run: &NewRun, job: &Definition, org: Option<&OrgId>) -> RunValues {
        RunValues {
            job_id: Some(job.id.as_uuid()),
            org_id: super::org_text(org).to_owned(),
            target: job.target.as_str().to_owned(),
            payload: run.payload.as_ref().map(|payload| payload.as_str().to_owned()),
            skip_reason: run.skip.as_ref().map(SkipReason::as_str),
            skip_detail: run.skip.as_ref().map(skip_detail),
            held: run.held,
            max_concurrent: run.parallel.unwrap_or(job.policies.max_concurrent_runs) as i32,
            priority: job.policies.priority,
            trace_context: run.trace_context.as_ref().map(|context| context.as_stored().to_owned()),
            ..RunValues::bare(run.id, run.slot_at, run.scheduled_at, &run.trigger)
        }
        .with(run.catch_up, run.folded, run.local_date.map(|date| date.to_string()))
    }

    /// A trial of a target.
    pub(crate) fn of_trial(run: &Run) -> RunValues {
        RunValues {
            target: run.target.to_string(),
            payload: Some(run.payload.to_string()),
            trace_context: run.trace_context.as_ref().map(|context| context.as_stored().to_owned()),
            ..RunValues::bare(run.id, None, run.scheduled_at, &run.trigger)
        }
    }

    fn bare(id: RunId, slot: Option<Timestamp>, scheduled_at: Timestamp, trigger: &Trigger) -> RunValues {
        RunValues {
            id: id.as_uuid(),
            job_id: None,
            org_id: String::new(),
            at: slot.unwrap_or(id.time()).into(),
            // Never 0 for a run by hand, so that it cannot take the place of a slot.
            nonce: if slot.is_some() { 0 } else { (id.as_uuid().as_u128() as i64) | 1 },
            scheduled_at: scheduled_at.into(),
            trigger: trigger.to_string(),
            target: String::new(),
            payload: None,
            skip_reason: None,
            skip_detail: None,
            catch_up: false,
            folded: 0,
            local_date: None,
            held: false,
            max_concurrent: 1,
            backfill: matches!(trigger, Trigger::Backfill(_)),
            priority: 0,
            trace_context: None,
        }
    }

    fn with(self, catch_up: bool, folded: u64, local_date: Option<String>) -> RunValues {
        RunValues { catch_up, folded: i64::try_from(folded).unwrap_or(i64::MAX), local_date, ..self }
    }
}

/// An active run as the overlap check sees it.
#[derive(Clone, Debug)]
pub(crate) struct ActiveColumns {
    pub(crate) run_id: Uuid,
    pub(crate) job_id: Uuid,
    pub(crate) org_id: String,
    pub(crate) held: bool,
    pub(crate) cancel_requested: bool,
    pub(crate) backfill: bool,
}

by_name!(ActiveColumns { run_id, job_id, org_id, held, cancel_requested, backfill });

impl ActiveColumns {
    pub(crate) fn read(&self) -> ActiveRun {
        let id = RunId::from_uuid(self.run_id);
        ActiveRun { id, held: self.held, cancel_requested: self.cancel_requested, backfill: self.backfill }
    }
}

/// A run that was just started. What its job knows is not read again.
#[derive(Clone, Debug)]
pub(crate) struct ClaimColumns {
    pub(crate) id: Uuid,
    pub(crate) job_id: Option<Uuid>,
    pub(crate) org_id: String,
    pub(crate) local_date: Option<String>,
    pub(crate) target: String,
    pub(crate) payload: Option<String>,
    pub(crate) trigger: String,
    pub(crate) by_slot: bool,
    pub(crate) at: Micros,
    pub(crate) scheduled_at: Micros,
    pub(crate) created_at: Micros,
    pub(crate) catch_up: bool,
    pub(crate) folded: i64,
    pub(crate) attempt: i32,
    pub(crate) cancel_by: Option<String>,
    pub(crate) earlier: Option<String>,
    pub(crate) trace_context: Option<String>,
}
by_position!(ClaimColumns {
    id,
    job_id,
    org_id,
    local_date,
    target,
    payload,
    trigger,
    by_slot,
    at,
    scheduled_at,
    created_at,
    catch_up,
    folded,
    attempt,
    cancel_by,
    earlier,
    trace_context,
});

impl ClaimColumns {
    /// The claim of `runner`, which began `now` and ends at `lease_until`.
    pub(crate) fn read(
        self,
        job: Option<Arc<Definition>>,
        runner: InstanceId,
        now: Timestamp,
        lease_until: Timestamp,
    ) -> StoreResult<Claim> {
        let id = self.id;
        let run = self.try_read(job.as_deref(), runner, now, lease_until);
        let lease_until = Micros::from(lease_until).into();
        Ok(Claim { run: run.map_err(|why| corrupt("runs", id, why))?, job, lease_until })
    }

    fn try_read(
        self,
        job: Option<&Definition>,
        runner: InstanceId,
        now: Timestamp,
        lease_until: Timestamp,
    ) -> Result<Run, Invalid> {
        let (now, lease_until): (Timestamp, Timestamp) = (Micros::from(now).into(), Micros::from(lease_until).into());
        let payload = match (&self.payload, job) {
            (Some(text), _) => Json::parse("payload", text)?,
            (None, Some(job)) => job.payload.clone(),
            (None, None) => Json::empty(),
        };
        let target = match job {
            Some(job) if job.target.as_str() == self.target => job.target.clone(),
            _ => Target::new(&self.target)?,
        };
        let mut run = Run::new(
            RunId::from_uuid(self.id),
            target,
            trigger(&self.trigger)?,
            self.scheduled_at.into(),
            self.created_at.into(),
        );
        run.job_id = self.job_id.map(JobId::from_uuid);
        run.job_key = job.map(|job| job.key.clone());
        run.job_version = job.map(|job| job.version);
        run.org = org(&self.org_id)?;
        run.local_date = date(self.local_date.as_deref())?;
        run.payload = payload;
        run.trace_context = trace_context(self.trace_context.as_deref());
        run.slot_at = self.by_slot.then(|| self.at.into());
        run.status = RunStatus::Running;
        run.catch_up = self.catch_up;
        run.folded = count(self.folded);
        run.attempt = u32::try_from(self.attempt).unwrap_or(0);
        run.earlier_attempts = earlier::read(self.earlier.as_deref())?;
        run.claimed = Some((now, runner));
        run.started_at = Some(now);
        run.lease_until = Some(lease_until);
        run.cancel_by = self.cancel_by;
        Ok(run)
    }
}

fn date(text: Option<&str>) -> Result<Option<jiff::civil::Date>, Invalid> {
    text.map(str::parse).transpose().map_err(|error: jiff::Error| Invalid::new("localDate", error.to_string()))
}

pub(super) fn trigger(text: &str) -> Result<Trigger, Invalid> {
    let unknown = || Invalid::new("trigger", format!("`{text}` is not known"));
    let (kind, rest) = text.split_once(':').ok_or_else(unknown)?;
    match kind {
        "schedule" => Ok(Trigger::Schedule(rest.to_owned())),
        "manual" => Ok(Trigger::Manual(rest.to_owned())),
        "backfill" => rest.parse::<BackfillId>().map(Trigger::Backfill),
        "ad_hoc" => Ok(Trigger::AdHoc(rest.to_owned())),
        "after" if rest.contains('+') => {
            rest.split('+').map(str::parse).collect::<Result<Vec<RunId>, _>>().map(Trigger::AfterAll)
        }
        "after" => rest.parse::<RunId>().map(Trigger::After),
        _ => Err(unknown()),
    }
}

fn skip_detail(reason: &SkipReason) -> String {
    match reason {
        SkipReason::Overlap { blocking } => blocking.to_string(),
        SkipReason::Dependency { job_key, within } => format!("{} {job_key}", within.as_millis()),
        SkipReason::Operator { actor } => actor.clone(),
    }
}

/// A trace that cannot be read is none: the run is worth more than its telemetry.
pub(super) fn trace_context(text: Option<&str>) -> Option<TraceContext> {
    TraceContext::from_stored(text?).ok()
}

pub(super) fn skip(reason: Option<&str>, detail: Option<&str>) -> Result<Option<SkipReason>, Invalid> {
    let (Some(reason), Some(detail)) = (reason, detail) else { return Ok(None) };
    let unknown = || Invalid::new("skipReason", format!("`{reason}` `{detail}` is not known"));
    Ok(Some(match reason {
        "overlap" => SkipReason::Overlap { blocking: detail.parse()? },
        "dependency" => {
            let (within, key) = detail.split_once(' ').ok_or_else(unknown)?;
            let within = Duration::from_millis(within.parse().map_err(|_| unknown())?);
            SkipReason::Dependency { job_key: JobKey::new(key)?, within }
        }
        "operator" => SkipReason::Operator { actor: detail.to_owned() },
        _ => return Err(unknown()),
    }))
}

fn failure(code: Option<String>, message: Option<String>, details: Option<&str>) -> Result<Option<Failure>, Invalid> {
    let Some(code) = code else { return Ok(None) };
    Ok(Some(Failure {
        code: FailureCode::new(&code)?,
        message: message.unwrap_or_default(),
        details: json("failureDetails", details)?,
    }))
}
