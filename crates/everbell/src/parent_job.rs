//! [`ParentJob`] and [`ParentJobs`]: the jobs whose runs start another one.

use std::time::Duration;

use everbell_core::after::ChainOn;
use everbell_core::fan_in::{DEFAULT_WITHIN, GroupBy};
use everbell_core::{ParentDraft, Timing};

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

/// The jobs whose runs together start another one: see [`Schedule::after_all`](crate::Schedule::after_all).
///
/// ```
/// use everbell::{ChainOn, ParentJob, ParentJobs, Schedule};
/// use std::time::Duration;
///
/// let report = Schedule::after_all("report", ["orders", "prices"]).target("report");
/// let day = ParentJobs::new([ParentJob::new("orders"), ParentJob::new("prices").on(ChainOn::Any)])
///     .by_local_date()
///     .within(Duration::from_hours(6));
/// let close = Schedule::after_all("close", day).tz("Europe/Paris").target("close");
/// assert!(report.check().is_ok() && close.check().is_ok());
/// assert!(Schedule::after_all("report", ["orders", "orders"]).target("report").check().is_err(), "each once");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentJobs {
    parents: Vec<ParentJob>,
    group: GroupBy,
    within: Duration,
}

impl ParentJobs {
    /// These jobs, 2 to 20, with runs of the same slot, at most 24 hours apart.
    pub fn new(parents: impl IntoIterator<Item = impl Into<ParentJob>>) -> ParentJobs {
        let parents = parents.into_iter().map(Into::into).collect();
        ParentJobs { parents, group: GroupBy::Slot, within: DEFAULT_WITHIN }
    }

    /// Waits for runs of the same local date, in the time zone of the job that waits, instead of the same slot.
    #[must_use]
    pub fn by_local_date(self) -> ParentJobs {
        ParentJobs { group: GroupBy::LocalDate, ..self }
    }

    /// Sets the longest wait from the first end, 1 minute to 31 days: default 24 hours. Then the start is left out, and
    /// becomes a gap.
    #[must_use]
    pub fn within(self, within: Duration) -> ParentJobs {
        ParentJobs { within, ..self }
    }

    pub(crate) fn into_timing(self) -> Timing {
        let draft = |parent: ParentJob| ParentDraft { job: parent.key, on: parent.on, manual: parent.manual };
        let parents = self.parents.into_iter().map(draft).collect();
        Timing::AfterAll { parents, group: self.group, within: self.within }
    }
}

impl<T: Into<ParentJob>, const N: usize> From<[T; N]> for ParentJobs {
    fn from(parents: [T; N]) -> ParentJobs {
        ParentJobs::new(parents)
    }
}

impl<T: Into<ParentJob>> From<Vec<T>> for ParentJobs {
    fn from(parents: Vec<T>) -> ParentJobs {
        ParentJobs::new(parents)
    }
}
