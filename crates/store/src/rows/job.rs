//! Rows of `jobs`.

use std::collections::BTreeMap;

use everbell_core::after::After;
use everbell_core::cron::{Dst, DstFold, DstGap, Expression};
use everbell_core::fan_in::FanIn;
use everbell_core::store::{JobRow, StoreResult};
use everbell_core::{
    Definition, Invalid, Job, JobId, JobKey, JobState, JobStatus, Json, OrgId, Pause, Run, Scope, Source, Spec, Target,
    Unschedulable, When, Zone,
};
use uuid::Uuid;

use super::definitions::Definitions;
use super::from_row::by_name;
use super::run::trace_context;
use super::{TimerColumns, corrupt, declarations, policies, word};
use crate::micros::Micros;

/// A job as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct JobColumns {
    pub(crate) id: Uuid,
    pub(crate) job_key: String,
    pub(crate) version: i32,
    pub(crate) target: String,
    pub(crate) payload: String,
    pub(crate) cron_expression: Option<String>,
    pub(crate) run_at: Option<Micros>,
    pub(crate) timezone: String,
    pub(crate) anchor_at: Micros,
    pub(crate) start_at: Option<Micros>,
    pub(crate) end_at: Option<Micros>,
    pub(crate) dst_gap: String,
    pub(crate) dst_fold: String,
    pub(crate) scope: String,
    pub(crate) policies: String,
    pub(crate) labels: String,
    pub(crate) description: String,
    pub(crate) source: String,
    pub(crate) supersedes_job_id: Option<Uuid>,
    pub(crate) created_by: String,
    pub(crate) created_at: Micros,
    pub(crate) status: String,
    pub(crate) error: Option<String>,
    pub(crate) pause_reason: Option<String>,
    pub(crate) paused_by: Option<String>,
    pub(crate) paused_at: Option<Micros>,
    pub(crate) paused_until: Option<Micros>,
    pub(crate) revision: i64,
    pub(crate) consecutive_failures: i32,
    pub(crate) declaration: Option<String>,
    pub(crate) trace_context: Option<String>,
    pub(crate) updated_by: String,
    pub(crate) updated_at: Micros,
}

by_name!(JobColumns {
    id,
    job_key,
    version,
    target,
    payload,
    cron_expression,
    run_at,
    timezone,
    anchor_at,
    start_at,
    end_at,
    dst_gap,
    dst_fold,
    scope,
    policies,
    labels,
    description,
    source,
    supersedes_job_id,
    created_by,
    created_at,
    status,
    error,
    pause_reason,
    paused_by,
    paused_at,
    paused_until,
    revision,
    consecutive_failures,
    declaration,
    trace_context,
    updated_by,
    updated_at,
});

impl JobColumns {
    /// Definition and state; the definition from `known` if it is there.
    pub(crate) fn read(self, known: &Definitions) -> StoreResult<Job> {
        let id = JobId::from_uuid(self.id);
        let definition = match known.get(id) {
            Some(definition) => definition,
            None => known.keep(self.definition().map_err(|why| corrupt("jobs", id, why))?),
        };
        let state = self.state().map_err(|why| corrupt("jobs", id, why))?;
        Ok(Job::new(definition, state))
    }

    fn definition(&self) -> Result<Definition, Invalid> {
        let labels: BTreeMap<String, String> =
            serde_json::from_str(&self.labels).map_err(|error| Invalid::new("labels", error.to_string()))?;
        let policies = policies::read(&self.policies)?;
        let spec = self.spec().map(|spec| spec.with_calendars(&policies.calendars));
        Ok(everbell_core::with!(Definition {
            version: u32::try_from(self.version).unwrap_or(0),
            payload: Json::parse("payload", &self.payload)?,
            policies,
            scope: word(Scope::ALL, Scope::as_str, &self.scope)?,
            description: self.description.clone(),
            labels,
            source: word(Source::ALL, Source::as_str, &self.source)?,
            supersedes: self.supersedes_job_id.map(JobId::from_uuid),
            created_by: self.created_by.clone(),
            trace_context: trace_context(self.trace_context.as_deref()),
            ..Definition::new(
                JobId::from_uuid(self.id),
                JobKey::new(&self.job_key)?,
                Target::new(&self.target)?,
                spec.map_err(|reason| self.unschedulable(reason)),
                self.created_at.into()
            )
        }))
    }

    /// The schedule, or why it can no longer be read. Never another one in its place.
    fn spec(&self) -> Result<Spec, String> {
        let zone = Zone::get(&self.timezone).map_err(|error| error.to_string())?;
        let spec = match (&self.cron_expression, self.run_at) {
            (Some(text), _) => self.spec_of(text, zone)?,
            (None, Some(at)) => Spec::once(at.into(), zone).map_err(|error| error.to_string())?,
            (None, None) => return Err("neither an expression nor a time".to_owned()),
        };
        let dst = Dst {
            gap: word(DstGap::ALL, DstGap::as_str, &self.dst_gap).map_err(|error| error.to_string())?,
            fold: word(DstFold::ALL, DstFold::as_str, &self.dst_fold).map_err(|error| error.to_string())?,
        };
        let bounds = (self.start_at.map(Into::into), self.end_at.map(Into::into));
        spec.with_dst(dst).with_bounds(bounds.0, bounds.1).map_err(|error| error.to_string())
    }

    /// The schedule that a text stands for: that of one job before, of several, or of an expression.
    fn spec_of(&self, text: &str, zone: Zone) -> Result<Spec, String> {
        if let Some(after) = After::parse(text) {
            return Ok(Spec::following(after.map_err(|error| error.to_string())?, zone));
        }
        if let Some(fan_in) = FanIn::parse(text) {
            return Ok(Spec::following_all(fan_in.map_err(|error| error.to_string())?, zone));
        }
        let expression = Expression::parse(text).map_err(|error| error.to_string())?;
        Ok(Spec::recurring(expression, zone, self.anchor_at.into()))
    }

    /// The parts of a schedule that cannot be read as a whole.
    fn unschedulable(&self, reason: String) -> Unschedulable {
        Unschedulable {
            expression: self.cron_expression.clone(),
            run_at: self.run_at.map(Into::into),
            timezone: self.timezone.clone(),
            dst: Dst {
                gap: word(DstGap::ALL, DstGap::as_str, &self.dst_gap).unwrap_or_default(),
                fold: word(DstFold::ALL, DstFold::as_str, &self.dst_fold).unwrap_or_default(),
            },
            start_at: self.start_at.map(Into::into),
            end_at: self.end_at.map(Into::into),
            anchor: self.cron_expression.as_ref().map(|_| self.anchor_at.into()),
            reason,
        }
    }

    fn state(self) -> Result<JobState, Invalid> {
        let pause = match (self.pause_reason, self.paused_by, self.paused_at) {
            (Some(reason), Some(by), Some(at)) => {
                Some(Pause { reason, by, at: at.into(), until: self.paused_until.map(Into::into) })
            }
            _ => None,
        };
        Ok(everbell_core::with!(JobState {
            status: word(JobStatus::ALL, JobStatus::as_str, &self.status)?,
            error: self.error,
            pause,
            revision: super::count(self.revision),
            consecutive_failures: u32::try_from(self.consecutive_failures).unwrap_or(0),
            declaration: self.declaration.as_deref().map(declarations::read).transpose()?,
            ..JobState::new(&self.updated_by, self.updated_at.into())
        }))
    }
}

/// The values of a new job, in the order of the insert statement.
pub(crate) struct JobValues {
    pub(crate) columns: JobColumns,
    pub(crate) schedule_type: &'static str,
    pub(crate) content_hash: Vec<u8>,
    /// The key of the job that it starts after; empty if there are several.
    pub(crate) after_key: Option<String>,
}

impl JobValues {
    pub(crate) fn new(definition: &Definition, state: &JobState) -> JobValues {
        let unreadable = |broken: &Unschedulable| {
            (broken.expression.clone(), broken.run_at.map(Micros::from), broken.timezone.clone())
        };
        let (cron_expression, run_at, timezone) = match &definition.spec {
            Ok(spec) => match spec.when() {
                When::Once(at) => (None, Some(Micros::from(*at)), spec.zone().name().to_owned()),
                When::Cron(expression) | When::Every { expression, .. } => {
                    (Some(expression.as_str().to_owned()), None, spec.zone().name().to_owned())
                }
                When::After(after) => (Some(after.to_string()), None, spec.zone().name().to_owned()),
                When::AfterAll(fan_in) => (Some(fan_in.to_string()), None, spec.zone().name().to_owned()),
            },
            Err(broken) => unreadable(broken),
        };
        let anchor = match &definition.spec {
            Ok(spec) => match spec.when() {
                When::Every { anchor, .. } => Some(*anchor),
                When::Cron(_) | When::Once(_) | When::After(_) | When::AfterAll(_) => None,
            },
            Err(broken) => broken.anchor,
        };
        let (dst, (start_at, end_at)) = (definition.dst(), definition.bounds());
        let pause = state.pause.as_ref();
        let columns = JobColumns {
            id: definition.id.as_uuid(),
            job_key: definition.key.to_string(),
            version: definition.version as i32,
            target: definition.target.to_string(),
            payload: definition.payload.to_string(),
            cron_expression,
            run_at,
            timezone,
            anchor_at: anchor.unwrap_or(definition.created_at).into(),
            start_at: start_at.map(Into::into),
            end_at: end_at.map(Into::into),
            dst_gap: dst.gap.as_str().to_owned(),
            dst_fold: dst.fold.as_str().to_owned(),
            scope: definition.scope.to_string(),
            policies: policies::write(&definition.policies),
            labels: serde_json::to_string(&definition.labels).unwrap_or_else(|_| "{}".to_owned()),
            description: definition.description.clone(),
            source: definition.source.to_string(),
            supersedes_job_id: definition.supersedes.map(|id| id.as_uuid()),
            created_by: definition.created_by.clone(),
            created_at: definition.created_at.into(),
            status: state.status.to_string(),
            error: state.error.clone(),
            pause_reason: pause.map(|pause| pause.reason.clone()),
            paused_by: pause.map(|pause| pause.by.clone()),
            paused_at: pause.map(|pause| pause.at.into()),
            paused_until: pause.and_then(|pause| pause.until).map(Into::into),
            revision: state.revision as i64,
            consecutive_failures: state.consecutive_failures as i32,
            declaration: state.declaration.as_ref().map(declarations::write),
            trace_context: definition.trace_context.as_ref().map(|context| context.as_stored().to_owned()),
            updated_by: state.updated_by.clone(),
            updated_at: state.updated_at.into(),
        };
        let schedule_type = if columns.run_at.is_some() { "one_time" } else { "recurring" };
        let after_key = definition.spec.as_ref().ok().and_then(|spec| match spec.when() {
            When::After(after) => Some(after.job_key.to_string()),
            When::AfterAll(_) => Some(String::new()),
            When::Cron(_) | When::Every { .. } | When::Once(_) => None,
        });
        JobValues { schedule_type, content_hash: definition.content_hash().to_vec(), after_key, columns }
    }
}

/// A job with its timer, and the id of its last run.
#[derive(Clone, Debug)]
pub(crate) struct JobListColumns {
    pub(crate) job: JobColumns,
    pub(crate) next_run_at: Option<Micros>,
    pub(crate) last_slot_at: Option<Micros>,
    pub(crate) rescheduled_from: Option<Micros>,
    pub(crate) last_local_date: Option<String>,
    pub(crate) last_run_id: Option<Uuid>,
    pub(crate) last_run_at: Option<Micros>,
    pub(crate) next_org_run_at: Option<Micros>,
    pub(crate) next_org_id: Option<String>,
}

by_name!(JobListColumns {
    next_run_at, last_slot_at, rescheduled_from, last_local_date, last_run_id, last_run_at, next_org_run_at,
    next_org_id,
} flatten { job });

impl JobListColumns {
    /// The job with its timer (unless it has one for each org), or the next fire of all orgs.
    pub(crate) fn read(self, known: &Definitions, last_run: Option<Run>) -> StoreResult<JobRow> {
        // An org that cannot be read is errored when it is due; here it is none.
        let org = self.next_org_id.and_then(|org| OrgId::new(&org).ok());
        let next_for_org = self.next_org_run_at.map(Into::into).zip(org);
        let timer = self.last_slot_at.map(|last_slot_at| TimerColumns {
            job_id: self.job.id,
            org_id: String::new(),
            next_run_at: self.next_run_at,
            last_slot_at,
            rescheduled_from: self.rescheduled_from,
            last_local_date: self.last_local_date,
        });
        let job = self.job.read(known)?;
        let timer = timer.map(TimerColumns::read).transpose()?;
        let mut row = JobRow::new(job);
        (row.timer, row.last_run, row.next_for_org) = (timer, last_run, next_for_org);
        Ok(row)
    }
}
