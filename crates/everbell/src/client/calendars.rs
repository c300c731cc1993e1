//! [`Calendars`]: named sets of days, and the jobs that follow them.

use std::collections::BTreeSet;
use std::sync::Arc;

use everbell_core::calendar::{Calendar, CalendarContent, CalendarName};
use everbell_core::change::{self, JobView};
use everbell_core::store::{JobRef, NewCalendar, Store, StoreError, StoreResult, StoredCalendar};
use everbell_core::{Definition, Invalid, Job, JobId, JobKey, Source, Spec};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{Context, Facts, MAX_ATTEMPTS, audit_entry, before_and_after};
use crate::engine::random;
use crate::parts::Parts;

/// How far ahead the effect of an edit is shown.
const PREVIEW_DAYS: i64 = 90;
/// The most slots of a job that are compared, and the most that are listed.
const MAX_COMPARED: usize = 10_000;
/// The most fires of all jobs that a preview compares. Further jobs are left out.
const MAX_COMPARED_IN_ALL: usize = 500_000;
const MAX_LISTED: usize = 20;

/// Actions on calendars: `bell.calendars().by("ana").put("de-holidays", content).await?`.
///
/// A job names calendars with [`Schedule::exclude`](crate::Schedule::exclude) and
/// [`Schedule::only`](crate::Schedule::only). An edit of a calendar makes the next version of each job that names it, so it
/// takes effect at once, and the past is explained by the days that were in force.
#[derive(Clone, Debug)]
pub struct Calendars {
    context: Context,
}

/// A calendar that was written, and the jobs that follow it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CalendarWritten {
    /// The calendar as it is now.
    pub calendar: StoredCalendar,
    /// The jobs that got a new version.
    pub jobs: Vec<JobKey>,
    /// The jobs that could not be brought up to date, and why. They are tried again within minutes.
    pub failed: Vec<(JobKey, String)>,
}

/// The fires of a job that an edit of a calendar adds or removes in the next 90 days.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CalendarEffect {
    /// The job. For a per-org job, the runs in the zone of the job are compared.
    pub job: Arc<Definition>,
    /// How many fires there would be more, and the first of them.
    pub added: (u64, Vec<Timestamp>),
    /// How many fires there would be less, and the first of them.
    pub removed: (u64, Vec<Timestamp>),
}

impl Calendars {
    pub(crate) fn new(context: Context) -> Calendars {
        Calendars { context }
    }

    /// Acts in the name of this actor: default `code`.
    #[must_use]
    pub fn by(self, actor: &str) -> Calendars {
        Calendars { context: self.context.by(actor) }
    }

    /// Sets the origin of the request, for the audit trail.
    #[must_use]
    pub fn with_origin(self, origin: everbell_core::store::Origin) -> Calendars {
        Calendars { context: self.context.with_origin(origin) }
    }

    /// Sets the reason, for the audit trail.
    #[must_use]
    pub fn because(self, reason: &str) -> Calendars {
        Calendars { context: self.context.because(reason) }
    }

    /// Lists every calendar, by name.
    pub async fn list(&self) -> StoreResult<Vec<StoredCalendar>> {
        self.context.parts.store.calendars().await
    }

    /// Returns a calendar.
    pub async fn get(&self, name: &str) -> StoreResult<StoredCalendar> {
        let found = self.list().await?.into_iter().find(|stored| stored.calendar.name().as_str() == name);
        found.ok_or_else(|| StoreError::not_found("calendar", name))
    }

    /// Returns the current jobs that name this calendar, by key.
    pub async fn jobs_of(&self, name: &CalendarName) -> StoreResult<Vec<Job>> {
        let mut jobs = self.context.parts.store.calendar_jobs().await?;
        jobs.retain(|job| job.definition.policies.calendars.names(name));
        Ok(jobs)
    }

    /// Creates a calendar, or replaces its days. Each job that names it follows at once, as its next version. Refuses a
    /// calendar that a configuration file declares.
    pub async fn put(&self, name: &str, content: CalendarContent) -> StoreResult<CalendarWritten> {
        self.put_if(name, content, None).await
    }

    /// Like [`Calendars::put`], only if the calendar still has this version (0: if there is none); otherwise it fails with
    /// [`StoreError::Stale`].
    pub async fn put_if(
        &self,
        name: &str,
        content: CalendarContent,
        version: Option<u32>,
    ) -> StoreResult<CalendarWritten> {
        let new = NewCalendar { name: CalendarName::new(name)?, content, source: Source::Api };
        self.write(&new, version).await
    }

    /// Writes a calendar for its owner.
    pub(crate) async fn write(&self, new: &NewCalendar, version: Option<u32>) -> StoreResult<CalendarWritten> {
        new.content.check()?;
        for _ in 1..MAX_ATTEMPTS {
            match self.try_write(new, version).await {
                Err(error) if error.is_conflict() && version.is_none() => {}
                answer => return answer,
            }
        }
        self.try_write(new, version).await
    }

    async fn try_write(&self, new: &NewCalendar, version: Option<u32>) -> StoreResult<CalendarWritten> {
        let store = &self.context.parts.store;
        let all = store.calendars().await?;
        let before = all.iter().find(|stored| *stored.calendar.name() == new.name);
        let own_version = before.map_or(0, |before| before.calendar.version());
        StoreError::expect_revision("calendar", &new.name, version.map(u64::from), Some(own_version.into()))?;
        if let Some(before) = before {
            self.expect_owner(before, new.source).await?;
            if *before.calendar.content() == new.content && before.source == new.source {
                return self.applied(before.clone()).await;
            }
        }
        let now = self.context.now();
        let facts = before.map(|before| calendar_facts(before.calendar.content(), own_version));
        let after = calendar_facts(&new.content, own_version + 1);
        let object = format!("calendar:{}", new.name);
        let audit = self.context.entry("calendar.put", object, now, facts.as_ref(), Some(&after));
        let written = store.put_calendar(new, Some(own_version), &audit).await?;
        self.applied(written).await
    }

    /// Brings every job of a calendar up to its days.
    async fn applied(&self, calendar: StoredCalendar) -> StoreResult<CalendarWritten> {
        let (parts, name) = (&self.context.parts, calendar.calendar.name().clone());
        let follower = Follower { parts, actor: &self.context.actor };
        let mut written = CalendarWritten { calendar, jobs: Vec::new(), failed: Vec::new() };
        let current = current_calendars(&*parts.store).await?;
        for job in self.jobs_of(&name).await? {
            let key = job.definition.key.clone();
            match follower.follow(&job, &current, self.context.now()).await {
                Ok(true) => written.jobs.push(key),
                Ok(false) => {}
                Err(error) => written.failed.push((key, error.to_string())),
            }
        }
        if written.failed.is_empty() {
            let version = written.calendar.calendar.version();
            if parts.store.calendar_applied(&name, version).await? {
                written.calendar.applied_version = version;
            }
        }
        Ok(written)
    }

    /// Deletes a calendar. Refuses one that a current job names, and one that a configuration file declares.
    pub async fn delete(&self, name: &str) -> StoreResult<()> {
        let before = self.get(name).await?;
        self.expect_owner(&before, Source::Api).await?;
        self.remove(&before).await
    }

    pub(crate) async fn remove(&self, before: &StoredCalendar) -> StoreResult<()> {
        let (now, name) = (self.context.now(), before.calendar.name());
        let facts = calendar_facts(before.calendar.content(), before.calendar.version());
        let audit = self.context.entry("calendar.delete", format!("calendar:{name}"), now, Some(&facts), None);
        self.context.parts.store.delete_calendar(name, &audit).await
    }

    /// Whether this program declares the calendar, so that it can only be changed there.
    pub async fn is_declared(&self, name: &CalendarName) -> bool {
        self.context.parts.declared_calendars.read().await.names.contains(name)
    }

    /// A calendar that the program declares is changed there: the next sync would undo another edit.
    async fn expect_owner(&self, before: &StoredCalendar, source: Source) -> StoreResult<()> {
        if source != Source::Api {
            return Ok(());
        }
        let declared = self.context.parts.declared_calendars.read().await;
        if !declared.names.contains(before.calendar.name()) {
            return Ok(());
        }
        let reason = match declared.source {
            Source::Config => "the configuration file declares this calendar: change its `[[calendar]]` block instead",
            Source::Code | Source::Api => "the program declares this calendar: change it there",
        };
        Err(Invalid::new("name", reason).into())
    }

    /// Returns the fires of which jobs would change in the next 90 days if a calendar had these days. Changes nothing.
    pub async fn preview(&self, name: &str, content: CalendarContent) -> StoreResult<Vec<CalendarEffect>> {
        content.check()?;
        let name = CalendarName::new(name)?;
        let mut calendars = current_calendars(&*self.context.parts.store).await?;
        calendars.retain(|calendar| *calendar.name() != name);
        calendars.push(Arc::new(Calendar::new(name.clone(), u32::MAX, content)));
        let now = self.context.now();
        let until = now.checked_add(SignedDuration::from_hours(24 * PREVIEW_DAYS)).unwrap_or(Timestamp::MAX);
        let (mut effects, mut budget) = (Vec::new(), MAX_COMPARED_IN_ALL);
        for job in self.jobs_of(&name).await? {
            if budget == 0 {
                break;
            }
            let next = Definition::clone(&job.definition).with_calendars(&calendars)?;
            let (Ok(before), Ok(after)) = (&job.definition.spec, &next.spec) else { continue };
            let (mut before, mut after) = (fires(before, now, until), fires(after, now, until));
            budget = budget.saturating_sub(before.len() + after.len());
            // Compared as far as both were read.
            let last = |fires: &BTreeSet<Timestamp>| fires.last().copied().filter(|_| fires.len() >= MAX_COMPARED);
            if let Some(read_until) = last(&before).into_iter().chain(last(&after)).min() {
                before.retain(|slot| *slot <= read_until);
                after.retain(|slot| *slot <= read_until);
            }
            tokio::task::yield_now().await;
            let differing = |one: &BTreeSet<Timestamp>, other: &BTreeSet<Timestamp>| {
                let only: Vec<Timestamp> = one.difference(other).copied().collect();
                (only.len() as u64, only.into_iter().take(MAX_LISTED).collect::<Vec<_>>())
            };
            let (added, removed) = (differing(&after, &before), differing(&before, &after));
            if added.0 + removed.0 > 0 {
                effects.push(CalendarEffect { job: job.definition, added, removed });
            }
        }
        Ok(effects)
    }
}

fn fires(spec: &Spec, from: Timestamp, until: Timestamp) -> BTreeSet<Timestamp> {
    spec.slots_after(from).take_while(|slot| *slot <= until).take(MAX_COMPARED).collect()
}

/// The days of a calendar, for the audit trail. Long lists are cut.
fn calendar_facts(content: &CalendarContent, version: u32) -> Facts {
    const MAX_FACTS: usize = 50;
    let mut facts = Facts::new();
    facts.insert("version".to_owned(), json!(version));
    facts.insert("timezone".to_owned(), json!(content.timezone.as_ref().map(everbell_core::Zone::name)));
    let dates: Vec<String> = content.entries.iter().take(MAX_FACTS).map(ToString::to_string).collect();
    facts.insert("dates".to_owned(), json!(dates));
    facts.insert("entries".to_owned(), json!(content.entries.len()));
    facts.insert("weekly".to_owned(), json!(content.weekly.words()));
    facts
}

/// The current version of every calendar.
pub(crate) async fn current_calendars(store: &dyn Store) -> StoreResult<Vec<Arc<Calendar>>> {
    Ok(store.calendars().await?.into_iter().map(|stored| stored.calendar).collect())
}

impl Parts {
    /// The definition with the days of the current calendars, if it names some.
    pub(crate) async fn with_calendars(&self, definition: Definition) -> StoreResult<Definition> {
        if definition.policies.calendars.is_empty() {
            return Ok(definition);
        }
        Ok(definition.with_calendars(&current_calendars(&*self.store).await?)?)
    }
}

/// Brings jobs up to the days of their calendars.
struct Follower<'a> {
    parts: &'a Parts,
    actor: &'a str,
}

impl Follower<'_> {
    /// Makes the next version of a job, unless it has the current days. Returns whether it did.
    async fn follow(&self, job: &Job, current: &[Arc<Calendar>], now: Timestamp) -> StoreResult<bool> {
        let parts = self.parts;
        if job.definition.is_current(current) {
            return Ok(false);
        }
        let id = JobId::new(now, random());
        let decide = |view: &JobView| change::follow_calendars(view, current.to_vec(), id, self.actor, now);
        for _ in 0..MAX_ATTEMPTS {
            let row = parts.store.get_job(&JobRef::Key(job.definition.key.clone())).await?;
            let revision = Some(row.job.state.revision);
            // It was retired, edited or has a schedule that cannot be read: its next edit gets the current days.
            let Ok((before, after)) = before_and_after(&row, &decide) else { return Ok(false) };
            let names: Vec<String> = changed_calendars(&row.job.definition, current);
            let reason = format!("follows calendar {}", names.join(", "));
            let object = format!("job:{}", job.definition.key);
            let facts = (Some(&before), Some(&after));
            let audit = audit_entry(self.actor, "job.new_version", object, Some(&reason), now, facts);
            match parts.store.change_job(&JobRef::Id(row.job.definition.id), revision, &decide, &audit).await {
                Ok(changed) => {
                    parts.events.publish_change(&changed);
                    parts.follow_change(&changed).await;
                    return Ok(true);
                }
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error),
            }
        }
        Err(StoreError::Conflict { what: format!("job `{}` is being changed by others", job.definition.key) })
    }
}

/// The calendars of a job that have other days now, with their versions.
fn changed_calendars(definition: &Definition, current: &[Arc<Calendar>]) -> Vec<String> {
    let find = |own: &Arc<Calendar>| current.iter().find(|calendar| calendar.name() == own.name());
    let changed = definition.policies.calendars.all().filter_map(|own| {
        let now = find(own).filter(|now| now.version() != own.version())?;
        Some(format!("{} version {}", now.name(), now.version()))
    });
    changed.collect()
}
