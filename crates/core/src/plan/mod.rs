//! [`plan`]: what happens to the slots that are due. The first of the two decisions.
//!
//! ```text
//!              last_slot_at                                         now
//!   ───────────────┤······│······│······│······│······│·····│·······├──────────► time
//!                  └──────── missed ───────────┘└── on time ──┘
//!                            older than grace       not older
//! ```
//!
//! Every slot after the high-water mark and up to now ends in exactly one run or one gap of the plan, and the mark moves
//! behind the last of them. Nothing here reads a clock or a database: the same arguments give the same plan, so a crash
//! before the commit costs nothing, and after it the unique slot key makes a repetition harmless.
//!
//! `operator` decides what operators do to a schedule, and `succession` how a version ends, with the same parts.

mod backfill;
mod dependency;
mod fire;
mod frozen;
pub(crate) mod local_days;
mod operator;
mod overlap;
mod skips;
mod succession;

use std::time::Duration;

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};

pub use backfill::{Backfill, MAX_BACKFILLED, MAX_PARALLEL, backfill};
pub(crate) use dependency::unmet_dependency;
pub use operator::{Missed, RunNow, arm, disarm, reschedule, resume, run_in_turn, run_now, skip_next};
pub use overlap::REPLACER;
pub(crate) use overlap::{Admission, Overlaps};
pub use succession::{close, succeed};

use self::fire::Fire;
pub(crate) use self::frozen::thawed_at;
use crate::frozen_span::FrozenSpan;
use crate::ids::{OrgId, RunId};
use crate::jitter::fire_at;
use crate::job::{Definition, Timer};
use crate::policy::CatchUp;
use crate::run::{ActiveRun, EarlierGap, Gap, GapReason, NewRun, SkipReason};
use crate::spec::{Spec, When};

/// The most runs that one plan makes. What is left stays due and is planned next.
pub const MAX_RUNS_PER_PLAN: usize = 1_000;

/// The context that a plan needs besides the job and its timer. Read in the same transaction.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlanContext<'a> {
    /// The pending and running runs of this job (and org), oldest first.
    pub active: &'a [ActiveRun],
    /// When the job that this one depends on last succeeded.
    pub upstream_succeeded_at: Option<Timestamp>,
    /// The schedule of the timer's org, where it has its own.
    pub org_spec: Option<&'a Spec>,
    /// The times in which freezes keep the job from firing, in order.
    pub frozen: &'a [FrozenSpan],
}

/// A decision about a timer, to be written in one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Runs to insert, in the order of their slots.
    pub runs: Vec<NewRun>,
    /// Slots that get no run.
    pub gaps: Vec<Gap>,
    /// The gap that the first frozen one of `gaps` continues: see [`Plan::gaps_to_write`].
    pub earlier: Option<EarlierGap>,
    /// Active runs to cancel.
    pub cancel: Vec<RunId>,
    /// The timer as it shall be afterwards.
    pub timer: Timer,
    /// A one-time job has had its slot, and no run is left that would retire it when it ends.
    pub retire: bool,
    /// The schedule cannot be read: the job is errored, with this reason.
    pub error: Option<String>,
    /// Why the org's settings cannot be read. Its timer alone becomes errored, with this reason.
    pub org_error: Option<String>,
}

impl Plan {
    /// Nothing happens and the timer stays as it is.
    pub fn nothing(timer: &Timer) -> Plan {
        Plan {
            runs: Vec::new(),
            gaps: Vec::new(),
            earlier: None,
            cancel: Vec::new(),
            timer: timer.clone(),
            retire: false,
            error: None,
            org_error: None,
        }
    }

    /// The gaps, each with the earlier one that grows instead, if it is stored and still ends where it says: each slot of
    /// a freeze is planned when it is due, and a week of minutes shall be one gap all the same.
    pub fn gaps_to_write(&self) -> impl Iterator<Item = (&Gap, Option<EarlierGap>)> {
        let mut earlier = self.earlier;
        self.gaps.iter().map(move |gap| (gap, earlier.take_if(|_| gap.reason == GapReason::Frozen)))
    }
}

/// Decides what happens to the slots that are due at `now`.
///
/// A timer that is disarmed or not due yet (also because a clock went backwards) gets an empty plan. A schedule that
/// cannot be read gets a plan that disarms the timer and says why; no other job notices.
pub fn plan(job: &Definition, timer: &Timer, seen: &PlanContext<'_>, now: Timestamp) -> Plan {
    let Some(next_run_at) = timer.next_run_at.filter(|next| *next <= now) else {
        return Plan::nothing(timer);
    };
    let spec = match effective_spec(job, seen) {
        Ok(spec) => spec,
        Err(reason) => {
            let timer = disarm(timer);
            return Plan { error: Some(reason), ..Plan::nothing(&timer) };
        }
    };
    if !seen.frozen.is_empty() {
        return frozen::plan(job, spec, timer, seen, now, next_run_at);
    }
    let mut planner = Planner::new(job, spec, timer, seen, now);
    if let Some(slot) = timer.rescheduled_from {
        planner.rescheduled(slot, next_run_at);
    }
    planner.due_slots();
    planner.finish()
}

fn effective_spec<'a>(job: &'a Definition, seen: &PlanContext<'a>) -> Result<&'a Spec, String> {
    match (seen.org_spec, &job.spec) {
        (Some(spec), _) | (None, Ok(spec)) => Ok(spec),
        (None, Err(broken)) => Err(broken.reason.clone()),
    }
}

/// A plan in the making: walks the slots in order, from the high-water mark on.
struct Planner<'a> {
    job: &'a Definition,
    spec: &'a Spec,
    /// The schedule as if there were no freeze.
    base: &'a Spec,
    org: Option<&'a OrgId>,
    seen: &'a PlanContext<'a>,
    overlaps: Overlaps,
    now: Timestamp,
    /// Every slot up to here has its outcome.
    mark: Timestamp,
    /// Every skipped DST gap and every excluded slot up to here is accounted for.
    skip_mark: Timestamp,
    last_local_date: Option<Date>,
    runs: Vec<NewRun>,
    gaps: Vec<Gap>,
}

impl<'a> Planner<'a> {
    fn new(job: &'a Definition, spec: &'a Spec, timer: &'a Timer, seen: &'a PlanContext<'a>, now: Timestamp) -> Self {
        Planner {
            job,
            spec,
            base: spec,
            org: timer.org.as_ref(),
            seen,
            overlaps: Overlaps::new(&job.policies, seen.active),
            now,
            mark: timer.last_slot_at,
            skip_mark: timer.last_slot_at,
            last_local_date: timer.last_local_date,
            runs: Vec::new(),
            gaps: Vec::new(),
        }
    }

    /// Plans the slot that an operator moved. Slots missed while it waited are folded into it.
    fn rescheduled(&mut self, slot: Timestamp, moved_to: Timestamp) {
        let late = self.is_late(moved_to);
        if late && self.job.policies.catch_up == CatchUp::None {
            return;
        }
        let last = self.spec.prev_at_or_before(self.now).filter(|last| *last > slot);
        let folded = last.map_or(0, |last| self.spec.count_between(slot, last));
        let fold = (late && self.job.policies.catch_up == CatchUp::Once).then_some(GapReason::Coalesced);
        self.fire(Fire { at: slot, scheduled_at: moved_to, catch_up: late, folded, fold, patient: false });
        self.mark = self.mark.max(slot);
        if let Some(last) = last {
            self.gap_until(last, GapReason::Coalesced);
        }
    }

    /// Every slot after the mark whose time has come.
    fn due_slots(&mut self) {
        let Some(last) = self.last_due() else { return };
        let late_until = self.late_until().min(last);
        let missed = self.spec.count_between(self.mark, late_until);
        match self.job.policies.catch_up {
            CatchUp::Once if missed > 0 && self.is_expired(last) => self.gap_until(last, GapReason::Expired),
            CatchUp::Once => self.fire_last(last, GapReason::Coalesced),
            CatchUp::None if late_until == last => self.gap_until(last, GapReason::Missed),
            CatchUp::None => self.fire_last(last, GapReason::Missed),
            CatchUp::All if missed > 0 => {
                self.catch_up_all(late_until);
                self.fire_each(last, false);
            }
            CatchUp::All => self.fire_each(last, false),
        }
    }

    /// One run for the latest slot, or for each of its time if it is not late. Several that are found due at once, however old they are, are no reason for several runs.
    fn fire_last(&mut self, last: Timestamp, earlier: GapReason) {
        let due = self.spec.count_between(self.mark, last);
        let own = self.spec.slots_at(last).len() as u64;
        // The slot before the last one: found from there, so a million slots cost nothing.
        if due > own
            && let Some(before) = self.spec.prev_at_or_before(just_before(last))
        {
            self.gap_until(before, earlier);
        }
        let folded = if earlier == GapReason::Coalesced { due.saturating_sub(own) } else { 0 };
        let fold = self.is_late(last).then_some(earlier);
        self.fire(Fire { folded, fold, ..self.fire_of(last) });
    }

    /// The newest `catchUpLimit` missed slots inside the window, oldest first.
    fn catch_up_all(&mut self, late_until: Timestamp) {
        if let Some(window) = self.job.policies.catch_up_window {
            self.gap_until(before(self.now, window).min(late_until), GapReason::Expired);
        }
        let missed = self.spec.count_between(self.mark, late_until);
        if missed > u64::from(self.job.policies.catch_up_limit) {
            let mut kept = late_until;
            let mut left = self.job.policies.catch_up_limit as usize;
            while left > 0 {
                let at = self.spec.prev_at_or_before(kept);
                left = at.map_or(0, |at| left.saturating_sub(self.spec.slots_at(at).len()));
                kept = at.map_or(self.mark, just_before);
            }
            self.gap_until(kept, GapReason::Missed);
        }
        self.fire_each(late_until, true);
    }

    /// A run for each slot up to `until`, as many as one plan may hold.
    fn fire_each(&mut self, until: Timestamp, patient: bool) {
        while self.runs.len() < MAX_RUNS_PER_PLAN
            && let Some(slot) = self.spec.next_after(self.mark).filter(|slot| *slot <= until)
        {
            self.fire(Fire { patient, ..self.fire_of(slot) });
        }
    }

    /// Accounts for every slot after the mark and up to `until` with one gap.
    fn gap_until(&mut self, until: Timestamp, reason: GapReason) {
        let slots = self.spec.count_between(self.mark, until);
        self.account_for_skips(until);
        if slots > 0
            && let Some(first_slot_at) = self.spec.next_after(self.mark)
            && let Some(last_slot_at) = self.spec.prev_at_or_before(until)
        {
            self.gaps.push(Gap { first_slot_at, last_slot_at, slots, reason, actor: None });
            self.mark = last_slot_at;
        }
    }

    /// The last slot whose fire time has come. Jitter can only delay the very last one past now.
    fn last_due(&self) -> Option<Timestamp> {
        let mut last = self.spec.prev_at_or_before(self.now)?;
        if self.fire_at(last) > self.now {
            last = self.spec.prev_at_or_before(just_before(last))?;
        }
        Some(last).filter(|last| *last > self.mark)
    }

    fn fire_at(&self, slot: Timestamp) -> Timestamp {
        fire_at(self.spec, self.job.id, self.org, slot, self.job.policies.jitter)
    }

    /// Returns when a run of this slot should start. Jitter is intended, so it is not a delay; a slot that is planned
    /// before its jittered time counts from now.
    fn meant_at(&self, slot: Timestamp) -> Timestamp {
        self.fire_at(slot).min(self.now).max(slot)
    }

    /// Slots up to here are missed. A jittered slot is meant to be late, so jitter counts as grace.
    fn late_until(&self) -> Timestamp {
        just_before(before(self.now, self.job.policies.grace.saturating_add(self.job.policies.jitter)))
    }

    fn is_late(&self, slot: Timestamp) -> bool {
        slot <= self.late_until()
    }

    fn is_expired(&self, slot: Timestamp) -> bool {
        self.job.policies.catch_up_window.is_some_and(|window| slot <= before(self.now, window))
    }

    fn finish(self) -> Plan {
        let mut planner = self;
        let one_time = matches!(planner.spec.when(), When::Once(_));
        let next_slot = planner.spec.next_after(planner.mark);
        let mark = planner.skip_before(next_slot);
        let next_slot = if planner.seen.frozen.is_empty() { next_slot } else { planner.base.next_after(mark) };
        let next_run_at = next_slot.map(|slot| planner.fire_at(slot));
        let (cancel, replaced) = planner.overlaps.finish();
        for run in &mut planner.runs {
            if let Some((_, by)) = replaced.iter().find(|(id, _)| *id == run.id) {
                run.skip = Some(SkipReason::Overlap { blocking: *by });
                run.held = false;
            }
        }
        let starts = planner.runs.iter().any(|run| run.skip.is_none());
        Plan {
            timer: Timer {
                job_id: planner.job.id,
                org: planner.org.cloned(),
                next_run_at,
                last_slot_at: mark,
                rescheduled_from: None,
                last_local_date: planner.last_local_date,
            },
            runs: planner.runs,
            gaps: planner.gaps,
            earlier: None,
            cancel,
            retire: one_time && next_run_at.is_none() && !starts,
            error: None,
            org_error: None,
        }
    }
}

/// `t - by`, stopping at the earliest time there is.
fn before(t: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|by| t.checked_sub(by).ok()).unwrap_or(Timestamp::MIN)
}

/// The instant after `t`; no slot lies between.
pub(crate) fn just_after(t: Timestamp) -> Timestamp {
    t.checked_add(SignedDuration::from_micros(1)).unwrap_or(Timestamp::MAX)
}

/// The instant before `t`; slots lie on whole microseconds at the finest.
pub(crate) fn just_before(t: Timestamp) -> Timestamp {
    t.checked_sub(SignedDuration::from_micros(1)).unwrap_or(Timestamp::MIN)
}
