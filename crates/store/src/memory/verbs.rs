//! The verbs of the contract, each one transaction over [`State`](super::state::State).

use std::sync::atomic::Ordering;

use async_trait::async_trait;
use everbell_core::change::NewJob;
use everbell_core::org::{Org, OrgWrite, Override, OverrideWrite, Sweep};
use everbell_core::settle::{Settling, Transition};
use everbell_core::store::{
    AuditEntry, Bucket, Canceled, Changed, Claim, ClockTrace, Counts, DecideFn, GapFilter, Glance, Instance, JobFilter,
    JobOrg, JobOrgFilter, JobRef, JobRow, LastAdmin, LeaseReport, NewSession, NewToken, OrgCounts, OrgFilter, OrgJob,
    OrgWritten, Page, PageRequest, PlanFn, Planned, PruneBefore, Pruned, Rearmed, Recorded, Remembered, RequestKey,
    RunFilter, RunGlimpse, Session, SessionFilter, SlotOutcome, StartRuns, Store, StoreResult, StoreStatus, Swept,
    Tally, TargetCount, Token,
};
use everbell_core::{Gap, InstanceId, JobId, JobKey, OrgId, OutputSoFar, Run, RunId, Target};
use jiff::Timestamp;
use uuid::Uuid;

use super::MemoryStore;
use super::state::micros;

#[async_trait]
impl Store for MemoryStore {
    async fn now(&self) -> StoreResult<Timestamp> {
        let now = self.clock();
        self.with(|_| Ok(now))
    }

    fn can_partition(&self) -> bool {
        self.can_partition.load(Ordering::Relaxed)
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

    async fn counts(&self, now: Timestamp) -> StoreResult<Counts> {
        self.with(|state| Ok(state.counts(now)))
    }

    async fn woken(&self) {
        self.notify.notified().await;
    }

    async fn create_job(&self, job: &NewJob, audit: &AuditEntry) -> StoreResult<JobRow> {
        self.once(audit, |state| state.create_job(job, audit))
    }

    async fn change_job(
        &self,
        job: &JobRef,
        expected_revision: Option<u64>,
        decide: &DecideFn<'_>,
        audit: &AuditEntry,
    ) -> StoreResult<Changed> {
        self.once(audit, |state| state.change_job(job, None, expected_revision, decide, audit))
    }

    async fn get_job(&self, job: &JobRef) -> StoreResult<JobRow> {
        self.with(|state| state.get_job(job))
    }

    async fn list_jobs(&self, filter: &JobFilter, page: &PageRequest) -> StoreResult<Page<JobRow>> {
        self.with(|state| state.list_jobs(filter, page))
    }

    async fn count_jobs(&self, filter: &JobFilter, cap: u32) -> StoreResult<u32> {
        self.with(|state| state.count_jobs(filter, cap))
    }

    async fn count_targets(&self) -> StoreResult<Vec<TargetCount>> {
        self.with(|state| Ok(state.count_targets()))
    }

    async fn pauses_ending(&self, limit: u32) -> StoreResult<Vec<(JobId, Timestamp)>> {
        self.with(|state| Ok(state.pauses_ending(limit)))
    }

    async fn plan_due(
        &self,
        now: Timestamp,
        limit: u32,
        targets: &[Target],
        plan: &PlanFn<'_>,
    ) -> StoreResult<Planned> {
        let planned = self.with(|state| Ok(state.plan_due(now, limit, targets, plan)));
        // Whoever plans looks again when it is told to, so nothing must come of nothing.
        if planned.as_ref().map_or(true, |planned| planned.timers > 0) {
            self.notify.notify_waiters();
        }
        planned
    }

    async fn start_runs(&self, request: &StartRuns<'_>) -> StoreResult<Vec<Claim>> {
        self.with(|state| Ok(state.start_runs(request)))
    }

    async fn extend_leases(
        &self,
        instance: InstanceId,
        now: Timestamp,
        until: Timestamp,
    ) -> StoreResult<Vec<LeaseReport>> {
        self.with(|state| Ok(state.extend_leases(instance, now, until)))
    }

    async fn record(&self, transitions: &[Transition], now: Timestamp) -> StoreResult<Vec<Recorded>> {
        self.with(|state| Ok(state.record(transitions, now)))
    }

    async fn keep_outputs(&self, outputs: &[OutputSoFar]) -> StoreResult<Vec<RunId>> {
        self.with(|state| Ok(state.keep_outputs(outputs)))
    }

    async fn expired_leases(&self, now: Timestamp, limit: u32) -> StoreResult<Vec<Settling>> {
        self.with(|state| Ok(state.expired_leases(now, limit)))
    }

    async fn leases_of(&self, instance: InstanceId, limit: u32) -> StoreResult<Vec<Settling>> {
        self.with(|state| Ok(state.leases_of(instance, limit)))
    }

    async fn insert_run(&self, run: &Run, audit: &AuditEntry) -> StoreResult<()> {
        self.once(audit, |state| state.insert_run(run, audit))
    }

    async fn cancel_run(&self, run: RunId, by: &str, now: Timestamp, audit: &AuditEntry) -> StoreResult<Canceled> {
        self.once(audit, |state| state.cancel_run(run, by, now, audit))
    }

    async fn get_run(&self, run: RunId) -> StoreResult<Run> {
        self.with(|state| state.whole_run(run))
    }

    async fn list_runs(&self, filter: &RunFilter, page: &PageRequest) -> StoreResult<Page<Run>> {
        self.with(|state| state.list_runs(filter, page))
    }

    async fn count_runs(&self, filter: &RunFilter, cap: u32) -> StoreResult<u32> {
        self.with(|state| state.count_runs(filter, cap))
    }

    async fn glance(&self, glance: &Glance) -> StoreResult<Vec<RunGlimpse>> {
        self.with(|state| Ok(state.glance(glance)))
    }

    async fn tally(&self, tally: &Tally) -> StoreResult<Vec<Bucket>> {
        self.with(|state| Ok(state.tally(tally)))
    }

    async fn list_gaps(
        &self,
        filter: &GapFilter,
        page: &PageRequest,
    ) -> StoreResult<Page<(JobId, Option<OrgId>, Gap)>> {
        self.with(|state| state.list_gaps(filter, page))
    }

    async fn slot_outcome(&self, job: JobId, org: Option<&OrgId>, slot: Timestamp) -> StoreResult<Option<SlotOutcome>> {
        self.with(|state| Ok(state.slot_outcome(job, org, slot)))
    }

    async fn write_orgs(&self, writes: &[OrgWrite], audit: &AuditEntry) -> StoreResult<Vec<OrgWritten>> {
        self.once(audit, |state| state.write_orgs(writes, audit))
    }

    async fn delete_org(&self, org: &OrgId, expected_revision: Option<u64>, audit: &AuditEntry) -> StoreResult<()> {
        self.once(audit, |state| state.delete_org(org, expected_revision, audit))
    }

    async fn get_org(&self, org: &OrgId) -> StoreResult<Org> {
        self.with(|state| state.get_org(org))
    }

    async fn list_orgs(&self, filter: &OrgFilter, page: &PageRequest) -> StoreResult<Page<Org>> {
        self.with(|state| Ok(state.list_orgs(filter, page)))
    }

    async fn count_orgs(&self) -> StoreResult<OrgCounts> {
        self.with(|state| Ok(state.count_orgs()))
    }

    async fn write_override(&self, org: &OrgId, write: &OverrideWrite, audit: &AuditEntry) -> StoreResult<Override> {
        self.once(audit, |state| state.write_override(org, write, audit))
    }

    async fn delete_override(&self, org: &OrgId, job: &JobKey, audit: &AuditEntry) -> StoreResult<()> {
        self.once(audit, |state| state.delete_override(org, job, audit))
    }

    async fn list_overrides(&self, org: &OrgId) -> StoreResult<Vec<Override>> {
        self.with(|state| state.list_overrides(org))
    }

    async fn job_orgs(&self, job: JobId, filter: &JobOrgFilter, page: &PageRequest) -> StoreResult<Page<JobOrg>> {
        self.with(|state| state.job_orgs(job, filter, page))
    }

    async fn org_jobs(&self, org: &OrgId) -> StoreResult<Vec<OrgJob>> {
        self.with(|state| state.org_jobs(org))
    }

    async fn change_org_job(
        &self,
        job: &JobRef,
        org: &OrgId,
        expected_revision: Option<u64>,
        decide: &DecideFn<'_>,
        audit: &AuditEntry,
    ) -> StoreResult<Changed> {
        self.once(audit, |state| state.change_job(job, Some(org), expected_revision, decide, audit))
    }

    async fn sweep_orgs(&self, now: Timestamp, limit: u32) -> StoreResult<Swept> {
        let swept = self.with(|state| Ok(state.sweep_orgs(now, limit)));
        if swept.as_ref().map_or(true, |swept| swept.planned.timers > 0) {
            self.notify.notify_waiters();
        }
        swept
    }

    async fn list_sweeps(&self) -> StoreResult<Vec<Sweep>> {
        self.with(|state| Ok(state.list_sweeps()))
    }

    async fn stop_sweep(&self, sweep: Uuid, audit: &AuditEntry) -> StoreResult<Sweep> {
        self.once(audit, |state| state.stop_sweep(sweep, audit))
    }

    async fn heartbeat(&self, instance: &Instance) -> StoreResult<bool> {
        self.with(|state| Ok(state.heartbeat(instance)))
    }

    async fn list_instances(&self) -> StoreResult<Vec<Instance>> {
        self.with(|state| Ok(state.list_instances()))
    }

    async fn drain_instance(&self, instance: InstanceId, draining: bool, audit: &AuditEntry) -> StoreResult<()> {
        self.once(audit, |state| state.drain_instance(instance, draining, audit))
    }

    async fn leave(&self, instance: InstanceId) -> StoreResult<()> {
        self.with(|state| {
            state.leave(instance);
            Ok(())
        })
    }

    async fn remove_instances(&self, before: Timestamp) -> StoreResult<u64> {
        self.with(|state| Ok(state.remove_instances(before)))
    }

    async fn create_token(&self, token: &NewToken, audit: &AuditEntry) -> StoreResult<Token> {
        self.once_quietly(audit, |state| state.create_token(token, audit))
    }

    async fn find_token(&self, hash: &[u8; 32], now: Timestamp) -> StoreResult<Option<Token>> {
        self.with(|state| Ok(state.find_token(hash, now)))
    }

    async fn list_tokens(&self) -> StoreResult<Vec<Token>> {
        self.with(|state| Ok(state.list_tokens()))
    }

    async fn revoke_token(
        &self,
        name: &str,
        now: Timestamp,
        last_admin: LastAdmin,
        audit: &AuditEntry,
    ) -> StoreResult<()> {
        self.once_quietly(audit, |state| state.revoke_token(name, now, last_admin, audit))
    }

    async fn create_session(&self, session: &NewSession, audit: &AuditEntry) -> StoreResult<()> {
        self.with(|state| state.create_session(session, audit))
    }

    async fn find_session(&self, hash: &[u8; 32], now: Timestamp) -> StoreResult<Option<Session>> {
        self.with(|state| Ok(state.find_session(hash, now)))
    }

    async fn list_sessions(&self, filter: &SessionFilter, now: Timestamp) -> StoreResult<Vec<Session>> {
        self.with(|state| Ok(state.list_sessions(filter, now)))
    }

    async fn end_sessions(&self, filter: &SessionFilter, audit: &AuditEntry) -> StoreResult<u64> {
        self.with(|state| Ok(state.end_sessions(filter, audit)))
    }

    async fn append_audit(&self, audit: &AuditEntry) -> StoreResult<()> {
        self.once_quietly(audit, |state| {
            state.write_audit(audit);
            Ok(())
        })
    }

    async fn list_audit(&self, object: Option<&str>, page: &PageRequest) -> StoreResult<Page<AuditEntry>> {
        self.with(|state| state.list_audit(object, page))
    }

    async fn find_request(&self, request: &RequestKey, now: Timestamp) -> StoreResult<Remembered> {
        self.with(|state| Ok(state.find_request(request, now)))
    }

    async fn remember_answer(&self, request: &RequestKey, answer: (u16, &str), now: Timestamp) -> StoreResult<()> {
        self.with(|state| {
            state.remember_answer(request, answer, now);
            Ok(())
        })
    }

    async fn clock_trace(&self) -> StoreResult<ClockTrace> {
        self.with(|state| Ok(state.clock_trace()))
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
        self.once(audit, |state| Ok(state.rearm_timers(now, lease_until, limit, audit)))
    }

    async fn prune(&self, before: PruneBefore, limit: u32) -> StoreResult<Pruned> {
        self.with(|state| Ok(state.prune(before, limit)))
    }
}
