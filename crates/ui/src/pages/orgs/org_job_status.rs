//! [`OrgJobStatus`]: the status of a job for an org, as a list shows it.

use everbell::Org;
use everbell::core::org::{OffReason, Override};
use everbell::core::store::{JobOrg, OrgJob};
use everbell_core::freeze::Freeze;
use everbell_core::{Job, Timer, Zone};
use everbell_wire as wire;
use everbell_wire::org_job::OrgJobState;
use jiff::Timestamp;
use jiff::civil::Date;

use super::{local, utc};
use crate::badge::icon;
use crate::clock::Clock;
use crate::frozen::Frozen;
use crate::markup::Markup;

/// The status of a job for an org.
pub(super) struct OrgJobStatus {
    pub(super) badge: Markup,
    /// Why it does not fire.
    pub(super) why: Option<String>,
    /// The effective expression for the org, and its description.
    pub(super) expression: Option<String>,
    pub(super) words: String,
    pub(super) next: Option<Next>,
    /// Whether the local day of the org has its run.
    pub(super) today: Markup,
    /// The last local date that has, unless it is today.
    pub(super) last: Option<String>,
    pub(super) override_: Option<OverrideLine>,
}

/// The next fire for an org.
pub(super) struct Next {
    pub(super) local: Markup,
    pub(super) utc: Markup,
    pub(super) away: Markup,
    /// The original time, if the run was moved.
    pub(super) moved_from: Option<Markup>,
    /// The freeze that keeps the job from firing then.
    pub(super) frozen: Option<Frozen>,
}

/// The override of the org.
pub(super) struct OverrideLine {
    pub(super) off: bool,
    pub(super) expression: Option<String>,
    pub(super) by: String,
    pub(super) away: Markup,
}

impl OrgJobStatus {
    /// The status for a row in the list of an org.
    pub(super) fn for_org(org: &Org, row: &OrgJob, freezes: &[Freeze], clock: &Clock) -> OrgJobStatus {
        let document = wire::OrgJob::from_org(org, row);
        OrgJobStatus::new(document, (&row.job, org), row.override_.as_ref(), row.timer.as_ref(), (freezes, clock))
    }

    /// The status for a row in the list of a job.
    pub(super) fn for_job(job: &Job, row: &JobOrg, freezes: &[Freeze], clock: &Clock) -> OrgJobStatus {
        let document = wire::OrgJob::from_job(job, row);
        OrgJobStatus::new(document, (job, &row.org), row.override_.as_ref(), row.timer.as_ref(), (freezes, clock))
    }

    fn new(
        document: wire::OrgJob,
        (job, org): (&Job, &Org),
        override_: Option<&Override>,
        timer: Option<&Timer>,
        (freezes, clock): (&[Freeze], &Clock),
    ) -> OrgJobStatus {
        let zone = Zone::get(&org.place.timezone).ok();
        let armed = timer.filter(|_| document.standing == OrgJobState::Eligible);
        let next = armed.and_then(|timer| timer.next_run_at);
        let last = timer.and_then(|timer| timer.last_local_date);
        let date = |at: Timestamp| zone.as_ref().map(|zone| zone.as_jiff().to_datetime(at).date());
        let (badge, why) = badge_and_reason(&document, job.state.error.as_deref(), next.is_some());
        OrgJobStatus {
            badge,
            why,
            expression: document.cron_expression,
            words: document.schedule_text,
            next: next.map(|at| Next {
                local: local(clock, at, zone.as_ref()),
                utc: utc(clock, at),
                away: clock.away(at),
                moved_from: armed
                    .and_then(|timer| timer.rescheduled_from)
                    .map(|slot| local(clock, slot, zone.as_ref())),
                frozen: Frozen::in_zone(freezes, &job.definition, at, clock, zone.as_ref()),
            }),
            today: today(date(clock.now), last, next.and_then(date)),
            last: last.filter(|last| Some(*last) != date(clock.now)).map(|last| last.to_string()),
            override_: override_.map(|override_| OverrideLine {
                off: !override_.enabled,
                expression: override_.expression.clone(),
                by: override_.updated_by.clone(),
                away: clock.away(override_.updated_at),
            }),
        }
    }

    /// Whether the job is turned off for the org.
    pub(super) fn is_off(&self) -> bool {
        self.override_.as_ref().is_some_and(|override_| override_.off)
    }
}

fn badge(name: &str, word: &str) -> Markup {
    Markup::from_html(format!("<span class=\"badge {name}\">{}{word}</span>", icon(name)))
}

/// Returns the badge, and the reason if the job does not fire.
fn badge_and_reason(document: &wire::OrgJob, job_error: Option<&str>, armed: bool) -> (Markup, Option<String>) {
    let why = document.why.as_deref();
    match (&document.standing, why.and_then(OffReason::from_word)) {
        (OrgJobState::Eligible, _) if armed => (badge("on", "On"), None),
        (OrgJobState::Eligible, _) => (badge("wait", "No next run"), why.map(str::to_owned)),
        (OrgJobState::Off, Some(OffReason::JobErrored)) => (
            badge("warn", "Cannot fire"),
            Some(job_error.unwrap_or("the schedule of the job cannot be read").to_owned()),
        ),
        (OrgJobState::Off, off) => (badge("off", "Off"), off.map(|off| off_reason(off).to_owned())),
        (OrgJobState::Errored, _) => (badge("warn", "Cannot fire"), why.map(str::to_owned)),
        _ => (badge("retired", "Ended"), None),
    }
}

/// Why it is off, for people.
pub(super) fn off_reason(off: OffReason) -> &'static str {
    match off {
        OffReason::JobPaused => "the job is paused",
        OffReason::JobErrored => "the job cannot fire for any org",
        OffReason::OrgDisabled => "the org is disabled",
        OffReason::Overridden => "turned off for this org",
    }
}

/// Whether the local day has its run, by its date, the last date that has, and the date of the next fire.
fn today(today: Option<Date>, last: Option<Date>, next: Option<Date>) -> Markup {
    match today {
        Some(today) if last == Some(today) => badge("ok", "Ran today"),
        Some(today) if next == Some(today) => badge("wait", "Not yet today"),
        _ => Markup::from_html("<span class=\"note\">not today</span>"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_day_has_run_or_will_or_does_not() {
        let day = |day: i8| Some(Date::constant(2026, 11, day));
        let said = |now, last, next| today(now, last, next).to_string();
        assert!(said(day(15), day(15), day(16)).contains("Ran today"));
        assert!(said(day(15), day(14), day(15)).contains("Not yet today"));
        // It ran, and runs again: that it ran is what people look for.
        assert!(said(day(15), day(15), day(15)).contains("Ran today"));
        assert!(said(day(15), day(13), day(16)).contains("not today"));
        assert!(said(None, day(13), None).contains("not today"));
    }
}
