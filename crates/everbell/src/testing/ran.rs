//! Assertions about runs, for tests.

use std::fmt;

use everbell_core::{Gap, GapReason, Run, RunStatus};
use jiff::Timestamp;
use serde::Serialize;

use super::bell::IntoTime;

/// The runs of a job that started, or that were skipped, oldest first. Each assertion fails the test with all of them.
#[derive(Clone, Debug)]
pub struct Ran {
    pub(super) key: String,
    /// `ran`, or `was skipped`.
    pub(super) verb: &'static str,
    pub(super) runs: Vec<Run>,
}

#[allow(clippy::return_self_not_must_use, reason = "the question is asked, whether or not another one follows")]
impl Ran {
    /// Asserts the number of runs.
    #[track_caller]
    pub fn times(self, times: usize) -> Ran {
        let (key, verb, found) = (&self.key, self.verb, self.runs.len());
        assert!(found == times, "job `{key}` {verb} {found} time(s), not {times}:{self}");
        self
    }

    /// Asserts that each has this payload.
    #[track_caller]
    pub fn with_payload(self, payload: &impl Serialize) -> Ran {
        let wanted = serde_json::to_value(payload).unwrap_or_else(|error| panic!("the payload is not JSON: {error}"));
        for run in &self.runs {
            let found: Option<serde_json::Value> = serde_json::from_str(run.payload.as_str()).ok();
            assert!(found.as_ref() == Some(&wanted), "a payload is {}, not {wanted}:{self}", run.payload);
        }
        self
    }

    /// Asserts the times of the runs: the slots, or when they were asked for.
    #[track_caller]
    pub fn at<T: IntoTime>(self, times: impl IntoIterator<Item = T>) -> Ran {
        let wanted: Vec<Timestamp> = times.into_iter().map(IntoTime::into_time).collect();
        let found: Vec<Timestamp> = self.runs.iter().map(|run| run.slot_at.unwrap_or(run.scheduled_at)).collect();
        assert!(found == wanted, "job `{}` did not run at {wanted:?}:{self}", self.key);
        self
    }

    /// Asserts that each has this status.
    #[track_caller]
    pub fn with_status(self, status: RunStatus) -> Ran {
        assert!(self.runs.iter().all(|run| run.status == status), "not every run is {status}:{self}");
        self
    }

    /// Asserts that each was skipped for this reason: `overlap`, `dependency` or `operator`.
    #[track_caller]
    pub fn because(self, reason: &str) -> Ran {
        let fits = |run: &Run| run.skip.as_ref().is_some_and(|skip| skip.as_str() == reason);
        assert!(self.runs.iter().all(fits), "not every run was skipped because of `{reason}`:{self}");
        self
    }

    /// Asserts that each failed with this code.
    #[track_caller]
    pub fn failed_with(self, code: &str) -> Ran {
        let fails = |run: &Run| run.failure.as_ref().is_some_and(|failure| failure.code.as_str() == code);
        assert!(self.runs.iter().all(fails), "not every run failed with `{code}`:{self}");
        self
    }

    /// Returns the runs, for further assertions.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }
}

impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.runs.is_empty() {
            return write!(f, " it never {}", self.verb);
        }
        self.runs.iter().try_for_each(|run| {
            let failure =
                run.failure.as_ref().map(|failure| format!(" {}: {}", failure.code.as_str(), failure.message));
            let why = failure.or_else(|| run.skip.as_ref().map(|skip| format!(" {}: {skip}", skip.as_str())));
            write!(f, "\n  {} {}{} with {}", run.scheduled_at, run.status, why.unwrap_or_default(), run.payload)
        })
    }
}

/// The slots of a job that got no run, as rows of slots with the same reason, oldest first. Each assertion fails the test
/// with all of them.
#[derive(Clone, Debug)]
pub struct Gaps {
    pub(super) key: String,
    pub(super) gaps: Vec<Gap>,
}

#[allow(clippy::return_self_not_must_use, reason = "the question is asked, whether or not another one follows")]
impl Gaps {
    /// Asserts the number of slots without a run.
    #[track_caller]
    pub fn slots(self, slots: u64) -> Gaps {
        let found: u64 = self.gaps.iter().map(|gap| gap.slots).sum();
        assert!(found == slots, "job `{}` has {found} slot(s) without a run, not {slots}:{self}", self.key);
        self
    }

    /// Asserts that all of them have this reason: [`GapReason::Missed`], [`GapReason::Coalesced`] and others.
    #[track_caller]
    pub fn because(self, reason: GapReason) -> Gaps {
        let fits = self.gaps.iter().all(|gap| gap.reason == reason);
        assert!(fits, "not every gap of job `{}` is `{reason}`:{self}", self.key);
        self
    }

    /// Returns the gaps, for further assertions.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }
}

impl fmt::Display for Gaps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.gaps.is_empty() {
            return write!(f, " it has no gap");
        }
        self.gaps.iter().try_for_each(|gap| {
            let Gap { first_slot_at, last_slot_at, slots, reason, .. } = gap;
            write!(f, "\n  {first_slot_at} to {last_slot_at}: {slots} slot(s), {reason}")
        })
    }
}

/// The number of runs by their final status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// Succeeded runs.
    pub succeeded: usize,
    /// Failed runs.
    pub failed: usize,
    /// Canceled runs.
    pub canceled: usize,
}
