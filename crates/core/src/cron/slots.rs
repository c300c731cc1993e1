//! Local times to instants: where daylight saving is decided.
//!
//! A zone is a row of segments with one offset each ([`crate::zone`]). In each segment a window of local time is
//! *live*: its matches fire there. Daylight saving only moves the edges of the windows:
//!
//! ```text
//!   clocks go forward (gap)                        clocks go back (fold)
//!   local  …01:59│03:00…                           local  …01:00‥01:59│01:00‥01:59│02:00…
//!   window  live │ live                            first    live      │  (dead)   │ live
//!                └ one slot here, if anything      last    (dead)     │   live    │ live
//!                  matched in 02:00‥02:59          both     live      │   live    │ live
//! ```
//!
//! A wildcard schedule (minute or hour begins with `*`) follows elapsed time: every window is live from edge to edge and
//! a gap leaves no slot behind. All other schedules name times of day and follow [`Dst`].

use crate::policy::words;
use crate::zone::{MAX_SECOND, MIN_SECOND, Segment, Zone};

use super::search::Fields;

/// Longer than two offsets can differ: a local time lies within this of its instant, whatever the zone did. Two changes
/// are never so close (a test of `zone`), so only the next segment can repeat local times of this one.
const FARTHEST_OFFSET: i64 = 2 * 86_400;

/// How a fixed-time schedule behaves when clocks change. Wildcard schedules follow elapsed time and ignore it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Dst {
    /// Local times that do not exist.
    pub gap: DstGap,
    /// Local times that happen twice.
    pub fold: DstFold,
}

/// How local times are treated that a forward change leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DstGap {
    /// They fire once, at the first instant after the gap.
    #[default]
    Shift,
    /// They do not fire; the slot is accounted for as a `dst_gap`.
    Skip,
}

/// How local times are treated that a backward change repeats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DstFold {
    /// The first one fires.
    #[default]
    First,
    /// The second one fires.
    Last,
    /// Both fire.
    Both,
}

words!(DstGap { Shift = "shift", Skip = "skip" });
words!(DstFold { First = "first", Last = "last", Both = "both" });

/// The slots of a cron expression in a zone, as unix seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slots<'a> {
    pub(crate) fields: &'a Fields,
    pub(crate) zone: &'a Zone,
    pub(crate) dst: Dst,
}

/// The range of local time in which one segment fires.
struct Window {
    offset: i64,
    /// The first instant of the segment.
    start: i64,
    /// Live local times `[low, high)`.
    low: i64,
    high: i64,
    /// Local times left out before the segment `[gap_low, low)`; equal when there is no gap to account for.
    gap_low: i64,
}

impl Slots<'_> {
    /// The first slot at or after this second.
    pub(crate) fn at_or_after(&self, second: i64) -> Option<i64> {
        let second = second.max(MIN_SECOND);
        if second >= MAX_SECOND {
            return None;
        }
        let mut index = self.zone.segment_at(second);
        // Nothing matches in `[searched, found)`: often known from the segment before.
        let (mut searched, mut found) = (i64::MAX, i64::MIN);
        // Each pass but the first jumps to just before the next match, so few are needed; the bound is a promise.
        for _ in 0..self.zone.segment_count() {
            let window = self.window(index);
            if window.start >= second && self.shifted(&window) {
                return Some(window.start);
            }
            let from = window.low.max(second + window.offset);
            if from < searched || from > found {
                (searched, found) = (from, self.fields.next(from)?);
            }
            if found < window.high {
                return within_range(found - window.offset);
            }
            index += 1;
            if index >= self.zone.segment_count() {
                return None;
            }
            // Nothing fires until `found`, unless a change back repeats local times from before the search.
            let next = self.zone.segment(index);
            if next.start + next.offset >= searched {
                index = index.max(self.zone.segment_at(found - window.offset - FARTHEST_OFFSET));
            }
        }
        None
    }

    /// The last slot at or before this second.
    pub(crate) fn at_or_before(&self, second: i64) -> Option<i64> {
        let second = second.min(MAX_SECOND - 1);
        if second < MIN_SECOND {
            return None;
        }
        let mut index = self.zone.segment_at(second);
        // Nothing matches in `(found, searched]`.
        let (mut searched, mut found) = (i64::MIN, i64::MAX);
        for _ in 0..self.zone.segment_count() {
            let window = self.window(index);
            let from = (window.high - 1).min(second + window.offset);
            if from > searched || from < found {
                (searched, found) = (from, self.fields.previous(from)?);
            }
            if found >= window.low {
                return within_range(found - window.offset);
            }
            if window.start <= second && self.shifted(&window) {
                return Some(window.start);
            }
            if index == 0 {
                return None;
            }
            index -= 1;
            let previous = self.zone.segment(index);
            if previous.end + previous.offset <= searched + 1 {
                index = index.min(self.zone.segment_at(found - window.offset + FARTHEST_OFFSET));
            }
        }
        None
    }

    /// How many slots lie in `[from, until)`. The cost grows with months, never with slots.
    pub(crate) fn count(&self, from: i64, until: i64) -> u64 {
        let (from, until) = (from.max(MIN_SECOND), until.min(MAX_SECOND));
        if until <= from {
            return 0;
        }
        let mut total = 0;
        for index in self.zone.segment_at(from)..=self.zone.segment_at(until - 1) {
            let window = self.window(index);
            let low = window.low.max(from + window.offset);
            let high = window.high.min(until + window.offset);
            total += self.fields.count(low, high);
            if window.start >= from && window.start < until && self.shifted(&window) && !self.opens_with_match(&window)
            {
                total += 1;
            }
        }
        total
    }

    /// The instants in `[from, until)` at which a skipped gap would have fired and nothing else does.
    pub(crate) fn skipped(&self, from: i64, until: i64) -> Vec<i64> {
        if self.dst.gap == DstGap::Shift || self.fields.wildcard || until <= from {
            return Vec::new();
        }
        (self.zone.segment_at(from)..=self.zone.segment_at(until - 1))
            .map(|index| self.window(index))
            .filter(|window| window.start >= from && window.start < until)
            .filter(|window| self.missing(window) && !self.opens_with_match(window))
            .map(|window| window.start)
            .collect()
    }

    /// Whether a slot stands in for the local times that are missing before this window.
    fn shifted(&self, window: &Window) -> bool {
        self.dst.gap == DstGap::Shift && self.missing(window)
    }

    /// Whether a local time that matches was left out before this window.
    fn missing(&self, window: &Window) -> bool {
        window.gap_low < window.low && self.fields.next(window.gap_low).is_some_and(|found| found < window.low)
    }

    fn opens_with_match(&self, window: &Window) -> bool {
        window.low < window.high && window.low == window.start + window.offset && self.fields.matches(window.low)
    }

    #[inline]
    fn window(&self, index: usize) -> Window {
        let Segment { start, end, offset, offset_before, offset_after } = self.zone.segment(index);
        let (mut low, mut high) = (start + offset, end + offset);
        if self.fields.wildcard {
            return Window { offset, start, low, high, gap_low: low };
        }
        match self.dst.fold {
            DstFold::First => low += (offset_before - offset).max(0),
            DstFold::Last => high -= (offset - offset_after).max(0),
            DstFold::Both => {}
        }
        let gap_low = if offset > offset_before { start + offset_before } else { low };
        Window { offset, start, low, high, gap_low }
    }
}

fn within_range(second: i64) -> Option<i64> {
    (MIN_SECOND..MAX_SECOND).contains(&second).then_some(second)
}
