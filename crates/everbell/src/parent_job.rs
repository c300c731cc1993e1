//! [`ParentJob`]: the job whose runs start another one.

use everbell_core::Timing;
use everbell_core::after::ChainOn;

/// The job whose runs start another one, and which of its runs do: see [`Schedule::after`](crate::Schedule::after). A key
/// alone means each of its successful runs.
///
/// ```
/// use everbell::{ChainOn, ParentJob, Schedule};
///
/// let load = Schedule::after("load", "extract").target("load");
/// let alarm = Schedule::after("alarm", ParentJob::new("extract").on(ChainOn::Failure)).target("page-somebody");
/// assert!(load.check().is_ok() && alarm.check().is_ok());
/// assert!(Schedule::after("load", "load").target("load").check().is_err(), "not after itself");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentJob {
    key: String,
    on: ChainOn,
    manual: bool,
}

impl ParentJob {
    /// The job of this key, with each of its successful runs.
    pub fn new(key: impl Into<String>) -> ParentJob {
        ParentJob { key: key.into(), on: ChainOn::Success, manual: false }
    }

    /// Sets the outcomes that count: default [`ChainOn::Success`]. A failed run has failed in its last attempt.
    #[must_use]
    pub fn on(self, on: ChainOn) -> ParentJob {
        ParentJob { on, ..self }
    }

    /// Counts its runs by hand, reruns and backfills too.
    #[must_use]
    pub fn with_manual_runs(self) -> ParentJob {
        ParentJob { manual: true, ..self }
    }

    pub(crate) fn into_timing(self) -> Timing {
        Timing::After { job: self.key, on: self.on, manual: self.manual }
    }
}

impl<T: Into<String>> From<T> for ParentJob {
    fn from(key: T) -> ParentJob {
        ParentJob::new(key)
    }
}
