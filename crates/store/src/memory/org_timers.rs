//! Timers of orgs, brought in line with orgs, overrides and jobs.

use std::sync::Arc;

use everbell_core::org::{self, OrgFacts, OrgTask, OrgTimer, OrgView, Sweep, SweepStep, TimerChange, TimerChanges};
use everbell_core::plan::Plan;
use everbell_core::store::{AuditEntry, PlannedRun, Swept};
use everbell_core::{Definition, Job, JobId, JobKey, OrgId, SkipReason};
use jiff::Timestamp;

use super::jobs::timer_to_keep;
use super::state::{EVERBELL, Owner, State, StoredSweep, micros};

impl State {
    /// What decides about the timer of an org. `None` where there is no org.
    pub(super) fn org_facts(&self, (job, org): &Owner) -> Option<OrgFacts> {
        let org = org.as_ref()?;
        let job = self.jobs.get(job)?;
        let place = self.orgs.get(org)?.org.place.clone();
        let wish = self.overrides.get(&(org.clone(), job.definition.key.clone())).cloned();
        Some(OrgFacts { life: (&job.state).into(), place, wish })
    }

    pub(super) fn begin_sweep(&mut self, job: JobId, key: &JobKey, work: OrgTask, audit: &AuditEntry) {
        let at = micros(audit.at);
        let sweep = Sweep {
            id: audit.id,
            job,
            job_key: key.clone(),
            work: work_to_keep(work),
            actor: audit.actor.clone(),
            at,
            reached: None,
            seen: 0,
        };
        self.sweeps.entry(audit.id).or_insert(StoredSweep { sweep, stepped_at: at });
    }

    /// Orgs that changed: the timers of every job that no sweep is about to come by with anyway.
    pub(super) fn look_at_waiting(&mut self, now: Timestamp, limit: u32, swept: &mut Swept) -> bool {
        let jobs: Vec<Job> = self.org_wide_jobs().cloned().collect();
        let most = (limit as usize / jobs.len().max(1)).max(1);
        let waiting: Vec<OrgId> =
            self.orgs.iter().filter(|(_, stored)| stored.waiting).map(|(id, _)| id.clone()).take(most).collect();
        for org in &waiting {
            for job in &jobs {
                if self.sweeps.values().any(|stored| stored.sweep.is_ahead_of(&job.definition.key, org)) {
                    continue;
                }
                if let Some(view) = self.org_view(job, org, false) {
                    let decided = org::reconcile(&view, None);
                    self.write_reconciled(&view, &decided, now, swept);
                }
            }
            if let Some(stored) = self.orgs.get_mut(org) {
                stored.waiting = false;
            }
        }
        swept.orgs += waiting.len() as u32;
        !waiting.is_empty()
    }

    /// A step of the sweep that waits longest, if it is the first of its job key.
    pub(super) fn step(&mut self, now: Timestamp, limit: u32, swept: &mut Swept) -> bool {
        let first = |sweep: &Sweep| {
            !self.sweeps.values().any(|other| other.sweep.job_key == sweep.job_key && other.sweep.id < sweep.id)
        };
        let next = self.sweeps.values().filter(|stored| first(&stored.sweep));
        let Some(sweep) = next.min_by_key(|stored| (stored.stepped_at, stored.sweep.id)).map(|s| s.sweep.clone())
        else {
            return false;
        };
        let behind = |org: &&OrgId| sweep.reached.as_ref().is_none_or(|reached| *org > reached);
        let orgs: Vec<OrgId> = self.orgs.keys().filter(behind).take(limit as usize).cloned().collect();
        let before = swept.planned.runs.len();
        if let Some(job) = self.jobs.get(&sweep.job).cloned() {
            for org in &orgs {
                if let Some(view) = self.org_view(&job, org, sweep.work == OrgTask::Arm) {
                    let decided = org::take_step(&view, SweepStep { sweep: &sweep, now });
                    self.write_reconciled(&view, &decided, now, swept);
                }
            }
            if sweep.is_held_by(&job.state) {
                for run in &swept.planned.runs[before..] {
                    self.active.get_mut(&run.id).into_iter().for_each(|active| active.paused = true);
                }
            }
        }
        swept.orgs += orgs.len() as u32;
        match orgs.last() {
            Some(last) if orgs.len() == limit as usize => {
                let (reached, seen) = (Some(last.clone()), sweep.seen + orgs.len() as u64);
                let stored = StoredSweep { sweep: Sweep { reached, seen, ..sweep }, stepped_at: now };
                self.sweeps.insert(stored.sweep.id, stored);
            }
            _ => {
                self.sweeps.remove(&sweep.id);
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

    fn write_reconciled(&mut self, view: &OrgView, decided: &TimerChanges, now: Timestamp, swept: &mut Swept) {
        let org = Some(view.org.clone());
        if let (Some(plan), Some((before, _))) = (&decided.before, &view.before) {
            let owner = (before.id, org.clone());
            self.write_swept(&owner, before, plan, now, swept);
            self.remove_timer(&owner);
            self.move_active(&owner, view.job.id);
        }
        let owner = (view.job.id, org);
        match &decided.fate {
            TimerChange::Keep => {}
            TimerChange::Write(plan) => {
                self.timers.entry(owner.clone()).or_insert_with(|| timer_to_keep(&plan.timer));
                self.timer_errors.remove(&owner);
                self.write_swept(&owner, &view.job, plan, now, swept);
                let error = view.new_error(plan).map(|reason| (view.job.id, view.org.clone(), reason));
                swept.planned.org_errors.extend(error);
            }
            TimerChange::Remove(plan) => {
                self.write_swept(&owner, &view.job, plan, now, swept);
                self.remove_timer(&owner);
            }
        }
    }

    fn remove_timer(&mut self, owner: &Owner) {
        self.timers.remove(owner);
        self.timer_errors.remove(owner);
    }

    fn write_swept(&mut self, owner: &Owner, job: &Arc<Definition>, plan: &Plan, now: Timestamp, swept: &mut Swept) {
        let written = self.write_plan(owner, plan, EVERBELL, now);
        let planned = &mut swept.planned;
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

fn work_to_keep(work: OrgTask) -> OrgTask {
    match work {
        OrgTask::Resume { at, missed, reason } => OrgTask::Resume { at: micros(at), missed, reason },
        OrgTask::Backfill { id, from, to } => OrgTask::Backfill { id, from: micros(from), to: micros(to) },
        work @ (OrgTask::Arm | OrgTask::RunNow { .. }) => work,
    }
}
