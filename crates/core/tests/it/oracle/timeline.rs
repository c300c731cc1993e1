//! A stretch of time, instant by instant, with the wall clock of a zone beside it.

use everbell_core::cron::{Dst, DstFold, DstGap};
use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use super::schedule::Schedule;

const DAY: i64 = 86_400;
/// The wall clock is read at each end of such a block, and inside it only if the two do not agree.
const BLOCK: i64 = 900;

/// Every instant of a span, one per minute (or per second), in order.
pub(crate) struct Timeline {
    step: i64,
    rows: Vec<Row>,
    /// The local days that occur, also those that a gap leaves out.
    days: Vec<Date>,
    first_day: i64,
}

/// Both in seconds since 1970, of the instant and of the wall clock.
#[derive(Clone, Copy)]
struct Row {
    instant: i64,
    local: i64,
    /// No other row before (or after) it has the same local time.
    first: bool,
    last: bool,
    /// Local times between the row before and this one that no row has.
    gap: bool,
}

/// The slots that the rules demand.
pub(crate) struct Expected {
    pub(crate) slots: Vec<i64>,
    /// Gaps whose local times were passed over.
    pub(crate) skipped: Vec<i64>,
    /// Whether the policies had something to decide.
    pub(crate) in_gap: bool,
    pub(crate) in_fold: bool,
}

impl Timeline {
    /// `step` is 60 where the zone's offsets are whole minutes, and 1 where they are not.
    pub(crate) fn new(tz: &TimeZone, from: i64, until: i64, step: i64) -> Timeline {
        let (from, until) = (from.div_euclid(BLOCK) * BLOCK, until.div_euclid(BLOCK) * BLOCK);
        let mut rows = Vec::with_capacity(((until - from) / step) as usize);
        let mut local = wall_clock(tz, from);
        for block in (from..until).step_by(BLOCK as usize) {
            let next = wall_clock(tz, block + BLOCK);
            let steady = next - local == BLOCK;
            for instant in (block..block + BLOCK).step_by(step as usize) {
                let local = if steady { local + instant - block } else { wall_clock(tz, instant) };
                assert_eq!(local.rem_euclid(step), 0, "{instant}: the offset is not a multiple of the step");
                rows.push(Row { instant, local, first: true, last: true, gap: false });
            }
            local = next;
        }
        mark_changes(&mut rows, step);
        let low = rows.iter().map(|row| row.local).min().unwrap().div_euclid(DAY);
        let high = rows.iter().map(|row| row.local).max().unwrap().div_euclid(DAY);
        let days = (low..=high).map(|day| date(1970, 1, 1).checked_add(day.days()).unwrap()).collect();
        Timeline { step, rows, days, first_day: low }
    }

    /// The slots of a schedule, and the gaps that were skipped, by looking at every row.
    pub(crate) fn expected(&self, schedule: &Schedule, dst: Dst) -> Expected {
        let matching = Matching::new(self, schedule);
        let wildcard = schedule.wildcard();
        let mut expected = Expected { slots: Vec::new(), skipped: Vec::new(), in_gap: false, in_fold: false };
        let mut before = self.rows[0].local;
        for row in &self.rows {
            let mut left_out = (before + self.step..row.local).step_by(self.step as usize);
            let lost = row.gap && !wildcard && left_out.any(|local| matching.has(local));
            let matches = matching.has(row.local);
            let live = match dst.fold {
                _ if wildcard => true,
                DstFold::First => row.first,
                DstFold::Last => row.last,
                DstFold::Both => true,
            };
            let slots = if live && matches { self.slots_of(*row, &matching) } else { Vec::new() };
            if lost && slots.first() != Some(&row.instant) {
                match dst.gap {
                    DstGap::Shift => expected.slots.push(row.instant),
                    DstGap::Skip => expected.skipped.push(row.instant),
                }
            }
            expected.slots.extend(slots);
            expected.in_gap |= lost;
            expected.in_fold |= matches && !wildcard && !(row.first && row.last);
            before = row.local;
        }
        expected
    }

    /// A row of a minute stands for all of its seconds.
    fn slots_of(&self, row: Row, matching: &Matching<'_>) -> Vec<i64> {
        if self.step == 1 {
            vec![row.instant]
        } else {
            matching.seconds.iter().map(|second| row.instant + second).collect()
        }
    }
}

/// The local times that match, looked up per day, hour, minute and second.
struct Matching<'a> {
    timeline: &'a Timeline,
    days: Vec<bool>,
    hours: Vec<bool>,
    minutes: Vec<bool>,
    seconds: Vec<i64>,
}

impl<'a> Matching<'a> {
    fn new(timeline: &'a Timeline, schedule: &Schedule) -> Matching<'a> {
        let second = |value: &i64| schedule.second.as_ref().map_or(*value == 0, |field| field.has(*value as u32));
        Matching {
            timeline,
            days: timeline.days.iter().map(|date| schedule.on(*date)).collect(),
            hours: (0..24).map(|hour| schedule.hour.has(hour)).collect(),
            minutes: (0..60).map(|minute| schedule.minute.has(minute)).collect(),
            seconds: (0..60).filter(second).collect(),
        }
    }

    fn has(&self, local: i64) -> bool {
        let second = local.rem_euclid(DAY);
        self.days[(local.div_euclid(DAY) - self.timeline.first_day) as usize]
            && self.hours[(second / 3600) as usize]
            && self.minutes[(second / 60 % 60) as usize]
            && (self.timeline.step == 60 || self.seconds.contains(&(second % 60)))
    }
}

/// Returns the time that a wall clock shows, as seconds since 1970 on that clock.
fn wall_clock(tz: &TimeZone, instant: i64) -> i64 {
    let shown = tz.to_datetime(Timestamp::from_second(instant).unwrap());
    TimeZone::UTC.to_timestamp(shown).unwrap().as_second()
}

fn mark_changes(rows: &mut [Row], step: i64) {
    let steady = |pair: &[Row]| pair[1].local - pair[0].local == step;
    if rows.windows(2).all(steady) {
        return;
    }
    let mut at: Vec<(i64, usize)> = rows.iter().enumerate().map(|(index, row)| (row.local, index)).collect();
    at.sort_unstable();
    for pair in at.windows(2) {
        if pair[0].0 == pair[1].0 {
            rows[pair[0].1].last = false;
            rows[pair[1].1].first = false;
        }
    }
    for index in 1..rows.len() {
        rows[index].gap = rows[index].local - rows[index - 1].local > step;
    }
}
