//! The state of one job and its runs.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::{JobSimulation, Scenario, SimulatedJob, SimulatedRun, SlotRecord, SlotStatus, slots_between};
use crate::failure::EarlierAttempt;
use crate::ids::RunId;
use crate::job::{Definition, Timer};
use crate::plan::{self, PlanContext, just_before};
use crate::run::{ActiveRun, Gap, GapReason, NewRun, RunStatus};

/// A run that has not ended.
pub(super) struct Active {
    /// Its place in the records of the job.
    pub(super) record: usize,
    pub(super) status: RunStatus,
    pub(super) held: bool,
    pub(super) cancel_requested: bool,
    /// Its instance is gone.
    pub(super) lost: bool,
    pub(super) attempt: u32,
    pub(super) earlier: Vec<EarlierAttempt>,
    pub(super) available_at: Timestamp,
}

pub(super) struct JobState<'a> {
    pub(super) definition: &'a Definition,
    pub(super) duration: Duration,
    pub(super) timer: Timer,
    /// By id, which is the order of slots.
    pub(super) active: BTreeMap<RunId, Active>,
    /// How many of them are at work.
    pub(super) running: u32,
    pub(super) failures: u32,
    pub(super) succeeded_at: Option<Timestamp>,
    pub(super) result: JobSimulation,
}

impl Active {
    pub(super) fn seen(&self, id: RunId) -> ActiveRun {
        ActiveRun { id, held: self.held, cancel_requested: self.cancel_requested, backfill: false }
    }
}

impl SlotRecord {
    pub(super) fn begin_attempt(&mut self, now: Timestamp) {
        self.status = SlotStatus::Running;
        if let Some(run) = &mut self.run {
            run.started_at = run.started_at.or(Some(now));
            run.attempts.push((now, None));
        }
    }

    pub(super) fn end_attempt(&mut self, now: Timestamp) {
        if let Some((_, ended_at)) = self.run.as_mut().and_then(|run| run.attempts.last_mut()) {
            *ended_at = ended_at.or(Some(now));
        }
    }
}

impl<'a> JobState<'a> {
    pub(super) fn new(job: &'a SimulatedJob, scenario: &Scenario) -> JobState<'a> {
        let definition = &job.definition;
        let blank = Timer {
            job_id: definition.id,
            org: None,
            next_run_at: None,
            last_slot_at: just_before(scenario.from),
            rescheduled_from: None,
            last_local_date: None,
        };
        let error = definition.spec.as_ref().err().map(|unreadable| unreadable.reason.clone());
        let slots = slots_between(definition, scenario.from, scenario.to);
        JobState {
            definition,
            duration: job.duration,
            timer: plan::arm(definition, &blank, &PlanContext::default()),
            active: BTreeMap::new(),
            running: 0,
            failures: 0,
            succeeded_at: None,
            result: JobSimulation { slots, error, ..JobSimulation::default() },
        }
    }

    pub(super) fn add_gap(&mut self, gap: &Gap) {
        let Gap { first_slot_at, last_slot_at, slots, reason, .. } = *gap;
        if reason == GapReason::DstGap {
            self.result.dst_gaps.push(first_slot_at);
            return;
        }
        let status = SlotStatus::Gap(reason);
        self.result.records.push(SlotRecord { first_slot_at, last_slot_at, slots, status, run: None });
    }

    /// Records a run, and returns its id if it is to start.
    pub(super) fn add_run(&mut self, new: NewRun) -> Option<RunId> {
        let NewRun { id, slot_at, scheduled_at, skip, held, catch_up, folded, .. } = new;
        let slot = slot_at.unwrap_or(scheduled_at);
        let is_skipped = skip.is_some();
        let run =
            SimulatedRun { scheduled_at, started_at: None, finished_at: None, attempts: Vec::new(), catch_up, folded };
        self.result.records.push(SlotRecord {
            first_slot_at: slot,
            last_slot_at: slot,
            slots: 1,
            status: skip.map_or(SlotStatus::Waiting, SlotStatus::Skipped),
            run: Some(run).filter(|_| !is_skipped),
        });
        if is_skipped {
            return None;
        }
        let active = Active {
            record: self.result.records.len() - 1,
            status: RunStatus::Pending,
            held,
            cancel_requested: false,
            lost: false,
            attempt: 0,
            earlier: Vec::new(),
            available_at: scheduled_at,
        };
        self.active.insert(id, active);
        Some(id)
    }

    /// Accounts for the slots that no plan decided about.
    pub(super) fn finish(self, to: Timestamp) -> JobSimulation {
        let (mark, last, mut result) = (self.timer.last_slot_at, just_before(to), self.result);
        if let Ok(spec) = &self.definition.spec {
            result.dst_gaps.extend(spec.dst_skipped_between(mark, last));
            let slots = spec.count_between(mark, last);
            if let (1.., Some(first_slot_at), Some(last_slot_at)) =
                (slots, spec.next_after(mark), spec.prev_at_or_before(last))
            {
                let paused = SlotStatus::Gap(GapReason::Paused);
                let status = result.paused_at.map_or(SlotStatus::Undecided, |_| paused);
                result.records.push(SlotRecord { first_slot_at, last_slot_at, slots, status, run: None });
            }
        }
        result.records.sort_by_key(|record| record.first_slot_at);
        result
    }
}
