//! Slots that move to another day, because the calendars of the job exclude theirs.
//!
//! ```text
//!              Fri 18:00      Sat 18:00      Sun 18:00      Mon 18:00
//!   excluded                 └───────────────────────────┘
//!   previous   ◄ Fri Sat Sun                                  Mon
//!   next         Fri                                          ► Sat Sun Mon
//! ```
//!
//! A slot keeps its own time, which is its identity, and has a time at which it fires. All other questions to a [`Spec`] are
//! about times of fires: several slots may fire at the same time, and the order of fires need not be that of slots. A slot is
//! never further than [`WINDOW`] from its fire, so every answer looks at the slots of that window. A schedule whose slots move
//! has at most [`MAX_ROLLED_TIMES`] of them a day, so these are few.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::filtered::{ExcludedSlots, MAX_LISTED_RANGES, last_before};
use super::{Spec, When, floor};
use crate::calendar::{Exclusion, Filter, Roll};
use crate::cron::{DstFold, DstGap, Kind};
use crate::zone::{self, MAX_SECOND, MIN_SECOND, Segment};

/// The most times of day of a schedule whose slots move.
pub(crate) const MAX_ROLLED_TIMES: u64 = 24;
/// How far a slot moves at most. Further away it is excluded.
const MAX_ROLLED_DAYS: i64 = 31;

const DAY: i64 = 86_400;
/// Longer than a slot can be away from its fire: days may be left out or repeated where a zone changes sides.
const WINDOW: i64 = (MAX_ROLLED_DAYS + 3) * DAY;
/// Longer than two offsets can differ.
const FARTHEST_OFFSET: i64 = 2 * DAY;
/// The most slots that a search passes without a fire. A schedule without one beyond that never fires.
const MAX_STEPS: usize = 20_000;

/// The schedule of a job whose slots move. Seconds are unix seconds.
#[derive(Clone, Copy)]
pub(super) struct Rolled<'a> {
    spec: &'a Spec,
    filter: Filter<'a>,
    is_forward: bool,
}

/// A slot that fires on another day than its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedSlot {
    /// The slot.
    pub slot: Timestamp,
    /// Why it does not fire on its own day.
    pub exclusion: Exclusion,
}

impl MovedSlot {
    /// Its day, with the name that the calendar gives to it: `2027-01-01 (New Year)`.
    pub fn day(&self) -> String {
        let Exclusion { day, day_name, .. } = &self.exclusion;
        day_name.as_ref().map_or_else(|| day.to_string(), |name| format!("{day} ({name})"))
    }
}

impl Spec {
    /// Whether slots could move: a schedule with few fixed times of day.
    pub fn can_roll(&self) -> bool {
        match &self.when {
            When::Cron(expression) => match expression.kind {
                Kind::Fields(fields) => fields.times_per_day() <= MAX_ROLLED_TIMES,
                Kind::Every(_) => false,
            },
            When::Every { .. } | When::Once(_) | When::After(_) | When::AfterAll(_) => false,
        }
    }

    /// The fate of slots on days that its calendars exclude.
    pub fn roll(&self) -> Roll {
        let roll = self.calendars().map_or(Roll::Skip, |rules| rules.roll);
        if roll != Roll::Skip && self.can_roll() { roll } else { Roll::Skip }
    }

    /// Returns when a slot fires: at its own time, or on another day. `None` if it is no slot, or cannot move.
    pub fn fires_at(&self, slot: Timestamp) -> Option<Timestamp> {
        match self.rolled() {
            None => self.matches(slot).then_some(slot),
            Some(_) if self.any_at_or_before(slot) != Some(slot) => None,
            Some(rolled) => rolled.fires_at(floor(slot)).map(zone::instant),
        }
    }

    /// The slots that fire at this time, in order. Without slots that move it is the one of that very time.
    pub fn slots_at(&self, at: Timestamp) -> Vec<Timestamp> {
        let Some(rolled) = self.rolled() else { return vec![at] };
        let (after, until) = rolled.slots_of(floor(at) - 1, floor(at));
        let all = std::iter::successors(self.any_after(instant(after)), |slot| self.any_after(*slot));
        let near = all.take_while(|slot| floor(*slot) <= until);
        near.filter(|slot| rolled.fires_at(floor(*slot)) == Some(floor(at))).collect()
    }

    /// How many runs a fire at this time has, also if jitter delays it: several where calendars move several slots to one
    /// time, because each of them runs.
    pub fn runs_at(&self, at: Timestamp) -> u64 {
        if self.roll() == Roll::Skip {
            return 1;
        }
        let own = self.slots_at(at).len();
        let before = || self.prev_at_or_before(at).map_or(1, |last| self.slots_at(last).len());
        (if own > 0 { own } else { before() }).max(1) as u64
    }

    /// The slots that fire at this time although they are of other days.
    pub fn moved_to(&self, at: Timestamp) -> Vec<MovedSlot> {
        if self.roll() == Roll::Skip {
            return Vec::new();
        }
        let moved = self.slots_at(at).into_iter().filter(|slot| *slot != at);
        moved.filter_map(|slot| Some(MovedSlot { slot, exclusion: self.exclusion_at(slot)? })).collect()
    }

    /// The slots after `t` by their own time, whenever they fire. Slots that cannot fire are left out.
    pub fn own_times_after(&self, t: Timestamp) -> impl Iterator<Item = Timestamp> {
        let next = |t: Timestamp| match self.rolled() {
            None => self.next_after(t),
            Some(rolled) => {
                let all = std::iter::successors(self.any_after(t), |slot| self.any_after(*slot));
                all.take(MAX_STEPS).find(|slot| rolled.fires_at(floor(*slot)).is_some())
            }
        };
        std::iter::successors(next(t), move |slot| next(*slot))
    }

    /// The last slot at or before `t` by its own time, whenever it fires.
    pub fn last_own_time(&self, t: Timestamp) -> Option<Timestamp> {
        let Some(rolled) = self.rolled() else { return self.prev_at_or_before(t) };
        let earlier = |slot: &Timestamp| self.any_at_or_before(instant(floor(*slot) - 1));
        let all = std::iter::successors(self.any_at_or_before(t), earlier);
        all.take(MAX_STEPS).find(|slot| rolled.fires_at(floor(*slot)).is_some())
    }

    /// How many slots lie in `(after, until]` by their own time, whenever they fire.
    pub fn count_own_times(&self, after: Timestamp, until: Timestamp) -> u64 {
        if self.rolled().is_none() {
            return self.count_between(after, until);
        }
        let stuck: u64 = self.excluded_between(after, until).iter().map(|row| row.slots).sum();
        self.count_any(after, until) - stuck
    }

    /// The slots in `(after, until]` whose fire would have been at or before `since`, in order.
    pub fn moved_before(&self, after: Timestamp, until: Timestamp, since: Timestamp) -> Vec<Timestamp> {
        let Some(rolled) = self.rolled().filter(|rolled| !rolled.is_forward) else { return Vec::new() };
        let until = until.min(instant(floor(since) + WINDOW));
        let slots = std::iter::successors(self.any_after(after.max(since)), |slot| self.any_after(*slot));
        let is_past = |slot: &Timestamp| rolled.fires_at(floor(*slot)).is_some_and(|at| instant(at) <= since);
        slots.take_while(|slot| *slot <= until).filter(is_past).collect()
    }

    /// The slots at or before `now` that fire after it, in order.
    pub fn moved_beyond(&self, now: Timestamp) -> Vec<Timestamp> {
        let Some(rolled) = self.rolled().filter(|rolled| rolled.is_forward) else { return Vec::new() };
        let from = instant(floor(now) - WINDOW);
        let slots = std::iter::successors(self.any_after(from), |slot| self.any_after(*slot));
        let is_ahead = |slot: &Timestamp| rolled.fires_at(floor(*slot)).is_some_and(|at| instant(at) > now);
        slots.take_while(|slot| *slot <= now).filter(is_ahead).collect()
    }

    pub(super) fn rolled(&self) -> Option<Rolled<'_>> {
        let is_forward = match self.roll() {
            Roll::Skip => return None,
            Roll::Next => true,
            Roll::Previous => false,
        };
        let filter = Filter { rules: self.calendars()?, zone: &self.zone, frozen: &[] };
        Some(Rolled { spec: self, filter, is_forward })
    }

    fn is_frozen(&self, second: i64) -> bool {
        self.frozen.as_deref().unwrap_or_default().iter().any(|(from, until)| (*from..*until).contains(&second))
    }
}

impl<'a> Rolled<'a> {
    /// Returns when a slot fires; `None` if no day near it is allowed.
    fn fires_at(&self, slot: i64) -> Option<i64> {
        if self.filter.excluded_until(slot).is_none() {
            return Some(slot);
        }
        let local = slot + self.segment(slot).offset;
        let (day, time) = (local.div_euclid(DAY), local.rem_euclid(DAY));
        let mut away = 1;
        while away <= MAX_ROLLED_DAYS {
            let target = if self.is_forward { day + away } else { day - away };
            away += 1;
            let Some(at) = self.resolve(target * DAY + time) else { continue };
            // The edge of the excluded range: no day before it is allowed.
            let edge = if self.is_forward {
                self.filter.excluded_until(at)
            } else {
                self.filter.excluded_since(at).map(|first| first - 1)
            };
            let Some(edge) = edge else { return Some(at).filter(|at| self.spec.in_bounds(zone::instant(*at))) };
            let edge = (edge + self.segment(edge).offset).div_euclid(DAY);
            // One day less, because local days need not follow each other where clocks change at midnight.
            away = away.max((edge - day).abs() - 1);
        }
        None
    }

    /// The instant of a local time, by the rules for changes of clocks; `None` if the local time is left out.
    fn resolve(&self, local: i64) -> Option<i64> {
        let zone = &self.spec.zone;
        let mut found = None;
        for index in zone.segment_at(local - FARTHEST_OFFSET)..zone.segment_count() {
            let Segment { start, end, offset, .. } = zone.segment(index);
            if start - FARTHEST_OFFSET > local {
                break;
            }
            if (start + offset..end + offset).contains(&local) {
                found = Some(local - offset);
                if self.spec.dst.fold != DstFold::Last {
                    break;
                }
            } else if found.is_none() && start + offset > local {
                found = (self.spec.dst.gap == DstGap::Shift).then_some(start);
                break;
            }
        }
        found.filter(|at| (MIN_SECOND..MAX_SECOND).contains(at))
    }

    fn segment(&self, second: i64) -> Segment {
        self.spec.zone.segment(self.spec.zone.segment_at(second))
    }

    /// The fires after `t`, in order.
    pub(super) fn fires_after(self, t: Timestamp) -> FiresAfter<'a> {
        let after = floor(t);
        let reached = self.slots_of(after, after).0;
        FiresAfter { rolled: self, reached: Some(reached), found: BTreeSet::new(), last: after }
    }

    /// The last fire at or before `t`.
    pub(super) fn last_fire(&self, t: Timestamp) -> Option<Timestamp> {
        let until = floor(t);
        let (mut from, mut best) = (self.slots_of(until - 1, until).1, None);
        for _ in 0..MAX_STEPS {
            let Some(slot) = self.spec.any_at_or_before(instant(from)).map(floor) else { break };
            // Earlier slots fire no later than this.
            let latest = if self.is_forward { slot + WINDOW } else { slot };
            if best.is_some_and(|best| latest <= best) {
                break;
            }
            let fire = self.fires_at(slot).filter(|at| *at <= until && !self.spec.is_frozen(*at));
            best = best.max(fire);
            from = slot - 1;
        }
        best.map(zone::instant)
    }

    /// How many slots fire in `(after, until]`.
    pub(super) fn count(&self, after: Timestamp, until: Timestamp) -> u64 {
        let (first, last) = (floor(after), floor(until));
        let (from, end) = self.slots_of(first, last);
        let (mut reached, end, mut total) = (instant(from), instant(end), 0);
        while let Some(slot) = self.spec.any_after(reached).filter(|slot| *slot <= end) {
            let second = floor(slot);
            if self.spec.frozen.is_none() && self.filter.excluded_until(second).is_none() {
                // A row of slots that fire at their own times.
                let stop = last_before(self.filter.allowed_until(second)).map_or(end, |stop| stop.min(end));
                total += self.spec.count_any(reached.max(after), stop.min(until));
                reached = stop;
                continue;
            }
            let fire = self.fires_at(second).filter(|at| !self.spec.is_frozen(*at));
            total += u64::from(fire.is_some_and(|at| at > first && at <= last));
            reached = slot;
        }
        total
    }

    /// The slots in `(after, until]` that cannot move, in rows.
    pub(super) fn excluded(&self, after: Timestamp, until: Timestamp) -> Vec<ExcludedSlots> {
        let (mut reached, mut rows, mut is_row) = (after, Vec::<ExcludedSlots>::new(), false);
        while let Some(slot) = self.spec.any_after(reached).filter(|slot| *slot <= until) {
            reached = slot;
            if self.filter.excluded_until(floor(slot)).is_none() {
                is_row = false;
                let stop = last_before(self.filter.allowed_until(floor(slot)));
                let Some(stop) = stop else { break };
                reached = stop;
                continue;
            }
            if self.fires_at(floor(slot)).is_some() {
                is_row = false;
                continue;
            }
            let is_full = rows.len() == MAX_LISTED_RANGES;
            match rows.last_mut() {
                Some(row) if is_row || is_full => {
                    *row = ExcludedSlots { last: slot, slots: row.slots + 1, ..*row };
                }
                _ => rows.push(ExcludedSlots { first: slot, last: slot, slots: 1 }),
            }
            is_row = true;
        }
        rows
    }

    /// The slots `(after, until]` among which are all that fire in `(first, last]`.
    fn slots_of(&self, first: i64, last: i64) -> (i64, i64) {
        if self.is_forward { (first - WINDOW, last) } else { (first, last + WINDOW) }
    }
}

/// See [`Rolled::fires_after`].
pub(super) struct FiresAfter<'a> {
    rolled: Rolled<'a>,
    /// Every slot up to here is in `found`; `None` once there are no more.
    reached: Option<i64>,
    /// Fires of slots that were looked at and were not returned.
    found: BTreeSet<i64>,
    /// The fire that was returned last.
    last: i64,
}

impl Iterator for FiresAfter<'_> {
    type Item = Timestamp;

    fn next(&mut self) -> Option<Timestamp> {
        let (rolled, spec) = (self.rolled, self.rolled.spec);
        for _ in 0..MAX_STEPS {
            let first = self.found.first().copied();
            // Slots that were not looked at fire after this.
            let is_next = |first: i64| match self.reached {
                Some(reached) if rolled.is_forward => first <= reached,
                Some(reached) => first <= reached - WINDOW,
                None => true,
            };
            if let Some(first) = first.filter(|first| is_next(*first)) {
                self.found.remove(&first);
                self.last = first;
                return Some(zone::instant(first));
            }
            let slot = spec.any_after(instant(self.reached?)).map(floor);
            self.reached = slot;
            let fire = slot.and_then(|slot| rolled.fires_at(slot));
            self.found.extend(fire.filter(|at| *at > self.last && !spec.is_frozen(*at)));
        }
        None
    }
}

/// The instant of a second, or the end of time that it is beyond.
fn instant(second: i64) -> Timestamp {
    zone::instant(second.clamp(MIN_SECOND, MAX_SECOND))
}
