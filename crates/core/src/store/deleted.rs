//! The rows that pruning and purges delete.

/// The rows deleted by a round of pruning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Ended runs.
    pub runs: u64,
    /// The number of gaps.
    pub gaps: u64,
    /// Audit entries.
    pub audit: u64,
    /// Remembered answers.
    pub answers: u64,
    /// Versions of one-time jobs that had finished, with their timers.
    pub jobs: u64,
    /// Answered requests of the inbox.
    pub inbox: u64,
}

/// The rows deleted by one step of [`JobStore::purge_job`](super::JobStore::purge_job).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PurgedJob {
    /// Versions of the job. None before the last step.
    pub versions: u64,
    /// Runs, ended ones and those that had not started.
    pub runs: u64,
    /// The number of gaps.
    pub gaps: u64,
    /// Whether nothing is left of the job.
    pub finished: bool,
}

impl PurgedJob {
    /// A step that leaves something of the job.
    pub fn some(runs: u64, gaps: u64) -> PurgedJob {
        PurgedJob { runs, gaps, ..PurgedJob::default() }
    }

    /// The last step.
    pub fn last(versions: u64, runs: u64, gaps: u64) -> PurgedJob {
        PurgedJob { versions, runs, gaps, finished: true }
    }

    /// Adds what the next step deleted.
    #[must_use]
    pub fn and(self, next: PurgedJob) -> PurgedJob {
        PurgedJob {
            versions: self.versions + next.versions,
            runs: self.runs + next.runs,
            gaps: self.gaps + next.gaps,
            finished: next.finished,
        }
    }
}
