//! [`OrgSlots`]: the slots of a job for all its orgs, in order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, btree_map};
use std::iter::Peekable;
use std::time::Duration;

use jiff::Timestamp;

use super::schedule::{Group, OrgSchedule, OrgSlot};
use crate::ids::OrgId;
use crate::plan::just_before;

/// See [`OrgSchedule::slots`].
pub struct OrgSlots<'a> {
    schedule: &'a OrgSchedule,
    /// The later slots of each group.
    slots: Vec<Box<dyn Iterator<Item = Timestamp> + 'a>>,
    /// The next slot of each group.
    next: BinaryHeap<Reverse<(Timestamp, usize)>>,
    armed: Option<Peekable<btree_map::Range<'a, Timestamp, (u64, OrgId)>>>,
    moved: MovedOrgs,
    to: Timestamp,
}

impl<'a> OrgSlots<'a> {
    pub(super) fn new(schedule: &'a OrgSchedule, from: Timestamp, to: Timestamp) -> OrgSlots<'a> {
        let (begin, groups) = (just_before(from).max(schedule.after), &schedule.groups);
        let mut slots: Vec<Box<dyn Iterator<Item = Timestamp> + '_>> = Vec::with_capacity(groups.len());
        let mut next = BinaryHeap::with_capacity(groups.len());
        for (index, group) in groups.iter().enumerate() {
            let mut own = group.spec.slots_after(begin);
            next.extend(own.next().map(|slot| Reverse((slot, index))));
            slots.push(Box::new(own));
        }
        let armed = schedule.armed.as_ref().map(|armed| armed.range(from..).peekable());
        OrgSlots { schedule, slots, next, armed, moved: MovedOrgs::before(schedule, from), to }
    }

    /// Takes the groups and timers of this time.
    fn slot(&mut self, at: Timestamp) -> OrgSlot {
        let armed = self.armed.as_mut().map(|armed| armed.next_if(|(time, _)| **time == at).map(|(_, own)| own));
        let (timers, groups) = (armed.flatten(), &self.schedule.groups);
        // The first slot of a group is what the timers of its orgs say, if they are known.
        let (mut first, mut later, mut within) = (Vec::new(), Vec::new(), Duration::ZERO);
        while let Some(Reverse((_, index))) = self.next.peek().copied().filter(|Reverse((next, _))| *next == at) {
            self.next.pop();
            let following = self.slots[index].next();
            self.next.extend(following.map(|slot| Reverse((slot, index))));
            let room = following.and_then(|slot| Duration::try_from(slot.duration_since(at)).ok());
            within = within.max(room.map_or(self.schedule.jitter, |room| self.schedule.jitter.min(room)));
            let is_first = armed.is_some() && groups[index].first_slot == Some(at);
            if is_first { first.push(index) } else { later.push(index) }
        }
        let timers_here = timers.map_or(0, |(orgs, _)| *orgs);
        let Settled { stayed, others } = self.moved.settle(groups, (&first, &later), timers_here);
        later.retain(|index| self.moved.present(groups, *index) > 0);
        let runs_each = |index: &usize| groups[*index].spec.runs_at(at);
        let (mut orgs, mut runs) = (stayed + others, stayed * first.iter().map(runs_each).max().unwrap_or(1) + others);
        for index in &later {
            let present = self.moved.present(groups, *index);
            (orgs, runs) = (orgs + present, runs + present * runs_each(index));
        }
        let has_timers = !first.is_empty() || later.is_empty();
        let firsts = later.iter().map(|index| groups[*index].first_org.as_ref());
        let firsts = firsts.chain(timers.filter(|_| has_timers).map(|(_, first)| Some(first)));
        let first_org = firsts.collect::<Option<Vec<_>>>().and_then(|firsts| firsts.into_iter().min().cloned());
        let with_timers = first.iter().filter(|_| timers.is_some());
        let mut zones: Vec<usize> = with_timers.chain(&later).map(|index| groups[*index].zone).collect();
        zones.sort_unstable();
        zones.dedup();
        OrgSlot { at, orgs, runs, zones: orgs.min(zones.len() as u64), first_org, within }
    }
}

impl Iterator for OrgSlots<'_> {
    type Item = OrgSlot;

    fn next(&mut self) -> Option<OrgSlot> {
        loop {
            let of_groups = self.next.peek().map(|Reverse((at, _))| *at);
            let of_timers = self.armed.as_mut().and_then(|armed| armed.peek().map(|(at, _)| **at));
            let at = of_groups.into_iter().chain(of_timers).min().filter(|at| *at < self.to)?;
            let slot = self.slot(at);
            if slot.orgs > 0 {
                return Some(slot);
            }
        }
    }
}

/// Orgs whose next fire an operator moved. Timers say how many fire when, but not of which group they are: an org that is
/// missing at the first slot of its group is one that fired before, or that fires later and has no slot until then.
struct MovedOrgs {
    /// How many orgs of each group fire later than at its first slot.
    away: Vec<u64>,
    /// How many orgs fire before the first slot of their group.
    early: u64,
}

/// The orgs of the timers of a time.
struct Settled {
    /// Orgs of groups that have their first slot.
    stayed: u64,
    /// Orgs of groups that have no slot at this time.
    others: u64,
}

impl MovedOrgs {
    /// Accounts for all times before this one.
    fn before(schedule: &OrgSchedule, from: Timestamp) -> MovedOrgs {
        let mut moved = MovedOrgs { away: vec![0; schedule.groups.len()], early: 0 };
        let Some(armed) = &schedule.armed else { return moved };
        let mut times: BTreeMap<Timestamp, (Vec<usize>, u64)> = BTreeMap::new();
        for (index, group) in schedule.groups.iter().enumerate() {
            if let Some(first) = group.first_slot.filter(|first| *first < from) {
                times.entry(first).or_default().0.push(index);
            }
        }
        for (at, (orgs, _)) in armed.range(..from) {
            times.entry(*at).or_default().1 = *orgs;
        }
        for (first, timers) in times.values() {
            moved.settle(&schedule.groups, (first, &[]), *timers);
        }
        moved
    }

    /// The orgs of a group that fire at its slot, which is not its first one.
    fn present(&self, groups: &[Group], index: usize) -> u64 {
        groups[index].orgs.saturating_sub(self.away[index])
    }

    /// Accounts for the timers of a time at which these groups have their first slot, and others a later one.
    fn settle(&mut self, groups: &[Group], (first, later): (&[usize], &[usize]), timers: u64) -> Settled {
        let expected: u64 = first.iter().map(|index| groups[*index].orgs).sum();
        let stayed = timers.min(expected);
        let mut missing = expected - stayed;
        let fired = missing.min(self.early);
        (self.early, missing) = (self.early - fired, missing - fired);
        for index in first {
            let own = missing.min(groups[*index].orgs);
            (self.away[*index], missing) = (own, missing - own);
        }
        // Further timers are of orgs that were away: of those that have a slot, and then of any other. Or they fire early.
        let mut others = self.back(later.iter().copied(), timers - stayed);
        let strangers = others;
        if others > 0 {
            others = self.back(0..groups.len(), others);
        }
        self.early += others;
        Settled { stayed, others: strangers }
    }

    /// Lets as many orgs of these groups come back. Returns how many are left.
    fn back(&mut self, groups: impl Iterator<Item = usize>, mut orgs: u64) -> u64 {
        for index in groups {
            let own = orgs.min(self.away[index]);
            (self.away[index], orgs) = (self.away[index] - own, orgs - own);
        }
        orgs
    }
}
