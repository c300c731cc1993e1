//! A run as events describe it, and the work of loops.

use everbell_core::{JobKey, OrgId, RunId, Target, TriggerType};

/// The kind of work that a loop looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Round {
    /// Due timers, to plan runs.
    Plan,
    /// Pending runs, to start them.
    Start,
}

impl Round {
    /// `plan` or `start`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Round::Plan => "plan",
            Round::Start => "start",
        }
    }
}

/// A run, as events describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunInfo {
    /// Its id.
    pub id: RunId,
    /// The key of its job; `None` for a trial of a target.
    pub job: Option<JobKey>,
    /// Its org.
    pub org: Option<OrgId>,
    /// Its target.
    pub target: Target,
    /// Its cause.
    pub trigger: TriggerType,
    /// The attempt, from 1.
    pub attempt: u32,
}

impl RunInfo {
    pub(super) fn job(&self) -> &str {
        self.job.as_ref().map_or("-", JobKey::as_str)
    }
}
