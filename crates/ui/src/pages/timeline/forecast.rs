//! [`Forecast`]: how many fires are to come in each piece of the load, and the minutes in which most jobs fire at once.
//!
//! Every fire is counted, for every org: those of a job that fires often by arithmetic, the others one by one. What may be
//! looked at is bounded, and a forecast says whether it saw everything.

use std::collections::BTreeMap;

use everbell::JobRow;
use jiff::Timestamp;

use super::ahead::{Ahead, Known};

/// The most fires that are looked at one by one; those of further jobs are counted by piece.
const MAX_FIRES: usize = 200_000;
/// The most pieces that are counted.
const MAX_PIECES: usize = 200_000;
/// The most minutes that are named.
const MAX_HERDS: usize = 3;
/// The least number of runs in one minute that is worth a word.
const MIN_HERD: u64 = 5;
const MINUTE: i64 = 60;

/// The fires to come.
pub(super) struct Forecast {
    /// How many runs start in each piece.
    pub(super) starts: Vec<u64>,
    /// The busiest minutes first.
    pub(super) herds: Vec<Herd>,
    /// The busiest minute of each piece, where many jobs fire at once.
    pub(super) peaks: Vec<Option<Herd>>,
    /// Whether the work was bounded before every job was counted.
    pub(super) is_cut: bool,
}

/// A minute in which many jobs fire that do not fire all the time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Herd {
    pub(super) at: Timestamp,
    pub(super) jobs: u64,
    /// More than jobs if some fire for several orgs.
    pub(super) runs: u64,
}

/// The fires of one minute.
#[derive(Default)]
struct Minute {
    /// The places of the jobs in the list, in order.
    jobs: Vec<usize>,
    runs: u64,
}

/// The input of a forecast.
pub(super) struct Input<'a> {
    pub(super) jobs: &'a [JobRow],
    pub(super) known: Known<'a>,
}

impl Forecast {
    /// Counts the fires from now on, in pieces between these bounds, which increase.
    pub(super) fn new(input: &Input<'_>, bounds: &[Timestamp]) -> Forecast {
        let mut count = Count { bounds, starts: vec![0; bounds.len().saturating_sub(1)], minutes: BTreeMap::new() };
        let mut looked = Effort::default();
        let mut is_cut = false;
        for (index, job) in input.jobs.iter().enumerate() {
            if looked.pieces >= MAX_PIECES {
                is_cut = true;
                break;
            }
            if let Some(ahead) = Ahead::new(job, &input.known) {
                let own = count.job(index, &ahead, input.known.now, MAX_FIRES.saturating_sub(looked.fires));
                looked = Effort { fires: looked.fires + own.fires, pieces: looked.pieces + own.pieces };
            }
        }
        is_cut |= input.known.orgs.is_cut();
        Forecast { herds: herds(&count.minutes), peaks: peaks(&count.minutes, bounds), starts: count.starts, is_cut }
    }
}

/// The fires and pieces of the window that were computed.
#[derive(Default)]
struct Effort {
    fires: usize,
    pieces: usize,
}

struct Count<'a> {
    bounds: &'a [Timestamp],
    starts: Vec<u64>,
    minutes: BTreeMap<i64, Minute>,
}

impl Count<'_> {
    /// Counts the fires of a job, one by one up to this many. Returns how many were computed.
    fn job(&mut self, index: usize, ahead: &Ahead<'_>, now: Timestamp, most: usize) -> Effort {
        let [first, .., last] = self.bounds else { return Effort::default() };
        let (from, to) = (now.max(*first), *last);
        let effort = ahead.effort(from, to);
        if !ahead.is_frequent(from) && effort <= most as u64 {
            for (at, runs) in ahead.fires(from, to).flat_map(|fire| fire.starts()) {
                if at >= from {
                    self.fire(index, at, runs);
                }
            }
            return Effort { fires: effort as usize, pieces: 0 };
        }
        for (start, piece) in self.starts.iter_mut().zip(self.bounds.windows(2)) {
            let begin = piece[0].max(from);
            if begin < piece[1] {
                *start += ahead.count(begin, piece[1]);
            }
        }
        Effort { fires: 0, pieces: self.starts.len() }
    }

    fn fire(&mut self, index: usize, at: Timestamp, runs: u64) {
        let after = self.bounds.partition_point(|bound| *bound <= at);
        let Some(start) = after.checked_sub(1).and_then(|piece| self.starts.get_mut(piece)) else { return };
        *start += runs;
        let minute = self.minutes.entry(at.as_second().div_euclid(MINUTE)).or_default();
        minute.runs += runs;
        if minute.jobs.last() != Some(&index) {
            minute.jobs.push(index);
        }
    }
}

/// The busiest minutes; of those with the same jobs only the next one.
fn herds(minutes: &BTreeMap<i64, Minute>) -> Vec<Herd> {
    let mut busy: Vec<(&i64, &Minute)> = minutes.iter().filter(|(_, minute)| minute.runs >= MIN_HERD).collect();
    busy.sort_by_key(|(at, minute)| (std::cmp::Reverse(minute.runs), **at));
    let mut named: Vec<(&i64, &Minute)> = Vec::new();
    for (at, minute) in busy {
        if named.len() < MAX_HERDS && named.iter().all(|(_, other)| other.jobs != minute.jobs) {
            named.push((at, minute));
        }
    }
    named.into_iter().filter_map(herd).collect()
}

fn herd((at, minute): (&i64, &Minute)) -> Option<Herd> {
    let at = Timestamp::from_second(at * MINUTE).ok()?;
    Some(Herd { at, jobs: minute.jobs.len() as u64, runs: minute.runs })
}

/// The busiest minute of each piece.
fn peaks(minutes: &BTreeMap<i64, Minute>, bounds: &[Timestamp]) -> Vec<Option<Herd>> {
    let number = |at: Timestamp| at.as_second().div_euclid(MINUTE);
    let peak = |piece: &[Timestamp]| {
        let own = minutes.range(number(piece[0])..number(piece[1])).filter(|(_, minute)| minute.runs >= MIN_HERD);
        own.max_by_key(|(at, minute)| (minute.runs, std::cmp::Reverse(**at))).and_then(herd)
    };
    bounds.windows(2).map(peak).collect()
}

#[cfg(test)]
mod tests;
