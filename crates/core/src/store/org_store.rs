//! [`OrgStore`]: orgs, their overrides, and their timers.

use async_trait::async_trait;
use jiff::Timestamp;
use uuid::Uuid;

use super::interceptor::{Call, Interceptor, audit_entry, verbs};
use super::{
    AuditEntry, Changed, DecideFn, JobOrg, JobOrgFilter, JobRef, OrgCounts, OrgFilter, OrgJob, OrgUpdateProgress,
    OrgWritten, Page, PageRequest, StoreResult,
};
use crate::ids::{JobId, JobKey, OrgId};
use crate::org::{Org, OrgUpdate, OrgWrite, Override, OverrideWrite};

verbs! {
    /// Writes and finds orgs and their overrides, and keeps the timers of orgs in line with them.
    pub trait OrgStore {
        /// Makes and changes orgs, all of them or none: see [`written`](crate::org::written). The answers are in the
        /// same order. An `expected_revision` that is not the current one is
        /// [`StoreError::Stale`](super::StoreError::Stale), an org that must be there and is not is
        /// [`StoreError::NotFound`](super::StoreError::NotFound), an org that is named twice is
        /// [`StoreError::Invalid`](super::StoreError::Invalid).
        async fn write_orgs(&self, writes: &[OrgWrite], audit: &AuditEntry) -> StoreResult<Vec<OrgWritten>>;

        /// Ends an org: no job fires for it any more, and it is gone as soon as its timers are. Its runs stay.
        async fn delete_org(&self, org: &OrgId, expected_revision: Option<u64>, audit: &AuditEntry) -> StoreResult<()>;

        /// One org.
        async fn get_org(&self, org: &OrgId) -> StoreResult<Org>;

        /// Orgs, a page at a time, by id.
        async fn list_orgs(&self, filter: &OrgFilter, page: &PageRequest) -> StoreResult<Page<Org>>;

        /// Counts orgs, and those that need attention.
        async fn count_orgs(&self) -> StoreResult<OrgCounts>;

        /// Writes what an org wants of a job, which need not be there yet.
        async fn write_override(&self, org: &OrgId, write: &OverrideWrite, audit: &AuditEntry) -> StoreResult<Override>;

        /// The org wants of the job what all want.
        async fn delete_override(&self, org: &OrgId, job: &JobKey, audit: &AuditEntry) -> StoreResult<()>;

        /// Everything that an org overrides, by job key. What is said of a key that no job can have is left out.
        async fn list_overrides(&self, org: &OrgId) -> StoreResult<Vec<Override>>;

        /// The orgs as a job sees them, a page at a time, by id. A timer that cannot be read is none, and its error
        /// says why.
        async fn job_orgs(&self, job: JobId, filter: &JobOrgFilter, page: &PageRequest) -> StoreResult<Page<JobOrg>>;

        /// The living jobs with a timer for each org, as an org sees them, by key; at most 1,000. One that cannot be
        /// read is left out; [`JobStore::list_jobs`](super::JobStore::list_jobs) names it.
        async fn org_jobs(&self, org: &OrgId) -> StoreResult<Vec<OrgJob>>;

        /// Like [`JobStore::change_job`](super::JobStore::change_job), for the timer of one org.
        async fn change_org_job(
            &self,
            job: &JobRef,
            org: &OrgId,
            expected_revision: Option<u64>,
            decide: &DecideFn<'_>,
            audit: &AuditEntry,
        ) -> StoreResult<Changed>;

        /// Brings the timers of orgs in line with jobs, orgs and overrides, for at most `limit` orgs: first of orgs
        /// that changed ([`reconcile`](crate::org::reconcile)), then a step of the org update that waits longest
        /// ([`take_step`](crate::org::take_step)). One short transaction; several instances do not wait for each other.
        /// Errors of timers are written to the audit trail as by [`RunStore::plan_due`](super::RunStore::plan_due).
        async fn reconcile_orgs(&self, now: Timestamp, limit: u32) -> StoreResult<OrgUpdateProgress>;

        /// Lists the org updates that are not finished, oldest first; at most 1,000. Leaves out those that cannot be
        /// read; their jobs become errored when their turn comes.
        async fn list_org_updates(&self) -> StoreResult<Vec<OrgUpdate>>;

        /// Stops an org update that creates runs, and returns how far it got. Its runs stay. Refuses one that timers
        /// depend on ([`OrgUpdate::expect_stoppable`]).
        async fn stop_org_update(&self, org_update: Uuid, audit: &AuditEntry) -> StoreResult<OrgUpdate>;
    }
}
