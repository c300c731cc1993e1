//! [`Ahead`]: the fires of a job that are still to come: what its timer says first, then what the schedule says. Slots of a
//! freeze are no fires, but can be counted.

use everbell::JobRow;
use everbell_core::FrozenSpan;
use everbell_core::freeze::{Freeze, frozen_spans};
use everbell_core::{Definition, Scope, Spec, fire_at};
use jiff::{SignedDuration, Timestamp};

use crate::frozen::just_before;

/// The schedule of a job, unless it fires for each org: in whose zone that is, its own does not tell.
pub(super) fn own_spec(job: &JobRow) -> Option<&Spec> {
    let definition = &job.job.definition;
    definition.spec.as_ref().ok().filter(|_| definition.scope == Scope::Global)
}

/// The fires of a job that are still to come.
pub(super) struct Ahead<'a> {
    job: &'a Definition,
    spec: &'a Spec,
    /// The fire of its timer, and whether an operator moved it.
    armed: Option<(Timestamp, bool)>,
    /// Later slots lie after this time.
    after: Timestamp,
    /// Times in which it does not fire, in order.
    frozen: Vec<FrozenSpan>,
}

impl<'a> Ahead<'a> {
    /// Returns `None` if nothing is known of when the job fires next.
    pub(super) fn new(job: &'a JobRow, freezes: &[Freeze], now: Timestamp) -> Option<Ahead<'a>> {
        let (definition, state) = (&*job.job.definition, &job.job.state);
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
        let frozen = frozen_spans(freezes, definition);
        Some(Ahead { job: definition, spec, armed: armed.map(|at| (at, moved.is_some())), after, frozen })
    }

    /// The fires in `[from, to)` that no freeze prevents, in order but for those that jitter brings out of it.
    pub(super) fn fires(&self, from: Timestamp, to: Timestamp) -> impl Iterator<Item = Timestamp> + '_ {
        let jitter = self.job.policies.jitter;
        let reach = from.checked_sub(SignedDuration::try_from(jitter).unwrap_or_default()).unwrap_or(from);
        let slots = self.thawed(reach, to).into_iter().flat_map(|(begin, end)| {
            self.spec.slots_after(just_before(begin).max(self.after)).take_while(move |slot| *slot < end)
        });
        let fires = slots.map(move |slot| fire_at(self.spec, self.job.id, None, slot, jitter));
        self.first().into_iter().chain(fires).filter(move |at| (from..to).contains(at))
    }

    /// How many slots of `[from, to)` no freeze prevents: by arithmetic, however many there are.
    pub(super) fn count(&self, from: Timestamp, to: Timestamp) -> u64 {
        let first = u64::from(self.first().is_some_and(|at| (from..to).contains(&at)));
        first + self.thawed(from, to).into_iter().map(|range| self.slots(range)).sum::<u64>()
    }

    /// Whether it fires more often than every five minutes in the day after this time.
    pub(super) fn is_frequent(&self, from: Timestamp) -> bool {
        const DAY: SignedDuration = SignedDuration::from_hours(24);
        const MAX_SLOTS_A_DAY: u64 = 24 * 60 / 5;
        self.count(from, from.saturating_add(DAY).unwrap_or(from)) > MAX_SLOTS_A_DAY
    }

    /// The times in `[from, to)` in which freezes keep it from firing, with their slots; those without slots are left out.
    pub(super) fn frozen_slots(&self, from: Timestamp, to: Timestamp) -> Vec<(FrozenSpan, u64)> {
        let clipped =
            self.frozen.iter().map(|span| FrozenSpan { from: span.from.max(from), until: span.until.min(to) });
        let counted = clipped.filter(|span| span.from < span.until).map(|span| {
            let first = self.armed.filter(|(at, _)| self.is_recurring() && span.contains(*at) && self.is_frozen(*at));
            (span, u64::from(first.is_some()) + self.slots((span.from, span.until)))
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
    fn first(&self) -> Option<Timestamp> {
        let (at, _) = self.armed?;
        if !self.is_recurring() {
            return Some(self.frozen.iter().fold(at, |at, span| if span.contains(at) { span.until } else { at }));
        }
        Some(at).filter(|at| !self.is_frozen(*at))
    }

    /// Whether the slot of the armed fire lies in a freeze: jitter may bring a fire into one, and it happens all the same.
    fn is_frozen(&self, armed: Timestamp) -> bool {
        let is_moved = self.armed.is_some_and(|(_, moved)| moved);
        let is_delayed = !is_moved && !self.job.policies.jitter.is_zero();
        let slot = if is_delayed { self.spec.prev_at_or_before(armed).unwrap_or(armed) } else { armed };
        self.frozen.iter().any(|span| span.contains(slot))
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
