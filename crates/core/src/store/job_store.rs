//! [`JobStore`]: jobs, and what people and programs change about them.

use async_trait::async_trait;
use jiff::Timestamp;

use super::interceptor::{Call, Interceptor, audit_entry, verbs};
use super::{
    AuditEntry, Changed, DecideFn, InboxAnswer, InboxRequest, JobFilter, JobRef, JobRow, Page, PageRequest, PurgedJob,
    RefusedRequest, StoreResult, TargetCount,
};
use crate::chain::{ChainLink, RunGroup};
use crate::change::NewJob;
use crate::ids::{JobId, JobKey};

verbs! {
    /// Creates, changes and finds jobs.
    pub trait JobStore {
        /// Inserts a job with its timer. A living job of the same key is a
        /// [`StoreError::Conflict`](super::StoreError::Conflict). A job that would start after one that does not exist, or in
        /// a circle, is [`StoreError::Invalid`](super::StoreError::Invalid), here and wherever a version is inserted: see
        /// [`check_chain`](crate::chain::check_chain).
        async fn create_job(&self, job: &NewJob, audit: &AuditEntry) -> StoreResult<JobRow>;

        /// Inserts many jobs with their timers, all or none, in as few statements as the database allows: at most
        /// [`MAX_ENQUEUED_JOBS`](crate::enqueue::MAX_ENQUEUED_JOBS), each the first version of its key, with one timer.
        /// Others are [`StoreError::Invalid`](super::StoreError::Invalid). A key that has a first version or a current job
        /// is a [`StoreError::Conflict`](super::StoreError::Conflict). One audit entry is about all of them.
        async fn create_jobs(&self, jobs: &[NewJob], audit: &AuditEntry) -> StoreResult<()>;

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

        /// Deletes a job of any kind for good, at most `limit` ended runs and `limit` gaps at a time, in one transaction:
        /// the caller asks again until the answer is [`PurgedJob::finished`]. The last step deletes the versions with
        /// their payloads, timers, org updates and org overrides, removes the facts before and after from the earlier
        /// audit entries about `audit.object`, which may repeat the payload, and writes the entry. A step before that
        /// retires the job and disarms its timers, so that it never fires again.
        ///
        /// Runs that have not started are deleted with the others. A job with a run at work is refused with a
        /// [`StoreError::Conflict`](super::StoreError::Conflict): see [`expect_idle`](crate::purge::expect_idle).
        ///
        /// `so_far` is the sum of the answers to the steps before: the last step remembers the whole for a request that is
        /// sent again.
        async fn purge_job(&self, key: &JobKey, limit: u32, so_far: PurgedJob, audit: &AuditEntry) -> StoreResult<PurgedJob>
        where (|purged| purged.finished);

        /// Writes a request into the inbox, as others do with plain SQL, and returns its id. The id of the request is
        /// not used.
        async fn write_inbox(&self, request: &InboxRequest) -> StoreResult<i64>;

        /// Requests of the inbox that have no answer, without these, oldest first.
        async fn open_inbox(&self, limit: u32, without: &[i64]) -> StoreResult<Vec<InboxRequest>>;

        /// Answers a request once: creates its job, replaces or keeps an unfinished one, or refuses the request, and writes
        /// down which, with the audit entry, in one transaction. Returns whether it did; another instance may have been
        /// faster, or be about to answer. A job that cannot be created because of its key, or has changed before it could
        /// be replaced, is a conflict ([`StoreError::is_conflict`](super::StoreError::is_conflict)), and the request stays open.
        async fn answer_inbox(&self, id: i64, answer: &InboxAnswer, audit: &AuditEntry) -> StoreResult<bool>
        where (|answered| *answered);

        /// Requests of the inbox that were refused, latest first, at most `limit`.
        async fn refused_inbox(&self, limit: u32) -> StoreResult<Vec<RefusedRequest>>;

        /// The job with its timer and last run.
        async fn get_job(&self, job: &JobRef) -> StoreResult<JobRow>;

        /// Jobs, a page at a time.
        async fn list_jobs(&self, filter: &JobFilter, page: &PageRequest) -> StoreResult<Page<JobRow>>;

        /// How many jobs there are like this; no more than `cap` are counted, which is 1 to 10,000.
        async fn count_jobs(&self, filter: &JobFilter, cap: u32) -> StoreResult<u32>;

        /// How many living jobs there are of each target and status, by these; none where there is none. A target that
        /// cannot be read is left out.
        async fn count_targets(&self) -> StoreResult<Vec<TargetCount>>;

        /// The current jobs that start after another one, by key, at most `limit`.
        async fn chain_links(&self, limit: u32) -> StoreResult<Vec<ChainLink>>;

        /// The groups of runs that a job which starts after several others waits or waited for, the one that opened last
        /// first, at most `limit`; only those that opened by `until`, if it is given.
        async fn run_groups(&self, job: &JobKey, until: Option<Timestamp>, limit: u32) -> StoreResult<Vec<RunGroup>>;

        /// Ends the wait of up to `limit` groups whose deadline has passed, in one transaction: each becomes a gap of the
        /// current version of its job with the reason `incomplete`, see [`expire_all`](crate::chain::expire_all). Deletes groups
        /// that were closed longer ago than [`REMEMBERED`](crate::chain::REMEMBERED). Returns the next deadline.
        async fn expire_run_groups(&self, limit: u32, now: Timestamp) -> StoreResult<Option<Timestamp>>;

        /// Paused jobs that resume by themselves, with the time at which they do; the earliest first.
        async fn pauses_ending(&self, limit: u32) -> StoreResult<Vec<(JobId, Timestamp)>>;
    }
}
