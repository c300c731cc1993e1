//! Due timers: what each plan needs.

use std::collections::BTreeSet;
use std::sync::Arc;

use everbell_core::freeze::frozen_spans;
use everbell_core::plan::Plan;
use everbell_core::store::{Claim, Due, Planned, StartRuns};
use everbell_core::{JobStatus, NewRun, RunId, Target};
use jiff::Timestamp;

use super::state::{Owner, State};
use crate::rows::errored;

impl State {
    /// The audit trail says which orgs jobs cannot fire for any more.
    pub(super) fn write_org_errors(&mut self, planned: &Planned, now: Timestamp) {
        let named = planned.org_errors.iter();
        let named = named.filter_map(|(job, org, why)| Some((&*self.jobs.get(job)?.definition, org, why)));
        for entry in errored::of_orgs(named, now) {
            self.write_audit(&entry);
        }
    }

    /// Whether a current job of these targets has a priority.
    pub(super) fn has_priorities(&self, targets: &[Target]) -> bool {
        let mut current = self.jobs.values().filter(|job| job.state.status != JobStatus::Retired);
        current.any(|job| job.definition.policies.priority != 0 && targets.contains(&job.definition.target))
    }

    /// Oldest first; those of the same instant in the order of job and org.
    pub(super) fn due(&self, now: Timestamp, limit: u32, targets: &[Target]) -> Vec<Due> {
        let mut owners: Vec<(Timestamp, &Owner)> = self.armed(targets).filter(|(at, _)| *at <= now).collect();
        owners.sort();
        owners.truncate(limit as usize);
        owners.into_iter().filter_map(|(_, owner)| self.due_of(owner)).collect()
    }

    /// Starts those of the runs that were inserted for these plans which the request picks.
    pub(super) fn start_planned(
        &mut self,
        start: &StartRuns<'_>,
        due: &[Due],
        plans: &[(Owner, Plan)],
        planned: &Planned,
    ) -> Vec<Claim> {
        let new: BTreeSet<RunId> = planned.runs.iter().map(|run| run.id).collect();
        let runs = due.iter().zip(plans).flat_map(|(due, (_, plan))| plan.runs.iter().map(move |run| (due, run)));
        let runs: Vec<(&Due, &NewRun)> = runs.filter(|(_, run)| new.contains(&run.id)).collect();
        let picked = start.picks(runs.iter().map(|(due, run)| (&*due.job, *run)));
        let mut claims = Vec::new();
        for (due, run) in picked.into_iter().map(|place| runs[place]) {
            let Some(active) = self.active.get_mut(&run.id) else { continue };
            let claim = start.claim(&due.job, due.timer.org.clone(), run.clone());
            active.run = claim.run.clone();
            claims.push(claim);
        }
        claims
    }

    pub(super) fn armed(&self, targets: &[Target]) -> impl Iterator<Item = (Timestamp, &Owner)> {
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
            frozen: frozen_spans(&self.freezes.values().cloned().collect::<Vec<_>>(), job),
        })
    }
}
