//! The decision of a backfill: which slots are next, and how many of them may run now.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Backfill, BackfillOrder, BackfillStatus, OpenRun};
use crate::ids::RunId;
use crate::job::{Definition, Timer};
use crate::org;
use crate::run::{ActiveRun, NewRun, Trigger};
use crate::spec::Spec;

/// The most slots that one step looks at.
pub const MAX_CHUNK: usize = 500;

/// The state that a chunk is decided from.
#[derive(Clone, Copy, Debug)]
pub struct ChunkInput<'a> {
    /// The current version of the job.
    pub job: &'a Definition,
    /// The schedule of the job, or of the org.
    pub spec: &'a Spec,
    /// The timer. Slots after its mark are still to be planned.
    pub timer: &'a Timer,
    /// The active runs of the job and org.
    pub active: &'a [ActiveRun],
    /// The slots that were looked up, and whether they have a run already.
    pub known: &'a BTreeMap<Timestamp, bool>,
    /// The most active runs of a job.
    pub max_active: u32,
    /// The current time.
    pub now: Timestamp,
}

impl Backfill {
    /// Returns the next slots, in its order, at most `limit`.
    pub fn next_slots(&self, spec: &Spec, limit: usize) -> Vec<Timestamp> {
        let mut slots = self.again.clone();
        let (after, until) = self.unreached();
        match self.settings.order {
            BackfillOrder::Oldest => {
                slots.extend(spec.own_times_after(after).take_while(|slot| *slot <= until).take(limit));
            }
            BackfillOrder::Newest => {
                slots.reverse();
                let before = |slot: &Timestamp| spec.last_own_time(crate::plan::just_before(*slot));
                let back = std::iter::successors(spec.last_own_time(until), before);
                slots.extend(back.take_while(|slot| *slot > after).take(limit));
            }
        }
        slots.truncate(limit);
        slots
    }

    /// Counts the runs that it may create now.
    pub fn room(&self, job: &Definition, active: &[ActiveRun], max_active: u32, now: Timestamp) -> u32 {
        // Without a limit of its own it shares that of the job with the other backfills of the job.
        let own = self.open.len();
        let taken = match self.settings.parallel {
            Some(_) => own,
            None => own.max(active.iter().filter(|run| run.backfill).count()),
        };
        let places = (self.limit(&job.policies) as usize).saturating_sub(taken);
        // One place is for a run by hand.
        let pending = (max_active as usize).saturating_sub(active.len() + 1);
        let room = places.min(pending).min(MAX_CHUNK) as u32;
        self.settings.rate.map_or(room, |rate| room.min(rate.allowed(self.next_at, now)))
    }

    /// Creates runs for its next slots, as many as its places and its rate allow. Passes over slots that have a run, and stops
    /// before a slot that was not looked up or that the schedule has yet to plan.
    pub fn next_chunk(&mut self, input: &ChunkInput<'_>) -> Vec<NewRun> {
        let room = self.room(input.job, input.active, input.max_active, input.now);
        if self.status != BackfillStatus::Running || room == 0 {
            return Vec::new();
        }
        let mut runs = Vec::new();
        for slot in self.next_slots(input.spec, MAX_CHUNK) {
            let is_planned = input.spec.fires_at(slot).unwrap_or(slot) <= input.timer.last_slot_at;
            let Some(exists) = input.known.get(&slot).filter(|_| is_planned) else { break };
            if *exists {
                self.counts.existing += 1;
            } else if runs.len() == room as usize {
                break;
            } else {
                runs.push(self.run_of(slot, input));
            }
            self.reach(slot);
        }
        self.counts.created += runs.len() as u64;
        self.open.extend(runs.iter().map(|run| OpenRun { id: run.id, slot: run.scheduled_at }));
        if let Some(rate) = self.settings.rate.filter(|_| !runs.is_empty()) {
            self.next_at = crate::micros::micros(rate.after(self.next_at, input.now, runs.len() as u32));
        }
        runs
    }

    fn reach(&mut self, slot: Timestamp) {
        match self.again.binary_search(&slot) {
            Ok(place) => drop(self.again.remove(place)),
            Err(_) => self.reached = Some(slot),
        }
    }

    fn run_of(&self, slot: Timestamp, input: &ChunkInput<'_>) -> NewRun {
        let org = self.org.as_ref();
        NewRun {
            id: RunId::for_slot(input.job.id, org, slot),
            slot_at: Some(slot),
            scheduled_at: slot,
            trigger: Trigger::Backfill(self.id),
            skip: None,
            held: false,
            parallel: None,
            catch_up: true,
            folded: 0,
            local_date: org.map(|_| org::local_date(input.spec, slot)),
            payload: None,
            trace_context: self.trace_context.clone(),
        }
    }
}
