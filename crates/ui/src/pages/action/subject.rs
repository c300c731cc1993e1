//! [`Subject`]: the job that an action applies to.

use everbell::core::org::{self, OrgFacts};
use everbell::core::store::OrgJob;
use everbell::{JobRow, JobStatus, Org, OrgId};
use everbell_core::{Definition, Scope, Spec, Timer, Zone};
use jiff::Timestamp;

use super::Moment;
use crate::clock::Clock;
use crate::markup::url_part;
use crate::pages::orgs::called;
use crate::request::UiRequest;
use everbell_http::excerpt::excerpt;
use everbell_http::problem::{Kind, Problem};
use everbell_wire::time_input::{Refusal, TimeReader};

/// The job that an action applies to.
pub(crate) struct Subject {
    pub(crate) row: JobRow,
    pub(crate) key: String,
    /// The key as a part of a path.
    pub(crate) part: String,
    /// As the API names it in a path.
    pub(crate) name: String,
    /// The API path segment with the version of the form, so that a form never acts on a later version.
    pub(crate) exact: String,
    pub(crate) zone: Zone,
    /// For whom it is done, of a job that fires for each org.
    pub(crate) org: Option<ForOrg>,
    /// The revision that was read, which guards against concurrent changes.
    pub(crate) revision: u64,
}

/// The org that an action applies to.
pub(crate) struct ForOrg {
    pub(crate) id: OrgId,
    /// Its name; its id if it has none.
    pub(crate) called: String,
    /// The schedule that holds for it, if it can be read.
    spec: Option<Spec>,
}

impl Subject {
    /// The job that the path names.
    pub(crate) async fn load(request: &UiRequest) -> Result<Subject, Problem> {
        let key = request.part("key");
        let mut row = request.jobs().get(key).await.map_err(|error| match error {
            everbell::StoreError::Invalid(_) => {
                Problem::new(Kind::NotFound, format!("There is no job `{}`.", excerpt(key)))
            }
            // The cause is in the data, not in the server: the page says what to repair.
            everbell::StoreError::Corrupt { what } => {
                let detail = format!("Job `{}` is stored, but cannot be read: {what}.", excerpt(key));
                Problem::new(Kind::Conflict, format!("{detail} Repair its row in the database or restore a backup."))
            }
            other => other.into(),
        })?;
        // The last run is a part of the run history.
        row.last_run = row.last_run.filter(|_| request.may_read_runs());
        let definition = &row.job.definition;
        let key = definition.key.to_string();
        Ok(Subject {
            part: url_part(&key),
            name: format!("key:{key}"),
            exact: {
                let version = definition.version.to_string();
                format!("key:{key}@{}", request.sent("version").unwrap_or(&version))
            },
            zone: definition.spec.as_ref().map_or_else(|_| Zone::utc(), |spec| spec.zone().clone()),
            org: None,
            revision: row.job.state.revision,
            key,
            row,
        })
    }

    /// Loads the job that the path names, and fails if it is retired.
    pub(crate) async fn living(request: &UiRequest) -> Result<Subject, Problem> {
        let subject = Subject::load(request).await?;
        if subject.status() == JobStatus::Retired {
            return Err(Problem::new(Kind::JobRetired, format!("{} is retired. This is final.", subject.key)));
        }
        Ok(subject)
    }

    /// Narrows the job to an org, with its timer, schedule and time zone.
    pub(super) fn for_org(mut self, org: &Org, jobs: Vec<OrgJob>) -> Subject {
        let own = jobs.into_iter().find(|row| row.job.definition.id == self.definition().id);
        let override_ = own.as_ref().and_then(|row| row.override_.clone());
        let facts = OrgFacts { lifecycle: (&self.row.job.state).into(), place: org.place.clone(), override_ };
        let spec = org::spec_for(self.definition(), &facts).ok();
        self.zone = spec.as_ref().map_or_else(Zone::utc, |spec| spec.zone().clone());
        self.row.timer = own.and_then(|row| row.timer);
        self.org = Some(ForOrg { id: org.id.clone(), called: called(org), spec });
        self
    }

    /// Whether it is the job as a whole, of which each org has its own fires.
    pub(crate) fn is_for_each(&self) -> bool {
        self.definition().scope == Scope::PerOrg && self.org.is_none()
    }

    /// Where to go when something was done: to the org that it was done for, else to the job.
    pub(super) fn back(&self) -> String {
        self.org.as_ref().map_or_else(|| self.path(), |org| format!("/orgs/{}", url_part(org.id.as_str())))
    }

    /// Returns the job and the org for messages.
    pub(super) fn named(&self) -> String {
        self.org.as_ref().map_or_else(|| self.key.clone(), |org| format!("{} for {}", self.key, org.id))
    }

    /// Returns the command-line flags that select the org.
    pub(super) fn org_words(&self) -> Vec<&str> {
        self.org.as_ref().map_or_else(Vec::new, |org| vec!["--org", org.id.as_str()])
    }

    /// The id of the org that it is for.
    pub(super) fn org_id(&self) -> Option<&str> {
        self.org.as_ref().map(|org| org.id.as_str())
    }

    /// Where the job is shown.
    pub(crate) fn path(&self) -> String {
        format!("/jobs/{}", self.part)
    }

    pub(crate) fn definition(&self) -> &Definition {
        &self.row.job.definition
    }

    pub(crate) fn status(&self) -> JobStatus {
        self.row.job.state.status
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.status() == JobStatus::Paused
    }

    /// Why it cannot fire.
    pub(crate) fn error(&self) -> Option<&str> {
        self.row.job.state.error.as_deref()
    }

    /// Its schedule, if it can be read. A job that fires for each org has none of its own, only for an org.
    pub(crate) fn spec(&self) -> Option<&Spec> {
        match &self.org {
            Some(org) => org.spec.as_ref(),
            None => self.definition().spec.as_ref().ok().filter(|_| !self.is_for_each()),
        }
    }

    /// Returns the timer, or one that never fires if the job has a timer for each org.
    pub(crate) fn timer(&self) -> Timer {
        let definition = self.definition();
        self.row.timer.clone().unwrap_or(Timer::new(definition.id, definition.created_at))
    }

    /// Returns the next scheduled run.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.row.timer.as_ref().and_then(|timer| timer.next_run_at)
    }

    /// Returns the next runs of the schedule in order, starting with one that was moved.
    pub(crate) fn fires(&self, now: Timestamp) -> impl Iterator<Item = Timestamp> {
        let timer = self.row.timer.as_ref();
        let moved = timer.and_then(|timer| timer.next_run_at.zip(timer.rescheduled_from));
        let after = moved.map_or(now, |(at, slot)| at.max(slot).max(now));
        let slots = self.spec().map(|spec| spec.slots_after(after)).into_iter().flatten();
        moved.map(|(at, _)| at).into_iter().chain(slots)
    }

    /// A time as a page shows it.
    pub(crate) fn moment(&self, clock: &Clock, at: Timestamp) -> Moment {
        (clock.day(at, Some(&self.zone)), clock.away(at))
    }

    /// A time on the wall clock of the job, for a field.
    pub(crate) fn wall(&self, at: Timestamp) -> String {
        wall(at, &self.zone)
    }

    /// Parses a local time of the job in the same way as the API.
    pub(crate) fn read(&self, text: &str) -> Option<Timestamp> {
        read(text, &self.zone).ok()
    }
}

/// A time as a field of this zone holds it.
pub(super) fn wall(at: Timestamp, zone: &Zone) -> String {
    let there = at.to_zoned(zone.as_jiff().clone());
    there.strftime(if there.second() == 0 { "%Y-%m-%dT%H:%M" } else { "%Y-%m-%dT%H:%M:%S" }).to_string()
}

/// Parses a local time in this zone.
pub(super) fn read(text: &str, zone: &Zone) -> Result<Timestamp, String> {
    let message = |Refusal { reason, hint }: Refusal| hint.map_or(reason.clone(), |hint| format!("{reason}; {hint}"));
    TimeReader { now: Timestamp::UNIX_EPOCH, zone }.absolute(text).map_err(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_says_what_its_zone_means() {
        let tokyo = Zone::get("Asia/Tokyo").unwrap();
        let at: Timestamp = "2026-11-16T07:00:00Z".parse().unwrap();
        assert_eq!(wall(at, &tokyo), "2026-11-16T16:00");
        assert_eq!(read("2026-11-16T16:00", &tokyo), Ok(at));
        let late: Timestamp = "2026-11-16T07:00:05Z".parse().unwrap();
        assert_eq!(read(&wall(late, &tokyo), &tokyo), Ok(late));
        assert!(read("soon", &tokyo).unwrap_err().contains("is not a time"));
    }
}
