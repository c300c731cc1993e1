//! [`what_if`]: what a move to another zone would do, found out by making it and letting time pass, in thought.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;

use super::reconcile::{OrgView, TimerChange, reconcile};
use super::{OrgFacts, OrgSettings, TimezoneChange, local_date, plan, spec_for};
use crate::frozen_span::FrozenSpan;
use crate::ids::Invalid;
use crate::plan::{Plan, PlanContext, thawed_at};
use crate::run::{ActiveRun, GapReason};
use crate::spec::Spec;
use crate::zone::Zone;

/// The effect of a move on a job of an org.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhatIf {
    /// The next fires without the move.
    pub before: Vec<Timestamp>,
    /// The next fires with the move. Those that are overdue by then fire at once, at `now`.
    pub after: Vec<Timestamp>,
    /// The local days after the move, from the last that ran before it, of a schedule that fires at most once a day.
    pub days: Vec<Day>,
}

/// A local day of an org, after a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Day {
    /// The local date.
    pub date: Date,
    /// How often it fires, including runs that have already happened.
    pub verdict: Verdict,
    /// When it fires, or fired.
    pub at: Option<Timestamp>,
    /// Why its slot gets no run.
    pub gap: Option<GapReason>,
}

/// How often a local day fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It had its run before the move, and gets no other.
    RanAlready,
    /// Once, at its time.
    Once,
    /// Once, as soon as the move is made: its time is already past.
    AtOnce,
    /// More than once.
    Twice,
    /// Not at all; a gap says why.
    NotAtAll,
}
crate::policy::words!(Verdict {
    RanAlready = "ran_already",
    Once = "once",
    AtOnce = "at_once",
    Twice = "twice",
    NotAtAll = "not_at_all",
});

/// The most slots of a schedule that fires at most once a day that calendars, freezes and moves keep from firing in a row.
const MAX_QUIET_DAYS: usize = 366;

/// Predicts the effect of moving the org to `timezone` at `now`, with the next `count` fires before and after. The job
/// does not fire in the `frozen` times.
pub fn what_if(
    view: &OrgView,
    frozen: &[FrozenSpan],
    timezone: &str,
    count: usize,
    now: Timestamp,
) -> Result<WhatIf, Invalid> {
    let zone = Zone::get(timezone).map_err(|error| Invalid::new("timezone", error.to_string()))?;
    let here = &view.facts.place;
    let moved = Some(TimezoneChange { from: here.timezone.clone(), at: now }).filter(|moved| moved.from != zone.name());
    let moved = moved.or_else(|| here.moved.clone());
    let place = OrgSettings { timezone: zone.name().to_owned(), changed_at: now, moved, ..here.clone() };
    let there = OrgView { facts: OrgFacts { place, ..view.facts.clone() }, ..view.clone() };
    let spec = spec_for(&there.job, &there.facts);
    let after = imagine(&there, frozen, count, now);
    let days = spec.ok().filter(Spec::at_most_daily).map_or_else(Vec::new, |spec| days(view, &spec, &after, now));
    let fires = |lived: &Lived| lived.fires.iter().map(|fire| fire.at).collect();
    Ok(WhatIf { before: fires(&imagine(view, frozen, count, now)), after: fires(&after), days })
}

/// A simulated future.
#[derive(Default)]
struct Lived {
    fires: Vec<Fire>,
    gaps: Vec<(Timestamp, GapReason)>,
}

struct Fire {
    slot: Timestamp,
    at: Timestamp,
}

/// Lets time pass until there are `count` fires, or nothing follows.
fn imagine(view: &OrgView, frozen: &[FrozenSpan], count: usize, now: Timestamp) -> Lived {
    let mut lived = Lived::default();
    let reconciled = reconcile(view, None);
    let mut timer = match (reconciled.change, &view.timer) {
        (TimerChange::Write(plan), _) => {
            lived.keep(&plan, now);
            plan.timer
        }
        (TimerChange::Keep, Some(old)) => old.timer.clone(),
        (TimerChange::Keep, None) | (TimerChange::Remove(_), _) => return lived,
    };
    // Assumes that active runs will have ended: the prediction is about days, not about overlaps.
    let seen = PlanContext { active: &[] as &[ActiveRun], upstream_succeeded_at: Some(now), org_spec: None, frozen };
    let is_daily = spec_for(&view.job, &view.facts).is_ok_and(|spec| spec.at_most_daily());
    // Every wakening makes a fire or a gap, and gaps without a fire between them are few.
    for _ in 0..count * 4 + MAX_QUIET_DAYS {
        let Some(at) = timer.next_run_at.filter(|_| lived.fires.len() < count) else { break };
        // Days are listed one by one, but not each of the many slots of a freeze.
        let at = if is_daily { at } else { thawed_at(frozen, at) };
        let at = at.max(now);
        let planned = plan(&view.job, &timer, &seen, &view.facts, at);
        lived.keep(&planned, at);
        timer = planned.timer;
    }
    lived.fires.truncate(count);
    lived
}

impl Lived {
    fn keep(&mut self, plan: &Plan, at: Timestamp) {
        self.fires.extend(plan.runs.iter().filter_map(|run| Some(Fire { slot: run.slot_at?, at })));
        self.gaps.extend(plan.gaps.iter().map(|gap| (gap.last_slot_at, gap.reason)));
    }
}

/// The local days that fires and gaps fall on, with the last that ran before.
fn days(view: &OrgView, spec: &Spec, lived: &Lived, now: Timestamp) -> Vec<Day> {
    let ran = view.timer.as_ref().and_then(|old| old.timer.last_local_date);
    let mut days: BTreeMap<Date, Day> = BTreeMap::new();
    if let Some(date) = ran {
        days.insert(date, Day { date, verdict: Verdict::RanAlready, at: None, gap: None });
    }
    for fire in &lived.fires {
        let date = local_date(spec, fire.slot);
        let verdict = if fire.at <= now { Verdict::AtOnce } else { Verdict::Once };
        let day = Day { date, verdict, at: Some(fire.at), gap: None };
        days.entry(date).and_modify(|day| day.verdict = Verdict::Twice).or_insert(day);
    }
    for (slot, reason) in &lived.gaps {
        let date = local_date(spec, *slot);
        let day = Day { date, verdict: Verdict::NotAtAll, at: None, gap: None };
        days.entry(date).or_insert(day).gap = Some(*reason);
    }
    // Days before the last run are history, and what lies behind the last fire is not all there.
    let last = lived.fires.last().map(|fire| local_date(spec, fire.slot));
    days.into_values()
        .filter(|day| ran.is_none_or(|ran| day.date >= ran) && last.is_none_or(|last| day.date <= last))
        .collect()
}
