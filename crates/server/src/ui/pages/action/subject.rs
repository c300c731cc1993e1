//! [`Subject`]: the job that something is about to be done to.

use everbell::{JobRow, JobStatus};
use everbell_core::{Definition, Spec, Timer, Zone};
use jiff::Timestamp;

use super::Moment;
use crate::http::call::shown;
use crate::http::problem::{Kind, Problem};
use crate::time_input::{Refusal, TimeReader};
use crate::ui::clock::Clock;
use crate::ui::markup::url_part;
use crate::ui::visit::Visit;

/// A job that something is about to be done to.
pub(crate) struct Subject {
    pub(crate) row: JobRow,
    pub(crate) key: String,
    /// The key as a part of a path.
    pub(crate) part: String,
    /// As the API names it in a path.
    pub(crate) name: String,
    /// The same with the version that the form was made for: revisions begin anew with each version, so a revision alone
    /// would not tell.
    pub(crate) exact: String,
    pub(crate) zone: Zone,
    /// What was read, so that nothing is done to something else.
    pub(crate) revision: u64,
}

impl Subject {
    /// The job that the path names.
    pub(crate) async fn of(visit: &Visit) -> Result<Subject, Problem> {
        let key = visit.part("key");
        let row = visit.jobs().get(key).await.map_err(|error| match error {
            everbell::StoreError::Invalid(_) => {
                Problem::new(Kind::NotFound, format!("There is no job `{}`.", shown(key)))
            }
            other => other.into(),
        })?;
        let definition = &row.job.definition;
        let key = definition.key.to_string();
        Ok(Subject {
            part: url_part(&key),
            name: format!("key:{key}"),
            exact: {
                let version = definition.version.to_string();
                format!("key:{key}@{}", visit.sent("version").unwrap_or(&version))
            },
            zone: definition.spec.as_ref().map_or_else(|_| Zone::utc(), |spec| spec.zone().clone()),
            revision: row.job.state.revision,
            key,
            row,
        })
    }

    /// The same, unless it is retired: nothing can be done to it any more.
    pub(crate) async fn living(visit: &Visit) -> Result<Subject, Problem> {
        let subject = Subject::of(visit).await?;
        if subject.status() == JobStatus::Retired {
            return Err(Problem::new(Kind::JobRetired, format!("{} is retired, which is final.", subject.key)));
        }
        Ok(subject)
    }

    /// Where the job is shown.
    pub(crate) fn place(&self) -> String {
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

    /// Its schedule, if it can be read.
    pub(crate) fn spec(&self) -> Option<&Spec> {
        self.definition().spec.as_ref().ok()
    }

    /// Its timer; one that wakes nobody for a job with one for each org.
    pub(crate) fn timer(&self) -> Timer {
        let definition = self.definition();
        self.row.timer.clone().unwrap_or(Timer {
            job_id: definition.id,
            org: None,
            next_run_at: None,
            last_slot_at: definition.created_at,
            rescheduled_from: None,
            last_local_date: None,
        })
    }

    /// When it fires next, as things are.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.row.timer.as_ref().and_then(|timer| timer.next_run_at)
    }

    /// The fires that its schedule has after now, in order; first the one that somebody has moved.
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

    /// What a field says, read on the wall clock of the job as the API does.
    pub(crate) fn read(&self, text: &str) -> Option<Timestamp> {
        read(text, &self.zone).ok()
    }
}

/// A time as a field of this zone holds it.
pub(super) fn wall(at: Timestamp, zone: &Zone) -> String {
    let there = at.to_zoned(zone.as_jiff().clone());
    there.strftime(if there.second() == 0 { "%Y-%m-%dT%H:%M" } else { "%Y-%m-%dT%H:%M:%S" }).to_string()
}

/// What a field of this zone says, or what is wrong with it.
pub(super) fn read(text: &str, zone: &Zone) -> Result<Timestamp, String> {
    let told = |Refusal { reason, hint }: Refusal| hint.map_or(reason.clone(), |hint| format!("{reason}; {hint}"));
    TimeReader { now: Timestamp::UNIX_EPOCH, zone }.absolute(text).map_err(told)
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
