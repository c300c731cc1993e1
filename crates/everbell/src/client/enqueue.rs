//! One-time jobs as a queue: [`Jobs::enqueue`].

use std::future::IntoFuture;
use std::time::Duration;

use everbell_core::change::{JobView, NewJob};
use everbell_core::enqueue::{self, Decision, IfUnfinished};
use everbell_core::store::{AuditEntry, JobRef, JobRow, Replacement, StoreError, StoreResult};
use everbell_core::{Backoff, Definition, Invalid, JobId, JobKey, Made, OnLost, Overlap, Source, Target, TraceContext};
use jiff::Timestamp;
use serde::Serialize;
use tracing::warn;

use super::in_transaction::Reader;
use super::jobs::Jobs;
use super::served::TargetStatus;
use super::trail::before_and_after;
use super::{Context, MAX_ATTEMPTS, facts, is_in_doubt, refusal};
use crate::clock::BoxFuture;
use crate::engine::random;
use crate::schedule::Schedule;
use crate::typed::TypedTarget;

/// The target of an enqueued job: a text, which takes any payload, or a [`TypedTarget`], which takes its own.
pub trait EnqueueTarget<P: ?Sized> {
    /// Returns the name.
    fn into_label(self) -> String;
}

impl<P: ?Sized> EnqueueTarget<P> for &str {
    fn into_label(self) -> String {
        self.to_owned()
    }
}

impl<P: ?Sized> EnqueueTarget<P> for String {
    fn into_label(self) -> String {
        self
    }
}

impl<P: ?Sized> EnqueueTarget<P> for &String {
    fn into_label(self) -> String {
        self.clone()
    }
}

impl<P> EnqueueTarget<P> for TypedTarget<P> {
    fn into_label(self) -> String {
        self.name().to_owned()
    }
}

impl<P> EnqueueTarget<P> for &TypedTarget<P> {
    fn into_label(self) -> String {
        self.name().to_owned()
    }
}

impl Jobs {
    /// Runs a target once, at once or at a time ([`Enqueue::at`]): creates a one-time job. An instance of this process
    /// starts it within milliseconds if it has room.
    ///
    /// The job has a generated key, or the one of [`Enqueue::key`], of which there is at most one unfinished job. When it
    /// has finished, it is deleted together with its history
    /// ([`EngineOptions::retention`](crate::EngineOptions::retention)). The guide [`queue`](crate::guides::queue) has
    /// more.
    ///
    /// ```
    /// # use everbell::{Everbell, Payload, TypedTarget};
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Reminder {
    ///     user: u64,
    /// }
    ///
    /// const REMIND: TypedTarget<Reminder> = TypedTarget::new("remind");
    /// # async fn remind(Payload(_): Payload<Reminder>) {}
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let bell = Everbell::builder().database("sqlite::memory:").target(REMIND, remind).build().await?;
    ///
    /// let jobs = bell.jobs();
    /// let now = jobs.enqueue(REMIND, &Reminder { user: 7 }).await?;
    /// assert!(now.key().as_str().starts_with("remind-"));
    ///
    /// let tomorrow = bell.now() + std::time::Duration::from_secs(86_400);
    /// let later = jobs.enqueue("remind", &Reminder { user: 7 }).at(tomorrow).key("reminder-7").await?;
    /// let again = jobs.enqueue("remind", &Reminder { user: 8 }).key("reminder-7").keep().await?;
    /// assert!(!again.is_new() && again.job.job.definition.id == later.job.job.definition.id);
    /// # Ok(())
    /// # }
    /// ```
    pub fn enqueue<P: Serialize + ?Sized>(&self, target: impl EnqueueTarget<P>, payload: &P) -> Enqueue {
        Enqueue::new(&self.context, settings(target.into_label()).payload(payload))
    }
}

/// A job that fires once, and waits for the one that it replaces, if that is still at work.
pub(super) fn settings(target: String) -> Schedule {
    Schedule::once(String::new(), Timestamp::UNIX_EPOCH).target(target).overlap(Overlap::Queue)
}

/// A job to be enqueued when this is awaited. See [`Jobs::enqueue`].
#[derive(Clone, Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct Enqueue {
    pub(super) context: Context,
    settings: Schedule,
    at: Option<Timestamp>,
    key: Option<String>,
    pub(super) if_unfinished: IfUnfinished,
}

macro_rules! common_settings {
    ($name:ident) => {
        impl $name {
            /// Starts not before this time. One that has gone by is now.
            pub fn at(self, time: Timestamp) -> $name {
                $name { at: Some(time), ..self }
            }

            /// Sets the number of attempts, and the waits between them: default one attempt. See
            /// [`Schedule::retry`].
            pub fn retry(self, max_attempts: u32, backoff: Backoff) -> $name {
                $name { settings: self.settings.retry(max_attempts, backoff), ..self }
            }

            /// Sets how long a run may take before it is stopped: default 15 min.
            pub fn timeout(self, timeout: Duration) -> $name {
                $name { settings: self.settings.timeout(timeout), ..self }
            }

            /// Sets what happens to a run whose instance was lost: default [`OnLost::Fail`]. See
            /// [`Schedule::on_lost`].
            pub fn on_lost(self, choice: OnLost) -> $name {
                $name { settings: self.settings.on_lost(choice), ..self }
            }

            /// Sets the priority, from -100 to 100: default 0. See [`Schedule::priority`].
            pub fn priority(self, priority: i32) -> $name {
                $name { settings: self.settings.priority(priority), ..self }
            }

            /// Sets the trace that the run continues, or none: default the current one of
            /// [`Builder::tracing`](crate::Builder::tracing).
            pub fn trace_context(self, context: impl Into<Option<TraceContext>>) -> $name {
                $name { context: self.context.in_trace(context.into()), ..self }
            }

            /// Adds a label, for filters.
            pub fn label(self, name: impl Into<String>, value: impl Into<String>) -> $name {
                $name { settings: self.settings.label(name, value), ..self }
            }
        }
    };
}
common_settings!(Enqueue);
pub(super) use common_settings;

/// An enqueued job.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Enqueued {
    /// The job.
    pub job: JobRow,
    /// How it came about.
    pub outcome: EnqueueOutcome,
}

/// How an enqueued job came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EnqueueOutcome {
    /// It was created.
    Created,
    /// An unfinished job of its key was there and stays as it is.
    Kept,
    /// It replaced an unfinished job of its key.
    Replaced,
}

impl Enqueued {
    /// Returns the key of the job.
    pub fn key(&self) -> &JobKey {
        &self.job.job.definition.key
    }

    /// Returns whether the payload, time and settings of the request are those of the job.
    pub fn is_new(&self) -> bool {
        self.outcome != EnqueueOutcome::Kept
    }
}

impl Enqueue {
    pub(super) fn new(context: &Context, settings: Schedule) -> Enqueue {
        let if_unfinished = IfUnfinished::default();
        Enqueue { context: context.clone(), settings, at: None, key: None, if_unfinished }
    }

    /// Sets the key. An unfinished job of that key is a conflict, unless it is to be [kept](Enqueue::keep) or
    /// [replaced](Enqueue::replace); a finished one gives way. It has 1 to 200 bytes of visible characters, without white space
    /// around them, and does not end in `@` and digits.
    pub fn key(self, key: impl Into<String>) -> Enqueue {
        Enqueue { key: Some(key.into()), ..self }
    }

    /// Leaves an unfinished job of the same key as it is, and returns that.
    pub fn keep(self) -> Enqueue {
        Enqueue { if_unfinished: IfUnfinished::Keep, ..self }
    }

    /// Replaces payload, time and settings of an unfinished job of the same key. If its run is at work already, that goes
    /// on, and this one starts after it.
    pub fn replace(self) -> Enqueue {
        Enqueue { if_unfinished: IfUnfinished::Replace, ..self }
    }

    async fn commit(self) -> StoreResult<Enqueued> {
        if let Some(deed) = self.context.done_before().await? {
            let (id, outcome) = match (deed.successor, deed.job) {
                (Some(successor), _) => (successor, EnqueueOutcome::Replaced),
                (None, Some(job)) => (job, EnqueueOutcome::Created),
                (None, None) => return Err(StoreError::not_found("job", deed.entry)),
            };
            let job = self.context.parts.store.get_job(&JobRef::Id(id)).await?;
            return Ok(Enqueued { job, outcome });
        }
        for _ in 1..MAX_ATTEMPTS {
            match self.attempt().await {
                Err(Attempt::Raced(_)) => {}
                Err(Attempt::Refused(error)) => return Err(error),
                Ok(enqueued) => return Ok(enqueued),
            }
        }
        self.attempt().await.map_err(|(Attempt::Raced(error) | Attempt::Refused(error))| error)
    }

    /// Reads the job of the key, decides, and commits against what was read.
    async fn attempt(&self) -> Result<Enqueued, Attempt> {
        let store = &self.context.parts.store;
        let (now, key) = (self.context.now(), self.job_key()?);
        let known = match store.get_job(&JobRef::Key(key.clone())).await {
            Ok(row) => Some(row),
            Err(StoreError::NotFound { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let job = known.as_ref().map(|row| &row.job);
        match (enqueue::decide(job, self.if_unfinished)?, known.as_ref()) {
            (Decision::Keep, Some(row)) => Ok(Enqueued { job: row.clone(), outcome: EnqueueOutcome::Kept }),
            (Decision::Replace, Some(row)) => self.replace_job(row, &key, now).await,
            (_, known) => {
                let (new, audit) = self.new_job(known, &key, now, &mut Reader::Store(&**store)).await?;
                match store.create_job(&new, &audit).await {
                    Ok(job) => Ok(Enqueued { job, outcome: EnqueueOutcome::Created }),
                    Err(error) if is_in_doubt(&error) => {
                        let job = store.get_job(&JobRef::Id(new.definition.id)).await;
                        let job = job.map_err(|_| Attempt::Refused(error))?;
                        Ok(Enqueued { job, outcome: EnqueueOutcome::Created })
                    }
                    Err(error) => Err(Attempt::raced(error)),
                }
            }
        }
    }

    /// Returns the rows that create the job, after the one of its key that has finished.
    pub(super) async fn new_job(
        &self,
        known: Option<&JobRow>,
        key: &JobKey,
        now: Timestamp,
        reader: &mut Reader<'_>,
    ) -> StoreResult<(NewJob, AuditEntry)> {
        let definition = self.definition(key, now, reader).await?;
        let new = enqueue::create_after(known.map(|row| &row.job), definition);
        let after = facts(&new.definition, &new.state, new.next_run_at());
        let audit = self.context.entry("job.enqueue", format!("job:{key}"), now, None, Some(&after));
        Ok((new, audit))
    }

    /// Returns what takes the place of an unfinished job, and the audit entry about that.
    pub(super) async fn replacement(
        &self,
        row: &JobRow,
        key: &JobKey,
        now: Timestamp,
        reader: &mut Reader<'_>,
    ) -> StoreResult<(Replacement, AuditEntry)> {
        let definition = self.definition(key, now, reader).await?;
        let decide = |view: &JobView| enqueue::replace(view, definition.clone(), &self.context.actor, now);
        let (before, after) = before_and_after(row, &decide)?;
        let audit = self.context.entry("job.replace", format!("job:{key}"), now, Some(&before), Some(&after));
        Ok((Replacement { job: row.job.definition.id, revision: row.job.state.revision, definition }, audit))
    }

    async fn replace_job(&self, row: &JobRow, key: &JobKey, now: Timestamp) -> Result<Enqueued, Attempt> {
        let Context { parts, actor, .. } = &self.context;
        let (new, audit) = self.replacement(row, key, now, &mut Reader::Store(&*parts.store)).await?;
        let decide = |view: &JobView| enqueue::replace(view, new.definition.clone(), actor, now);
        match parts.store.change_job(&JobRef::Id(new.job), Some(new.revision), &decide, &audit).await {
            Ok(changed) => {
                parts.events.publish_change(&changed);
                let job = changed.successor.unwrap_or(changed.job);
                Ok(Enqueued { job, outcome: EnqueueOutcome::Replaced })
            }
            Err(error) if is_in_doubt(&error) => {
                let job = parts.store.get_job(&JobRef::Id(new.definition.id)).await;
                Ok(Enqueued { job: job.map_err(|_| Attempt::Refused(error))?, outcome: EnqueueOutcome::Replaced })
            }
            Err(error) => Err(Attempt::raced(error)),
        }
    }

    pub(super) fn job_key(&self) -> Result<JobKey, Invalid> {
        if let Some(key) = &self.key {
            return enqueue::new_key(key);
        }
        let target = Target::new(self.settings.target_name().unwrap_or_default())?;
        JobKey::new(&enqueue::generated_key(&target, self.context.now(), number()))
    }

    pub(super) async fn definition(
        &self,
        key: &JobKey,
        now: Timestamp,
        reader: &mut Reader<'_>,
    ) -> StoreResult<Definition> {
        let schedule = self.settings.clone().with_key(key.to_string()).with_time(enqueue::slot(self.at, now));
        self.context.new_definition(&schedule, self.key.as_ref().map(|_| key), now, reader).await
    }
}

/// Why a job was not enqueued.
enum Attempt {
    /// The job of the key changed meanwhile, so it is looked at again.
    Raced(StoreError),
    /// It will not be.
    Refused(StoreError),
}

impl Attempt {
    fn raced(error: StoreError) -> Attempt {
        if error.is_conflict() { Attempt::Raced(error) } else { Attempt::Refused(error) }
    }
}

impl<E: Into<StoreError>> From<E> for Attempt {
    fn from(error: E) -> Attempt {
        Attempt::Refused(error.into())
    }
}

impl IntoFuture for Enqueue {
    type Output = StoreResult<Enqueued>;
    type IntoFuture = BoxFuture<'static, StoreResult<Enqueued>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.commit())
    }
}

impl Context {
    /// Returns the definition of a new job, with every check that needs the database. `named` is its key, if the caller chose
    /// that.
    pub(super) async fn new_definition(
        &self,
        schedule: &Schedule,
        named: Option<&JobKey>,
        now: Timestamp,
        reader: &mut Reader<'_>,
    ) -> StoreResult<Definition> {
        let made = Made { id: JobId::new(now, random()), source: Source::Api, by: &self.actor, at: now };
        let definition = schedule.definition(&made).map_err(refusal)?.in_trace(self.trace_context());
        let (job, target_label) = (&definition.key, &definition.target);
        if self.expect_known(target_label, reader).await? == TargetStatus::Unserved {
            warn!(%job, %target_label, "no live instance serves the target of this job; it does not start until one does");
        }
        self.parts.targets.now().check_payload(target_label, &definition.payload, named.map(JobKey::as_str))?;
        Ok(definition)
    }
}

/// A number that distinguishes keys of the same millisecond.
pub(super) fn number() -> u64 {
    random().iter().take(5).fold(0, |number, byte| (number << 8) | u64::from(*byte))
}
