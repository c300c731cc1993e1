//! Jobs and runs that are written together with an application's own rows, in the application's transaction.

use async_trait::async_trait;
use everbell_core::OrgId;
use everbell_core::change::NewJob;
use everbell_core::store::{AuditEntry, Changed, DecideFn, Instance, JobFilter, JobRef, JobRow, StoreResult};
#[cfg(any(feature = "postgres", feature = "sqlite"))]
use everbell_core::{Invalid, store::StoreError};

/// Refuses a caller's connection on which none of our tables are found: most often it is one to another database.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) fn lacks_our_tables(said: &str, own: &str) -> StoreError {
    let reason =
        format!("lacks the tables of everbell: {said}; is the connection to the database of this store, {own}?");
    Invalid::new("connection", reason).into()
}

/// The verbs of a store within a part of the application's transaction. They see what that transaction has written. What
/// is dropped before [`InTransaction::finish`] is undone, and the transaction stays usable.
#[async_trait]
#[doc(hidden)]
pub trait InTransaction: Send {
    /// Like [`JobStore::get_job`](everbell_core::store::JobStore::get_job).
    async fn get_job(&mut self, job: &JobRef) -> StoreResult<JobRow>;

    /// Like [`JobStore::count_jobs`](everbell_core::store::JobStore::count_jobs).
    async fn count_jobs(&mut self, filter: &JobFilter, cap: u32) -> StoreResult<u32>;

    /// Like [`ClusterStore::list_instances`](everbell_core::store::ClusterStore::list_instances).
    async fn list_instances(&mut self) -> StoreResult<Vec<Instance>>;

    /// Like [`JobStore::create_job`](everbell_core::store::JobStore::create_job).
    async fn create_job(&mut self, job: &NewJob, audit: &AuditEntry) -> StoreResult<JobRow>;

    /// Like [`JobStore::create_jobs`](everbell_core::store::JobStore::create_jobs).
    async fn create_jobs(&mut self, jobs: &[NewJob], audit: &AuditEntry) -> StoreResult<()>;

    /// Like [`JobStore::change_job`](everbell_core::store::JobStore::change_job), or for the timer of an org.
    async fn change_job(
        &mut self,
        job: &JobRef,
        org: Option<&OrgId>,
        expected_revision: Option<u64>,
        decide: &DecideFn<'_>,
        audit: &AuditEntry,
    ) -> StoreResult<Changed>;

    /// Ends this part. It takes effect with the application's commit, and wakes the loops then.
    async fn finish(self: Box<Self>) -> StoreResult<()>;
}
