//! How much there is of what.

use std::collections::BTreeMap;

use everbell_core::JobStatus;
use everbell_core::store::{ActiveCount, Counts, JobCount, TargetCount};
use jiff::Timestamp;

use super::jobs::is_one_time;
use super::state::{State, micros};

impl State {
    pub(super) fn count_targets(&self) -> Vec<TargetCount> {
        let mut targets = BTreeMap::new();
        for job in self.jobs.values().filter(|job| job.state.status != JobStatus::Retired) {
            let (target, status) = (&job.definition.target, job.state.status);
            let none = || TargetCount { target: target.clone(), status, jobs: 0 };
            targets.entry((target, status.as_str())).or_insert_with(none).jobs += 1;
        }
        targets.into_values().collect()
    }

    pub(super) fn counts(&self, now: Timestamp) -> Counts {
        let now = micros(now);
        // Keyed by words, which say in which order they are told.
        let mut jobs = BTreeMap::new();
        for job in self.jobs.values() {
            let one_time = is_one_time(&job.definition);
            let status = job.state.status;
            jobs.entry((status.as_str(), one_time)).or_insert(JobCount { status, one_time, jobs: 0 }).jobs += 1;
        }
        let mut active = BTreeMap::new();
        for run in self.active.values().map(|active| &active.run) {
            let none = || ActiveCount { target: run.target.clone(), status: run.status, runs: 0 };
            active.entry((run.target.as_str(), run.status.as_str())).or_insert_with(none).runs += 1;
        }
        let is_errored = |state: &everbell_core::JobState| state.error.is_some() && state.status != JobStatus::Retired;
        let due: Vec<Timestamp> =
            self.timers.values().filter_map(|timer| timer.next_run_at).filter(|at| *at <= now).collect();
        Counts {
            jobs: jobs.into_values().collect(),
            errored_jobs: self.jobs.values().filter(|job| is_errored(&job.state)).count() as u64,
            active_runs: active.into_values().collect(),
            due_timers: due.len() as u64,
            oldest_due_at: due.into_iter().min(),
        }
    }
}
