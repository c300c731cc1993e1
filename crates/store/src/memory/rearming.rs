//! Timers that a clock which was ahead has moved into the future, and what is known about time.

use everbell_core::store::{AuditEntry, ClockTrace, Due, FUTURE_TOLERANCE, Rearmed};
use everbell_core::{Job, JobStatus, Run, Timer};
use jiff::{SignedDuration, Timestamp};

use super::state::{Owner, State, micros};

impl State {
    pub(super) fn clock_trace(&self) -> ClockTrace {
        let runs = self.runs().map(|run| run.created_at);
        let jobs = self.jobs.values().map(|job| job.definition.created_at);
        let audit = self.audit.values().map(|entry| entry.at);
        ClockTrace { trusted_at: self.trusted_at, newest_at: runs.chain(jobs).chain(audit).max().map(micros) }
    }

    pub(super) fn rearm_timers(
        &mut self,
        now: Timestamp,
        lease_until: Timestamp,
        limit: u32,
        audit: &AuditEntry,
    ) -> Rearmed {
        let (now, lease_until) = (micros(now), micros(lease_until));
        let horizon = now.checked_add(SignedDuration::try_from(FUTURE_TOLERANCE).unwrap_or_default());
        let horizon = horizon.unwrap_or(Timestamp::MAX);
        let owners = self.timers.iter().filter(|(owner, timer)| self.is_false(owner, timer, horizon));
        let dues: Vec<Due> = owners.take(limit as usize).filter_map(|(owner, _)| self.due_of(owner)).collect();
        let mut rearmed = Rearmed { timers: dues.len() as u32, ..Rearmed::default() };
        for due in &dues {
            let owner: Owner = (due.job.id, due.timer.org.clone());
            let active = self.jobs.get(&owner.0).is_some_and(|job| job.state.status == JobStatus::Active);
            let timer = due.rearm(now);
            let next_run_at = timer.next_run_at.filter(|_| active).map(micros);
            self.timers.insert(owner.clone(), Timer { next_run_at, ..timer });
            rearmed.gaps += self.cut_gaps(&owner, due, now, horizon);
        }
        for active in self.active.values_mut() {
            if let Some(lease) = active.run.lease_until.as_mut().filter(|lease| **lease > lease_until) {
                *lease = lease_until;
                rearmed.leases += 1;
            }
        }
        for instance in self.instances.values_mut().filter(|instance| instance.heartbeat_at > horizon) {
            instance.heartbeat_at = now;
        }
        if rearmed.timers > 0 {
            self.write_audit(&AuditEntry { reason: Some(rearmed.to_string()), ..audit.clone() });
        }
        rearmed
    }

    /// Whether the mark of a timer comes from after `horizon`.
    fn is_false(&self, owner: &Owner, timer: &Timer, horizon: Timestamp) -> bool {
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
        // A one-time job that ran has had its slot.
        let is_over = || job.definition.is_one_time() && self.runs().any(|run| State::is_of(run, owner, mark));
        mark > horizon && (by_version || by_run() || by_gap()) && !is_over()
    }

    fn is_of(run: &Run, owner: &Owner, slot: Timestamp) -> bool {
        run.job_id == Some(owner.0) && run.org == owner.1 && run.slot_at == Some(slot)
    }

    fn cut_gaps(&mut self, owner: &Owner, due: &Due, now: Timestamp, horizon: Timestamp) -> u32 {
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
