//! Jobs and runs that are written together with an application's own rows, in the application's transaction.

use everbell_core::RunId;
use everbell_core::change::NewJob;
use everbell_core::store::{AuditEntry, DecideFn, JobRef, StoreError, StoreResult, UnavailableReason};
use sqlx::PgConnection;

use super::connect::on;
use super::job_changes::Wanted;
use super::pooler::{News, Session};
use super::{PostgresStore, audit, jobs};

impl PostgresStore {
    /// Inserts a job within the caller's transaction: it is there when that commits, and never was if it does not.
    ///
    /// The connection must be to the database of this store; its `search_path` does not matter. A refusal leaves the
    /// transaction usable.
    pub async fn create_job_in(
        &self,
        connection: &mut PgConnection,
        job: &NewJob,
        audit: &AuditEntry,
    ) -> StoreResult<()> {
        let what = format!("creating job `{}`", job.definition.key);
        let written = async {
            let mut tx = on(&what, Session::inside(connection, &self.pool)).await?;
            jobs::insert_job(&mut tx, &what, job, audit).await?;
            audit::insert_audit(&mut tx, audit).await?;
            done(&what, tx).await
        };
        written.await.map_err(|error| self.name_the_database(error))
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
        let written = async {
            let mut tx = on(&what, Session::inside(connection, &self.pool)).await?;
            let wanted = Wanted { job, org: None, expected_revision: None };
            let runs = self.decide_in(&mut tx, &what, wanted, decide, audit).await?.runs();
            done(&what, tx).await?;
            Ok(runs)
        };
        written.await.map_err(|error| self.name_the_database(error))
    }

    /// A caller's connection without our tables is most often one to another database.
    fn name_the_database(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Unavailable { what, reason: reason @ UnavailableReason::Schema, maybe_done, source } => {
                let schema = self.schema();
                let what =
                    format!("{what}; is the connection to the database of this store, with the schema `{schema}`?");
                StoreError::Unavailable { what, reason, maybe_done, source }
            }
            other => other,
        }
    }
}

/// Releases the savepoint. Instances are notified when the caller's transaction commits.
async fn done(what: &str, tx: Session<'_>) -> StoreResult<()> {
    on(what, tx.commit(News::Changes)).await
}
