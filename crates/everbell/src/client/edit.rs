//! Edits that name only what changes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use everbell_core::calendar::Calendar;
use everbell_core::change::{self, Edit, JobChange, JobView};
use everbell_core::{Draft, Invalid, JobId, Target};
use jiff::Timestamp;
use serde::Serialize;

use super::changes::{Change, Decide, Verb};
use super::jobs::Jobs;
use super::joined;
use super::names::IntoJobRef;
use crate::engine::random;
use crate::schedule::Schedule;
use crate::typed::TypedTarget;

impl Jobs {
    /// Replaces the job by its next version, which differs only in what is named. Its slots start now.
    ///
    /// ```
    /// # use everbell::{Everbell, Schedule};
    /// # async fn nothing() {}
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let bell = Everbell::builder().database("sqlite::memory:").target("nothing", nothing).build().await?;
    /// # bell.jobs().create(Schedule::cron("tick", "@daily").target("nothing")).await?;
    /// let changed = bell.jobs().by("ana").edit("tick").cron("0 9 * * mon").tz("Europe/Paris").payload([7]).await?;
    /// assert_eq!(changed.version(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn edit(&self, job: impl IntoJobRef) -> Change<Revising> {
        let id = JobId::new(self.context.now(), random());
        let verb = Revising { steps: Vec::new(), target: None, id, activate: false, calendars: Vec::new() };
        Change::new(self.clone(), job, verb)
    }
}

type Revision = Arc<dyn Fn(Schedule) -> Schedule + Send + Sync>;

/// See [`Jobs::edit`].
#[derive(Clone)]
pub struct Revising {
    steps: Vec<Revision>,
    /// The new target, if its label is possible.
    target: Option<Target>,
    id: JobId,
    activate: bool,
    calendars: Vec<Arc<Calendar>>,
}

impl fmt::Debug for Revising {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Revising").field("steps", &self.steps.len()).finish_non_exhaustive()
    }
}

impl Verb for Revising {}

impl Decide for Revising {
    const ACTION: &'static str = "job.new_version";

    fn decide(&self, view: &JobView, by: &str, now: Timestamp) -> Result<JobChange, Invalid> {
        let definition = &view.job.definition;
        let schedule = Schedule::from(Draft::from_definition(definition));
        let revised = self.steps.iter().fold(schedule, |schedule, step| step(schedule));
        let edit = revised.edit_of(definition, now).map_err(joined)?;
        let edit = Edit { calendars: self.calendars.clone(), ..edit };
        change::new_version(view, edit, self.id, self.activate, by, now)
    }

    fn target(&self) -> Option<&Target> {
        self.target.as_ref()
    }

    const MAKES_VERSION: bool = true;

    fn take_calendars(&mut self, calendars: Vec<Arc<Calendar>>) {
        self.calendars = calendars;
    }
}

impl Change<Revising> {
    /// Sets the cron expression: five fields, six with seconds, or a macro such as `@daily`.
    pub fn cron(self, expression: impl Into<String>) -> Change<Revising> {
        let expression = expression.into();
        self.with(move |schedule| schedule.with_cron(expression.clone()))
    }

    /// Fires at a fixed rate instead, counted from now or from the job's start.
    pub fn every(self, interval: Duration) -> Change<Revising> {
        self.with(move |schedule| schedule.with_interval(interval))
    }

    /// Fires once instead, at this time.
    pub fn once(self, at: Timestamp) -> Change<Revising> {
        self.with(move |schedule| schedule.with_time(at))
    }

    /// Sets the IANA time zone.
    pub fn tz(self, zone: impl Into<String>) -> Change<Revising> {
        let zone = zone.into();
        self.with(move |schedule| schedule.tz(zone.clone()))
    }

    /// Sets the target.
    pub fn target(mut self, target: impl Into<String>) -> Change<Revising> {
        let target = target.into();
        self.verb.target = Target::new(&target).ok();
        self.with(move |schedule| schedule.target(target.clone()))
    }

    /// Sets the payload.
    pub fn payload(self, payload: impl Serialize) -> Change<Revising> {
        let text = crate::storable::text(&payload);
        self.with(move |schedule| schedule.with_payload_text(text.clone()))
    }

    /// Sets the target and its payload. The compiler checks that they fit.
    pub fn to<P: Serialize>(self, target: &TypedTarget<P>, payload: P) -> Change<Revising> {
        self.target(target.name()).payload(payload)
    }

    /// Sets the description.
    pub fn description(self, text: impl Into<String>) -> Change<Revising> {
        let text = text.into();
        self.with(move |schedule| schedule.description(text.clone()))
    }

    /// Adds a label, or sets its value.
    pub fn label(self, name: impl Into<String>, value: impl Into<String>) -> Change<Revising> {
        let (name, value) = (name.into(), value.into());
        self.with(move |schedule| schedule.label(name.clone(), value.clone()))
    }

    /// Changes anything else, such as policies: `.with(|schedule| schedule.timeout(Duration::from_secs(60)))`. The function
    /// gets the job as it is, and may be called more than once. To set the target, use [`Change::target`], which checks
    /// that it is known.
    pub fn with(mut self, revise: impl Fn(Schedule) -> Schedule + Send + Sync + 'static) -> Change<Revising> {
        self.verb.steps.push(Arc::new(revise));
        self
    }

    /// Makes the new version active, even if the job is paused.
    pub fn activate(mut self) -> Change<Revising> {
        self.verb.activate = true;
        self
    }
}
