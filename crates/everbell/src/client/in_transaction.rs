//! Jobs and runs that are written in a transaction of the application.

use std::borrow::Borrow;

use everbell_core::change::JobView;
use everbell_core::enqueue::{self, Decision};
use everbell_core::store::{Changed, Instance, JobFilter, JobRef, JobRow, Store, StoreError, StoreResult};
use everbell_core::{JobStatus, Target};
use everbell_store::{AppConnection, InTransaction};

use super::enqueue::{Enqueue, EnqueueOutcome, Enqueued};
use super::jobs::Jobs;
use super::names::IntoJobRef;
use crate::schedule::Schedule;

impl Jobs {
    /// Creates a job like [`Jobs::create`], in a transaction of the application: the job exists once that commits, and
    /// never did if it is rolled back.
    ///
    /// The connection is `&mut tx` of a transaction that sqlx began, on PostgreSQL or SQLite, to the database of this
    /// everbell. A refusal leaves the transaction usable. The audit entry is a part of the transaction too. Instances
    /// notice the commit within a second (behind a pooler, or in other processes on SQLite, when they poll).
    ///
    /// After an error for which [`StoreError::is_locked`] holds (a deadlock, a serialization failure, a lock that was not
    /// released in time), roll back and repeat the whole transaction: everbell cannot repeat what you did before.
    /// [`guides::transactions`](crate::guides::transactions) has the details.
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
    pub async fn create_in<C: AppConnection>(
        &self,
        connection: &mut C,
        schedule: impl Borrow<Schedule>,
    ) -> StoreResult<JobRow> {
        let schedule = schedule.borrow();
        let what = format!("creating job `{}`", schedule.key().escape_debug());
        let mut inside = connection.enter(&*self.context.parts.store, &what).await?;
        let (new, audit) = self.prepare_by(schedule, None, &mut Reader::Inside(&mut *inside)).await?;
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

impl Enqueue {
    /// Enqueues in a transaction of the application, like [`Jobs::create_in`]: the job exists once that commits. To keep or to
    /// replace a job of the same key locks that until then, so keep the transaction short.
    pub async fn in_tx<C: AppConnection>(self, connection: &mut C) -> StoreResult<Enqueued> {
        let (now, key) = (self.context.now(), self.job_key()?);
        let what = format!("enqueuing job `{key}`");
        let mut inside = connection.enter(&*self.context.parts.store, &what).await?;
        let known = match inside.get_job(&JobRef::Key(key.clone())).await {
            Ok(row) => Some(row),
            Err(StoreError::NotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        let decision = enqueue::decide(known.as_ref().map(|row| &row.job), self.if_unfinished)?;
        let enqueued = match (decision, known) {
            (Decision::Keep, Some(job)) => Enqueued { job, outcome: EnqueueOutcome::Kept },
            (Decision::Replace, Some(row)) => {
                let (new, audit) = self.replacement(&row, &key, now, &mut Reader::Inside(&mut *inside)).await?;
                let decide = |view: &JobView| enqueue::replace(view, new.definition.clone(), &self.context.actor, now);
                let (old, revision) = (JobRef::Id(new.job), Some(new.revision));
                let changed = inside.change_job(&old, None, revision, &decide, &audit).await?;
                let job = changed.successor.unwrap_or(changed.job);
                Enqueued { job, outcome: EnqueueOutcome::Replaced }
            }
            (_, known) => {
                let reader = &mut Reader::Inside(&mut *inside);
                let (new, audit) = self.new_job(known.as_ref(), &key, now, reader).await?;
                Enqueued { job: inside.create_job(&new, &audit).await?, outcome: EnqueueOutcome::Created }
            }
        };
        inside.finish().await?;
        Ok(enqueued)
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
