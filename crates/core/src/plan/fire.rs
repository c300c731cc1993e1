//! The slots of one time become runs.

use jiff::Timestamp;

use super::overlap::Admission;
use super::{Planner, local_days, unmet_dependency};
use crate::ids::RunId;
use crate::run::{Gap, GapReason, NewRun, SkipReason, Trigger};
use crate::spec::{Spec, When};

/// How the slots of one time come to be run: several, if some moved there from other days.
#[derive(Clone, Copy)]
pub(super) struct Fire {
    /// When they fire.
    pub(super) at: Timestamp,
    pub(super) scheduled_at: Timestamp,
    pub(super) catch_up: bool,
    /// How many slots of earlier times were folded into the last of them.
    pub(super) folded: u64,
    /// Only the last of them gets a run; the others have this reason.
    pub(super) fold: Option<GapReason>,
    /// They wait instead of being skipped: part of a row of missed slots that are all wanted.
    pub(super) patient: bool,
}

impl Planner<'_> {
    /// A run for each slot of this very time, late or not.
    pub(super) fn fire_of(&self, at: Timestamp) -> Fire {
        let (scheduled_at, catch_up) = (self.meant_at(at), self.is_late(at));
        Fire { at, scheduled_at, catch_up, folded: 0, fold: None, patient: false }
    }

    /// Writes the outcomes of the slots of one time and moves the mark to it.
    pub(super) fn fire(&mut self, fire: Fire) {
        let Fire { at, mut folded, .. } = fire;
        self.account_before(at);
        self.mark = self.mark.max(at);
        let mut slots = self.spec.slots_at(at);
        if let Some(reason) = fire.fold.filter(|_| slots.len() > 1) {
            let others = slots.drain(..slots.len() - 1).count() as u64;
            self.gaps.push(Gap { first_slot_at: at, last_slot_at: at, slots: others, reason, actor: None });
            folded += if reason == GapReason::Coalesced { others } else { 0 };
        }
        let last = slots.len().saturating_sub(1);
        for (index, slot) in slots.into_iter().enumerate() {
            // All of them are wanted, so the others wait for the first.
            let follows = index > 0 && self.runs.last().is_some_and(|run| run.skip.is_none());
            let folded = if index == last { folded } else { 0 };
            self.fire_one(slot, &Fire { folded, patient: fire.patient || follows, ..fire });
        }
    }

    /// Writes the outcome of one slot.
    fn fire_one(&mut self, slot: Timestamp, fire: &Fire) {
        let local_date = self.org.map(|_| local_days::local_date(self.spec, slot));
        if local_days::already_ran(self.spec, self.last_local_date, local_date) {
            self.gaps.push(Gap::new(slot, slot, 1, GapReason::Coalesced));
            return;
        }
        self.last_local_date = self.last_local_date.max(local_date);
        let id = RunId::for_slot(self.job.id, self.org, slot);
        let (skip, held) = match unmet_dependency(self.job, self.seen, self.now) {
            Some(reason) => (Some(reason), false),
            None if fire.patient => self.overlaps.wait(id),
            None => match self.overlaps.admit(id) {
                Admission::Start => (None, false),
                Admission::Hold => (None, true),
                Admission::Skip { blocking } => (Some(SkipReason::Overlap { blocking }), false),
            },
        };
        self.runs.push(NewRun {
            id,
            slot_at: Some(slot),
            scheduled_at: fire.scheduled_at,
            trigger: Trigger::Schedule(trigger_text(self.spec)),
            skip,
            held,
            parallel: None,
            catch_up: fire.catch_up,
            folded: fire.folded,
            local_date,
            payload: None,
            trace_context: self.job.trace_context.clone(),
        });
    }
}

fn trigger_text(spec: &Spec) -> String {
    match spec.when() {
        When::Cron(expression) | When::Every { expression, .. } => expression.as_str().to_owned(),
        When::Once(_) => "once".to_owned(),
        When::After(after) => after.to_string(),
        When::AfterAll(fan_in) => fan_in.to_string(),
    }
}
