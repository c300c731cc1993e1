//! [`Jobs::create_or_replace`]: a job that is as the last call says.

use std::borrow::Borrow;

use everbell_core::store::{JobRef, JobRow, StoreError, StoreResult};
use everbell_core::{Draft, JobId, JobStatus, Made, Source};

use super::jobs::Jobs;
use super::{MAX_ATTEMPTS, refusal};
use crate::engine::random;
use crate::schedule::Schedule;

impl Jobs {
    /// Creates a job, or replaces the current job of its key by a next version if the content differs. Repeating the call
    /// changes nothing, and a pause of the job goes on. Slots of a new version start now.
    ///
    /// It is for jobs that follow from data, such as a report that a user asked for at a time of their own; a program declares
    /// its own jobs with [`Builder::schedule`](crate::Builder::schedule). A job that is declared by a program or by a configuration
    /// file is a [`StoreError::Conflict`]. For work that is to be done once, [`Jobs::enqueue`] with
    /// [`replace`](super::Enqueue::replace) also handles a job that is at work.
    ///
    /// ```
    /// # use everbell::{Everbell, Schedule};
    /// # async fn report() {}
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let bell = Everbell::builder().database("sqlite::memory:").target("report", report).build().await?;
    /// let jobs = bell.jobs().by("web");
    /// let wanted = |cron: &str| Schedule::cron("report-7", cron).tz("Europe/Paris").target("report").payload(7);
    /// jobs.create_or_replace(wanted("0 8 * * *")).await?;
    /// let unchanged = jobs.create_or_replace(wanted("0 8 * * *")).await?;
    /// let replaced = jobs.create_or_replace(wanted("0 9 * * *")).await?;
    /// assert_eq!((unchanged.version(), replaced.version()), (1, 2));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create_or_replace(&self, schedule: impl Borrow<Schedule>) -> StoreResult<JobRow> {
        let schedule = schedule.borrow();
        for _ in 1..MAX_ATTEMPTS {
            if let Some(job) = self.put(schedule).await? {
                return Ok(job);
            }
        }
        let raced = || StoreError::Conflict { what: format!("job `{}` keeps changing", schedule.key()) };
        self.put(schedule).await?.ok_or_else(raced)
    }

    /// Reads the job of the key, decides, and commits against what was read. Returns `None` if it changed meanwhile.
    async fn put(&self, schedule: &Schedule) -> StoreResult<Option<JobRow>> {
        let known = match self.get(schedule.key()).await {
            Ok(row) if row.status() != JobStatus::Retired => row,
            Ok(_) | Err(StoreError::NotFound { .. }) => return unless_raced(self.create(schedule).await),
            Err(error) => return Err(error),
        };
        if known.job.definition.source != Source::Api {
            let owner = match known.job.definition.source {
                Source::Config => "a configuration file",
                Source::Code | Source::Api => "a program",
            };
            let what = format!("job `{}` is declared by {owner}: change it there", known.key());
            return Err(StoreError::Conflict { what });
        }
        let now = self.context.now();
        let made = Made { id: JobId::new(now, random()), source: Source::Api, by: &self.context.actor, at: now };
        let wanted = schedule.definition(&made).map_err(refusal)?;
        if wanted.content_hash() == known.job.definition.content_hash() {
            return Ok(Some(known));
        }
        // Both are drafts of definitions, so that the same schedule in other words keeps the time a fixed rate counts from.
        let edit = Draft::from_definition(&wanted).edit_of(&known.job.definition, now).map_err(refusal)?;
        let change = self.new_version(JobRef::Id(known.id()), edit).if_revision(known.revision());
        unless_raced(change.await.map(|changed| changed.successor.unwrap_or(changed.job)))
    }
}

fn unless_raced(answer: StoreResult<JobRow>) -> StoreResult<Option<JobRow>> {
    match answer {
        Ok(row) => Ok(Some(row)),
        Err(error) if error.is_conflict() => Ok(None),
        Err(error) => Err(error),
    }
}
