//! Many one-time jobs in one transaction: [`Jobs::enqueue_many`].

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use everbell_core::change::NewJob;
use everbell_core::enqueue;
use everbell_core::store::{AuditEntry, JobRef, StoreError, StoreResult};
use everbell_core::{Backoff, Invalid, JobId, JobKey, Made, OnLost, Source, Target, TraceContext};
use everbell_store::AppConnection;
use jiff::Timestamp;
use serde::Serialize;

use super::enqueue::{EnqueueTarget, common_settings, number, settings};
use super::in_transaction::Reader;
use super::jobs::Jobs;
use super::{Context, is_in_doubt, refusal};
use crate::clock::BoxFuture;
use crate::engine::random;
use crate::schedule::Schedule;

impl Jobs {
    /// Like [`Jobs::enqueue`], for many payloads: up to 10,000 jobs in one transaction, all of them or none, with one
    /// audit entry. Returns their generated keys, in the order of the payloads.
    ///
    /// ```
    /// # use everbell::Everbell;
    /// # async fn mail() {}
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let bell = Everbell::builder().database("sqlite::memory:").target("mail", mail).build().await?;
    /// let keys = bell.jobs().enqueue_many("mail", ["ana", "bo", "cy"]).await?;
    /// assert_eq!(keys.len(), 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn enqueue_many<P: Serialize>(
        &self,
        target: impl EnqueueTarget<P>,
        payloads: impl IntoIterator<Item = P>,
    ) -> EnqueueMany {
        let payloads = payloads.into_iter().take(enqueue::MAX_ENQUEUED_JOBS + 1);
        let payloads = payloads.map(|payload| crate::storable::text(&payload)).collect();
        EnqueueMany { context: self.context.clone(), settings: settings(target.into_label()), at: None, payloads }
    }
}

/// Many jobs to be enqueued when this is awaited. See [`Jobs::enqueue_many`].
#[derive(Clone, Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct EnqueueMany {
    context: Context,
    settings: Schedule,
    at: Option<Timestamp>,
    payloads: Vec<Result<String, String>>,
}

common_settings!(EnqueueMany);

impl EnqueueMany {
    async fn commit(self) -> StoreResult<Vec<JobKey>> {
        let store = Arc::clone(&self.context.parts.store);
        let (jobs, audit) = self.prepare(&mut Reader::Store(&*store)).await?;
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        match store.create_jobs(&jobs, &audit).await {
            // One transaction: the last one is there if all of them are.
            Err(error) if is_in_doubt(&error) => match jobs.last() {
                Some(last) => store.get_job(&JobRef::Id(last.definition.id)).await.map(drop).map_err(|_| error)?,
                None => return Err(error),
            },
            answer => answer?,
        }
        Ok(keys(&jobs))
    }

    /// Enqueues them in a transaction of the application, like [`Enqueue::in_tx`](super::Enqueue::in_tx): all of them exist
    /// once that commits.
    ///
    /// ```
    /// # use everbell::Everbell;
    /// # async fn order(pool: sqlx::SqlitePool, bell: Everbell) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut tx = pool.begin_with("begin immediate").await?;
    /// sqlx::query("insert into campaigns (id) values (7)").execute(&mut *tx).await?;
    /// bell.jobs().enqueue_many("mail", ["ana", "bo", "cy"]).in_tx(&mut tx).await?;
    /// tx.commit().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn in_tx<C: AppConnection>(self, connection: &mut C) -> StoreResult<Vec<JobKey>> {
        let store = Arc::clone(&self.context.parts.store);
        let what = format!("enqueuing {} jobs", self.payloads.len());
        let mut inside = connection.enter(&*store, &what).await?;
        let (jobs, audit) = self.prepare(&mut Reader::Inside(&mut *inside)).await?;
        if !jobs.is_empty() {
            inside.create_jobs(&jobs, &audit).await?;
        }
        inside.finish().await?;
        Ok(keys(&jobs))
    }

    /// Checks all of them, and returns the rows that create them.
    async fn prepare(self, reader: &mut Reader<'_>) -> StoreResult<(Vec<NewJob>, AuditEntry)> {
        let EnqueueMany { context, settings, at, payloads } = self;
        enqueue::expect_bounded(payloads.len())?;
        let (now, first) = (context.now(), number());
        let target = Target::new(settings.target_name().unwrap_or_default())?;
        let settings = settings.with_time(enqueue::slot(at, now));
        let key = |n: usize| enqueue::generated_key(&target, now, first.wrapping_add(n as u64));
        // The first one is checked in full; the others differ from it in key and payload only.
        if let Some(some) = payloads.first().cloned() {
            let first = settings.clone().with_key(key(0)).with_payload_text(some);
            context.new_definition(&first, None, now, reader).await.map_err(|error| match error {
                StoreError::Invalid(problem) if problem.field == "payload" => numbered(problem, 0).into(),
                other => other,
            })?;
        }
        let trace_context = context.trace_context();
        let mut jobs: Vec<NewJob> = Vec::with_capacity(payloads.len());
        for (n, payload) in payloads.into_iter().enumerate() {
            let schedule = settings.clone().with_key(key(n)).with_payload_text(payload);
            let made = Made { id: JobId::new(now, random()), source: Source::Api, by: &context.actor, at: now };
            let numbered = |problem| numbered(problem, n);
            let definition =
                schedule.definition(&made).map_err(|problems| refusal(problems.into_iter().map(numbered).collect()))?;
            context.parts.targets.now().check_payload(&target, &definition.payload, None).map_err(numbered)?;
            jobs.push(enqueue::create(definition.in_trace(trace_context.clone())));
        }
        let audit = context.many_entry(&target, &jobs, now);
        Ok((jobs, audit))
    }
}

/// Names the payload that a problem is about.
fn numbered(problem: Invalid, n: usize) -> Invalid {
    Invalid { reason: format!("{} (payload {})", problem.reason, n + 1), ..problem }
}

fn keys(jobs: &[NewJob]) -> Vec<JobKey> {
    jobs.iter().map(|job| job.definition.key.clone()).collect()
}

impl IntoFuture for EnqueueMany {
    type Output = StoreResult<Vec<JobKey>>;
    type IntoFuture = BoxFuture<'static, StoreResult<Vec<JobKey>>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.commit())
    }
}

impl Context {
    fn many_entry(&self, target: &Target, jobs: &[NewJob], now: Timestamp) -> AuditEntry {
        let key = |job: Option<&NewJob>| job.map(|job| job.definition.key.to_string());
        let after = serde_json::json!({
            "jobs": jobs.len(),
            "firstKey": key(jobs.first()),
            "lastKey": key(jobs.last()),
        });
        self.entry("job.enqueue_many", format!("target:{target}"), now, None, after.as_object())
    }
}
