//! [`Timed`]: any store, with the time that each call takes.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use everbell::clock::{Host, HostTime};
use everbell_core::change::NewJob;
use everbell_core::org::{Org, OrgWrite, Override, OverrideWrite, Sweep};
use everbell_core::settle::{Settling, Transition};
use everbell_core::store::{
    AuditEntry, Bucket, Canceled, Changed, Claim, ClockTrace, Counts, DecideFn, GapFilter, Glance, Instance, JobFilter,
    JobOrg, JobOrgFilter, JobRef, JobRow, LastAdmin, LeaseReport, NewSession, NewToken, OrgCounts, OrgFilter, OrgJob,
    OrgWritten, Origin, Page, PageRequest, PlanFn, Planned, PruneBefore, Pruned, Rearmed, Recorded, Remembered,
    RequestKey, RunFilter, RunGlimpse, Session, SessionFilter, SlotOutcome, StartRuns, Store, StoreResult, StoreStatus,
    Swept, Tally, TargetCount, Token,
};
use everbell_core::{Gap, InstanceId, JobId, JobKey, OrgId, OutputSoFar, Run, RunId, Target};
use jiff::Timestamp;
use uuid::Uuid;

use super::metrics::Metrics;

/// A store that counts how long it takes, by verb. Calls that fail count too: they are the slow ones.
#[derive(Debug)]
pub(crate) struct Timed {
    inner: Arc<dyn Store>,
    metrics: Metrics,
    host: Host,
}

impl Timed {
    /// For [`Builder::store`](everbell::Builder::store).
    pub(crate) fn new(inner: Arc<dyn Store>, metrics: &Metrics) -> Timed {
        Timed { inner, metrics: metrics.clone(), host: Host::default() }
    }

    async fn time<T>(&self, op: &'static str, verb: impl Future<Output = StoreResult<T>> + Send) -> StoreResult<T> {
        let begun = self.host.monotonic();
        let answer = verb.await;
        self.metrics.database(op, self.host.monotonic().saturating_sub(begun));
        answer
    }
}

impl Timed {
    /// The same for a verb that writes an audit entry: what was done is a line of the log, too.
    async fn audited<T>(
        &self,
        op: &'static str,
        audit: &AuditEntry,
        verb: impl Future<Output = StoreResult<T>> + Send,
    ) -> StoreResult<T> {
        let answer = self.time(op, verb).await;
        if answer.is_ok() {
            log_entry(audit);
        }
        answer
    }
}

fn log_entry(audit: &AuditEntry) {
    let AuditEntry { actor, action, object, reason, origin, .. } = audit;
    let Origin { address, request_id, role } = origin;
    tracing::info!(action, object, actor, role, reason, address, request = request_id, "audit");
}

#[async_trait]
impl Store for Timed {
    // Not an `async fn`: the wait begins with the call, not when somebody first polls it.
    fn woken<'life0, 'async_trait>(&'life0 self) -> Pin<Box<dyn Future<Output = ()> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        self.inner.woken()
    }

    async fn now(&self) -> StoreResult<Timestamp> {
        self.time("now", self.inner.now()).await
    }

    fn can_partition(&self) -> bool {
        self.inner.can_partition()
    }

    async fn status(&self) -> StoreResult<StoreStatus> {
        self.time("status", self.inner.status()).await
    }

    async fn close(&self) -> StoreResult<()> {
        self.time("close", self.inner.close()).await
    }

    async fn counts(&self, now: Timestamp) -> StoreResult<Counts> {
        self.time("counts", self.inner.counts(now)).await
    }

    async fn create_job(&self, job: &NewJob, audit: &AuditEntry) -> StoreResult<JobRow> {
        self.audited("create_job", audit, self.inner.create_job(job, audit)).await
    }

    async fn change_job(
        &self,
        job: &JobRef,
        expected_revision: Option<u64>,
        decide: &DecideFn<'_>,
        audit: &AuditEntry,
    ) -> StoreResult<Changed> {
        self.audited("change_job", audit, self.inner.change_job(job, expected_revision, decide, audit)).await
    }

    async fn get_job(&self, job: &JobRef) -> StoreResult<JobRow> {
        self.time("get_job", self.inner.get_job(job)).await
    }

    async fn list_jobs(&self, filter: &JobFilter, page: &PageRequest) -> StoreResult<Page<JobRow>> {
        self.time("list_jobs", self.inner.list_jobs(filter, page)).await
    }

    async fn count_jobs(&self, filter: &JobFilter, cap: u32) -> StoreResult<u32> {
        self.time("count_jobs", self.inner.count_jobs(filter, cap)).await
    }

    async fn count_targets(&self) -> StoreResult<Vec<TargetCount>> {
        self.time("count_targets", self.inner.count_targets()).await
    }

    async fn pauses_ending(&self, limit: u32) -> StoreResult<Vec<(JobId, Timestamp)>> {
        self.time("pauses_ending", self.inner.pauses_ending(limit)).await
    }

    async fn plan_due(
        &self,
        now: Timestamp,
        limit: u32,
        targets: &[Target],
        plan: &PlanFn<'_>,
    ) -> StoreResult<Planned> {
        self.time("plan_due", self.inner.plan_due(now, limit, targets, plan)).await
    }

    async fn start_runs(&self, request: &StartRuns<'_>) -> StoreResult<Vec<Claim>> {
        self.time("start_runs", self.inner.start_runs(request)).await
    }

    async fn extend_leases(
        &self,
        instance: InstanceId,
        now: Timestamp,
        until: Timestamp,
    ) -> StoreResult<Vec<LeaseReport>> {
        self.time("extend_leases", self.inner.extend_leases(instance, now, until)).await
    }

    async fn record(&self, transitions: &[Transition], now: Timestamp) -> StoreResult<Vec<Recorded>> {
        self.time("record", self.inner.record(transitions, now)).await
    }

    async fn keep_outputs(&self, outputs: &[OutputSoFar]) -> StoreResult<Vec<RunId>> {
        self.time("keep_outputs", self.inner.keep_outputs(outputs)).await
    }

    async fn expired_leases(&self, now: Timestamp, limit: u32) -> StoreResult<Vec<Settling>> {
        self.time("expired_leases", self.inner.expired_leases(now, limit)).await
    }

    async fn leases_of(&self, instance: InstanceId, limit: u32) -> StoreResult<Vec<Settling>> {
        self.time("leases_of", self.inner.leases_of(instance, limit)).await
    }

    async fn insert_run(&self, run: &Run, audit: &AuditEntry) -> StoreResult<()> {
        self.audited("insert_run", audit, self.inner.insert_run(run, audit)).await
    }

    async fn cancel_run(&self, run: RunId, by: &str, now: Timestamp, audit: &AuditEntry) -> StoreResult<Canceled> {
        self.audited("cancel_run", audit, self.inner.cancel_run(run, by, now, audit)).await
    }

    async fn get_run(&self, run: RunId) -> StoreResult<Run> {
        self.time("get_run", self.inner.get_run(run)).await
    }

    async fn list_runs(&self, filter: &RunFilter, page: &PageRequest) -> StoreResult<Page<Run>> {
        self.time("list_runs", self.inner.list_runs(filter, page)).await
    }

    async fn count_runs(&self, filter: &RunFilter, cap: u32) -> StoreResult<u32> {
        self.time("count_runs", self.inner.count_runs(filter, cap)).await
    }

    async fn glance(&self, glance: &Glance) -> StoreResult<Vec<RunGlimpse>> {
        self.time("glance", self.inner.glance(glance)).await
    }

    async fn tally(&self, tally: &Tally) -> StoreResult<Vec<Bucket>> {
        self.time("tally", self.inner.tally(tally)).await
    }

    async fn list_gaps(
        &self,
        filter: &GapFilter,
        page: &PageRequest,
    ) -> StoreResult<Page<(JobId, Option<OrgId>, Gap)>> {
        self.time("list_gaps", self.inner.list_gaps(filter, page)).await
    }

    async fn slot_outcome(&self, job: JobId, org: Option<&OrgId>, slot: Timestamp) -> StoreResult<Option<SlotOutcome>> {
        self.time("slot_outcome", self.inner.slot_outcome(job, org, slot)).await
    }

    async fn write_orgs(&self, writes: &[OrgWrite], audit: &AuditEntry) -> StoreResult<Vec<OrgWritten>> {
        self.audited("write_orgs", audit, self.inner.write_orgs(writes, audit)).await
    }

    async fn delete_org(&self, org: &OrgId, expected_revision: Option<u64>, audit: &AuditEntry) -> StoreResult<()> {
        self.audited("delete_org", audit, self.inner.delete_org(org, expected_revision, audit)).await
    }

    async fn get_org(&self, org: &OrgId) -> StoreResult<Org> {
        self.time("get_org", self.inner.get_org(org)).await
    }

    async fn list_orgs(&self, filter: &OrgFilter, page: &PageRequest) -> StoreResult<Page<Org>> {
        self.time("list_orgs", self.inner.list_orgs(filter, page)).await
    }

    async fn count_orgs(&self) -> StoreResult<OrgCounts> {
        self.time("count_orgs", self.inner.count_orgs()).await
    }

    async fn write_override(&self, org: &OrgId, write: &OverrideWrite, audit: &AuditEntry) -> StoreResult<Override> {
        self.audited("write_override", audit, self.inner.write_override(org, write, audit)).await
    }

    async fn delete_override(&self, org: &OrgId, job: &JobKey, audit: &AuditEntry) -> StoreResult<()> {
        self.audited("delete_override", audit, self.inner.delete_override(org, job, audit)).await
    }

    async fn list_overrides(&self, org: &OrgId) -> StoreResult<Vec<Override>> {
        self.time("list_overrides", self.inner.list_overrides(org)).await
    }

    async fn job_orgs(&self, job: JobId, filter: &JobOrgFilter, page: &PageRequest) -> StoreResult<Page<JobOrg>> {
        self.time("job_orgs", self.inner.job_orgs(job, filter, page)).await
    }

    async fn org_jobs(&self, org: &OrgId) -> StoreResult<Vec<OrgJob>> {
        self.time("org_jobs", self.inner.org_jobs(org)).await
    }

    async fn change_org_job(
        &self,
        job: &JobRef,
        org: &OrgId,
        expected_revision: Option<u64>,
        decide: &DecideFn<'_>,
        audit: &AuditEntry,
    ) -> StoreResult<Changed> {
        self.audited("change_org_job", audit, self.inner.change_org_job(job, org, expected_revision, decide, audit))
            .await
    }

    async fn sweep_orgs(&self, now: Timestamp, limit: u32) -> StoreResult<Swept> {
        self.time("sweep_orgs", self.inner.sweep_orgs(now, limit)).await
    }

    async fn list_sweeps(&self) -> StoreResult<Vec<Sweep>> {
        self.time("list_sweeps", self.inner.list_sweeps()).await
    }

    async fn stop_sweep(&self, sweep: Uuid, audit: &AuditEntry) -> StoreResult<Sweep> {
        self.audited("stop_sweep", audit, self.inner.stop_sweep(sweep, audit)).await
    }

    async fn heartbeat(&self, instance: &Instance) -> StoreResult<bool> {
        self.time("heartbeat", self.inner.heartbeat(instance)).await
    }

    async fn list_instances(&self) -> StoreResult<Vec<Instance>> {
        self.time("list_instances", self.inner.list_instances()).await
    }

    async fn drain_instance(&self, instance: InstanceId, draining: bool, audit: &AuditEntry) -> StoreResult<()> {
        self.audited("drain_instance", audit, self.inner.drain_instance(instance, draining, audit)).await
    }

    async fn leave(&self, instance: InstanceId) -> StoreResult<()> {
        self.time("leave", self.inner.leave(instance)).await
    }

    async fn remove_instances(&self, before: Timestamp) -> StoreResult<u64> {
        self.time("remove_instances", self.inner.remove_instances(before)).await
    }

    async fn create_token(&self, token: &NewToken, audit: &AuditEntry) -> StoreResult<Token> {
        self.audited("create_token", audit, self.inner.create_token(token, audit)).await
    }

    async fn find_token(&self, hash: &[u8; 32], now: Timestamp) -> StoreResult<Option<Token>> {
        self.time("find_token", self.inner.find_token(hash, now)).await
    }

    async fn list_tokens(&self) -> StoreResult<Vec<Token>> {
        self.time("list_tokens", self.inner.list_tokens()).await
    }

    async fn revoke_token(
        &self,
        name: &str,
        now: Timestamp,
        last_admin: LastAdmin,
        audit: &AuditEntry,
    ) -> StoreResult<()> {
        self.audited("revoke_token", audit, self.inner.revoke_token(name, now, last_admin, audit)).await
    }

    async fn create_session(&self, session: &NewSession, audit: &AuditEntry) -> StoreResult<()> {
        self.audited("create_session", audit, self.inner.create_session(session, audit)).await
    }

    async fn find_session(&self, hash: &[u8; 32], now: Timestamp) -> StoreResult<Option<Session>> {
        self.time("find_session", self.inner.find_session(hash, now)).await
    }

    async fn list_sessions(&self, filter: &SessionFilter, now: Timestamp) -> StoreResult<Vec<Session>> {
        self.time("list_sessions", self.inner.list_sessions(filter, now)).await
    }

    async fn end_sessions(&self, filter: &SessionFilter, audit: &AuditEntry) -> StoreResult<u64> {
        let ended = self.time("end_sessions", self.inner.end_sessions(filter, audit)).await?;
        if ended > 0 {
            log_entry(audit);
        }
        Ok(ended)
    }

    async fn append_audit(&self, audit: &AuditEntry) -> StoreResult<()> {
        self.audited("append_audit", audit, self.inner.append_audit(audit)).await
    }

    async fn list_audit(&self, object: Option<&str>, page: &PageRequest) -> StoreResult<Page<AuditEntry>> {
        self.time("list_audit", self.inner.list_audit(object, page)).await
    }

    async fn find_request(&self, request: &RequestKey, now: Timestamp) -> StoreResult<Remembered> {
        self.time("find_request", self.inner.find_request(request, now)).await
    }

    async fn remember_answer(&self, request: &RequestKey, answer: (u16, &str), now: Timestamp) -> StoreResult<()> {
        self.time("remember_answer", self.inner.remember_answer(request, answer, now)).await
    }

    async fn clock_trace(&self) -> StoreResult<ClockTrace> {
        self.time("clock_trace", self.inner.clock_trace()).await
    }

    async fn write_trusted_time(&self, at: Timestamp) -> StoreResult<()> {
        self.time("write_trusted_time", self.inner.write_trusted_time(at)).await
    }

    async fn rearm_timers(
        &self,
        now: Timestamp,
        lease_until: Timestamp,
        limit: u32,
        audit: &AuditEntry,
    ) -> StoreResult<Rearmed> {
        self.time("rearm_timers", self.inner.rearm_timers(now, lease_until, limit, audit)).await
    }

    async fn prune(&self, before: PruneBefore, limit: u32) -> StoreResult<Pruned> {
        self.time("prune", self.inner.prune(before, limit)).await
    }
}
