//! [`Schedule`]: a job as a program declares it. Only data: nothing is checked before it becomes a definition, and then
//! every problem is reported at once.

use std::time::Duration;

use everbell_core::calendar::{CalendarNames, Roll};
use everbell_core::change::Edit;
use everbell_core::cron::{DstFold, DstGap};
use everbell_core::{
    Backoff, CatchUp, Definition, Draft, Invalid, Json, Made, OnLeaseLoss, OnLost, Overlap, Scope, Timing, TraceContext,
};
use jiff::Timestamp;
use serde::Serialize;

use crate::parent_job::{ParentJob, ParentJobs};
use crate::typed::TypedTarget;

/// A job as a program declares it: when it fires, and its target.
///
/// ```
/// use std::time::Duration;
/// use everbell::{CatchUp, Overlap, Schedule};
///
/// let briefing = Schedule::cron("daily-briefing", "0 8 * * mon-fri")
///     .target("brief")
///     .tz("Europe/Paris")
///     .payload(["ana", "bo"])
///     .overlap(Overlap::Skip)
///     .catch_up(CatchUp::Once)
///     .timeout(Duration::from_secs(60));
/// assert!(briefing.check().is_ok());
///
/// let problems = Schedule::cron("nightly", "0 25 * * *").target("brief").tz("Europe/Pari").check().unwrap_err();
/// let fields: Vec<_> = problems.iter().map(|problem| problem.field).collect();
/// assert_eq!(fields, ["cronExpression", "timezone"]);
/// ```
#[derive(Clone, Debug)]
pub struct Schedule(Draft);

/// A draft that was read from a request or a file.
impl From<Draft> for Schedule {
    fn from(draft: Draft) -> Schedule {
        Schedule(draft)
    }
}

impl Schedule {
    /// Fires at the times of a cron expression: five fields, six with seconds, or a macro such as `@daily`.
    pub fn cron(key: impl Into<String>, expression: impl Into<String>) -> Schedule {
        Schedule(Draft::new(key, Timing::Cron(expression.into())))
    }

    /// Fires at a fixed rate, in whole seconds, counted from the creation of the job or from [`Schedule::start_at`].
    pub fn every(key: impl Into<String>, interval: Duration) -> Schedule {
        Schedule(Draft::new(key, Timing::Every(interval)))
    }

    /// Fires once, and retires after that.
    pub fn once(key: impl Into<String>, at: Timestamp) -> Schedule {
        Schedule(Draft::new(key, Timing::Once(at)))
    }

    /// Starts when runs of another job end, by default when they succeed: in the same transaction, once for each. It has no
    /// clock. Its handler reads the run before it with [`Run::upstream`](crate::Run::upstream).
    pub fn after(key: impl Into<String>, job: impl Into<ParentJob>) -> Schedule {
        Schedule(Draft::new(key, job.into().into_timing()))
    }

    /// Starts when runs of several jobs have ended, by default when all of them have succeeded for the same slot: once for
    /// each slot. Its handler reads these runs with [`Run::upstreams`](crate::Run::upstreams).
    pub fn after_all(key: impl Into<String>, jobs: impl Into<ParentJobs>) -> Schedule {
        Schedule(Draft::new(key, jobs.into().into_timing()))
    }

    /// Returns the key of the job.
    pub fn key(&self) -> &str {
        &self.0.key
    }

    /// Returns the target, if one was set.
    pub fn target_name(&self) -> Option<&str> {
        self.0.target.as_deref()
    }

    /// Sets the target that the job runs.
    #[must_use]
    pub fn target(mut self, target: impl Into<String>) -> Schedule {
        self.0.target = Some(target.into());
        self
    }

    /// Sets the target and its payload. The compiler checks that they fit.
    ///
    /// ```
    /// use everbell::{Schedule, TypedTarget};
    ///
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Reminder {
    ///     user: u64,
    /// }
    ///
    /// const REMIND: TypedTarget<Reminder> = TypedTarget::new("remind");
    ///
    /// let weekly = Schedule::cron("weekly", "0 9 * * mon").to(&REMIND, Reminder { user: 7 });
    /// assert_eq!(weekly.target_name(), Some("remind"));
    /// ```
    #[must_use]
    pub fn to<P: Serialize>(self, target: &TypedTarget<P>, payload: P) -> Schedule {
        self.target(target.name()).payload(payload)
    }

    /// Sets the IANA time zone of the expression: default `UTC`.
    #[must_use]
    pub fn tz(mut self, zone: impl Into<String>) -> Schedule {
        self.0.timezone = Some(zone.into());
        self
    }

    /// Fires for each org, at its own local time: see [`Orgs`](crate::client::Orgs).
    #[must_use]
    pub fn per_org(self) -> Schedule {
        self.scope(Scope::PerOrg)
    }

    /// Sets whether it fires once for all, or for each org: default [`Scope::Global`].
    #[must_use]
    pub fn scope(mut self, scope: Scope) -> Schedule {
        self.0.scope = scope;
        self
    }

    /// Sets the payload that the handler receives: default `{}`.
    #[must_use]
    pub fn payload(mut self, payload: impl Serialize) -> Schedule {
        self.0.payload = Some(crate::storable::text(&payload));
        self
    }

    /// Sets how a slot is treated while earlier runs are still active: default [`Overlap::Skip`].
    #[must_use]
    pub fn overlap(mut self, overlap: Overlap) -> Schedule {
        self.0.policies.overlap = overlap;
        self
    }

    /// Sets how many runs may be active before `overlap` applies: default 1.
    #[must_use]
    pub fn max_concurrent_runs(mut self, runs: u32) -> Schedule {
        self.0.policies.max_concurrent_runs = runs;
        self
    }

    /// Sets how slots are treated that were missed because no scheduler was running: default [`CatchUp::Once`].
    #[must_use]
    pub fn catch_up(mut self, catch_up: CatchUp) -> Schedule {
        self.0.policies.catch_up = catch_up;
        self
    }

    /// Sets the most missed slots that [`CatchUp::All`] runs: default 100.
    #[must_use]
    pub fn catch_up_limit(mut self, runs: u32) -> Schedule {
        self.0.policies.catch_up_limit = runs;
        self
    }

    /// Sets the age from which missed slots are not caught up: default without bound.
    #[must_use]
    pub fn catch_up_window(mut self, window: Duration) -> Schedule {
        self.0.policies.catch_up_window = Some(window);
        self
    }

    /// Sets how late a slot may be and still be on time: default 60 s.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Schedule {
        self.0.policies.grace = grace;
        self
    }

    /// Sets how long a run may take before it is stopped: default 15 min.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Schedule {
        self.0.policies.timeout = timeout;
        self
    }

    /// Delays each slot by a share of this, always the same for the same slot: default none.
    #[must_use]
    pub fn jitter(mut self, jitter: Duration) -> Schedule {
        self.0.policies.jitter = jitter;
        self
    }

    /// Sets the number of attempts, and the waits between them: default one attempt.
    ///
    /// Attempts that fail, panic or take too long are retried. By default a run that was lost in a crash is not
    /// retried, whatever this number: everbell cannot know how far it came. [`Schedule::on_lost`] changes that.
    #[must_use]
    pub fn retry(mut self, max_attempts: u32, backoff: Backoff) -> Schedule {
        self.0.policies.max_attempts = max_attempts;
        self.0.policies.backoff = backoff;
        self
    }

    /// Sets what happens to a run whose instance was lost, because it crashed, was killed or could not reach the
    /// database: default [`OnLost::Fail`].
    ///
    /// By default a run that was lost in a crash is not retried: everbell cannot know how far it came. With
    /// [`OnLost::Retry`] it is retried within the attempts of [`Schedule::retry`], of which there must be at least two,
    /// with the same [`Run::idempotency_key`](crate::Run::idempotency_key) and a higher
    /// [`Run::fence`](crate::Run::fence). A run that a shutdown stops is then taken over at once by another instance,
    /// or by this one after its restart, and that stop uses up no attempt. Choose it for handlers that may run twice.
    ///
    /// ```
    /// use everbell::{Backoff, OnLost, Schedule};
    ///
    /// let report = Schedule::cron("report", "0 8 * * *").target("report");
    /// assert!(report.clone().retry(3, Backoff::default()).on_lost(OnLost::Retry).check().is_ok());
    /// let problem = report.on_lost(OnLost::Retry).check().unwrap_err();
    /// assert_eq!(problem[0].field, "policies.onLost", "there is no second attempt");
    /// ```
    ///
    /// [`Schedule::on_lease_loss`] is about something else: what a live instance does with its own handler when it
    /// cannot renew the lease. The guide [`crashes`](crate::guides::crashes) has the whole story.
    #[must_use]
    pub fn on_lost(mut self, choice: OnLost) -> Schedule {
        self.0.policies.on_lost = choice;
        self
    }

    /// Sets how a handler is treated whose instance cannot renew its lease: default [`OnLeaseLoss::Stop`] where
    /// `overlap` forbids two runs at once, else [`OnLeaseLoss::Continue`].
    ///
    /// The instance is alive and can stop its handler. A run whose instance is gone is the business of
    /// [`Schedule::on_lost`].
    #[must_use]
    pub fn on_lease_loss(mut self, choice: OnLeaseLoss) -> Schedule {
        self.0.policies.on_lease_loss = Some(choice);
        self
    }

    /// Sets the priority, from -100 to 100: default 0. Waiting runs of a higher priority start first, and equal ones in the order
    /// of their time. A run at work is never stopped for another one.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Schedule {
        self.0.policies.priority = priority;
        self
    }

    /// Pauses the job after this many consecutive failures: default never.
    #[must_use]
    pub fn pause_after_failures(mut self, failures: u32) -> Schedule {
        self.0.policies.pause_after_failures = Some(failures);
        self
    }

    /// Fires only if that job succeeded within this time; otherwise the slot is skipped.
    #[must_use]
    pub fn depends_on(mut self, key: impl Into<String>, within: Duration) -> Schedule {
        self.0.depends_on = Some((key.into(), within));
        self
    }

    /// Does not fire on days of this calendar. Several may be named; they win over [`Schedule::only`]. The calendar has to
    /// exist: see [`Everbell::calendars`](crate::Everbell::calendars).
    #[must_use]
    pub fn exclude(mut self, calendar: impl Into<String>) -> Schedule {
        self.calendar_names().exclude.push(calendar.into());
        self
    }

    /// Fires only on days of this calendar, or of another one that is named so.
    #[must_use]
    pub fn only(mut self, calendar: impl Into<String>) -> Schedule {
        self.calendar_names().only.push(calendar.into());
        self
    }

    /// Sets how slots on days that its calendars exclude are treated: default [`Roll::Skip`]. Slots of the schedule move only
    /// if it has at most 24 fixed times of day.
    #[must_use]
    pub fn roll(mut self, roll: Roll) -> Schedule {
        self.calendar_names().roll = roll;
        self
    }

    fn calendar_names(&mut self) -> &mut CalendarNames {
        self.0.calendars.get_or_insert_with(|| CalendarNames::from(&self.0.policies.calendars))
    }

    /// Sets how local times are treated that do not exist when clocks go forward: default [`DstGap::Shift`].
    #[must_use]
    pub fn dst_gap(mut self, gap: DstGap) -> Schedule {
        self.0.dst.gap = gap;
        self
    }

    /// Sets how local times are treated that exist twice when clocks go back: default [`DstFold::First`].
    #[must_use]
    pub fn dst_fold(mut self, fold: DstFold) -> Schedule {
        self.0.dst.fold = fold;
        self
    }

    /// Sets the time before which there is no slot.
    #[must_use]
    pub fn start_at(mut self, at: Timestamp) -> Schedule {
        self.0.start_at = Some(at);
        self
    }

    /// Sets the time after which there is no slot.
    #[must_use]
    pub fn end_at(mut self, at: Timestamp) -> Schedule {
        self.0.end_at = Some(at);
        self
    }

    /// Sets the description, for people.
    #[must_use]
    pub fn description(mut self, text: impl Into<String>) -> Schedule {
        self.0.description = text.into();
        self
    }

    /// Adds a label, for filters.
    #[must_use]
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Schedule {
        self.0.labels.insert(name.into(), value.into());
        self
    }

    /// Sets the trace that the run of a one-time job continues: default the current one of
    /// [`Builder::tracing`](crate::Builder::tracing), if the job is created by a call and not declared. A recurring job is
    /// refused: its slots follow from the clock, and a trace of long ago would say nothing about them.
    #[must_use]
    pub fn trace_context(mut self, context: TraceContext) -> Schedule {
        self.0.trace_context = Some(context);
        self
    }

    /// The keys of the jobs that it starts after.
    pub(crate) fn parents(&self) -> Vec<&str> {
        match &self.0.timing {
            Timing::After { job, .. } => vec![job],
            Timing::AfterAll { parents, .. } => parents.iter().map(|parent| parent.job.as_str()).collect(),
            Timing::Cron(_) | Timing::Every(_) | Timing::Once(_) => Vec::new(),
        }
    }

    pub(crate) fn with_key(self, key: String) -> Schedule {
        Schedule(Draft { key, ..self.0 })
    }

    pub(crate) fn with_cron(self, expression: String) -> Schedule {
        Schedule(Draft { timing: Timing::Cron(expression), ..self.0 })
    }

    pub(crate) fn with_interval(self, interval: Duration) -> Schedule {
        Schedule(Draft { timing: Timing::Every(interval), ..self.0 })
    }

    pub(crate) fn with_time(self, at: Timestamp) -> Schedule {
        Schedule(Draft { timing: Timing::Once(at), ..self.0 })
    }

    pub(crate) fn with_payload_text(self, text: Result<String, String>) -> Schedule {
        Schedule(Draft { payload: Some(text), ..self.0 })
    }

    /// Returns the edit that turns this definition into this schedule, which was made from it.
    pub(crate) fn edit_of(&self, definition: &Definition, now: Timestamp) -> Result<Edit, Vec<Invalid>> {
        self.0.edit_of(definition, now)
    }

    /// Returns the payload, unless it cannot be stored, which [`Schedule::check`] reports.
    pub(crate) fn payload_json(&self) -> Option<Json> {
        match &self.0.payload {
            None => Some(Json::empty()),
            Some(text) => Json::parse("payload", text.as_ref().ok()?).ok(),
        }
    }

    /// Checks every part, and returns every problem with the field as the API spells it.
    pub fn check(&self) -> Result<(), Vec<Invalid>> {
        self.0.check()
    }

    /// Returns the first version of the job.
    pub fn definition(&self, made: &Made<'_>) -> Result<Definition, Vec<Invalid>> {
        self.0.definition(made)
    }

    /// Returns all of this schedule as an edit of an existing job. A fixed rate counts from `now`.
    pub fn edit(&self, now: Timestamp) -> Result<Edit, Vec<Invalid>> {
        self.0.edit(now)
    }
}
