//! Jobs and runs that are written in a transaction of the application.

use everbell_core::store::{Changed, Instance, JobFilter, JobRef, JobRow, Store, StoreResult};
use everbell_core::{JobStatus, Target};
use everbell_store::{AppConnection, InTransaction};

use super::jobs::Jobs;
use super::names::IntoJobRef;
use crate::schedule::Schedule;

impl Jobs {
    /// Creates a job like [`Jobs::create`], in a transaction of the application: the job exists once that commits, and
    /// never did if it is rolled back.
    ///
    /// The connection is `&mut tx` of a transaction that sqlx began, on PostgreSQL or SQLite, to the database of this
    /// everbell. A refusal leaves the transaction usable. The audit entry is a part of the transaction too. Instances
    /// notice the commit within a second (behind a pooler, or in other processes on SQLite, when they poll). [`guides::transactions`](crate::guides::transactions) has the details.
    ///
    /// ```
    /// # use everbell::{Everbell, Schedule};
    /// # async fn order(pool: sqlx::SqlitePool, bell: Everbell) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut tx = pool.begin_with("begin immediate").await?;
    /// sqlx::query("insert into orders (id) values (7)").execute(&mut *tx).await?;
    /// let reminder = Schedule::once("reminder-7", bell.now() + jiff::SignedDuration::from_hours(24)).target("remind");
    /// bell.jobs().by("web").create_in(&mut tx, &reminder).await?;
    /// tx.commit().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create_in<C: AppConnection>(&self, connection: &mut C, schedule: &Schedule) -> StoreResult<JobRow> {
        let what = format!("creating job `{}`", schedule.key().escape_debug());
        let mut inside = connection.enter(&*self.context.parts.store, &what).await?;
        let (new, audit) = self.prepare_by(schedule, &mut Reader::Inside(&mut *inside)).await?;
        let row = inside.create_job(&new, &audit).await?;
        inside.finish().await?;
        Ok(row)
    }

    /// Ends a job for good like [`Jobs::retire`], in a transaction of the application: for a job that belongs to a row
    /// that the transaction deletes. It is short for `retire(job).in_tx(connection)`.
    pub async fn retire_in<C: AppConnection>(&self, connection: &mut C, job: impl IntoJobRef) -> StoreResult<Changed> {
        self.retire(job).in_tx(connection).await
    }
}

/// The rows that a decision is made by: what is committed, or what a transaction of the application sees. That one reads
/// through its own connection, because the pool of an application may have no other left.
pub(super) enum Reader<'a> {
    Store(&'a dyn Store),
    Inside(&'a mut (dyn InTransaction + 'a)),
}

impl Reader<'_> {
    pub(super) async fn get_job(&mut self, job: &JobRef) -> StoreResult<JobRow> {
        match self {
            Reader::Store(store) => store.get_job(job).await,
            Reader::Inside(inside) => inside.get_job(job).await,
        }
    }

    pub(super) async fn list_instances(&mut self) -> StoreResult<Vec<Instance>> {
        match self {
            Reader::Store(store) => store.list_instances().await,
            Reader::Inside(inside) => inside.list_instances().await,
        }
    }

    /// Whether any job has this target that is not retired.
    pub(super) async fn has_jobs_of(&mut self, target: &Target) -> StoreResult<bool> {
        let status = vec![JobStatus::Active, JobStatus::Paused];
        let filter = JobFilter { target: vec![target.clone()], status, ..JobFilter::default() };
        let count = match self {
            Reader::Store(store) => store.count_jobs(&filter, 1).await?,
            Reader::Inside(inside) => inside.count_jobs(&filter, 1).await?,
        };
        Ok(count > 0)
    }
}
