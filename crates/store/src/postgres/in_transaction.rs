//! Jobs and runs that are written together with an application's own rows, in the application's transaction.

use everbell_core::RunId;
use everbell_core::change::NewJob;
use everbell_core::store::{AuditEntry, DecideFn, JobRef, StoreResult};
use sqlx::PgConnection;

use super::connect::on;
use super::job_changes::Wanted;
use super::pooler::{News, Session};
use super::{PostgresStore, audit, jobs};

impl PostgresStore {
    /// Inserts a job within the caller's transaction: it is there when that commits, and never was if it does not.
    ///
    /// The connection must be to the database of this store. What is refused leaves the transaction usable.
    pub async fn create_job_in(
        &self,
        connection: &mut PgConnection,
        job: &NewJob,
        audit: &AuditEntry,
    ) -> StoreResult<()> {
        let what = format!("creating job `{}`", job.definition.key);
        let mut tx = on(&what, Session::inside(connection, &self.pool)).await?;
        jobs::insert_job(&mut tx, &what, job, audit).await?;
        audit::insert_audit(&mut tx, audit).await?;
        done(&what, tx).await
    }

    /// Changes a job within the caller's transaction, such as [`run_now`](everbell_core::change::run_now), and returns
    /// the runs that this created. The job is locked until the transaction ends, so keep it short.
    pub async fn change_job_in(
        &self,
        connection: &mut PgConnection,
        job: &JobRef,
        decide: &DecideFn<'_>,
        audit: &AuditEntry,
    ) -> StoreResult<Vec<RunId>> {
        let what = format!("changing {}", audit.object);
        let mut tx = on(&what, Session::inside(connection, &self.pool)).await?;
        let wanted = Wanted { job, org: None, expected_revision: None };
        let runs = self.decide_in(&mut tx, &what, wanted, decide, audit).await?.runs();
        done(&what, tx).await?;
        Ok(runs)
    }
}

/// Releases the savepoint. Instances are notified when the caller's transaction commits.
async fn done(what: &str, tx: Session<'_>) -> StoreResult<()> {
    on(what, tx.commit(News::Changes)).await
}
