//! [`Timing`]: when a draft fires, as it was written down.

use std::time::Duration;

use jiff::Timestamp;

use crate::after::{After, ChainOn};
use crate::fan_in::GroupBy;

/// When a draft fires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Timing {
    /// At the times of a cron expression or macro.
    Cron(String),
    /// At a fixed rate, in whole seconds.
    Every(Duration),
    /// At one time, once.
    Once(Timestamp),
    /// When runs of another job end.
    After {
        /// The key of that job.
        job: String,
        /// The outcomes that count.
        on: ChainOn,
        /// Whether manual runs, reruns and backfills of that job start this one too.
        manual: bool,
    },
    /// When runs of several other jobs have ended.
    AfterAll {
        /// The jobs.
        parents: Vec<ParentDraft>,
        /// The property that runs of one group share.
        group: GroupBy,
        /// The longest wait, from the first end of a group.
        within: Duration,
    },
}

/// One of several jobs that a draft starts after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentDraft {
    /// The key of that job.
    pub job: String,
    /// The outcomes that count.
    pub on: ChainOn,
    /// Whether manual runs, reruns and backfills of that job count too.
    pub manual: bool,
}

impl From<&After> for ParentDraft {
    fn from(after: &After) -> ParentDraft {
        ParentDraft { job: after.job_key.to_string(), on: after.on, manual: after.manual }
    }
}

impl Timing {
    /// Whether the draft starts after other jobs.
    pub(super) fn is_following(&self) -> bool {
        matches!(self, Timing::After { .. } | Timing::AfterAll { .. })
    }
}
