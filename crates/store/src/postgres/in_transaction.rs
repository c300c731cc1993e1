//! Jobs and runs that are written together with an application's own rows, in the application's transaction.

use async_trait::async_trait;
use everbell_core::change::NewJob;
use everbell_core::store::{
    AuditEntry, Changed, DecideFn, Deed, Instance, JobFilter, JobRef, JobRow, StoreError, StoreResult,
    UnavailableReason,
};
use everbell_core::{OrgId, Run, RunId};
use sqlx::PgConnection;
use uuid::Uuid;

use super::connect::on;
use super::errors::OTHER_SCHEMA;
use super::job_changes::Wanted;
use super::pooler::{News, Session};
use super::statement::Statement;
use super::{PostgresStore, audit, create_jobs, jobs};
use crate::InTransaction;
use crate::in_transaction::lacks_our_tables;
use crate::rows::placeholders::filled_sql;
use crate::rows::{InstanceColumns, JobListColumns, RunColumns, readable};

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
        let mut inside = Box::new(self.inside(connection, &what).await?);
        inside.insert_job(job, audit).await.map_err(|error| self.name_the_database(error))?;
        inside.finish().await
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
        let mut inside = Box::new(self.inside(connection, &what).await?);
        let changed = inside.change_job(job, None, None, decide, audit).await?;
        inside.finish().await?;
        Ok(changed.runs.iter().map(|run| run.id).collect())
    }

    /// Starts a part of the caller's transaction.
    pub(crate) async fn inside<'a>(
        &'a self,
        connection: &'a mut PgConnection,
        what: &'a str,
    ) -> StoreResult<PostgresInside<'a>> {
        let tx = on(what, Session::inside(connection, &self.pool)).await?;
        Ok(PostgresInside { store: self, what, tx })
    }

    /// The address of the database without user and password, and the schema.
    pub(crate) fn database(&self) -> String {
        format!("{} with the schema `{}`", self.hosts, self.schema())
    }

    /// A caller's connection without our tables is most often one to another database.
    fn name_the_database(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Unavailable { what, reason: UnavailableReason::Schema, .. } => {
                lacks_our_tables(what.trim_end_matches(OTHER_SCHEMA), &self.database())
            }
            other => other,
        }
    }
}

/// A part of the application's transaction.
pub(crate) struct PostgresInside<'a> {
    store: &'a PostgresStore,
    what: &'a str,
    tx: Session<'a>,
}

impl PostgresInside<'_> {
    async fn insert_job(&mut self, job: &NewJob, audit: &AuditEntry) -> StoreResult<()> {
        jobs::insert_job(&mut self.tx, self.what, job, audit).await?;
        let deed = || Deed { job: Some(job.definition.id), ..Deed::default() };
        audit::insert_audit_of(&mut self.tx, audit, deed).await
    }

    async fn row(&mut self, id: Uuid) -> StoreResult<JobRow> {
        let query = sqlx::query_as(filled_sql!(include_str!("sql/read_job_rows.sql"))).bind(vec![id]);
        let row: Option<JobListColumns> = on("reading a job", query.fetch_optional_on(&mut self.tx)).await?;
        let row = row.ok_or_else(|| StoreError::not_found("job", id))?;
        let last_run = self.runs(row.last_run_id.as_slice()).await?.pop();
        row.read(&self.store.known, last_run)
    }

    /// These runs, in this order.
    async fn runs(&mut self, ids: &[Uuid]) -> StoreResult<Vec<Run>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let query = sqlx::query_as(filled_sql!(include_str!("sql/get_runs.sql"))).bind(ids.to_vec());
        let mut rows: Vec<RunColumns> = on("reading runs", query.fetch_all_on(&mut self.tx)).await?;
        rows.sort_by_key(|row| ids.iter().position(|id| *id == row.id));
        rows.into_iter().map(RunColumns::read).collect()
    }

    async fn change(&mut self, wanted: Wanted<'_>, decide: &DecideFn<'_>, audit: &AuditEntry) -> StoreResult<Changed> {
        let done = self.store.decide_in(&mut self.tx, self.what, wanted, decide, audit).await?;
        let runs = self.runs(&done.new_ids()).await?;
        let successor = match done.successor {
            Some(id) => Some(self.row(id).await?),
            None => None,
        };
        Ok(Changed::new(self.row(done.id).await?).with(successor, runs, done.gaps, done.pending))
    }
}

#[async_trait]
impl InTransaction for PostgresInside<'_> {
    async fn get_job(&mut self, job: &JobRef) -> StoreResult<JobRow> {
        let found = async {
            let id = jobs::find(&mut self.tx, job).await?;
            self.row(id).await
        };
        found.await.map_err(|error| self.store.name_the_database(error))
    }

    async fn count_jobs(&mut self, filter: &JobFilter, cap: u32) -> StoreResult<u32> {
        let counted = jobs::count(&mut self.tx, filter, cap).await;
        counted.map_err(|error| self.store.name_the_database(error))
    }

    async fn list_instances(&mut self) -> StoreResult<Vec<Instance>> {
        let query = sqlx::query_as(include_str!("sql/list_instances.sql"));
        let rows = on("listing instances", query.fetch_all_on(&mut self.tx)).await;
        let rows: Vec<InstanceColumns> = rows.map_err(|error| self.store.name_the_database(error))?;
        Ok(readable(rows, |row| row.id, InstanceColumns::read).0)
    }

    async fn create_job(&mut self, job: &NewJob, audit: &AuditEntry) -> StoreResult<JobRow> {
        let created = async {
            self.insert_job(job, audit).await?;
            self.row(job.definition.id.as_uuid()).await
        };
        created.await.map_err(|error| self.store.name_the_database(error))
    }

    async fn create_jobs(&mut self, jobs: &[NewJob], audit: &AuditEntry) -> StoreResult<()> {
        let created = create_jobs::insert(&mut self.tx, self.what, jobs, audit).await;
        created.map_err(|error| self.store.name_the_database(error))
    }

    async fn change_job(
        &mut self,
        job: &JobRef,
        org: Option<&OrgId>,
        expected_revision: Option<u64>,
        decide: &DecideFn<'_>,
        audit: &AuditEntry,
    ) -> StoreResult<Changed> {
        let changed = self.change(Wanted { job, org, expected_revision, is_audited: true }, decide, audit).await;
        changed.map_err(|error| self.store.name_the_database(error))
    }

    /// Releases the savepoint. Instances are notified when the caller's transaction commits.
    async fn finish(self: Box<Self>) -> StoreResult<()> {
        on(self.what, self.tx.commit(News::Changes)).await
    }
}
