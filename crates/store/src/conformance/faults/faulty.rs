//! [`Faulty`]: any store, with failures at chosen calls.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

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

use crate::memory::FaultPoint;

/// The call that fails, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which call, from 0.
    pub at: u32,
    /// Before or after it was done.
    pub point: FaultPoint,
}

type Script = dyn Fn(u32) -> Option<FaultPoint> + Send + Sync;

/// Resolves when an answer that was kept back may be heard.
pub type KeptBack = Pin<Box<dyn Future<Output = ()> + Send>>;

type Delays = dyn Fn(u32) -> Option<KeptBack> + Send + Sync;

/// A store whose calls fail as a script says: before they reach the store within, or after, so that only the answer is
/// lost. Calls are counted over all verbs but [`Store::woken`].
pub struct Faulty {
    inner: Arc<dyn Store>,
    calls: AtomicU32,
    script: Box<Script>,
    delays: Box<Delays>,
}

impl Faulty {
    /// Fails where the script says so; it is asked with the number of the call, from 0.
    pub fn new(inner: Arc<dyn Store>, script: impl Fn(u32) -> Option<FaultPoint> + Send + Sync + 'static) -> Faulty {
        Faulty { inner, calls: AtomicU32::new(0), script: Box::new(script), delays: Box::new(|_| None) }
    }

    /// Keeps back answers to [`Store::start_runs`] as it is told: the runs are leased, and the caller hears of it later.
    #[must_use]
    pub fn keeping_back(self, delays: impl Fn(u32) -> Option<KeptBack> + Send + Sync + 'static) -> Faulty {
        Faulty { delays: Box::new(delays), ..self }
    }

    /// Fails once.
    pub fn once(inner: Arc<dyn Store>, fault: Fault) -> Faulty {
        Faulty::new(inner, move |call| (call == fault.at).then_some(fault.point))
    }

    /// How many calls there were.
    pub fn calls(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }

    async fn around<T>(&self, verb: impl Future<Output = StoreResult<T>> + Send) -> StoreResult<T> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let fault = (self.script)(call);
        if let Some(error) = fault.and_then(FaultPoint::at_once) {
            return Err(error);
        }
        let answer = verb.await?;
        match fault {
            Some(point) => Err(point.error()),
            None => Ok(answer),
        }
    }
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faulty").field("inner", &self.inner).field("calls", &self.calls).finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for Faulty {
    async fn woken(&self) {
        self.inner.woken().await;
    }

    async fn now(&self) -> StoreResult<Timestamp> {
        self.around(self.inner.now()).await
    }

    fn can_partition(&self) -> bool {
        self.inner.can_partition()
    }

    async fn status(&self) -> StoreResult<StoreStatus> {
        self.around(self.inner.status()).await
    }

    async fn counts(&self, now: Timestamp) -> StoreResult<Counts> {
        self.around(self.inner.counts(now)).await
    }

    async fn create_job(&self, job: &NewJob, audit: &AuditEntry) -> StoreResult<JobRow> {
        self.around(self.inner.create_job(job, audit)).await
    }

    async fn change_job(
        &self,
        job: &JobRef,
        expected_revision: Option<u64>,
        decide: &DecideFn<'_>,
        audit: &AuditEntry,
    ) -> StoreResult<Changed> {
        self.around(self.inner.change_job(job, expected_revision, decide, audit)).await
    }

    async fn get_job(&self, job: &JobRef) -> StoreResult<JobRow> {
        self.around(self.inner.get_job(job)).await
    }

    async fn list_jobs(&self, filter: &JobFilter, page: &PageRequest) -> StoreResult<Page<JobRow>> {
        self.around(self.inner.list_jobs(filter, page)).await
    }

    async fn count_jobs(&self, filter: &JobFilter, cap: u32) -> StoreResult<u32> {
        self.around(self.inner.count_jobs(filter, cap)).await
    }

    async fn count_targets(&self) -> StoreResult<Vec<TargetCount>> {
        self.around(self.inner.count_targets()).await
    }

    async fn pauses_ending(&self, limit: u32) -> StoreResult<Vec<(JobId, Timestamp)>> {
        self.around(self.inner.pauses_ending(limit)).await
    }

    async fn plan_due(
        &self,
        now: Timestamp,
        limit: u32,
        targets: &[Target],
        plan: &PlanFn<'_>,
    ) -> StoreResult<Planned> {
        self.around(self.inner.plan_due(now, limit, targets, plan)).await
    }

    async fn start_runs(&self, request: &StartRuns<'_>) -> StoreResult<Vec<Claim>> {
        let answer = self.around(self.inner.start_runs(request)).await;
        if let Some(until_then) = (self.delays)(self.calls()) {
            until_then.await;
        }
        answer
    }

    async fn extend_leases(
        &self,
        instance: InstanceId,
        now: Timestamp,
        until: Timestamp,
    ) -> StoreResult<Vec<LeaseReport>> {
        self.around(self.inner.extend_leases(instance, now, until)).await
    }

    async fn record(&self, transitions: &[Transition], now: Timestamp) -> StoreResult<Vec<Recorded>> {
        self.around(self.inner.record(transitions, now)).await
    }

    async fn keep_outputs(&self, outputs: &[OutputSoFar]) -> StoreResult<Vec<RunId>> {
        self.around(self.inner.keep_outputs(outputs)).await
    }

    async fn expired_leases(&self, now: Timestamp, limit: u32) -> StoreResult<Vec<Settling>> {
        self.around(self.inner.expired_leases(now, limit)).await
    }

    async fn leases_of(&self, instance: InstanceId, limit: u32) -> StoreResult<Vec<Settling>> {
        self.around(self.inner.leases_of(instance, limit)).await
    }

    async fn insert_run(&self, run: &Run, audit: &AuditEntry) -> StoreResult<()> {
        self.around(self.inner.insert_run(run, audit)).await
    }

    async fn cancel_run(&self, run: RunId, by: &str, now: Timestamp, audit: &AuditEntry) -> StoreResult<Canceled> {
        self.around(self.inner.cancel_run(run, by, now, audit)).await
    }

    async fn get_run(&self, run: RunId) -> StoreResult<Run> {
        self.around(self.inner.get_run(run)).await
    }

    async fn list_runs(&self, filter: &RunFilter, page: &PageRequest) -> StoreResult<Page<Run>> {
        self.around(self.inner.list_runs(filter, page)).await
    }

    async fn count_runs(&self, filter: &RunFilter, cap: u32) -> StoreResult<u32> {
        self.around(self.inner.count_runs(filter, cap)).await
    }

    async fn glance(&self, glance: &Glance) -> StoreResult<Vec<RunGlimpse>> {
        self.around(self.inner.glance(glance)).await
    }

    async fn tally(&self, tally: &Tally) -> StoreResult<Vec<Bucket>> {
        self.around(self.inner.tally(tally)).await
    }

    async fn list_gaps(
        &self,
        filter: &GapFilter,
        page: &PageRequest,
    ) -> StoreResult<Page<(JobId, Option<OrgId>, Gap)>> {
        self.around(self.inner.list_gaps(filter, page)).await
    }

    async fn slot_outcome(&self, job: JobId, org: Option<&OrgId>, slot: Timestamp) -> StoreResult<Option<SlotOutcome>> {
        self.around(self.inner.slot_outcome(job, org, slot)).await
    }

    async fn write_orgs(&self, writes: &[OrgWrite], audit: &AuditEntry) -> StoreResult<Vec<OrgWritten>> {
        self.around(self.inner.write_orgs(writes, audit)).await
    }

    async fn delete_org(&self, org: &OrgId, expected_revision: Option<u64>, audit: &AuditEntry) -> StoreResult<()> {
        self.around(self.inner.delete_org(org, expected_revision, audit)).await
    }

    async fn get_org(&self, org: &OrgId) -> StoreResult<Org> {
        self.around(self.inner.get_org(org)).await
    }

    async fn list_orgs(&self, filter: &OrgFilter, page: &PageRequest) -> StoreResult<Page<Org>> {
        self.around(self.inner.list_orgs(filter, page)).await
    }

    async fn count_orgs(&self) -> StoreResult<OrgCounts> {
        self.around(self.inner.count_orgs()).await
    }

    async fn write_override(&self, org: &OrgId, write: &OverrideWrite, audit: &AuditEntry) -> StoreResult<Override> {
        self.around(self.inner.write_override(org, write, audit)).await
    }

    async fn delete_override(&self, org: &OrgId, job: &JobKey, audit: &AuditEntry) -> StoreResult<()> {
        self.around(self.inner.delete_override(org, job, audit)).await
    }

    async fn list_overrides(&self, org: &OrgId) -> StoreResult<Vec<Override>> {
        self.around(self.inner.list_overrides(org)).await
    }

    async fn job_orgs(&self, job: JobId, filter: &JobOrgFilter, page: &PageRequest) -> StoreResult<Page<JobOrg>> {
        self.around(self.inner.job_orgs(job, filter, page)).await
    }

    async fn org_jobs(&self, org: &OrgId) -> StoreResult<Vec<OrgJob>> {
        self.around(self.inner.org_jobs(org)).await
    }

    async fn change_org_job(
        &self,
        job: &JobRef,
        org: &OrgId,
        expected_revision: Option<u64>,
        decide: &DecideFn<'_>,
        audit: &AuditEntry,
    ) -> StoreResult<Changed> {
        self.around(self.inner.change_org_job(job, org, expected_revision, decide, audit)).await
    }

    async fn sweep_orgs(&self, now: Timestamp, limit: u32) -> StoreResult<Swept> {
        self.around(self.inner.sweep_orgs(now, limit)).await
    }

    async fn list_sweeps(&self) -> StoreResult<Vec<Sweep>> {
        self.around(self.inner.list_sweeps()).await
    }

    async fn stop_sweep(&self, sweep: Uuid, audit: &AuditEntry) -> StoreResult<Sweep> {
        self.around(self.inner.stop_sweep(sweep, audit)).await
    }

    async fn heartbeat(&self, instance: &Instance) -> StoreResult<bool> {
        self.around(self.inner.heartbeat(instance)).await
    }

    async fn list_instances(&self) -> StoreResult<Vec<Instance>> {
        self.around(self.inner.list_instances()).await
    }

    async fn drain_instance(&self, instance: InstanceId, draining: bool, audit: &AuditEntry) -> StoreResult<()> {
        self.around(self.inner.drain_instance(instance, draining, audit)).await
    }

    async fn leave(&self, instance: InstanceId) -> StoreResult<()> {
        self.around(self.inner.leave(instance)).await
    }

    async fn remove_instances(&self, before: Timestamp) -> StoreResult<u64> {
        self.around(self.inner.remove_instances(before)).await
    }

    async fn create_token(&self, token: &NewToken, audit: &AuditEntry) -> StoreResult<Token> {
        self.around(self.inner.create_token(token, audit)).await
    }

    async fn find_token(&self, hash: &[u8; 32], now: Timestamp) -> StoreResult<Option<Token>> {
        self.around(self.inner.find_token(hash, now)).await
    }

    async fn list_tokens(&self) -> StoreResult<Vec<Token>> {
        self.around(self.inner.list_tokens()).await
    }

    async fn revoke_token(
        &self,
        name: &str,
        now: Timestamp,
        last_admin: LastAdmin,
        audit: &AuditEntry,
    ) -> StoreResult<()> {
        self.around(self.inner.revoke_token(name, now, last_admin, audit)).await
    }

    async fn create_session(&self, session: &NewSession, audit: &AuditEntry) -> StoreResult<()> {
        self.around(self.inner.create_session(session, audit)).await
    }

    async fn find_session(&self, hash: &[u8; 32], now: Timestamp) -> StoreResult<Option<Session>> {
        self.around(self.inner.find_session(hash, now)).await
    }

    async fn list_sessions(&self, filter: &SessionFilter, now: Timestamp) -> StoreResult<Vec<Session>> {
        self.around(self.inner.list_sessions(filter, now)).await
    }

    async fn end_sessions(&self, filter: &SessionFilter, audit: &AuditEntry) -> StoreResult<u64> {
        self.around(self.inner.end_sessions(filter, audit)).await
    }

    async fn append_audit(&self, audit: &AuditEntry) -> StoreResult<()> {
        self.around(self.inner.append_audit(audit)).await
    }

    async fn list_audit(&self, object: Option<&str>, page: &PageRequest) -> StoreResult<Page<AuditEntry>> {
        self.around(self.inner.list_audit(object, page)).await
    }

    async fn find_request(&self, request: &RequestKey, now: Timestamp) -> StoreResult<Remembered> {
        self.around(self.inner.find_request(request, now)).await
    }

    async fn remember_answer(&self, request: &RequestKey, answer: (u16, &str), now: Timestamp) -> StoreResult<()> {
        self.around(self.inner.remember_answer(request, answer, now)).await
    }

    async fn clock_trace(&self) -> StoreResult<ClockTrace> {
        self.around(self.inner.clock_trace()).await
    }

    async fn write_trusted_time(&self, at: Timestamp) -> StoreResult<()> {
        self.around(self.inner.write_trusted_time(at)).await
    }

    async fn rearm_timers(
        &self,
        now: Timestamp,
        lease_until: Timestamp,
        limit: u32,
        audit: &AuditEntry,
    ) -> StoreResult<Rearmed> {
        self.around(self.inner.rearm_timers(now, lease_until, limit, audit)).await
    }

    async fn prune(&self, before: PruneBefore, limit: u32) -> StoreResult<Pruned> {
        self.around(self.inner.prune(before, limit)).await
    }
}
