//! Org updates: their rows, and what a step reads, decides and writes, the same for both databases.

use std::collections::HashMap;
use std::sync::Arc;

use everbell_core::org::{
    self, JobLifecycle, OrgFacts, OrgSettings, OrgTask, OrgTimer, OrgUpdate, OrgUpdateStep, OrgView, Override,
    TimerChange, TimerChanges,
};
use everbell_core::plan::{Missed, Plan};
use everbell_core::store::{AuditEntry, OrgUpdateProgress, StoreError, StoreResult};
use everbell_core::{ActiveRun, Definition, GapReason, Invalid, Job, JobId, JobKey, OrgId, Overlap, TraceContext};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::from_row::by_name;
use super::orgs::{OrgSettingsColumns, OrgTimerColumns, OverrideColumns};
use super::run::trace_context;
use super::{PlanBatch, TimerColumns, corrupt, count, json, word};
use crate::micros::Micros;

/// A row of `sweeps`, the table of org updates.
#[derive(Clone, Debug)]
pub(crate) struct OrgUpdateColumns {
    pub(crate) id: Uuid,
    pub(crate) job_id: Uuid,
    pub(crate) job_key: String,
    pub(crate) work: String,
    pub(crate) detail: String,
    pub(crate) actor: String,
    pub(crate) at: Micros,
    pub(crate) reached: Option<String>,
    pub(crate) seen: i64,
}

by_name!(OrgUpdateColumns { id, job_id, job_key, work, detail, actor, at, reached, seen });

impl OrgUpdateColumns {
    pub(crate) fn new(job: &Definition, task: &OrgTask, audit: &AuditEntry) -> OrgUpdateColumns {
        OrgUpdateColumns {
            id: audit.id,
            job_id: job.id.as_uuid(),
            job_key: job.key.to_string(),
            work: task.as_str().to_owned(),
            detail: Detail::from_task(task).write(),
            actor: audit.actor.clone(),
            at: audit.at.into(),
            reached: None,
            seen: 0,
        }
    }

    pub(crate) fn read(self) -> StoreResult<OrgUpdate> {
        let bad = |why| corrupt("sweeps", self.id, why);
        Ok(OrgUpdate {
            id: self.id,
            job: JobId::from_uuid(self.job_id),
            job_key: JobKey::new(&self.job_key).map_err(bad)?,
            task: Detail::read(&self.detail).and_then(|detail| detail.into_task(&self.work)).map_err(bad)?,
            actor: self.actor,
            at: self.at.into(),
            reached: self.reached.as_deref().map(OrgId::new).transpose().map_err(bad)?,
            seen: count(self.seen),
        })
    }
}

/// The parameters of an org update's task, as JSON.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Detail {
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<i64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    run_once: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    overlap: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backfill: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_context: Option<String>,
}

impl Detail {
    fn from_task(task: &OrgTask) -> Detail {
        let micros = |t: &Timestamp| Some(Micros::from(*t).0);
        let stored = |context: Option<&TraceContext>| context.map(|context| context.as_stored().to_owned());
        match task {
            OrgTask::Arm => Detail::default(),
            OrgTask::Resume { at, missed, reason } => Detail {
                at: micros(at),
                run_once: *missed == Missed::RunOnce,
                reason: Some(reason.as_str().to_owned()),
                ..Detail::default()
            },
            OrgTask::RunNow { payload, overlap, trace_context } => Detail {
                payload: payload.as_ref().map(ToString::to_string),
                overlap: overlap.map(|overlap| overlap.to_string()),
                trace_context: stored(trace_context.as_ref()),
                ..Detail::default()
            },
            OrgTask::Backfill { id, from, to, trace_context } => Detail {
                backfill: Some(id.to_string()),
                from: micros(from),
                to: micros(to),
                trace_context: stored(trace_context.as_ref()),
                ..Detail::default()
            },
        }
    }

    fn write(&self) -> String {
        // Texts and numbers always have a form in JSON.
        serde_json::to_string(self).unwrap_or_default()
    }

    fn read(text: &str) -> Result<Detail, Invalid> {
        serde_json::from_str(text).map_err(|error| Invalid::new("detail", error.to_string()))
    }

    fn into_task(self, name: &str) -> Result<OrgTask, Invalid> {
        let missing = || Invalid::new("detail", "something is missing");
        let time = |micros: Option<i64>| micros.map(|micros| Micros(micros).into()).ok_or_else(missing);
        let trace_context = trace_context(self.trace_context.as_deref());
        match name {
            "arm" => Ok(OrgTask::Arm),
            "resume" => Ok(OrgTask::Resume {
                at: time(self.at)?,
                missed: if self.run_once { Missed::RunOnce } else { Missed::Skip },
                reason: word(GapReason::ALL, GapReason::as_str, &self.reason.ok_or_else(missing)?)?,
            }),
            "run_now" => Ok(OrgTask::RunNow {
                payload: json("payload", self.payload.as_deref())?,
                overlap: self.overlap.map(|text| word(Overlap::ALL, Overlap::as_str, &text)).transpose()?,
                trace_context,
            }),
            "backfill" => Ok(OrgTask::Backfill {
                id: self.backfill.ok_or_else(missing)?.parse()?,
                from: time(self.from)?,
                to: time(self.to)?,
                trace_context,
            }),
            _ => Err(Invalid::new("work", format!("`{name}` is not known"))),
        }
    }
}

/// The columns of an org that an org update needs.
#[derive(Clone, Debug)]
pub(crate) struct SteppedOrgColumns {
    pub(crate) id: String,
    pub(crate) place: OrgSettingsColumns,
}

by_name!(SteppedOrgColumns { id } flatten { place });

/// An override, with its org.
#[derive(Clone, Debug)]
pub(crate) struct OrgOverrideColumns {
    pub(crate) org_id: String,
    pub(crate) override_: OverrideColumns,
}

by_name!(OrgOverrideColumns { org_id } flatten { override_ });

/// The orgs of a step, in the order of their ids. One whose id cannot be read has no timers.
pub(crate) fn stepped_orgs(rows: Vec<SteppedOrgColumns>) -> Vec<(OrgId, OrgSettings)> {
    rows.into_iter().filter_map(|row| Some((OrgId::new(&row.id).ok()?, row.place.read()))).collect()
}

/// Returns the org updates that can be read. The others do not keep orgs from being reconciled.
pub(crate) fn readable_org_updates(rows: Vec<OrgUpdateColumns>) -> Vec<OrgUpdate> {
    rows.into_iter().filter_map(|row| row.read().ok()).collect()
}

/// The rows about jobs and orgs that a step has read.
#[derive(Default)]
pub(crate) struct ReconcileInput {
    overrides: HashMap<(String, String), Override>,
    timers: HashMap<(Uuid, String), OrgTimer>,
    /// When upstream jobs last succeeded.
    pub(crate) upstream: HashMap<String, Timestamp>,
}

impl ReconcileInput {
    pub(crate) fn new(overrides: Vec<OrgOverrideColumns>, timers: Vec<OrgTimerColumns>) -> StoreResult<ReconcileInput> {
        let mut input = ReconcileInput::default();
        for row in overrides {
            if let Some(override_) = row.override_.read()? {
                input.overrides.insert((row.org_id, override_.job_key.to_string()), override_);
            }
        }
        for row in timers {
            let owner = (row.job_id, row.org_id.clone());
            // A timer that cannot be read is rebuilt, with the stored mark.
            if let Ok(timer) = row.read() {
                input.timers.insert(owner, timer);
            }
        }
        Ok(input)
    }

    /// The timers whose active runs have to be read.
    pub(crate) fn timers(&self) -> impl Iterator<Item = &(Uuid, String)> {
        self.timers.keys()
    }

    pub(crate) fn with_active(&mut self, active: HashMap<(Uuid, String), Vec<ActiveRun>>) {
        for (owner, runs) in active {
            if let Some(timer) = self.timers.get_mut(&owner) {
                timer.active = runs;
            }
        }
    }

    fn view(&mut self, job: &Job, before: Option<&Arc<Definition>>, org: &OrgId, place: &OrgSettings) -> OrgView {
        let definition = &job.definition;
        let override_ = self.overrides.get(&(org.to_string(), definition.key.to_string())).cloned();
        let on = definition.policies.depends_on.as_ref();
        let before = before.and_then(|before| {
            Some((Arc::clone(before), self.timers.remove(&(before.id.as_uuid(), org.to_string()))?))
        });
        OrgView {
            job: Arc::clone(definition),
            org: org.clone(),
            facts: OrgFacts { lifecycle: JobLifecycle::from(&job.state), place: place.clone(), override_ },
            timer: self.timers.remove(&(definition.id.as_uuid(), org.to_string())),
            before,
            upstream_succeeded_at: on.and_then(|on| self.upstream.get(on.job_key.as_str()).copied()),
        }
    }
}

/// A timer of an org that is made or moved.
pub(crate) struct OrgTimerValues {
    pub(crate) timer: TimerColumns,
    pub(crate) target: String,
    pub(crate) error: Option<String>,
}

/// Everything that a step wants written.
#[derive(Default)]
pub(crate) struct OrgUpdateBatch {
    pub(crate) plans: PlanBatch,
    pub(crate) timers: Vec<OrgTimerValues>,
    pub(crate) removed: Vec<(Uuid, String)>,
    /// The active runs that a version takes over from the previous one.
    pub(crate) taken_over: Option<TakenOver>,
    /// Whether its runs wait until their job is resumed.
    pub(crate) paused: bool,
}

/// The orgs whose active runs go on among those of the next version.
#[derive(Debug)]
pub(crate) struct TakenOver {
    pub(crate) from: Uuid,
    pub(crate) to: JobId,
    pub(crate) orgs: Vec<String>,
}

impl OrgUpdateBatch {
    /// Reconciles orgs that changed: the timers of every job, except where an org update has yet to reach the org.
    pub(crate) fn reconcile(
        &mut self,
        jobs: &[Job],
        org_updates: &[OrgUpdate],
        orgs: &[(OrgId, OrgSettings)],
        input: &mut ReconcileInput,
    ) {
        for (org, place) in orgs {
            for job in jobs {
                if !org_updates.iter().any(|org_update| org_update.is_ahead_of(&job.definition.key, org)) {
                    let view = input.view(job, None, org, place);
                    self.add(&view, org::reconcile(&view, None));
                }
            }
        }
    }

    /// Gives up an org update that cannot be read, or whose job cannot: it ends, and the job becomes errored. Repairing
    /// and resuming the job starts another one, which creates what is missing.
    pub(crate) fn give_up(&mut self, job: Uuid, why: &StoreError) {
        self.plans.errors.push((job, why.to_string()));
    }

    /// Takes a step of an org update.
    pub(crate) fn step(
        &mut self,
        step: OrgUpdateStep<'_>,
        job: &Job,
        before: Option<&Arc<Definition>>,
        orgs: &[(OrgId, OrgSettings)],
        input: &mut ReconcileInput,
    ) {
        for (org, place) in orgs {
            let view = input.view(job, before, org, place);
            self.add(&view, org::take_step(&view, step));
        }
        self.paused = step.org_update.is_held_by(&job.state);
    }

    fn add(&mut self, view: &OrgView, decided: TimerChanges) {
        if let (Some(plan), Some((before, _))) = (decided.before, &view.before) {
            self.remove(before, view, plan);
            let (from, to) = (before.id.as_uuid(), view.job.id);
            let taken = self.taken_over.get_or_insert(TakenOver { from, to, orgs: Vec::new() });
            taken.orgs.push(view.org.to_string());
        }
        match decided.change {
            TimerChange::Keep => {}
            TimerChange::Write(plan) => {
                self.timers.push(OrgTimerValues {
                    timer: TimerColumns::from(&plan.timer),
                    target: view.job.target.to_string(),
                    error: plan.org_error.clone(),
                });
                let org_error = view.new_error(&plan);
                self.plans.add_effects(&view.job, Plan { org_error, ..*plan });
            }
            TimerChange::Remove(plan) => self.remove(&view.job, view, *plan),
        }
    }

    fn remove(&mut self, job: &Arc<Definition>, view: &OrgView, plan: Plan) {
        self.removed.push((job.id.as_uuid(), view.org.to_string()));
        self.plans.add_effects(job, plan);
    }

    /// Returns the progress of a step, given the runs that were really inserted.
    pub(crate) fn into_progress(
        self,
        inserted: &std::collections::HashSet<Uuid>,
        orgs: usize,
        more: bool,
    ) -> OrgUpdateProgress {
        let timers = (self.timers.len() + self.removed.len()) as u32;
        let planned = self.plans.into_planned(inserted, None, None);
        OrgUpdateProgress { planned: everbell_core::store::Planned { timers, ..planned }, orgs: orgs as u32, more }
    }
}
