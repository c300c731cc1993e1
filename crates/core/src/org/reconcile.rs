//! [`reconcile`]: what the timer of a job for an org has to be, after something about the job or the org has changed.

use std::sync::Arc;

use jiff::Timestamp;

use super::eligibility::{close, lost_days, lost_today, past_the_move, succeed};
use super::{Eligibility, OrgFacts, OrgTask, eligibility, spec_for};
use crate::ids::OrgId;
use crate::job::{Definition, Timer};
use crate::plan::{self, Missed, Plan, PlanContext};
use crate::run::{ActiveRun, GapReason};

/// The timer of a job for an org, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrgTimer {
    /// The timer.
    pub timer: Timer,
    /// Why it cannot be armed, if so.
    pub error: Option<String>,
    /// The pending and running runs of its job and org, oldest first.
    pub active: Vec<ActiveRun>,
}

/// A job and an org as they are, read under a lock.
#[derive(Clone, Debug)]
pub struct OrgView {
    /// The job.
    pub job: Arc<Definition>,
    /// The org.
    pub org: OrgId,
    /// How both are.
    pub facts: OrgFacts,
    /// The timer, if there is one.
    pub timer: Option<OrgTimer>,
    /// The version that this one replaced, and its timer, if that is still there.
    pub before: Option<(Arc<Definition>, OrgTimer)>,
    /// When the job that this one depends on last succeeded.
    pub upstream_succeeded_at: Option<Timestamp>,
}

/// The changes of a job's timer for an org, to be written in one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimerChanges {
    /// The last plan of the previous version, whose timer is removed.
    pub before: Option<Plan>,
    /// The change of the timer.
    pub change: TimerChange,
}

/// A change of a timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimerChange {
    /// No change: it is as it should be, or there is none and should be none.
    Keep,
    /// Creates or moves it, and writes this plan with it.
    Write(Box<Plan>),
    /// Removes it, and writes this plan with it.
    Remove(Box<Plan>),
}

impl OrgView {
    pub(super) fn seen<'a>(&self, active: &'a [ActiveRun]) -> PlanContext<'a> {
        PlanContext { active, upstream_succeeded_at: self.upstream_succeeded_at, org_spec: None, frozen: &[] }
    }

    /// Why the job cannot fire for the org by this plan, if that is news.
    pub fn new_error(&self, plan: &Plan) -> Option<String> {
        let known = self.timer.as_ref().and_then(|old| old.error.as_ref());
        plan.org_error.clone().filter(|error| Some(error) != known)
    }

    pub(super) fn eligibility(&self) -> Eligibility {
        eligibility(&self.job, &self.facts)
    }

    /// A timer whose slots begin at `since`.
    pub(super) fn new_timer(&self, since: Timestamp) -> Timer {
        Timer {
            job_id: self.job.id,
            org: Some(self.org.clone()),
            next_run_at: None,
            last_slot_at: since,
            rescheduled_from: None,
            last_local_date: None,
        }
    }

    /// The first instant that this job may fire for this org, as far as they know.
    fn since(&self) -> Timestamp {
        self.job.created_at.max(self.facts.place.changed_at)
    }
}

/// Decides how the timer has to change. `task` says what happened to the job as a whole; `None` means that the org
/// changed.
///
/// Called again, it finds nothing to do; called for every org, it rebuilds the whole set.
pub fn reconcile(view: &OrgView, task: Option<&OrgTask>) -> TimerChanges {
    let since = task.and_then(OrgTask::resumed_at).map_or(view.since(), |at| at.max(view.since()));
    let (before, successor_timer) =
        ended(view, since).map_or((None, None), |(plan, successor_timer)| (Some(plan), successor_timer));
    let carried = before.as_ref().and_then(|plan| plan.timer.last_local_date);
    let change = match (view.eligibility(), &view.timer) {
        (Eligibility::Over(at), Some(old)) => {
            let seen = view.seen(&old.active);
            TimerChange::Remove(Box::new(close(&view.job, &old.timer, &seen, &view.facts, at)))
        }
        (Eligibility::Off(_), Some(old)) => {
            // Also while it rests a move may jump over a day; the next move will not know of it.
            let spec = spec_for(&view.job, &view.facts);
            let gaps = spec.map_or_else(|_| Vec::new(), |spec| lost_days(&spec, &old.timer, &view.facts.place));
            write_if_changed(old, Plan { gaps, ..Plan::nothing(&plan::disarm(&old.timer)) })
        }
        // Nothing to remember, unless the version before had something: for the next version, if this one is over too.
        (Eligibility::Off(_) | Eligibility::Over(_), None) if before.is_none() || view.facts.place.deleted => {
            TimerChange::Keep
        }
        (Eligibility::Off(_) | Eligibility::Over(_), None) => {
            write(&Timer { last_local_date: carried, ..view.new_timer(view.since()) }, None)
        }
        (Eligibility::Broken(reason), Some(old)) => {
            write_if_changed(old, Plan { org_error: Some(reason), ..Plan::nothing(&plan::disarm(&old.timer)) })
        }
        (Eligibility::Broken(reason), None) => {
            write(&Timer { last_local_date: carried, ..view.new_timer(view.since()) }, Some(reason))
        }
        (Eligibility::Eligible(spec), None) => {
            // Slots missed in a pause are paused; slots before the job existed do not count.
            let begins = match task {
                Some(OrgTask::Resume { .. }) => since,
                _ => crate::plan::local_days::begins(&spec, since).max(view.job.created_at),
            };
            let blank = || Timer { last_local_date: carried, ..view.new_timer(begins) };
            let seen = PlanContext { org_spec: Some(&spec), ..view.seen(&[]) };
            write(&successor_timer.unwrap_or_else(|| plan::arm(&view.job, &blank(), &seen)), None)
        }
        (Eligibility::Eligible(spec), Some(old)) => {
            let seen = PlanContext { org_spec: Some(&spec), ..view.seen(&old.active) };
            let lost = lost_days(&spec, &old.timer, &view.facts.place);
            let mut plan = match return_of(old, task, view.facts.place.changed_at) {
                Some((at, missed, reason)) => plan::resume(&view.job, &old.timer, &seen, missed, reason, at)
                    // Only what cannot be read is refused, and this was read.
                    .unwrap_or_else(|_| Plan::nothing(&old.timer)),
                None if old.timer.rescheduled_from.is_some() => Plan::nothing(&old.timer),
                None => Plan::nothing(&plan::arm(&view.job, &old.timer, &seen)),
            };
            plan.gaps.splice(0..0, lost);
            past_the_move(&spec, &mut plan.timer, &view.facts.place);
            plan.gaps.extend(lost_today(&spec, &plan.timer, &view.facts));
            write_if_changed(old, plan)
        }
    };
    TimerChanges { before, change }
}

/// How the version before ends, and the timer that it leaves to this one, if this one has none and may fire since then.
fn ended(view: &OrgView, since: Timestamp) -> Option<(Plan, Option<Timer>)> {
    let (job, old) = view.before.as_ref()?;
    let (seen, at) = (view.seen(&old.active), view.job.created_at);
    if let (Eligibility::Eligible(spec), None) = (view.eligibility(), &view.timer)
        && since == at
        && let Some((plan, successor_timer)) = succeed(job, &old.timer, &seen, &view.facts, (&view.job, &spec), at)
    {
        return Some((plan, Some(successor_timer)));
    }
    Some((close(job, &old.timer, &seen, &view.facts, at), None))
}

/// Returns how a timer comes back from a rest, if it does: since when it may fire again, how to treat missed slots, and
/// why it rested.
fn return_of(old: &OrgTimer, task: Option<&OrgTask>, changed_at: Timestamp) -> Option<(Timestamp, Missed, GapReason)> {
    let rested = old.timer.next_run_at.is_none();
    let because = |reason| if old.error.is_some() { GapReason::Errored } else { reason };
    match task {
        // Slots that became due during the pause but were not planned count as paused, too.
        Some(OrgTask::Resume { at, missed, reason }) if old.timer.next_run_at.is_none_or(|next| next <= *at) => {
            let at = if rested { changed_at.max(*at) } else { *at };
            Some((at, *missed, because(*reason)))
        }
        _ => rested.then_some((changed_at, Missed::Skip, because(GapReason::Paused))),
    }
}

/// Writes the plan only if it changes something.
fn write_if_changed(old: &OrgTimer, plan: Plan) -> TimerChange {
    let same = plan.timer == old.timer && old.error == plan.org_error && plan.runs.is_empty() && plan.gaps.is_empty();
    if same { TimerChange::Keep } else { TimerChange::Write(Box::new(plan)) }
}

fn write(timer: &Timer, org_error: Option<String>) -> TimerChange {
    TimerChange::Write(Box::new(Plan { org_error, ..Plan::nothing(timer) }))
}
