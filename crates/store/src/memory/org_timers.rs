//! Timers of orgs, brought in line with orgs, overrides and jobs.

use std::sync::Arc;

use everbell_core::org::{
    self, OrgFacts, OrgTask, OrgTimer, OrgUpdate, OrgUpdateStep, OrgView, TimerChange, TimerChanges,
};
use everbell_core::plan::{Plan, REPLACER};
use everbell_core::store::{AuditEntry, OrgUpdateProgress, PlannedRun};
use everbell_core::{Definition, Job, JobId, JobKey, OrgId, SkipReason};
use jiff::Timestamp;

use super::jobs::timer_to_keep;
use super::state::{Owner, State, StoredOrgUpdate, micros};

impl State {
    /// Returns the facts that decide about the timer of an org. `None` if there is no org.
    pub(super) fn org_facts(&self, (job, org): &Owner) -> Option<OrgFacts> {
        let org = org.as_ref()?;
        let job = self.jobs.get(job)?;
        let place = self.orgs.get(org)?.org.place.clone();
        let override_ = self.overrides.get(&(org.clone(), job.definition.key.clone())).cloned();
        Some(OrgFacts { lifecycle: (&job.state).into(), place, override_ })
    }

    pub(super) fn begin_org_update(&mut self, job: JobId, key: &JobKey, task: OrgTask, audit: &AuditEntry) {
        let at = micros(audit.at);
        let org_update = OrgUpdate {
            id: audit.id,
            job,
            job_key: key.clone(),
            task: task_to_keep(task),
            actor: audit.actor.clone(),
            at,
            reached: None,
            seen: 0,
        };
        self.org_updates.entry(audit.id).or_insert(StoredOrgUpdate { org_update, stepped_at: at });
    }

    /// Reconciles orgs that changed: the timers of every job, except where an org update has yet to reach the org.
    pub(super) fn look_at_waiting(&mut self, now: Timestamp, limit: u32, progress: &mut OrgUpdateProgress) -> bool {
        let jobs: Vec<Job> = self.org_wide_jobs().cloned().collect();
        let most = (limit as usize / jobs.len().max(1)).max(1);
        let waiting: Vec<OrgId> =
            self.orgs.iter().filter(|(_, stored)| stored.waiting).map(|(id, _)| id.clone()).take(most).collect();
        for org in &waiting {
            for job in &jobs {
                if self.org_updates.values().any(|stored| stored.org_update.is_ahead_of(&job.definition.key, org)) {
                    continue;
                }
                if let Some(view) = self.org_view(job, org, false) {
                    let decided = org::reconcile(&view, None);
                    self.write_reconciled(&view, &decided, now, progress);
                }
            }
            if let Some(stored) = self.orgs.get_mut(org) {
                stored.waiting = false;
            }
        }
        progress.orgs += waiting.len() as u32;
        !waiting.is_empty()
    }

    /// Takes a step of the org update that waits longest, if it is the first of its job key.
    pub(super) fn step(&mut self, now: Timestamp, limit: u32, progress: &mut OrgUpdateProgress) -> bool {
        let first = |org_update: &OrgUpdate| {
            !self
                .org_updates
                .values()
                .any(|other| other.org_update.job_key == org_update.job_key && other.org_update.id < org_update.id)
        };
        let next = self.org_updates.values().filter(|stored| first(&stored.org_update));
        let Some(org_update) =
            next.min_by_key(|stored| (stored.stepped_at, stored.org_update.id)).map(|s| s.org_update.clone())
        else {
            return false;
        };
        let behind = |org: &&OrgId| org_update.reached.as_ref().is_none_or(|reached| *org > reached);
        let orgs: Vec<OrgId> = self.orgs.keys().filter(behind).take(limit as usize).cloned().collect();
        let before = progress.planned.runs.len();
        if let Some(job) = self.jobs.get(&org_update.job).cloned() {
            for org in &orgs {
                if let Some(view) = self.org_view(&job, org, org_update.task == OrgTask::Arm) {
                    let decided = org::take_step(&view, OrgUpdateStep { org_update: &org_update, now });
                    self.write_reconciled(&view, &decided, now, progress);
                }
            }
            if org_update.is_held_by(&job.state) {
                for run in &progress.planned.runs[before..] {
                    self.active.get_mut(&run.id).into_iter().for_each(|active| active.paused = true);
                }
            }
        }
        progress.orgs += orgs.len() as u32;
        match orgs.last() {
            Some(last) if orgs.len() == limit as usize => {
                let (reached, seen) = (Some(last.clone()), org_update.seen + orgs.len() as u64);
                let stored = StoredOrgUpdate { org_update: OrgUpdate { reached, seen, ..org_update }, stepped_at: now };
                self.org_updates.insert(stored.org_update.id, stored);
            }
            _ => {
                self.org_updates.remove(&org_update.id);
            }
        }
        true
    }

    fn org_view(&self, job: &Job, org: &OrgId, with_before: bool) -> Option<OrgView> {
        let owner = (job.definition.id, Some(org.clone()));
        let before = job.definition.supersedes.filter(|_| with_before).and_then(|id| {
            let definition = Arc::clone(&self.jobs.get(&id)?.definition);
            Some((definition, self.org_timer(&(id, Some(org.clone())))?))
        });
        Some(OrgView {
            job: Arc::clone(&job.definition),
            org: org.clone(),
            facts: self.org_facts(&owner)?,
            timer: self.org_timer(&owner),
            before,
            upstream_succeeded_at: self.upstream_succeeded_at(&job.definition),
        })
    }

    fn org_timer(&self, owner: &Owner) -> Option<OrgTimer> {
        let timer = self.timers.get(owner)?.clone();
        Some(OrgTimer { timer, error: self.timer_errors.get(owner).cloned(), active: self.active_of(owner) })
    }

    fn write_reconciled(
        &mut self,
        view: &OrgView,
        decided: &TimerChanges,
        now: Timestamp,
        progress: &mut OrgUpdateProgress,
    ) {
        let org = Some(view.org.clone());
        if let (Some(plan), Some((before, _))) = (&decided.before, &view.before) {
            let owner = (before.id, org.clone());
            self.write_org_plan(&owner, before, plan, now, progress);
            self.remove_timer(&owner);
            self.move_active(&owner, view.job.id);
        }
        let owner = (view.job.id, org);
        match &decided.change {
            TimerChange::Keep => {}
            TimerChange::Write(plan) => {
                self.timers.entry(owner.clone()).or_insert_with(|| timer_to_keep(&plan.timer));
                self.timer_errors.remove(&owner);
                self.write_org_plan(&owner, &view.job, plan, now, progress);
                let error = view.new_error(plan).map(|reason| (view.job.id, view.org.clone(), reason));
                progress.planned.org_errors.extend(error);
            }
            TimerChange::Remove(plan) => {
                self.write_org_plan(&owner, &view.job, plan, now, progress);
                self.remove_timer(&owner);
            }
        }
    }

    fn remove_timer(&mut self, owner: &Owner) {
        self.timers.remove(owner);
        self.timer_errors.remove(owner);
    }

    fn write_org_plan(
        &mut self,
        owner: &Owner,
        job: &Arc<Definition>,
        plan: &Plan,
        now: Timestamp,
        progress: &mut OrgUpdateProgress,
    ) {
        let written = self.write_plan(owner, plan, REPLACER, now);
        let planned = &mut progress.planned;
        planned.timers += 1;
        planned.runs.extend(written.runs.iter().filter_map(|id| self.run(*id)).map(|run| PlannedRun {
            id: run.id,
            job: Arc::clone(job),
            slot_at: run.slot_at,
            skipped: run.skip.as_ref().map(SkipReason::as_str),
        }));
        planned.gaps.extend(written.gaps.into_iter().map(|gap| (job.id, gap)));
    }
}

fn task_to_keep(task: OrgTask) -> OrgTask {
    match task {
        OrgTask::Resume { at, missed, reason } => OrgTask::Resume { at: micros(at), missed, reason },
        OrgTask::Backfill { id, from, to, trace_context } => {
            OrgTask::Backfill { id, from: micros(from), to: micros(to), trace_context }
        }
        task @ (OrgTask::Arm | OrgTask::RunNow { .. }) => task,
    }
}
