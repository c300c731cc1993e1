//! The slots of a [`Spec`] on the days that its calendars allow.
//!
//! Allowed and excluded days are ranges of instants that are walked one by one ([`Filter`]): a dense schedule costs as much
//! as the ranges that it crosses, a sparse one as much as its slots.

use jiff::Timestamp;

use super::{Spec, floor};
use crate::calendar::{CalendarRules, Exclusion, Filter, Roll};
use crate::zone::{self, MAX_SECOND, MIN_SECOND};

/// The most excluded ranges that a search for one slot passes. A schedule without a slot beyond that never fires: with
/// weekly rules these are 96 years.
const MAX_RANGES: usize = 5_000;

/// The most ranges that are listed one by one. The last one holds the slots of all that follow.
pub(super) const MAX_LISTED_RANGES: usize = 100;

static NO_RULES: CalendarRules = CalendarRules { exclude: Vec::new(), only: Vec::new(), roll: Roll::Skip };

/// A row of slots that calendars exclude.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExcludedSlots {
    /// The first of them.
    pub first: Timestamp,
    /// The last of them.
    pub last: Timestamp,
    /// How many.
    pub slots: u64,
}

impl Spec {
    /// The calendars that limit its days, if any.
    pub fn calendars(&self) -> Option<&CalendarRules> {
        self.calendars.as_deref()
    }

    /// The first slot after `t`: the first time at which slots fire, if slots move to other days.
    pub fn next_after(&self, t: Timestamp) -> Option<Timestamp> {
        if let Some(rolled) = self.rolled() {
            return rolled.fires_after(t).next();
        }
        let Some(filter) = self.filter() else { return self.any_after(t) };
        let mut after = t;
        for _ in 0..MAX_RANGES {
            let slot = self.any_after(after)?;
            let Some(end) = filter.excluded_until(floor(slot)) else { return Some(slot) };
            after = last_before(end)?;
        }
        None
    }

    /// The last slot at or before `t`: the latest missed one, without walking through the others.
    pub fn prev_at_or_before(&self, t: Timestamp) -> Option<Timestamp> {
        if let Some(rolled) = self.rolled() {
            return rolled.last_fire(t);
        }
        let Some(filter) = self.filter() else { return self.any_at_or_before(t) };
        let mut until = t;
        for _ in 0..MAX_RANGES {
            let slot = self.any_at_or_before(until)?;
            let Some(begin) = filter.excluded_since(floor(slot)) else { return Some(slot) };
            if begin <= MIN_SECOND {
                return None;
            }
            until = zone::instant(begin - 1);
        }
        None
    }

    /// How many slots fire in `(after, until]`, by arithmetic as far as none moves to another day.
    pub fn count_between(&self, after: Timestamp, until: Timestamp) -> u64 {
        if let Some(rolled) = self.rolled() {
            return rolled.count(after, until);
        }
        let Some(filter) = self.filter() else { return self.count_any(after, until) };
        let (mut after, mut total) = (after, 0);
        while let Some(slot) = self.any_after(after).filter(|slot| *slot <= until) {
            let end = if let Some(end) = filter.excluded_until(floor(slot)) {
                last_before(end)
            } else {
                let end = last_before(filter.allowed_until(floor(slot)));
                total += self.count_any(after, end.map_or(until, |end| end.min(until)));
                end
            };
            match end {
                Some(end) => after = end,
                None => break,
            }
        }
        total
    }

    /// The slots in `(after, until]` that calendars exclude and that do not move to another day, in rows. Never more than about a hundred rows: the last one
    /// then holds all that follow.
    pub fn excluded_between(&self, after: Timestamp, until: Timestamp) -> Vec<ExcludedSlots> {
        if let Some(rolled) = self.rolled() {
            return rolled.excluded(after, until);
        }
        let Some(filter) = self.filter() else { return Vec::new() };
        let (mut after, mut rows) = (after, Vec::<ExcludedSlots>::new());
        while let Some(first) = self.any_after(after).filter(|slot| *slot <= until) {
            let end = match filter.excluded_until(floor(first)) {
                None => last_before(filter.allowed_until(floor(first))),
                Some(end) => {
                    let end = last_before(end);
                    let stop = end.map_or(until, |end| end.min(until));
                    let slots = self.count_any(after, stop);
                    let last = self.any_at_or_before(stop).unwrap_or(first);
                    if rows.len() < MAX_LISTED_RANGES {
                        rows.push(ExcludedSlots { first, last, slots });
                    } else if let Some(row) = rows.last_mut() {
                        *row = ExcludedSlots { last, slots: row.slots + slots, ..*row };
                    }
                    end
                }
            };
            match end {
                Some(end) => after = end,
                None => break,
            }
        }
        rows
    }

    /// Why `t` is no slot although the expression matches: the calendar that excludes its day.
    pub fn exclusion_at(&self, t: Timestamp) -> Option<Exclusion> {
        let filter = self.filter()?;
        (self.any_at_or_before(t) == Some(t)).then(|| filter.exclusion(floor(t))).flatten()
    }

    pub(super) fn is_allowed(&self, second: i64) -> bool {
        self.filter().is_none_or(|filter| filter.excluded_until(second).is_none())
    }

    fn filter(&self) -> Option<Filter<'_>> {
        if self.calendars.is_none() && self.frozen.is_none() {
            return None;
        }
        let rules = self.calendars.as_deref().unwrap_or(&NO_RULES);
        Some(Filter { rules, zone: &self.zone, frozen: self.frozen.as_deref().unwrap_or_default() })
    }
}

/// The last second before the end of a range; `None` if the range never ends.
pub(super) fn last_before(end: i64) -> Option<Timestamp> {
    (end < MAX_SECOND).then(|| zone::instant(end - 1))
}
