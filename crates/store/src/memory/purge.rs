//! Deleting jobs: one on request, with everything about it, and one-time jobs that are over.

use std::collections::BTreeSet;
use std::sync::Arc;

use everbell_core::store::{AuditEntry, Deed, PurgedJob, StoreError, StoreResult};
use everbell_core::{Definition, JobId, JobKey, JobStatus, RunId, RunStatus, Spec, purge};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::jobs::is_one_time;
use super::state::{State, micros};

impl State {
    pub(super) fn purge_job(
        &mut self,
        key: &JobKey,
        limit: u32,
        so_far: PurgedJob,
        audit: &AuditEntry,
    ) -> StoreResult<PurgedJob> {
        let limit = limit as usize;
        let versions = self.jobs.iter().filter(|(_, job)| job.definition.key == *key);
        let versions: BTreeSet<JobId> = versions.map(|(id, _)| *id).collect();
        if versions.is_empty() {
            return Err(StoreError::not_found("job", key));
        }
        let is_own = |job: Option<JobId>| job.is_some_and(|id| versions.contains(&id));
        let active = self.active.values().filter(|active| is_own(active.lane));
        let (at_work, pending): (Vec<_>, Vec<_>) = active
            .map(|active| (active.run.id, active.run.status))
            .partition(|(_, status)| *status == RunStatus::Running);
        let at_work: Vec<RunId> = at_work.into_iter().map(|(id, _)| id).collect();
        purge::expect_idle(key, &at_work)?;

        let ended = self.ended.values().filter(|run| is_own(run.job_id)).map(|run| run.id).take(limit);
        let ended: Vec<RunId> = ended.collect();
        let runs: BTreeSet<RunId> = pending.iter().map(|(id, _)| *id).chain(ended.iter().copied()).collect();
        self.active.retain(|id, _| !runs.contains(id));
        self.ended.retain(|id, _| !runs.contains(id));
        self.outputs.retain(|id, _| !runs.contains(id));
        self.slots.retain(|_, id| !runs.contains(id));
        let gaps = self.gaps.iter().filter(|(_, gap)| versions.contains(&gap.owner.0)).map(|(id, _)| *id);
        let gaps: Vec<Uuid> = gaps.take(limit).collect();
        for id in &gaps {
            self.gaps.remove(id);
        }
        let purged = PurgedJob::some(runs.len() as u64, gaps.len() as u64);
        if ended.len() == limit || gaps.len() == limit {
            self.stop(&versions, audit);
            return Ok(purged);
        }
        self.delete_jobs(&versions);
        self.org_updates.retain(|_, stored| !versions.contains(&stored.org_update.job));
        self.overrides.retain(|(_, job_key), _| job_key != key);
        for entry in self.audit.values_mut().filter(|entry| entry.object == audit.object) {
            (entry.before, entry.after) = (None, None);
        }
        self.purge_inbox(key.as_str());
        self.counters.purge(key);
        self.backfills.retain(|_, backfill| backfill.job_key != *key);
        self.run_groups.retain(|(job_key, _), _| job_key != key);
        let purged = PurgedJob::last(versions.len() as u64, purged.runs, purged.gaps);
        self.write_audit(audit);
        self.write_deed(audit, Deed { purged: Some((key.clone(), so_far.and(purged))), ..Deed::default() });
        Ok(purged)
    }

    /// Retires versions and disarms their timers.
    fn stop(&mut self, versions: &BTreeSet<JobId>, audit: &AuditEntry) {
        for job in self.jobs.iter_mut().filter(|(id, _)| versions.contains(id)).map(|(_, job)| job) {
            if let Ok(state) = job.state.retired(&audit.actor, micros(audit.at)) {
                job.state = state;
            }
        }
        for timer in self.timers.values_mut().filter(|timer| versions.contains(&timer.job_id)) {
            timer.next_run_at = None;
        }
    }

    /// Deletes one-time jobs that were retired before this time and that nothing refers to any more.
    pub(super) fn prune_jobs(&mut self, before: Timestamp, limit: usize) -> u64 {
        let finished = self.jobs.values().filter(|job| {
            let over = job.state.status == JobStatus::Retired && job.state.updated_at < before;
            over && is_past(&job.definition, before) && !self.is_referred_to(&job.definition)
        });
        let mut finished: Vec<(Timestamp, JobId)> =
            finished.map(|job| (job.state.updated_at, job.definition.id)).collect();
        finished.sort();
        let gone: BTreeSet<JobId> = finished.into_iter().take(limit).map(|(_, id)| id).collect();
        self.delete_jobs(&gone);
        gone.len() as u64
    }

    fn is_referred_to(&self, job: &Definition) -> bool {
        let depends = |other: &Definition| other.policies.depends_on.as_ref().is_some_and(|on| on.job_key == job.key);
        let is_older = |other: &Definition| other.key == job.key && other.version < job.version;
        self.runs().any(|run| run.job_id == Some(job.id))
            || self.active.values().any(|active| active.lane == Some(job.id))
            || self.gaps.values().any(|gap| gap.owner.0 == job.id)
            || self.org_updates.values().any(|stored| stored.org_update.job == job.id)
            || self.jobs.values().any(|other| {
                let current = other.state.status != JobStatus::Retired;
                (is_older(&other.definition) && !is_one_time(&other.definition))
                    || (current && depends(&other.definition))
            })
    }

    fn delete_jobs(&mut self, gone: &BTreeSet<JobId>) {
        self.jobs.retain(|id, _| !gone.contains(id));
        self.timers.retain(|(id, _), _| !gone.contains(id));
        self.timer_errors.retain(|(id, _), _| !gone.contains(id));
        for job in self.jobs.values_mut() {
            if job.definition.supersedes.is_some_and(|id| gone.contains(&id)) {
                job.definition =
                    Arc::new(everbell_core::with!(Definition { supersedes: None, ..(*job.definition).clone() }));
            }
        }
    }
}

/// Whether this is a one-time job of a time before that one.
fn is_past(definition: &Definition, before: Timestamp) -> bool {
    let is_later = |spec: &Spec| spec.next_after(before - SignedDuration::from_micros(1)).is_some();
    is_one_time(definition) && !definition.spec.as_ref().is_ok_and(is_later)
}
