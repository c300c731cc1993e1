//! The calendars that a program declares. They are written before the jobs, which name them.
//!
//! | declared | in the database | what happens |
//! |---|---|---|
//! | yes | nothing | created |
//! | yes | the same days | untouched |
//! | yes | other days | replaced: a declared calendar belongs to its declaration |
//! | yes, by a release that was replaced | other days | untouched while the newer release is running |
//! | not any more | there | kept, and may be edited from now on |

use std::fmt;
use std::sync::Arc;

use everbell_core::calendar::{CalendarContent, CalendarName};
use everbell_core::store::{NewCalendar, StoreResult, StoredCalendar};
use everbell_core::{ReleaseStatus, Source};
use jiff::Timestamp;
use tracing::warn;

use super::{Declared, Syncer};
use crate::build_error::BuildError;
use crate::client::{Calendars, Context};
use crate::parts::{DeclaredCalendars, Parts};

/// The action of a sync for one calendar.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CalendarStep {
    /// The name of the calendar.
    pub name: String,
    /// The action.
    pub action: CalendarAction,
}

/// An action of a sync for a calendar.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CalendarAction {
    /// Creates it.
    Create,
    /// Replaces its days. Each job that names it follows as its next version.
    Replace {
        /// The version that is replaced.
        from: u32,
        /// The actor whose edit through the API it replaces.
        replaces_edit_by: Option<String>,
    },
    /// Changes nothing: it has the declared days.
    Unchanged {
        /// The version.
        version: u32,
    },
    /// Changes nothing, because another release replaced this one and is running.
    Held {
        /// When the other release took over.
        since: Timestamp,
    },
}

impl CalendarAction {
    /// Whether it writes something.
    pub fn is_change(&self) -> bool {
        matches!(self, CalendarAction::Create | CalendarAction::Replace { .. })
    }
}

impl fmt::Display for CalendarStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match &self.action {
            CalendarAction::Create => write!(f, "+ create       calendar {name} v1"),
            CalendarAction::Replace { from, replaces_edit_by } => {
                write!(f, "~ new version  calendar {name} v{from} -> v{}", from + 1)?;
                replaces_edit_by.iter().try_for_each(|by| write!(f, ", replaces the edit by {by}"))
            }
            CalendarAction::Unchanged { version } => write!(f, "= unchanged    calendar {name} v{version}"),
            CalendarAction::Held { since } => {
                write!(f, "! held         calendar {name}, a newer release is running since {since}")
            }
        }
    }
}

impl Syncer {
    /// With the calendars that the program declares.
    pub(crate) fn with_calendars(mut self, calendars: Vec<NewCalendar>) -> Syncer {
        self.calendars = calendars;
        self
    }

    /// The calendars that the program declares.
    pub(crate) fn declared_calendars(&self) -> DeclaredCalendars {
        let names = self.calendars.iter().map(|declared| declared.name.clone()).collect();
        DeclaredCalendars { source: self.source, names }
    }

    /// Whether the program declares this calendar.
    fn declares_calendar(&self, name: &CalendarName) -> bool {
        self.calendars.iter().any(|declared| declared.name == *name)
    }

    /// Refuses schedules that name a calendar that is neither declared nor in the database.
    pub(super) async fn expect_calendars(&self, parts: &Parts, declared: &[&Declared]) -> Result<(), BuildError> {
        let named = |job: &&&Declared| job.policies.calendars.all().any(|own| !self.declares_calendar(own.name()));
        let naming: Vec<_> = declared.iter().filter(named).collect();
        if naming.is_empty() {
            return Ok(());
        }
        let stored = parts.store.calendars().await?;
        let is_known = |name: &CalendarName| {
            self.declares_calendar(name) || stored.iter().any(|stored| stored.calendar.name() == name)
        };
        let problems: Vec<String> = naming
            .iter()
            .flat_map(|job| {
                let unknown = job.policies.calendars.all().filter(|own| !is_known(own.name()));
                unknown.map(|own| format!("schedule `{}` names unknown calendar `{}`", job.key, own.name()))
            })
            .collect();
        if problems.is_empty() { Ok(()) } else { Err(BuildError::Invalid(problems)) }
    }

    /// The declared calendars as text, for the identity of a release.
    pub(super) fn calendar_texts(&self) -> Vec<String> {
        self.calendars.iter().flat_map(|declared| texts(&declared.name, &declared.content)).collect()
    }

    /// Returns what is to be done with the calendars, without doing it.
    pub(super) async fn plan_calendars(&self, parts: &Parts, status: ReleaseStatus) -> StoreResult<Vec<CalendarStep>> {
        if self.calendars.is_empty() {
            return Ok(Vec::new());
        }
        let existing = parts.store.calendars().await?;
        let step = |declared: &NewCalendar| {
            let found = existing.iter().find(|stored| *stored.calendar.name() == declared.name);
            CalendarStep { name: declared.name.to_string(), action: decide(declared, found, status) }
        };
        Ok(self.calendars.iter().map(step).collect())
    }

    /// Writes the calendars, and brings the jobs that name them up to date.
    pub(super) async fn apply_calendars(
        &self,
        parts: &Arc<Parts>,
        status: ReleaseStatus,
    ) -> StoreResult<Vec<CalendarStep>> {
        let steps = self.plan_calendars(parts, status).await?;
        let calendars = Calendars::new(Context::new(parts)).by(&self.actor());
        let changing = steps.iter().zip(&self.calendars).filter(|(step, _)| step.action.is_change());
        for (_, declared) in changing {
            let written = calendars.write(declared, None).await?;
            for (job, reason) in &written.failed {
                warn!(%job, calendar = %declared.name, reason, "the job could not follow its calendar yet");
            }
        }
        Ok(steps)
    }
}

/// Decides about one declared calendar.
fn decide(declared: &NewCalendar, found: Option<&StoredCalendar>, status: ReleaseStatus) -> CalendarAction {
    match (found, status) {
        (Some(found), _) if *found.calendar.content() == declared.content => {
            CalendarAction::Unchanged { version: found.calendar.version() }
        }
        (_, ReleaseStatus::Outdated { since }) => CalendarAction::Held { since },
        (None, ReleaseStatus::Current) => CalendarAction::Create,
        (Some(found), ReleaseStatus::Current) => CalendarAction::Replace {
            from: found.calendar.version(),
            replaces_edit_by: (found.source == Source::Api).then(|| found.updated_by.clone()),
        },
    }
}

fn texts(name: &CalendarName, content: &CalendarContent) -> Vec<String> {
    let zone = content.timezone.as_ref().map_or("", |zone| zone.name());
    let mut texts = vec![name.to_string(), zone.to_owned(), content.weekly.words().join(",")];
    texts.extend(content.entries.iter().map(ToString::to_string));
    texts
}
