//! [`Ahead`]: the fires of a job that are still to come: what its timer says first, then what the schedule says. Of a job that
//! fires for each org, those of all its orgs. Slots of a freeze are no fires, but can be counted.

use everbell::JobRow;
use everbell::client::OrgSchedules;
use everbell_core::FrozenSpan;
use everbell_core::freeze::{Freeze, frozen_spans};
use everbell_core::org::{OrgSchedule, OrgSlot};
use everbell_core::{Definition, Scope, Spec, fire_at};
use jiff::{SignedDuration, Timestamp};

use crate::frozen::just_before;

/// The schedule of a job, unless it fires for each org: in whose zone that is, its own does not tell.
pub(super) fn own_spec(job: &JobRow) -> Option<&Spec> {
    let definition = &job.job.definition;
    definition.spec.as_ref().ok().filter(|_| definition.scope == Scope::Global)
}

/// The facts about fires to come, besides the jobs.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) freezes: &'a [Freeze],
    /// The schedules of jobs that fire for each org.
    pub(super) orgs: &'a OrgSchedules,
    pub(super) now: Timestamp,
}

/// A time at which a job fires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fire {
    pub(super) at: Timestamp,
    /// How many runs it has: several for several orgs, or where calendars move several slots to one time.
    pub(super) runs: u64,
    /// The orgs that it fires for, of a job that fires for each.
    pub(super) orgs: Option<OrgSlot>,
}

impl Fire {
    /// Its runs by the minute in which they start.
    pub(super) fn starts(&self) -> Vec<(Timestamp, u64)> {
        self.orgs.as_ref().map_or_else(|| vec![(self.at, self.runs)], |slot| slot.spread().collect())
    }
}

/// The fires of a job that are still to come.
pub(super) struct Ahead<'a> {
    job: &'a Definition,
    slots: Slots<'a>,
    now: Timestamp,
    /// Times in which it does not fire, in order.
    frozen: Vec<FrozenSpan>,
}

enum Slots<'a> {
    Own(Own<'a>),
    Orgs(&'a OrgSchedule),
}

/// The slots of a job that fires once for all orgs.
struct Own<'a> {
    spec: &'a Spec,
    /// The fire of its timer, and the slot that an operator moved there.
    armed: Option<(Timestamp, Option<Timestamp>)>,
    /// Later slots lie after this time.
    after: Timestamp,
}

impl<'a> Ahead<'a> {
    /// Returns `None` if nothing is known of when the job fires next.
    pub(super) fn new(job: &'a JobRow, known: &Known<'a>) -> Option<Ahead<'a>> {
        let definition = &*job.job.definition;
        let slots = match known.orgs.get(definition.id) {
            Some(schedule) => Slots::Orgs(schedule),
            None => Slots::Own(Own::new(job, known.now)?),
        };
        Some(Ahead { job: definition, slots, now: known.now, frozen: frozen_spans(known.freezes, definition) })
    }

    /// The fires in `[from, to)` that no freeze prevents, in order but for those that jitter brings out of it. Fires of orgs
    /// that jitter spreads beyond `from` are among them.
    pub(super) fn fires(&self, from: Timestamp, to: Timestamp) -> Box<dyn Iterator<Item = Fire> + '_> {
        let jitter = self.job.policies.jitter;
        let reach = from.checked_sub(SignedDuration::try_from(jitter).unwrap_or_default()).unwrap_or(from);
        let ranges = self.thawed(reach, to).into_iter();
        match &self.slots {
            Slots::Own(own) => {
                let slots = ranges.flat_map(|(begin, end)| {
                    own.spec.slots_after(just_before(begin).max(own.after)).take_while(move |slot| *slot < end)
                });
                let fires = slots.map(move |slot| fire_at(own.spec, self.job.id, None, slot, jitter));
                let fires = self.first(own).into_iter().chain(fires).filter(move |at| (from..to).contains(at));
                Box::new(fires.map(move |at| Fire { at, runs: own.runs_at(at), orgs: None }))
            }
            Slots::Orgs(schedule) => {
                let slots = ranges.flat_map(|(begin, end)| schedule.slots(begin, end));
                // Jitter spreads an earlier slot up to here.
                let slots = slots.filter(move |slot| slot.at >= from || slot.ends_at() > from);
                Box::new(slots.map(|slot| Fire { at: slot.at, runs: slot.runs, orgs: Some(slot) }))
            }
        }
    }

    /// How many runs the slots of `[from, to)` have that no freeze prevents: by arithmetic, however many there are.
    pub(super) fn count(&self, from: Timestamp, to: Timestamp) -> u64 {
        let ranges = self.thawed(from, to).into_iter();
        match &self.slots {
            Slots::Own(own) => {
                let first = self.first(own).filter(|at| (from..to).contains(at));
                first.map_or(0, |at| own.runs_at(at)) + ranges.map(|range| own.slots(range)).sum::<u64>()
            }
            Slots::Orgs(schedule) => ranges.map(|(from, to)| schedule.count(from, to)).sum(),
        }
    }

    /// How many slots have to be looked at for the fires of `[from, to)`.
    pub(super) fn effort(&self, from: Timestamp, to: Timestamp) -> u64 {
        match &self.slots {
            Slots::Own(_) => self.count(from, to),
            Slots::Orgs(schedule) => {
                self.thawed(from, to).into_iter().map(|(from, to)| schedule.effort(from, to)).sum()
            }
        }
    }

    /// Whether there are more fires than this in `[from, to)`.
    pub(super) fn has_more_than(&self, most: u64, from: Timestamp, to: Timestamp) -> bool {
        self.effort(from, to) > most
            && match &self.slots {
                Slots::Own(_) => true,
                Slots::Orgs(_) => self.fires(from, to).nth(most as usize).is_some(),
            }
    }

    /// Whether it fires more often than every five minutes in the day after this time, for one org if it fires for each.
    pub(super) fn is_frequent(&self, from: Timestamp) -> bool {
        const DAY: SignedDuration = SignedDuration::from_hours(24);
        const MAX_SLOTS_A_DAY: u64 = 24 * 60 / 5;
        let to = from.saturating_add(DAY).unwrap_or(from);
        let slots = match &self.slots {
            Slots::Own(_) => self.count(from, to),
            Slots::Orgs(schedule) => schedule.most_slots(from, to),
        };
        slots > MAX_SLOTS_A_DAY
    }

    /// The times in `[from, to)` in which freezes keep it from firing, with their runs; those without are left out.
    pub(super) fn frozen_slots(&self, from: Timestamp, to: Timestamp) -> Vec<(FrozenSpan, u64)> {
        let clipped =
            self.frozen.iter().map(|span| FrozenSpan { from: span.from.max(from), until: span.until.min(to) });
        let counted = clipped.filter(|span| span.from < span.until).map(|span| match &self.slots {
            Slots::Own(own) => {
                let is_first = |at| own.is_recurring() && span.contains(at) && self.is_frozen(own, at);
                let first = own.armed.filter(|(at, _)| is_first(*at));
                (span, first.map_or(0, |(at, _)| own.runs_at(at)) + own.slots((span.from, span.until)))
            }
            Slots::Orgs(schedule) => (span, schedule.count(span.from.max(self.now), span.until)),
        });
        counted.filter(|(_, slots)| *slots > 0).collect()
    }

    /// The ranges of `[from, to)` in which no freeze keeps it from firing.
    pub(super) fn thawed(&self, from: Timestamp, to: Timestamp) -> Vec<(Timestamp, Timestamp)> {
        let (mut begin, mut ranges) = (from, Vec::new());
        for span in &self.frozen {
            if span.from > begin {
                ranges.push((begin, span.from.min(to)));
            }
            begin = begin.max(span.until);
        }
        ranges.push((begin, to));
        ranges.retain(|(begin, end)| begin < end);
        ranges
    }

    /// The fire of the timer. In a freeze there is none, but a one-time job waits for the end.
    fn first(&self, own: &Own<'_>) -> Option<Timestamp> {
        let (at, _) = own.armed?;
        if !own.is_recurring() {
            return Some(self.frozen.iter().fold(at, |at, span| if span.contains(at) { span.until } else { at }));
        }
        Some(at).filter(|at| !self.is_frozen(own, *at))
    }

    /// Whether the slot of the armed fire lies in a freeze: jitter may bring a fire into one, and it happens all the same.
    fn is_frozen(&self, own: &Own<'_>, armed: Timestamp) -> bool {
        let is_moved = own.armed.is_some_and(|(_, moved)| moved.is_some());
        let is_delayed = !is_moved && !self.job.policies.jitter.is_zero();
        let slot = if is_delayed { own.spec.prev_at_or_before(armed).unwrap_or(armed) } else { armed };
        self.frozen.iter().any(|span| span.contains(slot))
    }
}

impl<'a> Own<'a> {
    fn new(job: &'a JobRow, now: Timestamp) -> Option<Own<'a>> {
        let state = &job.job.state;
        let spec = own_spec(job).filter(|_| state.error.is_none())?;
        let begin = match &state.pause {
            Some(pause) => pause.until?,
            None => now,
        };
        let timer = job.timer.as_ref();
        let armed = timer.and_then(|timer| timer.next_run_at).filter(|_| state.pause.is_none());
        let moved = timer.and_then(|timer| timer.rescheduled_from);
        // A fire that was moved takes the slots with it that it passes.
        let after = armed.map_or(begin, |armed| moved.map_or(armed, |slot| slot.max(armed)).max(now));
        Some(Own { spec, armed: armed.map(|at| (at, moved)), after })
    }

    /// How many runs a fire has. One that an operator moved has those of its own time.
    fn runs_at(&self, at: Timestamp) -> u64 {
        let moved = self.armed.filter(|(armed, _)| *armed == at).and_then(|(_, moved)| moved);
        self.spec.runs_at(moved.unwrap_or(at))
    }

    fn is_recurring(&self) -> bool {
        self.spec.expression().is_some()
    }

    /// The slots of `[begin, end)` after the armed fire.
    fn slots(&self, (begin, end): (Timestamp, Timestamp)) -> u64 {
        let after = just_before(begin).max(self.after);
        // A one-time job has no slot besides the armed one, which may wait.
        if self.is_recurring() || self.armed.is_none() { self.spec.count_between(after, just_before(end)) } else { 0 }
    }
}
