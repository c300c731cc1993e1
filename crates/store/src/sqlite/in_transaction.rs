//! Jobs and runs that are written together with an application's own rows, in the application's transaction.

use std::sync::atomic::AtomicBool;

use everbell_core::RunId;
use everbell_core::change::NewJob;
use everbell_core::store::{AuditEntry, DecideFn, JobRef, StoreResult};
use sqlx::SqliteConnection;

use super::transaction::Tx;
use super::{SqliteStore, audit, jobs};

impl SqliteStore {
    /// Inserts a job within the caller's transaction: it exists once that commits, and never did if it does not.
    ///
    /// The connection must be to the file of this store, and its transaction should have started with `begin
    /// immediate`. No other process can write until it ends. Call [`wake`](SqliteStore::wake) afterwards, or the loops
    /// find the job when they poll.
    pub async fn create_job_in(
        &self,
        connection: &mut SqliteConnection,
        job: &NewJob,
        audit: &AuditEntry,
    ) -> StoreResult<()> {
        let what = format!("creating job `{}`", job.definition.key);
        let broken = AtomicBool::new(false);
        let mut tx = Tx::inside(self, connection, &what, &broken).await?;
        jobs::insert_job(&mut tx, job, audit).await?;
        audit::insert_audit(&mut tx, audit).await?;
        tx.commit().await
    }

    /// Changes a job within the caller's transaction, such as [`run_now`](everbell_core::change::run_now), and returns
    /// the runs that this created.
    pub async fn change_job_in(
        &self,
        connection: &mut SqliteConnection,
        job: &JobRef,
        decide: &DecideFn<'_>,
        audit: &AuditEntry,
    ) -> StoreResult<Vec<RunId>> {
        let what = format!("changing {}", audit.object);
        let broken = AtomicBool::new(false);
        let mut tx = Tx::inside(self, connection, &what, &broken).await?;
        let changed = self.decide_in(&mut tx, job, None, None, decide, audit).await?;
        tx.commit().await?;
        Ok(changed.runs.iter().map(|run| run.id).collect())
    }

    /// Wakes every loop in this process.
    pub fn wake(&self) {
        self.wake.notify_waiters();
    }
}
