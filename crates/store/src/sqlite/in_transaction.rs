//! Jobs and runs that are written together with an application's own rows, in the application's transaction.

use std::sync::atomic::AtomicBool;

use async_trait::async_trait;
use everbell_core::change::NewJob;
use everbell_core::store::{
    AuditEntry, Changed, DecideFn, Deed, Instance, JobFilter, JobRef, JobRow, StoreError, StoreResult,
    UnavailableReason,
};
use everbell_core::{OrgId, RunId};
use sqlx::SqliteConnection;
use uuid::Uuid;

use super::errors::OTHER_SCHEMA;
use super::job_changes::Deciding;
use super::transaction::Tx;
use super::{SqliteStore, audit, create_jobs, jobs};
use crate::InTransaction;
use crate::in_transaction::lacks_our_tables;
use crate::rows::{InstanceColumns, readable};

/// Whether a connection of the application is broken is for the application to notice, so this is never read.
static NOT_OURS: AtomicBool = AtomicBool::new(false);

/// Takes the right to write before anything is read. A transaction that has read first cannot write any more once another
/// one has written, and it fails without waiting.
const LOCK: &str = "update everbell_jobs set revision = revision where false";

impl SqliteStore {
    /// Inserts a job within the caller's transaction: it exists once that commits, and never did if it does not.
    ///
    /// The connection must be to the file of this store, and its transaction should have started with `begin
    /// immediate`. No other connection can write until it ends. The loops of this process notice the commit within a
    /// second, or at once after [`wake`](SqliteStore::wake).
    pub async fn create_job_in(
        &self,
        connection: &mut SqliteConnection,
        job: &NewJob,
        audit: &AuditEntry,
    ) -> StoreResult<()> {
        let what = format!("creating job `{}`", job.definition.key);
        let mut inside = Box::new(self.inside(connection, &what).await?);
        inside.create_job(job, audit).await?;
        inside.finish().await
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
        let mut inside = Box::new(self.inside(connection, &what).await?);
        let changed = inside.change_job(job, None, None, decide, audit).await?;
        inside.finish().await?;
        Ok(changed.runs.iter().map(|run| run.id).collect())
    }

    /// Wakes every loop in this process.
    pub fn wake(&self) {
        self.wake.notify_waiters();
    }

    /// Starts a part of the caller's transaction.
    pub(crate) async fn inside<'a>(
        &'a self,
        connection: &'a mut SqliteConnection,
        what: &'a str,
    ) -> StoreResult<SqliteInside<'a>> {
        let mut tx = Tx::inside(self, connection, what, &NOT_OURS).await?;
        tx.run(sqlx::query(LOCK)).await.map_err(|error| self.explain(error))?;
        Ok(SqliteInside { store: self, tx, written: None })
    }

    /// A caller's connection without our tables is most often one to another file, and one that must not write has read
    /// before.
    fn explain(&self, error: StoreError) -> StoreError {
        let StoreError::Unavailable { what, reason, maybe_done, source } = error else { return error };
        let what = match reason {
            UnavailableReason::Schema => {
                return lacks_our_tables(what.trim_end_matches(OTHER_SCHEMA), &self.display_name());
            }
            UnavailableReason::Locked => format!("{what}; begin the transaction with `begin immediate`"),
            _ => what,
        };
        StoreError::Unavailable { what, reason, maybe_done, source }
    }
}

/// A part of the application's transaction.
pub(crate) struct SqliteInside<'a> {
    store: &'a SqliteStore,
    tx: Tx<'a>,
    /// The audit entry that was written last.
    written: Option<Uuid>,
}

#[async_trait]
impl InTransaction for SqliteInside<'_> {
    async fn get_job(&mut self, job: &JobRef) -> StoreResult<JobRow> {
        let id = jobs::find(&mut self.tx, job).await?;
        self.store.job_row(&mut self.tx, id).await
    }

    async fn count_jobs(&mut self, filter: &JobFilter, cap: u32) -> StoreResult<u32> {
        jobs::count(&mut self.tx, filter, cap).await
    }

    async fn list_instances(&mut self) -> StoreResult<Vec<Instance>> {
        let rows: Vec<InstanceColumns> = self.tx.all(sqlx::query(include_str!("sql/list_instances.sql"))).await?;
        Ok(readable(rows, |row| row.id, InstanceColumns::read).0)
    }

    async fn create_job(&mut self, job: &NewJob, audit: &AuditEntry) -> StoreResult<JobRow> {
        jobs::insert_job(&mut self.tx, job, audit).await?;
        let deed = || Deed { job: Some(job.definition.id), ..Deed::default() };
        audit::insert_audit_of(&mut self.tx, audit, deed).await?;
        self.written = Some(audit.id);
        self.store.job_row(&mut self.tx, job.definition.id.as_uuid()).await
    }

    async fn create_jobs(&mut self, jobs: &[NewJob], audit: &AuditEntry) -> StoreResult<()> {
        create_jobs::insert(&mut self.tx, jobs, audit).await?;
        self.written = Some(audit.id);
        Ok(())
    }

    async fn change_job(
        &mut self,
        job: &JobRef,
        org: Option<&OrgId>,
        expected_revision: Option<u64>,
        decide: &DecideFn<'_>,
        audit: &AuditEntry,
    ) -> StoreResult<Changed> {
        let changed =
            self.store.decide_in(&mut self.tx, job, org, expected_revision, decide, Deciding::Audited(audit)).await?;
        self.written = Some(audit.id);
        Ok(changed)
    }

    async fn finish(self: Box<Self>) -> StoreResult<()> {
        let SqliteInside { store, tx, written } = *self;
        tx.commit().await?;
        if let Some(entry) = written {
            store.awaited.add(entry);
        }
        Ok(())
    }
}
