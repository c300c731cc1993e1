//! Timers that are due: read, decide, commit.

use std::sync::Arc;

use everbell_core::Target;
use everbell_core::plan::Plan;
use everbell_core::store::{Due, PlanFn, Planned, PlannedRun};
use jiff::Timestamp;

use super::state::{EVERBELL, Owner, State, micros};
use crate::rows::errored;

impl State {
    pub(super) fn plan_due(&mut self, now: Timestamp, limit: u32, targets: &[Target], plan: &PlanFn<'_>) -> Planned {
        let now = micros(now);
        let due = self.due(now, limit, targets);
        let plans: Vec<(Owner, Plan)> =
            due.iter().map(|due| ((due.job.id, due.timer.org.clone()), plan(due, now))).collect();

        let mut planned = Planned { timers: due.len() as u32, ..Planned::default() };
        for (due, (owner, plan)) in due.iter().zip(&plans) {
            let written = self.write_plan(owner, plan, EVERBELL, now);
            planned.runs.extend(written.runs.iter().filter_map(|id| self.run(*id)).map(|run| PlannedRun {
                id: run.id,
                job: Arc::clone(&due.job),
                slot_at: run.slot_at,
                skipped: run.skip.as_ref().map(everbell_core::SkipReason::as_str),
            }));
            planned.gaps.extend(written.gaps.into_iter().map(|gap| (due.job.id, gap)));
            let org_error =
                plan.org_error.iter().filter_map(|reason| Some((due.job.id, owner.1.clone()?, reason.clone())));
            planned.org_errors.extend(org_error);
            planned.errored.extend(plan.error.iter().map(|reason| (due.job.id, reason.clone())));
        }
        self.write_org_errors(&planned, now);
        planned.next_due_at = self.armed(targets).map(|(at, _)| at).filter(|at| *at > now).min();
        planned
    }

    /// The audit trail says which orgs jobs cannot fire for any more.
    pub(super) fn write_org_errors(&mut self, planned: &Planned, now: Timestamp) {
        let named = planned.org_errors.iter();
        let named = named.filter_map(|(job, org, why)| Some((&*self.jobs.get(job)?.definition, org, why)));
        for entry in errored::of_orgs(named, now) {
            self.write_audit(&entry);
        }
    }

    /// Oldest first; those of the same instant in the order of job and org.
    fn due(&self, now: Timestamp, limit: u32, targets: &[Target]) -> Vec<Due> {
        let mut owners: Vec<(Timestamp, &Owner)> = self.armed(targets).filter(|(at, _)| *at <= now).collect();
        owners.sort();
        owners.truncate(limit as usize);
        owners.into_iter().filter_map(|(_, owner)| self.due_of(owner)).collect()
    }

    fn armed(&self, targets: &[Target]) -> impl Iterator<Item = (Timestamp, &Owner)> {
        let serves =
            |owner: &Owner| self.jobs.get(&owner.0).is_some_and(|job| targets.contains(&job.definition.target));
        let armed = self.timers.iter().filter_map(|(owner, timer)| Some((timer.next_run_at?, owner)));
        armed.filter(move |(_, owner)| serves(owner))
    }

    pub(super) fn due_of(&self, owner: &Owner) -> Option<Due> {
        let job = &self.jobs.get(&owner.0)?.definition;
        Some(Due {
            job: Arc::clone(job),
            timer: self.timers.get(owner)?.clone(),
            org: self.org_facts(owner),
            active: self.active_of(owner),
            upstream_succeeded_at: self.upstream_succeeded_at(job),
        })
    }
}
