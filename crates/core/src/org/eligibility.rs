//! [`eligibility`]: whether a job fires for an org, and by which schedule. And [`plan`], which asks it of a timer that is due.

use jiff::Timestamp;

use super::{OrgSettings, Override, local_date};
use crate::cron::Expression;
use crate::job::{Definition, JobState, JobStatus, Timer};
use crate::plan::{self, Plan, PlanContext};
use crate::run::{Gap, GapReason};
use crate::spec::Spec;
use crate::zone::Zone;

/// The part of a job's state that decides whether it fires at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobLifecycle {
    /// Active, paused or retired.
    pub status: JobStatus,
    /// It is active and cannot fire.
    pub errored: bool,
    /// When the state last changed: of a retired job, when it was retired.
    pub changed_at: Timestamp,
}

impl From<&JobState> for JobLifecycle {
    fn from(state: &JobState) -> JobLifecycle {
        JobLifecycle { status: state.status, errored: state.error.is_some(), changed_at: state.updated_at }
    }
}

/// The facts that decide, besides the job's definition, whether and when the job fires for an org. Read together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrgFacts {
    /// The state of the job.
    pub lifecycle: JobLifecycle,
    /// The org's settings.
    pub place: OrgSettings,
    /// The org's override of the job.
    pub override_: Option<Override>,
}

/// Whether a job fires for an org.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Eligibility {
    /// Job active, org enabled, override not off: fires by this schedule.
    Eligible(Spec),
    /// Does not fire for now. Missed slots become a `paused` gap.
    Off(OffReason),
    /// Does not fire any more, from this time on: the job is retired or the org is gone.
    Over(Timestamp),
    /// Zone or override of the org cannot be read. The others go on.
    Broken(String),
}

/// Why a job does not fire for an org.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OffReason {
    /// The job is paused.
    JobPaused,
    /// The job is errored.
    JobErrored,
    /// The org is not enabled.
    OrgDisabled,
    /// The org does not want the job.
    Overridden,
}
crate::policy::words!(OffReason {
    JobPaused = "job_paused",
    JobErrored = "job_errored",
    OrgDisabled = "org_disabled",
    Overridden = "override_off",
});

/// Whether the job fires for the org, and how.
pub fn eligibility(job: &Definition, facts: &OrgFacts) -> Eligibility {
    let OrgFacts { lifecycle, place, override_ } = facts;
    if lifecycle.status == JobStatus::Retired {
        return Eligibility::Over(lifecycle.changed_at);
    }
    if place.deleted {
        return Eligibility::Over(place.changed_at);
    }
    if lifecycle.status == JobStatus::Paused {
        return Eligibility::Off(OffReason::JobPaused);
    }
    if lifecycle.errored || job.spec.is_err() {
        return Eligibility::Off(OffReason::JobErrored);
    }
    if !place.enabled {
        return Eligibility::Off(OffReason::OrgDisabled);
    }
    if override_.as_ref().is_some_and(|override_| !override_.enabled) {
        return Eligibility::Off(OffReason::Overridden);
    }
    match spec_for(job, facts) {
        Ok(spec) => Eligibility::Eligible(spec),
        Err(reason) => Eligibility::Broken(reason),
    }
}

/// The schedule of the job in the org's zone, at the local time that the org wants.
pub fn spec_for(job: &Definition, facts: &OrgFacts) -> Result<Spec, String> {
    spec_in(job, &facts.place.timezone, facts.override_.as_ref().and_then(|override_| override_.expression.as_deref()))
}

/// The schedule of the job in this zone, at its own local time or another one.
pub(super) fn spec_in(job: &Definition, timezone: &str, expression: Option<&str>) -> Result<Spec, String> {
    let spec = job.spec.as_ref().map_err(|broken| broken.reason.clone())?;
    let zone = Zone::get(timezone).map_err(|error| error.to_string())?;
    match expression {
        None => Ok(spec.in_zone(zone)),
        Some(text) => {
            let expression: Expression = text.parse().map_err(|error| format!("override `{text}`: {error}"))?;
            Ok(spec.with_expression(expression, job.created_at).in_zone(zone))
        }
    }
}

/// Decides what happens to the slots of an org's timer that are due at `now`: like [`plan::plan`], for an org that is
/// eligible now.
pub fn plan(job: &Definition, timer: &Timer, seen: &PlanContext<'_>, facts: &OrgFacts, now: Timestamp) -> Plan {
    if timer.next_run_at.is_none_or(|next| next > now) {
        return Plan::nothing(timer);
    }
    if let Err(broken) = &job.spec {
        return Plan { error: Some(broken.reason.clone()), ..Plan::nothing(&plan::disarm(timer)) };
    }
    match eligibility(job, facts) {
        Eligibility::Eligible(spec) => {
            let lost = lost_days(&spec, timer, &facts.place);
            let mut plan = plan::plan(job, timer, &PlanContext { org_spec: Some(&spec), ..*seen }, now);
            plan.gaps.splice(0..0, lost);
            past_the_move(&spec, &mut plan.timer, &facts.place);
            plan
        }
        Eligibility::Off(_) => Plan::nothing(&plan::disarm(timer)),
        Eligibility::Over(at) => close(job, timer, seen, facts, at),
        Eligibility::Broken(reason) => Plan { org_error: Some(reason), ..Plan::nothing(&plan::disarm(timer)) },
    }
}

/// The last plan of a timer whose job or org ended at `at`: what was just due then still fires. A timer that rested had
/// its slots paused.
pub(super) fn close(job: &Definition, timer: &Timer, seen: &PlanContext<'_>, facts: &OrgFacts, at: Timestamp) -> Plan {
    let Ok(spec) = spec_for(job, facts) else {
        return Plan::nothing(&plan::disarm(timer));
    };
    plan::close(job, timer, &PlanContext { org_spec: Some(&spec), frozen: &[], ..*seen }, reason_to_end(timer), at)
}

/// Like [`close`], for a timer that the next version of the job replaces at `at`. Also returns the timer of that
/// version.
pub(super) fn succeed(
    job: &Definition,
    timer: &Timer,
    seen: &PlanContext<'_>,
    facts: &OrgFacts,
    successor_timer: (&Definition, &Spec),
    at: Timestamp,
) -> Option<(Plan, Timer)> {
    if job.spec.is_err() {
        let reason = if timer.next_run_at.is_none() { GapReason::Errored } else { GapReason::Missed };
        return Some(plan::succeed(job, timer, seen, reason, successor_timer, at));
    }
    let spec = spec_for(job, facts).ok()?;
    Some(plan::succeed(
        job,
        timer,
        &PlanContext { org_spec: Some(&spec), ..*seen },
        reason_to_end(timer),
        successor_timer,
        at,
    ))
}

fn reason_to_end(timer: &Timer) -> GapReason {
    if timer.next_run_at.is_some() { GapReason::Missed } else { GapReason::Paused }
}

/// Once nothing is left to be fired before the move, the mark is past it: what was before is settled.
pub(super) fn past_the_move(spec: &Spec, timer: &mut Timer, place: &OrgSettings) {
    if let Some(moved) = &place.moved
        && timer.last_slot_at <= moved.at
        && spec.next_after(timer.last_slot_at).is_none_or(|next| next > moved.at)
    {
        timer.last_slot_at = plan::just_after(moved.at);
    }
}

/// Returns the day of a move as a gap, if it got no run and a later override wants a local time that was already past
/// at the move: the mark is past that slot, so no plan would ever see it.
pub(super) fn lost_today(spec: &Spec, timer: &Timer, facts: &OrgFacts) -> Option<Gap> {
    let (moved, override_) = (facts.place.moved.as_ref()?, facts.override_.as_ref()?);
    if timer.last_slot_at != plan::just_after(moved.at) || override_.updated_at <= moved.at {
        return None;
    }
    let slot = spec.prev_at_or_before(moved.at).filter(|_| spec.at_most_daily())?;
    let date = local_date(spec, slot);
    let lost = date == local_date(spec, moved.at) && timer.last_local_date.is_none_or(|last| last < date);
    lost.then_some(Gap { first_slot_at: slot, last_slot_at: slot, slots: 1, reason: GapReason::Missed, actor: None })
}

/// Local days that a move to the east jumped over as a whole: their slot in the new zone lies before the mark, so no plan
/// would ever meet it. Only across the date line can that happen.
pub(super) fn lost_days(spec: &Spec, timer: &Timer, place: &OrgSettings) -> Vec<Gap> {
    let mark = timer.last_slot_at;
    let Some(moved) = place.moved.as_ref().filter(|moved| moved.at >= mark && spec.at_most_daily()) else {
        return Vec::new();
    };
    let Ok(before) = Zone::get(&moved.from).map(|zone| spec.in_zone(zone)) else {
        return Vec::new();
    };
    let Some(settled) = before.prev_at_or_before(mark).map(|slot| local_date(&before, slot)) else {
        return Vec::new();
    };
    let earlier = |slot: &jiff::Timestamp| spec.prev_at_or_before(plan::just_before(*slot));
    let slots = std::iter::successors(spec.prev_at_or_before(mark), earlier);
    let mut lost: Vec<Gap> = slots
        .take_while(|slot| local_date(spec, *slot) > settled)
        .map(|slot| Gap {
            first_slot_at: slot,
            last_slot_at: slot,
            slots: 1,
            reason: GapReason::Coalesced,
            actor: None,
        })
        .collect();
    lost.reverse();
    lost
}
