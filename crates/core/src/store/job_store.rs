//! [`JobStore`]: jobs, and what people and programs change about them.

use async_trait::async_trait;
use jiff::Timestamp;

use super::interceptor::{Call, Interceptor, audit_entry, verbs};
use super::{AuditEntry, Changed, DecideFn, JobFilter, JobRef, JobRow, Page, PageRequest, StoreResult, TargetCount};
use crate::change::NewJob;
use crate::ids::JobId;

verbs! {
    /// Creates, changes and finds jobs.
    pub trait JobStore {
        /// Inserts a job with its timer. A living job of the same key is a
        /// [`StoreError::Conflict`](super::StoreError::Conflict).
        async fn create_job(&self, job: &NewJob, audit: &AuditEntry) -> StoreResult<JobRow>;

        /// Locks the job and its timer, asks `decide`, and commits the answer with the audit entry. `expected_revision`
        /// that is not the current one is a [`StoreError::Conflict`](super::StoreError::Conflict); a refusal is
        /// [`StoreError::Invalid`](super::StoreError::Invalid) and changes nothing. The time and the actor of the entry
        /// are those of the change: runs are inserted and canceled at that time, by them.
        async fn change_job(
            &self,
            job: &JobRef,
            expected_revision: Option<u64>,
            decide: &DecideFn<'_>,
            audit: &AuditEntry,
        ) -> StoreResult<Changed>;

        /// The job with its timer and last run.
        async fn get_job(&self, job: &JobRef) -> StoreResult<JobRow>;

        /// Jobs, a page at a time.
        async fn list_jobs(&self, filter: &JobFilter, page: &PageRequest) -> StoreResult<Page<JobRow>>;

        /// How many jobs there are like this; no more than `cap` are counted, which is 1 to 10,000.
        async fn count_jobs(&self, filter: &JobFilter, cap: u32) -> StoreResult<u32>;

        /// How many living jobs there are of each target and status, by these; none where there is none. A target that
        /// cannot be read is left out.
        async fn count_targets(&self) -> StoreResult<Vec<TargetCount>>;

        /// Paused jobs that resume by themselves, with the time at which they do; the earliest first.
        async fn pauses_ending(&self, limit: u32) -> StoreResult<Vec<(JobId, Timestamp)>>;
    }
}
