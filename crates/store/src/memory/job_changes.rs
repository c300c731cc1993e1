//! Changes that operators make to a job: read, decide, commit.

use everbell_core::change::{JobView, PendingRuns};
use everbell_core::store::{AuditEntry, Changed, DecideFn, Deed, JobRef, StoreError, StoreResult};
use everbell_core::{JobId, JobStatus, OrgId, Run, RunId, RunStatus};

use super::jobs::state_to_keep;
use super::state::{State, micros};
use crate::rows::blank_timer;

impl State {
    pub(super) fn change_job(
        &mut self,
        job: &JobRef,
        org: Option<&OrgId>,
        expected_revision: Option<u64>,
        decide: &DecideFn<'_>,
        audit: &AuditEntry,
    ) -> StoreResult<Changed> {
        self.carry_out(job, org, expected_revision, decide, (audit, true))
    }

    /// Changes a job. The audit entry has the time and the actor, and is written if that is wanted.
    pub(super) fn carry_out(
        &mut self,
        job: &JobRef,
        org: Option<&OrgId>,
        expected_revision: Option<u64>,
        decide: &DecideFn<'_>,
        (audit, is_audited): (&AuditEntry, bool),
    ) -> StoreResult<Changed> {
        let view = self.view(job, org)?;
        let id = view.job.definition.id;
        let (key, revision) = (&view.job.definition.key, view.job.state.revision);
        StoreError::expect_revision("job", key, expected_revision, Some(revision))?;
        let change = decide(&view)?;
        let retiring = (change.state.status == JobStatus::Retired).then_some(id);
        if let Some(successor) = &change.successor {
            self.check_new(successor, retiring)?;
        }
        if let Some(write) = &change.backfill {
            self.check_backfill(write)?;
        }

        let owner = (id, view.timer.org.clone());
        if let Some(job) = self.jobs.get_mut(&id) {
            job.state = state_to_keep(&change.state);
        }
        let written = self.write_plan(&owner, &change.plan, &audit.actor, micros(audit.at));
        if let Some(successor) = &change.successor {
            self.insert_job(successor, audit);
        }
        if let Some(task) = change.org_task {
            self.begin_org_update(id, &view.job.definition.key, task, audit);
        }
        let lanes = [Some(id), change.successor.as_ref().map(|new| new.definition.id)];
        let lanes = lanes.into_iter().flatten();
        let mut pending: u64 = lanes.map(|lane| self.change_pending(lane, change.pending, audit)).sum();
        if let Some(write) = change.backfill {
            pending += self.write_backfill(*write);
        }
        if is_audited {
            self.write_audit(audit);
        }
        let successor = change.successor.as_ref().map(|new| self.job_row(new.definition.id)).transpose()?;
        let runs: Vec<Run> = written.runs.iter().filter_map(|id| self.run(*id)).cloned().collect();
        let deed = Deed {
            job: Some(id),
            successor: change.successor.as_ref().map(|new| new.definition.id),
            runs: written.runs,
            gaps: written.gaps.clone(),
            pending,
            ..Deed::default()
        };
        if is_audited {
            self.write_deed(audit, deed);
        }
        Ok(Changed::new(self.job_row(id)?).with(successor, runs, written.gaps, pending))
    }

    /// Holds, releases or cancels the runs of a version that have not begun, and counts them. Runs at work are marked too:
    /// they wait before their next attempt.
    fn change_pending(&mut self, lane: JobId, pending: PendingRuns, audit: &AuditEntry) -> u64 {
        if pending == PendingRuns::Leave {
            return 0;
        }
        let mut waiting = Vec::new();
        let exempt: Vec<RunId> = self
            .active
            .values()
            .map(|active| &active.run)
            .filter(|run| self.is_paused_ok(run))
            .map(|run| run.id)
            .collect();
        for active in self.active.values_mut().filter(|active| active.lane == Some(lane)) {
            if !pending.holds() || !exempt.contains(&active.run.id) {
                active.paused = pending.holds();
            }
            waiting.extend((active.run.status == RunStatus::Pending).then_some(active.run.id));
        }
        if pending.cancels() {
            for run in &waiting {
                self.cancel(*run, &audit.actor, micros(audit.at));
            }
        }
        waiting.len() as u64
    }

    /// The job as it is, seen through its timer, or through that of an org.
    fn view(&self, job: &JobRef, org: Option<&OrgId>) -> StoreResult<JobView> {
        let job = self.find_job(job)?;
        let id = job.definition.id;
        if let Some(org) = org {
            self.get_org(org)?;
        }
        let owner = (id, org.cloned());
        let blank = || blank_timer(id, org, job.definition.created_at);
        Ok(JobView {
            job: job.clone(),
            timer: self.timers.get(&owner).cloned().unwrap_or_else(blank),
            org: self.org_facts(&owner),
            active: self.active_of(&owner),
            upstream_succeeded_at: self.upstream_succeeded_at(&job.definition),
        })
    }
}
