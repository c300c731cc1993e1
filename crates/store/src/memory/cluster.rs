//! The store itself, instances and their leases, time, and upkeep.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use everbell_core::settle::Settling;
use everbell_core::store::{
    ActiveCount, AuditEntry, Beat, ClockTrace, ClusterStore, Counts, Due, FUTURE_TOLERANCE, Instance, JobCount,
    LeaseReport, PruneBefore, Pruned, Rearmed, StoreError, StoreResult, StoreStatus, Wakeup,
};
use everbell_core::{App, InstanceId, JobStatus, ReleaseId, ReleaseStatus, Releases, Run, RunId, Source, Timer};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::MemoryStore;
use super::jobs::is_one_time;
use super::state::{Owner, State, StoredInstance, StoredSession, micros};

#[async_trait]
impl ClusterStore for MemoryStore {
    async fn now(&self) -> StoreResult<Timestamp> {
        let now = self.clock();
        self.with(|_| Ok(now))
    }

    async fn status(&self) -> StoreResult<StoreStatus> {
        self.with(|_| {
            Ok(StoreStatus {
                product: "memory".to_owned(),
                schema_version: 0,
                size_bytes: None,
                oldest_transaction_at: None,
                notes: vec!["nothing outlives the process".to_owned()],
                write_failure: None,
            })
        })
    }

    async fn close(&self) -> StoreResult<()> {
        Ok(())
    }

    async fn counts(&self, now: Timestamp) -> StoreResult<Counts> {
        self.with(|state| {
            let now = micros(now);
            // Keyed by words, which define the order of the answer.
            let mut jobs = BTreeMap::new();
            for job in state.jobs.values() {
                let one_time = is_one_time(&job.definition);
                let status = job.state.status;
                jobs.entry((status.as_str(), one_time)).or_insert(JobCount { status, one_time, jobs: 0 }).jobs += 1;
            }
            let mut active = BTreeMap::new();
            for run in state.active.values().map(|active| &active.run) {
                let none = || ActiveCount { target: run.target.clone(), status: run.status, runs: 0 };
                active.entry((run.target.as_str(), run.status.as_str())).or_insert_with(none).runs += 1;
            }
            let is_errored =
                |state: &everbell_core::JobState| state.error.is_some() && state.status != JobStatus::Retired;
            let due: Vec<Timestamp> =
                state.timers.values().filter_map(|timer| timer.next_run_at).filter(|at| *at <= now).collect();
            Ok(Counts {
                jobs: jobs.into_values().collect(),
                errored_jobs: state.jobs.values().filter(|job| is_errored(&job.state)).count() as u64,
                active_runs: active.into_values().collect(),
                due_timers: due.len() as u64,
                oldest_due_at: due.into_iter().min(),
            })
        })
    }

    /// Whether it drains is the operators' to say, so a heartbeat of a known instance leaves that alone.
    async fn heartbeat(&self, instance: &Instance, lease_until: Option<Timestamp>, looks: bool) -> StoreResult<Beat> {
        self.with(|state| {
            let (id, now) = (instance.id.as_uuid(), micros(instance.heartbeat_at));
            let known = state.instances.get(&id);
            let draining = known.map_or(instance.draining, |known| known.instance.draining);
            let losses = known.map_or(0, |known| known.losses);
            let lease_until = known.and_then(|known| known.lease_until).max(lease_until.map(micros));
            let is_new = known.is_none();
            let started_at = micros(instance.started_at);
            let seen = everbell_core::with!(Instance { started_at, heartbeat_at: now, draining, ..instance.clone() });
            state.instances.insert(id, StoredInstance { instance: seen, lease_until, losses });
            let others =
                || state.instances.iter().filter(|(other, _)| **other != id).map(|(_, other)| other.lease_until);
            let held = state.held_by(instance.id);
            Ok(Beat {
                draining,
                is_new,
                losses,
                to_cancel: held.filter(|run| run.cancel_by.is_some()).map(report).collect(),
                has_unleased: others().any(|lease| lease.is_none()),
                has_lapsed: others().flatten().any(|lease| lease < now),
                work: looks.then(|| state.work_of(&instance.targets, now)),
            })
        })
    }

    async fn list_instances(&self) -> StoreResult<Vec<Instance>> {
        self.with(|state| {
            let mut instances: Vec<Instance> = state.instances.values().map(|known| known.instance.clone()).collect();
            instances.sort_by_key(|instance| (instance.started_at, instance.id));
            Ok(instances)
        })
    }

    async fn leave(&self, id: InstanceId, planned_until: Timestamp, now: Timestamp) -> StoreResult<()> {
        self.with(|state| {
            if !state.holds_runs(id)
                && let Some(gone) = state.instances.remove(&id.as_uuid())
                && gone.instance.roles.iter().any(|role| role == "scheduler")
            {
                let last = gone.instance.heartbeat_at.min(micros(planned_until)).min(micros(now));
                // One in the future is of a clock that was wrong.
                let known = state.departed_at.filter(|at| *at <= micros(now));
                state.departed_at = known.max(Some(last));
            }
            Ok(())
        })
    }

    async fn drain_instance(&self, id: InstanceId, draining: bool, audit: &AuditEntry) -> StoreResult<()> {
        self.once(audit, |state| {
            let instance = state.instances.get_mut(&id.as_uuid());
            instance.ok_or_else(|| StoreError::not_found("instance", id))?.instance.draining = draining;
            state.write_audit(audit);
            Ok(())
        })
    }

    async fn remove_instances(&self, before: Timestamp) -> StoreResult<u64> {
        self.with(|state| {
            let silent = state.instances.values().map(|known| &known.instance);
            let silent: Vec<InstanceId> = silent
                .filter(|instance| instance.heartbeat_at < micros(before) && !state.holds_runs(instance.id))
                .map(|instance| instance.id)
                .collect();
            for id in &silent {
                state.instances.remove(&id.as_uuid());
            }
            Ok(silent.len() as u64)
        })
    }

    async fn releases(&self, source: Source, app: &App) -> StoreResult<Releases> {
        self.with(|state| Ok(state.releases.get(&(source.as_str(), app.clone())).cloned().unwrap_or_default()))
    }

    async fn declare_release(
        &self,
        source: Source,
        app: &App,
        release: &ReleaseId,
        now: Timestamp,
    ) -> StoreResult<ReleaseStatus> {
        self.with(|state| {
            let stored = state.releases.entry((source.as_str(), app.clone())).or_default();
            let (releases, status) = stored.declare(release, micros(now));
            *stored = releases;
            Ok(status)
        })
    }

    async fn see_release(&self, source: Source, app: &App, release: &ReleaseId, now: Timestamp) -> StoreResult<()> {
        self.with(|state| {
            if let Some(stored) = state.releases.get_mut(&(source.as_str(), app.clone())) {
                *stored = stored.see(release, micros(now));
            }
            Ok(())
        })
    }

    async fn held_runs(&self, instance: InstanceId) -> StoreResult<Vec<LeaseReport>> {
        self.with(|state| {
            let held = state.held_by(instance);
            Ok(held.map(report).collect())
        })
    }

    async fn extend_leases(
        &self,
        instance: InstanceId,
        now: Timestamp,
        until: Timestamp,
    ) -> StoreResult<Vec<LeaseReport>> {
        self.with(|state| {
            let now = micros(now);
            let held = state.held_by(instance);
            let held = held.filter(|run| state.lease_of(run).is_some_and(|lease| lease >= now));
            let reports: Vec<LeaseReport> = held.map(report).collect();
            for report in &reports {
                if let Some(active) = state.active.get_mut(&report.run) {
                    active.run.lease_until = active.run.lease_until.max(Some(micros(until)));
                }
            }
            Ok(reports)
        })
    }

    async fn expired_leases(&self, now: Timestamp, limit: u32) -> StoreResult<Vec<Settling>> {
        self.with(|state| {
            let now = micros(now);
            let mut expired: Vec<(Timestamp, &Run)> =
                state.active.values().filter_map(|active| Some((state.lease_of(&active.run)?, &active.run))).collect();
            expired.retain(|(lease, run)| *lease < now && !run.is_handed_over());
            expired.sort_by_key(|(lease, run)| (*lease, run.id));
            Ok(expired.into_iter().take(limit as usize).map(|(_, run)| state.settling(run)).collect())
        })
    }

    async fn leases_of(&self, instance: InstanceId, limit: u32) -> StoreResult<Vec<Settling>> {
        self.with(|state| {
            let own = state.held_by(instance);
            Ok(own.take(limit as usize).map(|run| state.settling(run)).collect())
        })
    }

    async fn clock_trace(&self) -> StoreResult<ClockTrace> {
        self.with(|state| {
            let runs = state.runs().map(|run| run.created_at);
            let jobs = state.jobs.values().map(|job| job.definition.created_at);
            let audit = state.audit.values().map(|entry| entry.at);
            Ok(ClockTrace { trusted_at: state.trusted_at, newest_at: runs.chain(jobs).chain(audit).max().map(micros) })
        })
    }

    async fn write_trusted_time(&self, at: Timestamp) -> StoreResult<()> {
        self.with(|state| {
            state.trusted_at = Some(micros(at));
            Ok(())
        })
    }

    async fn rearm_timers(
        &self,
        now: Timestamp,
        lease_until: Timestamp,
        limit: u32,
        audit: &AuditEntry,
    ) -> StoreResult<Rearmed> {
        self.once(audit, |state| {
            let (now, lease_until) = (micros(now), micros(lease_until));
            let horizon = now.checked_add(SignedDuration::try_from(FUTURE_TOLERANCE).unwrap_or_default());
            let horizon = horizon.unwrap_or(Timestamp::MAX);
            let owners = state.timers.iter().filter(|(owner, timer)| state.is_false(owner, timer, horizon));
            let dues: Vec<Due> = owners.take(limit as usize).filter_map(|(owner, _)| state.due_of(owner)).collect();
            let mut rearmed = Rearmed { timers: dues.len() as u32, ..Rearmed::default() };
            for due in &dues {
                let owner: Owner = (due.job.id, due.timer.org.clone());
                let active = state.jobs.get(&owner.0).is_some_and(|job| job.state.status == JobStatus::Active);
                let timer = due.rearm(now);
                let next_run_at = timer.next_run_at.filter(|_| active).map(micros);
                state.timers.insert(owner.clone(), everbell_core::with!(Timer { next_run_at, ..timer }));
                rearmed.gaps += state.cut_gaps(&owner, due, now, horizon);
            }
            for active in state.active.values_mut() {
                let remote = active.remote.as_ref().filter(|_| active.run.is_handed_over());
                let longest = remote.map_or(lease_until, |remote| lease_until + remote.lease);
                if let Some(lease) = active.run.lease_until.as_mut().filter(|lease| **lease > longest) {
                    *lease = longest;
                    rearmed.leases += 1;
                }
            }
            for known in state.instances.values_mut() {
                if known.instance.heartbeat_at > horizon {
                    known.instance.heartbeat_at = now;
                }
                known.lease_until = known.lease_until.map(|lease| lease.min(lease_until));
            }
            if rearmed.timers > 0 {
                state.write_audit(&AuditEntry { reason: Some(rearmed.to_string()), ..audit.clone() });
            }
            Ok(rearmed)
        })
    }

    async fn prune(&self, before: PruneBefore, limit: u32) -> StoreResult<Pruned> {
        self.with(|state| {
            let (audit_before, requests_before) = (micros(before.audit), micros(before.requests));
            let before = micros(before.history);
            let limit = limit as usize;
            // A run of an old slot that ended lately, such as one of a backfill, is not old.
            let is_old = |run: &Run| run.finished_at.unwrap_or(run.created_at) < before;
            let old = state.ended.range(..RunId::first_at(before)).filter(|(_, run)| is_old(run));
            let runs: Vec<RunId> = old.map(|(id, _)| *id).take(limit).collect();
            for id in &runs {
                state.ended.remove(id);
                state.outputs.remove(id);
            }
            state.slots.retain(|_, id| !runs.contains(id));
            let gaps: Vec<Uuid> =
                state.gaps.iter().filter(|(_, gap)| gap.created_at < before).map(|(id, _)| *id).take(limit).collect();
            for id in &gaps {
                state.gaps.remove(id);
            }
            let jobs = state.prune_jobs(before, limit);
            let inbox = state.prune_inbox(before, limit);
            state.prune_alerts(before, limit);
            state.prune_absences(before, limit);
            state.prune_backfills(before, limit);
            let audit: Vec<_> = state
                .audit
                .values()
                .filter(|entry| entry.at < audit_before)
                .map(|entry| entry.id)
                .take(limit)
                .collect();
            for id in &audit {
                state.audit.remove(id);
            }
            let old = state.requests.iter().filter(|(_, request)| request.at < requests_before);
            let answers: Vec<String> = old.map(|(key, _)| key.clone()).take(limit).collect();
            for key in &answers {
                state.requests.remove(key);
            }
            let ended = |session: &StoredSession| session.session.ends_at() <= requests_before;
            let sessions: Vec<Uuid> =
                state.sessions.iter().filter(|(_, session)| ended(session)).map(|(id, _)| *id).take(limit).collect();
            for id in &sessions {
                state.sessions.remove(id);
            }
            Ok(Pruned {
                runs: runs.len() as u64,
                gaps: gaps.len() as u64,
                audit: audit.len() as u64,
                answers: answers.len() as u64,
                jobs,
                inbox,
            })
        })
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    fn can_partition(&self) -> bool {
        self.can_partition.load(Ordering::Relaxed)
    }

    fn hears_others(&self) -> bool {
        true
    }

    fn woken(&self) -> Wakeup<'_> {
        Box::pin(self.notify.notified())
    }
}

fn report(run: &Run) -> LeaseReport {
    LeaseReport { run: run.id, attempt: run.attempt, cancel_by: run.cancel_by.clone() }
}

impl State {
    pub(super) fn settling(&self, run: &Run) -> Settling {
        let job = run.job_id.and_then(|id| self.jobs.get(&id));
        let policies = job.map(|job| &job.definition.policies);
        Settling::new(run.id, run.status, run.attempt, policies).after(run.earlier_attempts.clone())
    }
}
