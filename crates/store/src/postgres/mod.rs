//! The PostgreSQL store: one database for many instances.
//!
//! The hot path is a handful of batched statements on few connections: arrays go in through `unnest`, a claim is one short
//! transaction. Locks are taken in one order everywhere, `timers`, `active_runs`, `jobs`, so that no two verbs can wait for
//! each other. Nothing depends on a session: no advisory locks, no temporary tables; `LISTEN` has a connection of its own
//! and only wakes, so a pooler in transaction mode costs wake-ups and some speed, and nothing else.

mod access;
mod changing;
mod connect;
mod fault;
mod floors;
mod history;
pub(crate) mod hosts;
mod inside;
mod jobs;
mod lending;
mod listen;
mod migrate;
mod orgs;
mod planning;
#[cfg(test)]
mod plans;
mod pool;
mod rearming;
mod requests;
mod running;
mod sessions;
mod started;
mod summary;
mod sweeping;
pub(crate) mod upkeep;

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
use tokio::sync::Notify;
use uuid::Uuid;

use self::changing::Wanted;
use crate::rows::Definitions;

/// A store in a PostgreSQL database. See [`PostgresStore::connect`].
#[derive(Debug)]
pub struct PostgresStore {
    /// For what people ask.
    pool: pool::Pool,
    /// For the way of a run: nobody who lists a million runs makes them wait.
    loops: pool::Pool,
    known: Definitions,
    started: started::Started,
    /// Where looks for pending runs begin, by target; and for due timers.
    run_floors: std::sync::Arc<floors::Floors>,
    timer_floors: std::sync::Arc<floors::Floors>,
    wake: std::sync::Arc<Notify>,
    /// None behind a pooler, where nothing would arrive.
    listener: Option<listen::Listener>,
    hosts: std::sync::Arc<hosts::Hosts>,
    /// Of this instance, all pools together.
    max_connections: usize,
}

#[async_trait]
impl Store for PostgresStore {
    async fn now(&self) -> StoreResult<Timestamp> {
        self.read_now().await
    }

    fn can_partition(&self) -> bool {
        true
    }

    async fn status(&self) -> StoreResult<StoreStatus> {
        self.read_status().await
    }

    async fn counts(&self, now: Timestamp) -> StoreResult<Counts> {
        self.read_counts(now).await
    }

    async fn woken(&self) {
        self.wake.notified().await;
    }

    async fn create_job(&self, job: &NewJob, audit: &AuditEntry) -> StoreResult<JobRow> {
        self.insert_new_job(job, audit).await
    }

    async fn change_job(
        &self,
        job: &JobRef,
        expected_revision: Option<u64>,
        decide: &DecideFn<'_>,
        audit: &AuditEntry,
    ) -> StoreResult<Changed> {
        self.decide_change(Wanted { job, org: None, expected_revision }, decide, audit).await
    }

    async fn get_job(&self, job: &JobRef) -> StoreResult<JobRow> {
        self.read_job(job).await
    }

    async fn list_jobs(&self, filter: &JobFilter, page: &PageRequest) -> StoreResult<Page<JobRow>> {
        self.read_jobs_page(filter, page).await
    }

    async fn count_jobs(&self, filter: &JobFilter, cap: u32) -> StoreResult<u32> {
        self.count_jobs_like(filter, cap).await
    }

    async fn count_targets(&self) -> StoreResult<Vec<TargetCount>> {
        self.read_targets().await
    }

    async fn pauses_ending(&self, limit: u32) -> StoreResult<Vec<(JobId, Timestamp)>> {
        self.read_pauses(limit).await
    }

    async fn plan_due(
        &self,
        now: Timestamp,
        limit: u32,
        targets: &[Target],
        plan: &PlanFn<'_>,
    ) -> StoreResult<Planned> {
        self.plan_timers(now, limit, targets, plan).await
    }

    async fn start_runs(&self, request: &StartRuns<'_>) -> StoreResult<Vec<Claim>> {
        self.claim_runs(request).await
    }

    async fn extend_leases(
        &self,
        instance: InstanceId,
        now: Timestamp,
        until: Timestamp,
    ) -> StoreResult<Vec<LeaseReport>> {
        self.extend(instance, now, until).await
    }

    async fn record(&self, transitions: &[Transition], now: Timestamp) -> StoreResult<Vec<Recorded>> {
        self.record_all(transitions, now).await
    }

    async fn keep_outputs(&self, outputs: &[OutputSoFar]) -> StoreResult<Vec<RunId>> {
        self.keep(outputs).await
    }

    async fn expired_leases(&self, now: Timestamp, limit: u32) -> StoreResult<Vec<Settling>> {
        self.read_expired(now, limit).await
    }

    async fn leases_of(&self, instance: InstanceId, limit: u32) -> StoreResult<Vec<Settling>> {
        self.read_leases_of(instance, limit).await
    }

    async fn insert_run(&self, run: &Run, audit: &AuditEntry) -> StoreResult<()> {
        self.insert_trial(run, audit).await
    }

    async fn cancel_run(&self, run: RunId, by: &str, now: Timestamp, audit: &AuditEntry) -> StoreResult<Canceled> {
        self.cancel(run, by, now, audit).await
    }

    async fn get_run(&self, run: RunId) -> StoreResult<Run> {
        self.read_run(run).await
    }

    async fn list_runs(&self, filter: &RunFilter, page: &PageRequest) -> StoreResult<Page<Run>> {
        self.read_runs_page(filter, page).await
    }

    async fn count_runs(&self, filter: &RunFilter, cap: u32) -> StoreResult<u32> {
        self.count_runs_like(filter, cap).await
    }

    async fn glance(&self, glance: &Glance) -> StoreResult<Vec<RunGlimpse>> {
        self.read_glance(glance).await
    }

    async fn tally(&self, tally: &Tally) -> StoreResult<Vec<Bucket>> {
        self.read_tally(tally).await
    }

    async fn list_gaps(
        &self,
        filter: &GapFilter,
        page: &PageRequest,
    ) -> StoreResult<Page<(JobId, Option<OrgId>, Gap)>> {
        self.read_gaps_page(filter, page).await
    }

    async fn slot_outcome(&self, job: JobId, org: Option<&OrgId>, slot: Timestamp) -> StoreResult<Option<SlotOutcome>> {
        self.read_slot(job, org, slot).await
    }

    async fn write_orgs(&self, writes: &[OrgWrite], audit: &AuditEntry) -> StoreResult<Vec<OrgWritten>> {
        self.put_orgs(writes, audit).await
    }

    async fn delete_org(&self, org: &OrgId, expected_revision: Option<u64>, audit: &AuditEntry) -> StoreResult<()> {
        self.end_org(org, expected_revision, audit).await
    }

    async fn get_org(&self, org: &OrgId) -> StoreResult<Org> {
        self.read_org(org).await
    }

    async fn list_orgs(&self, filter: &OrgFilter, page: &PageRequest) -> StoreResult<Page<Org>> {
        self.read_orgs(filter, page).await
    }

    async fn count_orgs(&self) -> StoreResult<OrgCounts> {
        self.count_all_orgs().await
    }

    async fn write_override(&self, org: &OrgId, write: &OverrideWrite, audit: &AuditEntry) -> StoreResult<Override> {
        self.put_override(org, write, audit).await
    }

    async fn delete_override(&self, org: &OrgId, job: &JobKey, audit: &AuditEntry) -> StoreResult<()> {
        self.end_override(org, job, audit).await
    }

    async fn list_overrides(&self, org: &OrgId) -> StoreResult<Vec<Override>> {
        self.read_overrides(org).await
    }

    async fn job_orgs(&self, job: JobId, filter: &JobOrgFilter, page: &PageRequest) -> StoreResult<Page<JobOrg>> {
        self.read_job_orgs(job, filter, page).await
    }

    async fn org_jobs(&self, org: &OrgId) -> StoreResult<Vec<OrgJob>> {
        self.read_org_jobs(org).await
    }

    async fn change_org_job(
        &self,
        job: &JobRef,
        org: &OrgId,
        expected_revision: Option<u64>,
        decide: &DecideFn<'_>,
        audit: &AuditEntry,
    ) -> StoreResult<Changed> {
        self.decide_change(Wanted { job, org: Some(org), expected_revision }, decide, audit).await
    }

    async fn sweep_orgs(&self, now: Timestamp, limit: u32) -> StoreResult<Swept> {
        self.sweep(now, limit).await
    }

    async fn list_sweeps(&self) -> StoreResult<Vec<Sweep>> {
        self.read_sweeps().await
    }

    async fn stop_sweep(&self, sweep: Uuid, audit: &AuditEntry) -> StoreResult<Sweep> {
        self.end_sweep(sweep, audit).await
    }

    async fn heartbeat(&self, instance: &Instance) -> StoreResult<bool> {
        self.write_instance(instance).await
    }

    async fn list_instances(&self) -> StoreResult<Vec<Instance>> {
        self.read_instances().await
    }

    async fn drain_instance(&self, instance: InstanceId, draining: bool, audit: &AuditEntry) -> StoreResult<()> {
        self.write_draining(instance, draining, audit).await
    }

    async fn leave(&self, instance: InstanceId) -> StoreResult<()> {
        self.delete_instance(instance).await
    }

    async fn remove_instances(&self, before: Timestamp) -> StoreResult<u64> {
        self.delete_instances(before).await
    }

    async fn create_token(&self, token: &NewToken, audit: &AuditEntry) -> StoreResult<Token> {
        self.insert_token(token, audit).await
    }

    async fn find_token(&self, hash: &[u8; 32], now: Timestamp) -> StoreResult<Option<Token>> {
        self.use_token(hash, now).await
    }

    async fn list_tokens(&self) -> StoreResult<Vec<Token>> {
        self.read_tokens().await
    }

    async fn revoke_token(
        &self,
        name: &str,
        now: Timestamp,
        last_admin: LastAdmin,
        audit: &AuditEntry,
    ) -> StoreResult<()> {
        self.end_token(name, now, last_admin, audit).await
    }

    async fn create_session(&self, session: &NewSession, audit: &AuditEntry) -> StoreResult<()> {
        self.insert_session(session, audit).await
    }

    async fn find_session(&self, hash: &[u8; 32], now: Timestamp) -> StoreResult<Option<Session>> {
        self.use_session(hash, now).await
    }

    async fn list_sessions(&self, filter: &SessionFilter, now: Timestamp) -> StoreResult<Vec<Session>> {
        self.read_sessions(filter, now).await
    }

    async fn end_sessions(&self, filter: &SessionFilter, audit: &AuditEntry) -> StoreResult<u64> {
        self.delete_sessions(filter, audit).await
    }

    async fn append_audit(&self, audit: &AuditEntry) -> StoreResult<()> {
        self.write_audit(audit).await
    }

    async fn list_audit(&self, object: Option<&str>, page: &PageRequest) -> StoreResult<Page<AuditEntry>> {
        self.read_audit_page(object, page).await
    }

    async fn find_request(&self, request: &RequestKey, now: Timestamp) -> StoreResult<Remembered> {
        self.read_request(request, now).await
    }

    async fn remember_answer(&self, request: &RequestKey, answer: (u16, &str), now: Timestamp) -> StoreResult<()> {
        self.write_answer(request, answer, now).await
    }

    async fn clock_trace(&self) -> StoreResult<ClockTrace> {
        self.read_clock_trace().await
    }

    async fn write_trusted_time(&self, at: Timestamp) -> StoreResult<()> {
        self.save_trusted_time(at).await
    }

    async fn rearm_timers(
        &self,
        now: Timestamp,
        lease_until: Timestamp,
        limit: u32,
        audit: &AuditEntry,
    ) -> StoreResult<Rearmed> {
        self.rearm(now, lease_until, limit, audit).await
    }

    async fn prune(&self, before: PruneBefore, limit: u32) -> StoreResult<Pruned> {
        self.prune_all(before, limit).await
    }
}
