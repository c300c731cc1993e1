//! A look at the latest runs of many jobs: strips, charts and timelines, without what a run was given or said.

use std::time::Duration;

use jiff::Timestamp;

use crate::failure::FailureCode;
use crate::ids::{Invalid, JobId, JobKey, RunId};
use crate::run::{self, Run, RunStatus, SkipReason, TriggerType};

/// Selects the newest runs of each of these jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecentRuns {
    keys: Vec<JobKey>,
    each: u32,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
}

impl RecentRuns {
    /// The most jobs.
    pub const MAX_KEYS: usize = 200;
    /// The most runs of a job.
    pub const MAX_RUNS_PER_KEY: u32 = 1_000;
    /// The most runs in all: jobs times runs of each.
    pub const MAX_RUNS: usize = 20_000;

    /// Asks for the newest `each` runs of all versions of each of these jobs. Duplicate keys count once; an unknown key
    /// is no error.
    pub fn new(mut keys: Vec<JobKey>, each: u32) -> Result<RecentRuns, Invalid> {
        keys.sort_unstable();
        keys.dedup();
        if keys.len() > RecentRuns::MAX_KEYS {
            return Err(Invalid::new("keys", format!("must be at most {}, not {}", RecentRuns::MAX_KEYS, keys.len())));
        }
        if !(1..=RecentRuns::MAX_RUNS_PER_KEY).contains(&each) {
            return Err(Invalid::new(
                "each",
                format!("must be from 1 to {}, not {each}", RecentRuns::MAX_RUNS_PER_KEY),
            ));
        }
        if keys.len() * each as usize > RecentRuns::MAX_RUNS {
            let reason = format!("{each} runs of {} jobs are more than {} in all", keys.len(), RecentRuns::MAX_RUNS);
            return Err(Invalid::new("each", reason));
        }
        Ok(RecentRuns { keys, each, from: None, to: None })
    }

    /// Returns the most runs of each job that a list of this many jobs can have.
    pub fn most_each(keys: usize) -> u32 {
        (RecentRuns::MAX_RUNS / keys.max(1)).clamp(1, RecentRuns::MAX_RUNS_PER_KEY as usize) as u32
    }

    /// Only runs whose time ([`RunId::time`]) is at or after this.
    #[must_use]
    pub fn from(self, from: Timestamp) -> RecentRuns {
        RecentRuns { from: Some(from), ..self }
    }

    /// Only runs whose time is before this.
    #[must_use]
    pub fn to(self, to: Timestamp) -> RecentRuns {
        RecentRuns { to: Some(to), ..self }
    }

    /// The jobs, in order.
    pub fn keys(&self) -> &[JobKey] {
        &self.keys
    }

    /// How many runs of each.
    pub fn each(&self) -> u32 {
        self.each
    }

    /// From when until when: `[from, to)`.
    pub fn window(&self) -> (Option<Timestamp>, Option<Timestamp>) {
        (self.from, self.to)
    }
}

/// A run of a job as far as a chart shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunSummary {
    /// Its id.
    pub id: RunId,
    /// The version that created it.
    pub job_id: JobId,
    /// The key of the job.
    pub job_key: JobKey,
    /// The job's version.
    pub job_version: u32,
    /// Its current status.
    pub status: RunStatus,
    /// Its cause.
    pub trigger: TriggerType,
    /// When it should start.
    pub scheduled_at: Timestamp,
    /// When it was written.
    pub created_at: Timestamp,
    /// When the last attempt started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// Why it failed.
    pub failure_code: Option<FailureCode>,
    /// Why it was skipped.
    pub skip: Option<SkipReason>,
    /// The current or last attempt, from 1; 0 before the first.
    pub attempt: u32,
}

impl RunSummary {
    /// The summary of a run; `None` for a trial of a target, which has no job.
    pub fn from_run(run: &Run) -> Option<RunSummary> {
        let job = (run.job_id?, run.job_key.clone()?, run.job_version?);
        Some(RunSummary {
            started_at: run.started_at,
            finished_at: run.finished_at,
            failure_code: run.failure.as_ref().map(|failure| failure.code.clone()),
            skip: run.skip.clone(),
            attempt: run.attempt,
            ..RunSummary::new(run.id, job, run.status, run.trigger.kind(), (run.scheduled_at, run.created_at))
        })
    }

    /// The summary of a run of this version, scheduled and created at these times, of which nothing else is known.
    pub fn new(
        id: RunId,
        (job_id, job_key, job_version): (JobId, JobKey, u32),
        status: RunStatus,
        trigger: TriggerType,
        (scheduled_at, created_at): (Timestamp, Timestamp),
    ) -> RunSummary {
        RunSummary {
            id,
            job_id,
            job_key,
            job_version,
            status,
            trigger,
            scheduled_at,
            created_at,
            started_at: None,
            finished_at: None,
            failure_code: None,
            skip: None,
            attempt: 0,
        }
    }

    /// See [`Run::fire_lag`](crate::Run::fire_lag).
    pub fn fire_lag(&self) -> Option<Duration> {
        run::fire_lag(self.trigger, self.attempt, self.scheduled_at, self.started_at)
    }

    /// See [`Run::duration`](crate::Run::duration).
    pub fn duration(&self) -> Option<Duration> {
        run::duration(self.started_at, self.finished_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(count: usize) -> Vec<JobKey> {
        (0..count).map(|number| JobKey::new(&format!("job-{number}")).unwrap()).collect()
    }

    #[test]
    fn recent_runs_are_bounded() {
        for (jobs, each) in [(0, 1), (1, 1_000), (20, 1_000), (200, 100), (50, 30)] {
            assert!(RecentRuns::new(keys(jobs), each).is_ok(), "{jobs} x {each}");
        }
        for (jobs, each, field, reason) in [
            (201, 1, "keys", "at most 200"),
            (1, 0, "each", "from 1 to 1000"),
            (1, 1_001, "each", "from 1 to 1000"),
            (21, 1_000, "each", "more than 20000 in all"),
        ] {
            let refused = RecentRuns::new(keys(jobs), each).unwrap_err();
            assert_eq!(refused.field, field);
            assert!(refused.reason.contains(reason), "{refused}");
        }
        for jobs in [0, 1, 7, 20, 21, 100, 200] {
            assert!(RecentRuns::new(keys(jobs), RecentRuns::most_each(jobs)).is_ok(), "{jobs}");
        }
        assert_eq!((RecentRuns::most_each(1), RecentRuns::most_each(100)), (1_000, 200));
    }

    #[test]
    fn a_key_that_is_named_twice_counts_once() {
        let twice = [keys(200), keys(200)].concat();
        assert_eq!(RecentRuns::new(twice, 100).unwrap().keys().len(), 200);
    }
}
