//! The facts about a job that callers ask for most.

use jiff::Timestamp;

use super::answers::{Changed, JobRow};
use crate::ids::{JobId, JobKey, Target};
use crate::job::JobStatus;
use crate::trace_context::TraceContext;

impl JobRow {
    /// Returns the id of this version.
    pub fn id(&self) -> JobId {
        self.job.definition.id
    }

    /// Returns the key, which all versions share.
    pub fn key(&self) -> &JobKey {
        &self.job.definition.key
    }

    /// Returns the number of this version.
    pub fn version(&self) -> u32 {
        self.job.definition.version
    }

    /// Returns the status.
    pub fn status(&self) -> JobStatus {
        self.job.state.status
    }

    /// Returns the number that grows with every change, for `if_revision`.
    pub fn revision(&self) -> u64 {
        self.job.state.revision
    }

    /// Returns the target.
    pub fn target(&self) -> &Target {
        &self.job.definition.target
    }

    /// Returns the trace that the run of a one-time job continues; `None` for recurring jobs.
    pub fn trace_context(&self) -> Option<&TraceContext> {
        self.job.definition.trace_context.as_ref()
    }

    /// Returns when it fires next; for a per-org job, the earliest fire of any org.
    pub fn next_run_at(&self) -> Option<Timestamp> {
        let own = self.timer.as_ref().and_then(|timer| timer.next_run_at);
        own.or_else(|| self.next_for_org.as_ref().map(|(at, _)| *at))
    }
}

impl Changed {
    /// Returns the current version: the one that took over, or the job afterwards.
    pub fn current(&self) -> &JobRow {
        self.successor.as_ref().unwrap_or(&self.job)
    }

    /// Returns the key of the job.
    pub fn key(&self) -> &JobKey {
        self.job.key()
    }

    /// Returns the number of the current version.
    pub fn version(&self) -> u32 {
        self.current().version()
    }

    /// Returns the status of the current version.
    pub fn status(&self) -> JobStatus {
        self.current().status()
    }

    /// Returns when the job fires next; for a per-org job, the earliest fire of any org.
    pub fn next_run_at(&self) -> Option<Timestamp> {
        self.current().next_run_at()
    }
}
