//! Timers that a clock which was ahead has moved into the future.

use everbell_core::store::Due;
use everbell_core::{Job, JobStatus, Run, Timer};
use jiff::Timestamp;

use super::state::{Owner, State};

impl State {
    /// Whether the mark of a timer comes from after `horizon`.
    pub(super) fn is_false(&self, owner: &Owner, timer: &Timer, horizon: Timestamp) -> bool {
        let Some(job) = self.jobs.get(&owner.0).filter(|job| job.state.status != JobStatus::Retired) else {
            return false;
        };
        let mark = timer.last_slot_at;
        let key = &job.definition.key;
        let is_version = |other: Option<&Job>| other.is_some_and(|other| other.definition.key == *key);
        let by_version =
            [job.definition.created_at, job.state.updated_at].iter().any(|at| *at > horizon && mark >= *at);
        let by_run = || {
            self.runs().any(|run| {
                run.slot_at == Some(mark)
                    && run.org == owner.1
                    && run.created_at > horizon
                    && is_version(run.job_id.and_then(|id| self.jobs.get(&id)))
            })
        };
        let by_gap = || {
            self.gaps.values().any(|gap| {
                gap.gap.last_slot_at == mark
                    && gap.owner.1 == owner.1
                    && gap.created_at > horizon
                    && is_version(self.jobs.get(&gap.owner.0))
            })
        };
        // A one-time job that ran has had its slot, also if a resume has moved its mark beyond that.
        let has_slot = |run: &Run| run.job_id == Some(owner.0) && run.org == owner.1 && run.slot_at.is_some();
        let is_over = || job.definition.is_one_time() && self.runs().any(has_slot);
        mark > horizon && (by_version || by_run() || by_gap()) && !is_over()
    }

    pub(super) fn cut_gaps(&mut self, owner: &Owner, due: &Due, now: Timestamp, horizon: Timestamp) -> u32 {
        let gaps = self.gaps.iter().filter(|(_, gap)| gap.owner == *owner && gap.created_at > horizon);
        let cut: Vec<_> = gaps
            .filter(|(_, gap)| gap.gap.last_slot_at > now)
            .map(|(id, gap)| (*id, due.cut_gap(&gap.gap, now)))
            .collect();
        for (id, left) in &cut {
            match (left, self.gaps.get_mut(id)) {
                (Some(left), Some(gap)) => gap.gap = left.clone(),
                _ => drop(self.gaps.remove(id)),
            }
        }
        cut.len() as u32
    }
}
